interface SpanSelectProps<Span extends string> {
  /** Until now, in milliseconds. */
  readonly spans: Readonly<Record<Span, number>>;
  readonly span: Span;
  readonly onChange: (span: Span) => void;
}

/** Chooses of which span changes are shown. */
export function SpanSelect<Span extends string>({ spans, span, onChange }: SpanSelectProps<Span>) {
  return (
    <label>
      Changes of
      <select value={span} onChange={({ currentTarget }) => onChange(currentTarget.value as Span)}>
        {Object.keys(spans).map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}
