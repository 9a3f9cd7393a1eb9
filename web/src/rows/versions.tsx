import { useState } from 'preact/hooks';
import type { Api } from '../api/api.ts';
import { type Entity, keyPath, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { formatInstant } from '../ui/format.ts';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { CellValue } from '../ui/value.tsx';
import { AsOf } from './as-of.tsx';
import { FieldList } from './field-list.tsx';
import { OnDemand } from './on-demand.tsx';

const SPANS = { 'the last hour': 3_600_000, 'the last day': 86_400_000, 'the last 31 days': 31 * 86_400_000 } as const;
type Span = keyof typeof SPANS;

interface Version {
  readonly at: string;
  readonly isDeleted: boolean;
  readonly values?: Values;
}
interface Change {
  readonly at: string;
  readonly what: string;
  readonly before: unknown;
  readonly after: unknown;
}
interface RowProps {
  readonly entity: Entity;
  readonly rowKey: Values;
}

/** What a row was, from the backup: its versions, and the row as of an instant. */
export function Versions({ entity, rowKey }: RowProps) {
  const { api } = useApp();
  const [span, setSpan] = useState<Span>('the last day');
  const [at, setAt] = useState('');
  return (
    <OnDemand
      title="Versions"
      id={JSON.stringify([entity.name, rowKey, span])}
      load={(signal) => readVersions(api, entity, rowKey, SPANS[span], signal)}
    >
      {(versions) => (
        <>
          <label>
            Versions of
            <select value={span} onChange={({ currentTarget }) => setSpan(currentTarget.value as Span)}>
              {Object.keys(SPANS).map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <ChangeTable changes={changesIn(versions)} span={span} />
          <AsOf key={at} at={at} onChoose={setAt} />
          {at !== '' && <RowAt entity={entity} rowKey={rowKey} at={at} />}
        </>
      )}
    </OnDemand>
  );
}

function ChangeTable({ changes, span }: { readonly changes: readonly Change[]; readonly span: Span }) {
  if (changes.length === 0) return <p>No change in {span}.</p>;
  return (
    <Table
      label="Changes of values, newest first"
      items={changes}
      keyOf={({ at, what }) => `${at} ${what}`}
      columns={[
        { title: 'When', cell: ({ at }) => <time dateTime={at}>{formatInstant(at)}</time> },
        { title: 'What', cell: ({ what }) => what },
        { title: 'Before', cell: ({ before }) => <CellValue value={before} /> },
        { title: 'After', cell: ({ after }) => <CellValue value={after} /> },
      ]}
    />
  );
}

function RowAt({ entity, rowKey, at }: RowProps & { readonly at: string }) {
  const { api } = useApp();
  const { result, error } = useLoaded(
    async (signal) => ({ found: await api.entity(entity.name).get(rowKey, { at, signal }) }),
    JSON.stringify([entity.name, rowKey, at]),
  );
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result) return <Loading what="the row" />;
  if (!result.found) return <Notice kind="info">There was no such row, or the backup begins later.</Notice>;
  return <FieldList entity={entity} values={result.found.values} />;
}

/** What changed from each version to the next, the newest first. */
function changesIn(versions: readonly Version[]): readonly Change[] {
  const changes = versions.slice(1).flatMap(({ at, values: after }, index): Change[] => {
    const before = versions[index]?.values;
    if (!before && !after) return [];
    const whole = { at, before: undefined, after: undefined };
    if (!before) return [{ ...whole, what: 'created' }];
    if (!after) return [{ ...whole, what: 'deleted' }];
    return [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
      .map((field) => ({ at, what: field, before: before[field], after: after[field] }));
  });
  return changes.toReversed();
}

async function readVersions(
  api: Api,
  entity: Entity,
  rowKey: Values,
  span: number,
  signal: AbortSignal,
): Promise<readonly Version[]> {
  const segments = [entity.name, ...keyPath(entity, rowKey)].map(encodeURIComponent).join('/');
  const to = Date.now();
  const search = new URLSearchParams({ from: new Date(to - span).toISOString(), to: new Date(to).toISOString() });
  const versions: Version[] = [];
  for (;;) {
    const path = `/operations/history/${segments}?${search}`;
    const { text, headers } = await api.send({ method: 'GET', path, signal });
    versions.push(...JSON.parse(text).items);
    const [, next] = /[?&]continuation=([^&>]*)/.exec(headers.get('link') ?? '') ?? [];
    if (next === undefined) return versions;
    search.set('continuation', decodeURIComponent(next));
  }
}
