import { useState } from 'preact/hooks';
import { type Entity, isNumeric, keyPath } from '../api/model.ts';
import { toAddress } from '../app/router.ts';
import { findProblem } from '../forms/find-problem.ts';
import { type ListQuery, toListAddress } from './list-query.ts';
import { findRead, type Way } from './ways.ts';

interface Answer {
  readonly title: string;
  readonly address: string;
}

/** Finds rows by a value that the user types: links to the ways that answer it, of those that need no other value. */
export function FindValue(props: {
  readonly entity: Entity;
  readonly ways: readonly Way[];
  readonly query: ListQuery;
}) {
  const { entity, ways, query } = props;
  const [value, setValue] = useState('');
  const answers = findAnswers(entity, ways, value.trim(), query);
  if (!ways.some((way) => way.kind !== 'key' && way.fields.length > 0)) return null;
  return (
    <search class="find-value">
      <label>
        Find rows with
        <input
          type="search"
          value={value}
          placeholder="an email address, a name, an id"
          onInput={({ currentTarget }) => setValue(currentTarget.value)}
        />
      </label>
      {value.trim() !== '' && (
        <div class="partitions" role="status">
          <ul>
            {answers.map(({ title, address }) => (
              <li key={address}>
                <a href={address}>{title}</a>
              </li>
            ))}
          </ul>
          <small>
            {answers.length === 0
              ? 'No index answers this value. A filter of a list may.'
              : 'Each link reads one index or partition.'}
          </small>
        </div>
      )}
    </search>
  );
}

/** Each field of which a way needs the value alone, and each that bounds a list without other values. */
function findAnswers(entity: Entity, ways: readonly Way[], value: string, query: ListQuery): readonly Answer[] {
  if (value === '') return [];
  const free = { ...query, given: {}, from: '', to: '' };
  return ways.flatMap((way): Answer[] => {
    const [field, ...others] = way.fields;
    if (way.kind === 'key') {
      const isOne = field !== undefined && others.length === 0 && isValue(entity, field, value);
      const rows = ['entities', entity.name, 'rows'];
      return isOne
        ? [{ title: `the row ${value}`, address: toAddress([...rows, ...keyPath(entity, { [field]: value })]) }]
        : [];
    }
    const by = way.id;
    // The partition lists the same rows, in the order of the key.
    if (way.kind === 'index' && ways.some((one) => one.kind === 'partition' && one.fields.join() === field)) return [];
    if (field !== undefined && findRead(way, { [field]: value }))
      return isValue(entity, field, value)
        ? [
            {
              title: `${way.title}: ${field} is ${value}`,
              address: toListAddress(entity.name, { ...free, by, given: { [field]: value } }),
            },
          ]
        : [];
    const bounded = findRead(way, {})?.range?.bounded;
    return bounded !== undefined && entity.fields[bounded]?.type === 'String'
      ? [
          {
            title: `${way.title}: ${bounded} begins with ${value}`,
            address: toListAddress(entity.name, { ...free, by, from: value, to: value }),
          },
        ]
      : [];
  });
}

function isValue(entity: Entity, field: string, value: string): boolean {
  const { schema = {}, type } = entity.fields[field] ?? {};
  // An index of a list is read by one element.
  if (type === 'Json') return true;
  return findProblem(schema, isNumeric(entity, field) ? Number(value) : value) === undefined;
}
