import { useMemo, useState } from 'preact/hooks';
import { formatCosts } from '../api/cost.ts';
import type { Entity } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { type Address, navigate, toAddress } from '../app/router.ts';
import { formatCount, formatInstant, plural } from '../ui/format.ts';
import { lazy } from '../ui/lazy.tsx';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { VirtualTable } from '../ui/virtual-table.tsx';
import type { ChartProps } from './chart.tsx';
import { boundsOf, spansOf } from './spans.ts';

const Chart = lazy<ChartProps>('the chart', async () => (await import('./chart.tsx')).Chart);

interface Point {
  readonly x: number;
  readonly name: string;
  readonly count: number;
}

type Given = Readonly<Record<string, string>>;

interface TabProps {
  readonly entity: Entity;
  readonly address: Address;
}

/** A data series as a chart: a span of time over several keys, or the slots of one key. */
export function ChartTab({ entity, address }: TabProps) {
  const { series } = entity;
  const fields = entity.key.fields.filter((field) => field !== series?.span?.field);
  const given = Object.fromEntries(address.query);
  const isComplete = fields.every((field) => given[field]);
  const hasBounds = !series?.span || (given.from && given.to);
  return (
    <>
      <ChartForm key={address.query.toString()} entity={entity} fields={fields} given={given} />
      {isComplete && hasBounds && <Counts entity={entity} given={given} fields={fields} />}
      {isComplete && !hasBounds && <Newest entity={entity} given={given} fields={fields} />}
    </>
  );
}

/** Leads to the span that ends with the newest count, or with now if that is in it. */
function Newest({ entity: { name, series }, given, fields }: CountsProps) {
  const { api } = useApp();
  const spans = series ? spansOf(series) : [];
  const [shortest] = spans;
  const { result, error } = useLoaded(
    async (signal) => {
      if (!series || !shortest) return;
      for (const span of spans) {
        const points = await api.entity(name).span(pickKey(given, fields), boundsOf(span, series), { signal });
        const newest = points.findLast(({ count }) => count > 0);
        if (!newest) continue;
        const bounds = boundsOf(shortest, series, ...(span === shortest ? [] : [Date.parse(newest.at)]));
        if (!signal.aborted)
          navigate(toAddress(['entities', name, 'chart'], { ...given, ...bounds }), { replace: true });
        return;
      }
      return `Nothing was counted in the ${spans.at(-1)?.title}.`;
    },
    JSON.stringify([name, given]),
  );
  if (error !== undefined) return <ErrorNotice error={error} />;
  return result === undefined ? <Loading what="the newest counts" /> : <Notice kind="info">{result}</Notice>;
}

function pickKey(given: Given, fields: readonly string[]): Given {
  return Object.fromEntries(fields.map((field) => [field, given[field] ?? '']));
}

function ChartForm({
  entity,
  fields,
  given,
}: {
  readonly entity: Entity;
  readonly fields: readonly string[];
  readonly given: Given;
}) {
  const { series, name } = entity;
  const spans = series?.span ? spansOf(series) : [];
  const [draft, setDraft] = useState(given);
  const isBound = (field: string) => field === 'from' || field === 'to';
  const change = (part: Given) => setDraft({ ...draft, ...part });
  const show = (values: Given) => navigate(toAddress(['entities', name, 'chart'], values));
  const inputs = series?.span ? [...fields, 'from', 'to'] : fields;
  return (
    <form
      class="read"
      onSubmit={(event) => {
        event.preventDefault();
        show(draft);
      }}
    >
      <div class="fields">
        {inputs.map((field) => (
          <label key={field}>
            {field}
            {isBound(field) ? ' (UTC)' : ''}
            <input
              value={draft[field] ?? ''}
              required={!isBound(field) || Boolean(draft.from || draft.to)}
              placeholder={isBound(field) ? 'newest' : ''}
              autocomplete="off"
              onInput={({ currentTarget }) => change({ [field]: currentTarget.value })}
            />
          </label>
        ))}
        <button type="submit">Show</button>
      </div>
      {spans.length > 0 && (
        <fieldset class="actions spans">
          <legend class="muted">
            <small>Span</small>
          </legend>
          {spans.map((span) => (
            <button
              key={span.title}
              type="button"
              class="secondary outline"
              onClick={({ currentTarget }) => {
                const next = { ...draft, ...(series && boundsOf(span, series)) };
                setDraft(next);
                if (currentTarget.form?.reportValidity()) show(next);
              }}
            >
              {span.title}
            </button>
          ))}
        </fieldset>
      )}
    </form>
  );
}

interface CountsProps {
  readonly entity: Entity;
  readonly given: Given;
  readonly fields: readonly string[];
}

function Counts({ entity, given, fields }: CountsProps) {
  const { api } = useApp();
  const key = pickKey(given, fields);
  const { from = '', to = '' } = given;
  const read = async (signal: AbortSignal): Promise<readonly Point[]> => {
    const client = api.entity(entity.name);
    if (entity.series?.span) {
      const points = await client.span(key, { from, to }, { signal });
      return points.map(({ at, count }) => ({ x: Date.parse(at) / 1_000, name: formatInstant(at), count }));
    }
    const first = entity.series?.first ?? 0;
    const found = await client.get(key, { signal });
    return (found?.counts ?? []).map((count, slot) => ({ x: first + slot, name: String(first + slot), count }));
  };
  const id = JSON.stringify([entity.name, given]);
  const { result, error } = useLoaded((outer) => api.measure(read, outer), id);
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result) return <Loading what="the counts" />;
  if (result.result.length === 0) return <Notice kind="info">Nothing was counted.</Notice>;
  const newest = entity.series?.span && toAddress(['entities', entity.name, 'chart'], key);
  return <Figure entity={entity} points={result.result} cost={formatCosts(result.costs)} newest={newest} />;
}

function Figure({
  entity,
  points,
  cost,
  newest,
}: {
  readonly entity: Entity;
  readonly points: readonly Point[];
  readonly cost: string;
  /** The address of the chart that ends with the newest count. */
  readonly newest: string | undefined;
}) {
  const data = useMemo(() => ({ xs: points.map(({ x }) => x), counts: points.map(({ count }) => count) }), [points]);
  const sum = data.counts.reduce((total, count) => total + count, 0);
  const most = points.reduce((best, point) => (point.count > best.count ? point : best), { x: 0, name: '', count: -1 });
  const slot = entity.series?.name ?? 'slot';
  return (
    <figure>
      <Chart {...data} isTime={entity.series?.span !== undefined} />
      <figcaption>
        <p class="summary" role="status">
          {formatCount(sum)} in {plural(points.length, 'slot')}
          {sum > 0 && `, most at ${most.name}: ${formatCount(most.count)}`}
          {sum === 0 && newest && (
            <>
              . <a href={newest}>Show the newest counts</a>
            </>
          )}
          <small> · {cost}</small>
        </p>
      </figcaption>
      <details>
        <summary>Counts as a table</summary>
        <VirtualTable
          label={`Counts of ${entity.name}`}
          columns={[slot, 'count']}
          items={points}
          isComplete
          more={() => {}}
          isNumber={(column) => column === 'count'}
          cell={(point, column) => (column === 'count' ? formatCount(point.count) : point.name)}
        />
      </details>
    </figure>
  );
}
