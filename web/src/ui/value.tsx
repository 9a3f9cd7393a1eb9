const LONGEST_IN_CELL = 120;

/** A value as a table cell shows it. */
export function CellValue({ value }: { readonly value: unknown }) {
  if (value === undefined) return <span class="muted">–</span>;
  // A field that cannot be decrypted or loaded.
  if (value === null) return <em class="muted">not readable</em>;
  const text = toText(value);
  return <>{text.length > LONGEST_IN_CELL ? `${text.slice(0, LONGEST_IN_CELL)}…` : text}</>;
}

/** A value in full. */
export function FullValue({ value }: { readonly value: unknown }) {
  if (value === undefined || value === null) return <CellValue value={value} />;
  if (typeof value === 'object') return <pre>{JSON.stringify(value, null, 2)}</pre>;
  return <span class="value">{toText(value)}</span>;
}

export function toText(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
