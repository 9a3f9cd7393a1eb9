import { formatCosts } from '../api/cost.ts';
import { type Entity, type Roles, readsEveryRow } from '../api/model.ts';
import { sourceOf } from '../api/referred-row.ts';
import { useApp } from '../app/context.ts';
import { plural } from '../ui/format.ts';
import { useLoaded } from '../ui/use-loaded.ts';
import { readChoices } from './first-choices.ts';
import { FirstRows } from './first-rows.tsx';
import { type ListQuery, toListAddress } from './list-query.ts';
import { findPreview, findRead, type Way } from './ways.ts';

interface StartReadingProps {
  readonly entity: Entity;
  readonly ways: readonly Way[];
  readonly way: Way;
  readonly query: ListQuery;
  /** True if the address asks for nothing. Then the page shows the first rows of a list that needs no value, if there is one. */
  readonly isOpened: boolean;
}

/** On a page that reads no list, because a value is required: what to fill in, values to choose, and lists that require none. */
export function StartReading({ entity, ways, way, query, isOpened }: StartReadingProps) {
  const { model, user } = useApp();
  const { kind, fields, ranges } = way;
  const required = fields.filter((field) => ranges.every((range) => range.fields.includes(field)));
  const addressOf = (by: string, given = {}) => toListAddress(entity.name, { ...query, by, given });
  const [field, ...others] = fields;
  const isOfOne = kind === 'partition' && field !== undefined && others.length === 0;
  const source = isOfOne ? sourceOf(entity, field, model, user) : undefined;
  const lists = ways.filter((each) => each.kind === 'index' && findRead(each, {}));
  const scan = ways.find((each) => each.kind === 'scan');
  const preview = isOpened ? findPreview(entity, ways) : undefined;
  return (
    <>
      <p class="muted">
        {isOpened && !preview && `No rows are shown, because ${sayWhyNone(entity, user)}. `}
        {kind === 'key'
          ? `Fill in ${fields.join(', ')} to open a row.`
          : `Fill in ${required.join(', ')} to list rows, or choose another way to read.`}
        {lists
          .filter((each) => each !== preview)
          .map(({ id, title }) => (
            <span key={id}>
              {' '}
              <a href={addressOf(id)}>Show the first rows of the {title}</a>
            </span>
          ))}
        {scan && !isOpened && (
          <>
            {' '}
            <a href={addressOf(scan.id)}>Show the first rows of the table</a>
          </>
        )}
      </p>
      {source && field !== undefined && (
        <PartitionChoices
          key={field}
          field={field}
          target={source.target}
          by={source.reference.by}
          toAddress={(value) => addressOf(way.id, { [field]: value })}
        />
      )}
      {preview && <FirstRows entity={entity} way={preview} address={addressOf(preview.id)} />}
    </>
  );
}

function sayWhyNone(entity: Entity, user: Roles): string {
  return readsEveryRow(entity, user)
    ? `no index lists all rows of ${entity.name} in one query`
    : `the rules of ${entity.name} let you read some rows only, and name no list of them`;
}

interface PartitionChoicesProps {
  /** The only field of the partition key. */
  readonly field: string;
  /** The entity whose rows have its values, and their field. */
  readonly target: Entity;
  readonly by: string;
  readonly toAddress: (value: string) => string;
}

/** A failed read leaves the field above, into which any value can be typed. */
function PartitionChoices({ field, target, by, toAddress }: PartitionChoicesProps) {
  const { api, model, user } = useApp();
  const load = (outer: AbortSignal) =>
    api.measure((signal) => readChoices(api, { entity: target, field: by, model, user, signal }), outer);
  const { result } = useLoaded(load, `${target.name} ${by}`);
  if (!result?.result || result.result.items.length === 0) return null;
  const { items, isWhole } = result.result;
  return (
    <section class="partitions" aria-label={`Choose ${field}`}>
      <ul>
        {items.map(({ value, text }) => (
          <li key={value}>
            <a href={toAddress(value)} title={value}>
              {text}
            </a>
          </li>
        ))}
      </ul>
      <small>
        {isWhole ? `${plural(items.length, 'row')} of ${target.name}` : `First rows of ${target.name}`} ·{' '}
        {formatCosts(result.costs)}
      </small>
    </section>
  );
}
