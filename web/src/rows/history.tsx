import { useState } from 'preact/hooks';
import type { Api } from '../api/api.ts';
import type { Entity, Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { formatInstant } from '../ui/format.ts';
import { SpanSelect } from '../ui/span-select.tsx';
import { Table } from '../ui/table.tsx';
import { OnDemand } from './on-demand.tsx';

const SPANS = { 'the last hour': 3_600_000, 'the last day': 86_400_000, 'the last 31 days': 31 * 86_400_000 } as const;
type Span = keyof typeof SPANS;

interface Change {
  readonly id: string;
  readonly at: string;
  readonly by: string;
  readonly operation: string;
  readonly entity: string;
  readonly partition?: string;
  readonly row?: string;
  readonly fields?: readonly string[];
}

/** The changes of a row, from the audit log. The log is ordered by time, so a long span takes more reads. */
export function History({ entity, rowKey }: { readonly entity: Entity; readonly rowKey: Values }) {
  const { api } = useApp();
  const [span, setSpan] = useState<Span>('the last day');
  return (
    <OnDemand
      title="History"
      id={JSON.stringify([entity.name, rowKey, span])}
      load={(signal) => readHistory(api, entity, rowKey, SPANS[span], signal)}
    >
      {(changes) => (
        <>
          <SpanSelect spans={SPANS} span={span} onChange={setSpan} />
          {changes.length === 0 ? <p>No change in {span}.</p> : <ChangeTable changes={changes} />}
        </>
      )}
    </OnDemand>
  );
}

function ChangeTable({ changes }: { readonly changes: readonly Change[] }) {
  return (
    <Table
      label="Changes, newest first"
      items={changes}
      keyOf={({ id }) => id}
      columns={[
        { title: 'When', cell: ({ at }) => <time dateTime={at}>{formatInstant(at)}</time> },
        { title: 'Who', cell: ({ by }) => by },
        { title: 'What', cell: ({ operation }) => operation },
        { title: 'Fields', cell: ({ fields }) => fields?.join(', ') },
      ]}
    />
  );
}

/** The log has no index by row, so its pages are filtered here. */
async function readHistory(
  api: Api,
  entity: Entity,
  rowKey: Values,
  span: number,
  signal: AbortSignal,
): Promise<readonly Change[]> {
  const { steps } = await api.explain(entity.name).get(rowKey, { signal });
  const own = steps.find((step) => step.read === 'row');
  const to = Date.now() + 1_000;
  const search = new URLSearchParams({
    from: new Date(to - span).toISOString(),
    to: new Date(to).toISOString(),
    top: '1000',
  });
  const changes: Change[] = [];
  for (;;) {
    const path = `/operations/audit?${search}`;
    const { text, headers } = await api.send({ method: 'GET', path, signal });
    const { items } = JSON.parse(text) as { readonly items: readonly Change[] };
    changes.push(
      ...items.filter(
        (change) => change.entity === entity.name && change.partition === own?.partition && change.row === own?.row,
      ),
    );
    const [, next] = /[?&]continuation=([^&>]*)/.exec(headers.get('link') ?? '') ?? [];
    if (next === undefined) return changes.toSorted((a, b) => b.at.localeCompare(a.at));
    search.set('continuation', decodeURIComponent(next));
  }
}
