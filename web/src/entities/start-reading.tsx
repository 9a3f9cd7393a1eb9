import { formatCosts } from '../api/cost.ts';
import { canRead, type Entity, type Model, type Roles, readsEveryRow } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { plural } from '../ui/format.ts';
import { useLoaded } from '../ui/use-loaded.ts';
import { FirstRows } from './first-rows.tsx';
import { type ListQuery, toListAddress } from './list-query.ts';
import { findPreview, findRead, type Way } from './ways.ts';

const MOST_CHOICES = 50;

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
  const choices = kind === 'partition' ? findChoices(entity, model, user) : undefined;
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
      {choices && (
        <Choices
          key={choices.field}
          {...choices}
          toAddress={(value) => addressOf(way.id, { [choices.field]: value })}
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

interface PartitionChoices {
  /** The only field of the partition key. */
  readonly field: string;
  /** The lookup table whose rows have its values, and their field. */
  readonly table: string;
  readonly by: string;
}

/** A lookup table to which the field of the partition key refers, or whose key has the same name. It is listed in one call. */
function findChoices(entity: Entity, model: Model, user: Roles): PartitionChoices | undefined {
  const [field, ...others] = entity.key.partition.fields;
  if (field === undefined || others.length > 0) return undefined;
  const isRead = (table: Entity) => table.lookup !== undefined && table !== entity && canRead(table, user);
  const { to, by } = entity.references[field] ?? { by: field };
  const isSource = ({ name, key }: Entity) =>
    to === undefined ? key.fields.length === 1 && key.fields[0] === field : name === to;
  const table = [...model.entities.values()].find((each) => isRead(each) && isSource(each));
  return table && { field, table: table.name, by };
}

/** A failed read leaves the field above, into which any value can be typed. */
function Choices({
  field,
  table,
  by,
  toAddress,
}: PartitionChoices & { readonly toAddress: (value: string) => string }) {
  const { api } = useApp();
  const load = (outer: AbortSignal) =>
    api.measure(
      (signal) =>
        api
          .entity(table)
          .list({ select: [by] })
          .page({ signal }),
      outer,
    );
  const { result } = useLoaded(load, `${table} ${by}`);
  if (!result || result.result.items.length === 0) return null;
  const { items, next } = result.result;
  return (
    <section class="partitions" aria-label={`Choose ${field}`}>
      <ul>
        {items.slice(0, MOST_CHOICES).map((row) => (
          <li key={String(row[by])}>
            <a href={toAddress(String(row[by]))}>{String(row[by])}</a>
          </li>
        ))}
      </ul>
      <small>
        {next !== undefined || items.length > MOST_CHOICES
          ? `First ${MOST_CHOICES} rows of ${table}`
          : `${plural(items.length, 'row')} of ${table}`}{' '}
        · {formatCosts(result.costs)}
      </small>
    </section>
  );
}
