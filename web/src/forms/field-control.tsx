import type { FieldText, FormField } from './fields.ts';

interface FieldControlProps {
  readonly field: FormField;
  readonly text: string;
  readonly onText: (text: FieldText) => void;
  /** Attributes of the control. */
  readonly common: object;
}

/** The control in which a value of a field is typed or chosen. */
export function FieldControl(props: FieldControlProps) {
  const { field, text, onText, common } = props;
  const onInput = (event: { readonly currentTarget: { readonly value: string } }) => onText(event.currentTarget.value);
  if (field.input === 'choice')
    return (
      <select {...common} value={text} onChange={onInput}>
        <option value="">–</option>
        {field.choices.map(({ text: label, value }) => (
          <option key={label} value={String(value)}>
            {label === String(value) ? label : `${label} · ${value}`}
          </option>
        ))}
      </select>
    );
  if (field.input === 'long' || field.input === 'json')
    return <textarea {...common} rows={field.input === 'json' ? 4 : 6} value={text} onInput={onInput} />;
  if (field.input === 'date') return <input {...common} type="date" value={text} onInput={onInput} />;
  const inputMode = field.input === 'number' ? 'decimal' : 'text';
  return <input {...common} type="text" inputMode={inputMode} autocomplete="off" value={text} onInput={onInput} />;
}
