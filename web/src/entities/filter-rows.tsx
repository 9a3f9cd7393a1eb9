import { TAKEN } from '../../../lib/client/filters.ts';
import type { Entity } from '../api/model.ts';
import { type Filter, OPERATORS, type Operator } from './list-query.ts';

interface FilterRowsProps {
  readonly entity: Entity;
  readonly fields: readonly string[];
  readonly filters: readonly Filter[];
  readonly onChange: (filters: readonly Filter[]) => void;
}

/** Comparisons of fields, all of which must hold. */
export function FilterRows({ entity, fields, filters, onChange }: FilterRowsProps) {
  const comparable = fields.filter((field) => {
    const described = entity.fields[field];
    const isPlain = described && !described.encrypted && !described.large && described.type !== 'Json';
    return isPlain && !TAKEN.includes(field);
  });
  const [first] = comparable;
  if (first === undefined) return <p>No field can be compared.</p>;
  const replace = (position: number, part: Partial<Filter>) =>
    onChange(filters.map((filter, each) => (each === position ? { ...filter, ...part } : filter)));
  return (
    <div class="filters">
      {filters.map(({ field, operator, value }, position) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: filters have no identity
        <div class="filter" key={position}>
          <select
            aria-label="Field"
            value={field}
            onChange={({ currentTarget }) => replace(position, { field: currentTarget.value })}
          >
            {comparable.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
          <select
            aria-label="Comparison"
            value={operator}
            onChange={({ currentTarget }) => replace(position, { operator: currentTarget.value as Operator })}
          >
            {Object.entries(OPERATORS).map(([name, sign]) => (
              <option key={name} value={name}>
                {sign}
              </option>
            ))}
          </select>
          <input
            aria-label="Value"
            required
            placeholder={operator === 'in' ? 'values, separated by commas' : ''}
            value={value}
            onInput={({ currentTarget }) => replace(position, { value: currentTarget.value })}
          />
          <button
            type="button"
            class="secondary outline"
            aria-label={`Remove the filter of ${field}`}
            onClick={() => onChange(filters.filter((_, each) => each !== position))}
          >
            ×
          </button>
        </div>
      ))}
      <button
        type="button"
        class="secondary outline"
        onClick={() => onChange([...filters, { field: first, operator: 'eq', value: '' }])}
      >
        Add a filter
      </button>
    </div>
  );
}
