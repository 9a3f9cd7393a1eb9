import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatCount, formatInstant, plural } from '../ui/format.ts';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import { SpanSelect } from '../ui/span-select.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { type Items, walk } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';
import { useAction } from './use-action.ts';

const SPANS = { 'the last hour': 3_600_000, 'the last day': 86_400_000, 'the last 7 days': 7 * 86_400_000 } as const;
type Span = keyof typeof SPANS;

interface Change {
  readonly at: string;
  readonly by: string;
  readonly operation: string;
  readonly entity: string;
}

/** Changes of one user to one entity, each within a minute of the next. */
interface Changes extends Omit<Change, 'at'> {
  readonly from: string;
  readonly to: string;
  readonly count: number;
}

/** What happened to a delete, over all pages. */
interface Outcome {
  readonly restored: number;
  readonly exists: number;
  readonly failed: number;
  readonly first: string | undefined;
}
interface Undeleted {
  readonly outcome: 'restored' | 'exists' | 'failed';
  readonly problem?: { readonly detail: string };
}

const TOGETHER_MS = 60_000;
/** What was begun is not broken off. */
const NEVER = new AbortController().signal;

/** The audit log, with the changes of an operation in one line, and a way back from deletes. */
export function AuditPage() {
  const { api, model } = useApp();
  const [span, setSpan] = useState<Span>('the last hour');
  const [chosen, setChosen] = useState<Changes>();
  const action = useAction();
  const loaded = useLoaded(async (signal) => {
    const changes: Change[] = [];
    const to = Date.now() + 1_000;
    const [from, until] = [to - SPANS[span], to].map((each) => new Date(each).toISOString());
    const onPage = ({ items }: Items<Change>) => changes.push(...items) >= 0;
    await walk<Items<Change>>(api, { method: 'GET', path: `audit?from=${from}&to=${until}&top=1000`, signal, onPage });
    return group(changes);
  }, span);
  const undo = async (changes: Changes) => {
    const { restored, exists, failed } = await undelete(changes, false);
    const rest = `${exists > 0 ? `, ${formatCount(exists)} existing left as they are` : ''}${failed > 0 ? `, ${formatCount(failed)} failed` : ''}`;
    loaded.reload();
    action.run('Undelete', async () => `${plural(restored, 'row')} restored${rest}.`);
  };
  const undelete = async ({ entity, by, from, to }: Changes, dryRun: boolean, signal = NEVER): Promise<Outcome> => {
    const done = { restored: 0, exists: 0, failed: 0 };
    let first: string | undefined;
    const onPage = ({ items }: Items<Undeleted>) => {
      for (const { outcome, problem } of items) {
        done[outcome] += 1;
        if (outcome === 'failed') first ??= problem?.detail;
      }
      return true;
    };
    const body = { from, to: new Date(Date.parse(to) + 1).toISOString(), by, dryRun };
    await walk<Items<Undeleted>>(api, { path: `undelete/${entity}?top=100`, body, signal, onPage });
    return { ...done, first };
  };
  const canUndelete = ({ operation, entity }: Changes) =>
    operation === 'delete' && model.backup !== undefined && model.entities.get(entity)?.series === undefined;
  return (
    <>
      <PageHead title="Audit log" loaded={loaded} />
      <ErrorNotice error={action.error} />
      {action.done && <Notice kind="good">{action.done}</Notice>}
      <SpanSelect spans={SPANS} span={span} onChange={setSpan} />
      <Content loaded={loaded} what="the audit log">
        {(groups) =>
          groups.length === 0 ? (
            <p>No change in {span}.</p>
          ) : (
            <Table
              label="Changes, newest first"
              items={groups}
              keyOf={(one) => JSON.stringify(one)}
              columns={[
                { title: 'What', isHeader: true, cell: ({ operation, entity }) => `${operation} ${entity}` },
                { title: 'Rows', isNumber: true, cell: ({ count }) => formatCount(count) },
                {
                  title: 'Action',
                  cell: (one) =>
                    canUndelete(one) ? (
                      <button type="button" class="secondary outline" onClick={() => setChosen(one)}>
                        Undelete…
                      </button>
                    ) : (
                      '–'
                    ),
                },
                { title: 'Who', cell: ({ by }) => by },
                { title: 'When', cell: ({ to }) => <time dateTime={to}>{formatInstant(to)}</time> },
              ]}
            />
          )
        }
      </Content>
      {chosen && (
        <UndeleteDialog
          changes={chosen}
          look={(signal) => undelete(chosen, true, signal)}
          act={() => undo(chosen)}
          onClose={() => setChosen(undefined)}
        />
      )}
    </>
  );
}

interface UndeleteDialogProps {
  readonly changes: Changes;
  readonly look: (signal: AbortSignal) => Promise<Outcome>;
  readonly act: () => Promise<void>;
  readonly onClose: () => void;
}

/** Shows what would come back, and asks. */
function UndeleteDialog({ changes, look, act, onClose }: UndeleteDialogProps) {
  const { result, error } = useLoaded(look, JSON.stringify(changes));
  const { entity, by, from, to } = changes;
  return (
    <ConfirmDialog
      title={`Undelete ${entity}`}
      confirm="Undelete"
      isReady={result !== undefined && result.restored > 0}
      act={act}
      onClose={onClose}
    >
      <p>
        Rows that <strong>{by}</strong> deleted from {formatInstant(from)} to {formatInstant(to)} are created again as
        they were, with their children and files.
      </p>
      <ErrorNotice error={error} />
      {!result && error === undefined && <Loading what="what would come back" />}
      {result && (
        <ul>
          <li>{plural(result.restored, 'row')} would come back.</li>
          {result.exists > 0 && <li>Rows that exist again and stay as they are: {formatCount(result.exists)}.</li>}
          {result.failed > 0 && (
            <li>
              {plural(result.failed, 'row')} would not: {result.first}
            </li>
          )}
        </ul>
      )}
    </ConfirmDialog>
  );
}

/** The log is ordered by time. */
function group(changes: readonly Change[]): readonly Changes[] {
  const last = new Map<string, Changes>();
  const groups: Changes[] = [];
  for (const { at, by, operation, entity } of changes.toSorted((a, b) => a.at.localeCompare(b.at))) {
    const key = JSON.stringify([by, operation, entity]);
    const former = last.get(key);
    const isNext = former && Date.parse(at) - Date.parse(former.to) < TOGETHER_MS;
    const next = {
      by,
      operation,
      entity,
      from: isNext ? former.from : at,
      to: at,
      count: (isNext ? former.count : 0) + 1,
    };
    if (isNext) groups.splice(groups.indexOf(former), 1);
    groups.push(next);
    last.set(key, next);
  }
  return groups.toReversed();
}
