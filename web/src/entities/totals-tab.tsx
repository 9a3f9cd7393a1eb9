import { useState } from 'preact/hooks';
import { formatCosts } from '../api/cost.ts';
import { canLack, type Entity, isNumeric, type Roles, readableFields, type TotalDescription } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { type Address, navigate, toAddress } from '../app/router.ts';
import { formatCount, joinNames } from '../ui/format.ts';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { CellValue } from '../ui/value.tsx';

interface Group {
  readonly group: Readonly<Record<string, unknown>>;
  readonly count: number;
  readonly sum: Readonly<Record<string, number>>;
  readonly min?: Readonly<Record<string, unknown>>;
  readonly max?: Readonly<Record<string, unknown>>;
}

const GIVEN = 'key.';
const PAGE = 1_000;

/** The totals whose fields the roles of the user may read. */
export function visibleTotals(entity: Entity, user: Roles): [string, TotalDescription][] {
  const readable = readableFields(entity, user);
  return Object.entries(entity.totals).filter(([, { fields, sum, min, max }]) =>
    [...fields, ...sum, ...min, ...max].every((field) => readable.includes(field)),
  );
}

/** The totals of a group, or of a range of groups if the last field is left empty. */
export function TotalsTab({ entity, address }: { readonly entity: Entity; readonly address: Address }) {
  const { user } = useApp();
  const totals = visibleTotals(entity, user);
  const by = address.query.get('by');
  const found = totals.find(([each]) => each === by);
  const [name, total] = found ?? totals[0] ?? [];
  if (name === undefined || !total) return null;
  const texts = Object.fromEntries(total.fields.map((field) => [field, address.query.get(GIVEN + field) ?? '']));
  const given = total.fields.map((field) => texts[field] ?? '');
  const filled = given.filter(Boolean).length;
  const isComplete = filled === given.length || total.ranges.some(({ fields }) => fields.length === filled);
  const isUnknown = by !== null && !found;
  const isRead = !isUnknown && address.query.has('read') && isComplete && given.slice(0, filled).every(Boolean);
  return (
    <>
      {isUnknown && (
        <Notice kind="info">
          {entity.name} has no totals “{by}”, or your roles do not see them. Choose others.
        </Notice>
      )}
      <TotalsForm
        key={address.query.toString()}
        entity={entity}
        totals={totals}
        name={name}
        total={total}
        texts={texts}
      />
      {isRead && <Groups entity={entity} name={name} total={total} path={given.slice(0, filled)} />}
    </>
  );
}

interface TotalsFormProps {
  readonly entity: Entity;
  readonly totals: readonly (readonly [string, TotalDescription])[];
  readonly name: string;
  readonly total: TotalDescription;
  readonly texts: Readonly<Record<string, string>>;
}

function TotalsForm({ entity, totals, name, total, texts }: TotalsFormProps) {
  const [draft, setDraft] = useState(texts);
  const needed = total.fields.filter((field) => canLack(entity, field));
  const shortest = Math.min(total.fields.length, ...total.ranges.map(({ fields }) => fields.length));
  const go = (by: string, values: Readonly<Record<string, string>>, read?: string) =>
    navigate(
      toAddress(['entities', entity.name, 'totals'], {
        by,
        ...Object.fromEntries(Object.entries(values).map(([field, text]) => [GIVEN + field, text])),
        read,
      }),
    );
  return (
    <form
      class="read"
      onSubmit={(event) => {
        event.preventDefault();
        go(name, draft, 'true');
      }}
    >
      <div class="fields">
        <label>
          Totals
          <select value={name} onChange={({ currentTarget }) => go(currentTarget.value, {})}>
            {totals.map(([each]) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        {total.fields.map((field, position) => (
          <label key={field}>
            {field}
            {total.periods[field] && ` (${total.periods[field]})`}
            {position >= shortest && ' (optional)'}
            <input
              required={position < shortest}
              autocomplete="off"
              value={draft[field] ?? ''}
              onInput={({ currentTarget }) => setDraft({ ...draft, [field]: currentTarget.value })}
            />
          </label>
        ))}
        <button type="submit">Read</button>
      </div>
      {needed.length > 0 && (
        <p class="muted">
          <small>Rows without {joinNames(needed, 'or')} do not count.</small>
        </p>
      )}
    </form>
  );
}

interface GroupsProps {
  readonly entity: Entity;
  readonly name: string;
  readonly total: TotalDescription;
  readonly path: readonly string[];
}

function Groups({ entity, name, total, path }: GroupsProps) {
  const { api } = useApp();
  const segments = [entity.name, 'totals', name, ...path].map(encodeURIComponent).join('/');
  const isRange = path.length < total.fields.length;
  const { result, error } = useLoaded(
    (outer) =>
      api.measure(async (signal) => {
        const { text } = await api.send({
          method: 'GET',
          path: `/${segments}${isRange ? `?top=${PAGE}` : ''}`,
          signal,
        });
        const body: Group & { readonly items?: readonly Group[] } = JSON.parse(text);
        return body.items ?? [body];
      }, outer),
    segments,
  );
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result) return <Loading what="totals" />;
  const parts = (['sum', 'min', 'max'] as const).flatMap((kind) => total[kind].map((field) => ({ kind, field })));
  return (
    <>
      <p class="summary" role="status">
        {result.result.length} {result.result.length === 1 ? 'group' : 'groups'}{' '}
        <small>· {formatCosts(result.costs)}</small>
      </p>
      <Table
        label={`Totals ${name}`}
        items={result.result}
        keyOf={({ group }) => JSON.stringify(group)}
        columns={[
          ...total.fields.map((field) => ({
            title: field,
            cell: ({ group }: Group) => <CellValue value={group[field]} />,
          })),
          { title: 'count', isNumber: true, cell: ({ count }: Group) => formatCount(count) },
          ...parts.map(({ kind, field }) => ({
            title: `${kind} of ${field}`,
            isNumber: isNumeric(entity, field),
            cell: (group: Group) => <CellValue value={group[kind]?.[field]} />,
          })),
        ]}
      />
    </>
  );
}
