import type { Entity } from '../api/model.ts';
import { formatBytes } from '../files/format-bytes.ts';
import type { StoredFile } from '../files/stored-file.ts';

const LONGEST_IN_CELL = 120;

/** A field of a row as a table cell shows it. */
export function FieldCell(props: { readonly entity: Entity; readonly field: string; readonly value: unknown }) {
  const { entity, field, value } = props;
  const isFile = Object.hasOwn(entity.attachments, field) && typeof value === 'object' && value !== null;
  if (!isFile) return <CellValue value={value} />;
  const { type, bytes } = value as StoredFile;
  return (
    <>
      {type}, {formatBytes(bytes)}
    </>
  );
}

/** A value as a table cell shows it. */
export function CellValue({ value }: { readonly value: unknown }) {
  if (value === undefined) return <span class="muted">–</span>;
  // A field that cannot be decrypted or loaded.
  if (value === null) return <em class="muted">not readable</em>;
  if (value === '') return <em class="muted">empty text</em>;
  const text = toText(value);
  return <>{text.length > LONGEST_IN_CELL ? `${text.slice(0, LONGEST_IN_CELL)}…` : text}</>;
}

/** A value in full. */
export function FullValue({ value }: { readonly value: unknown }) {
  if (value === undefined || value === null || value === '') return <CellValue value={value} />;
  if (typeof value === 'object') return <pre>{JSON.stringify(value, null, 2)}</pre>;
  return <span class="value">{toText(value)}</span>;
}

export function toText(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
