import { useApp } from '../app/context.ts';
import { toAddress } from '../app/router.ts';
import { formatBytes } from '../files/format-bytes.ts';
import { formatAge, formatCount, formatInstant, plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { read } from './operations.ts';
import { Advice, AwayNotice, Content, Figure, PageHead } from './page-head.tsx';

interface Stored {
  readonly count: number;
  readonly bytes: number;
}

interface Backup {
  readonly days: number;
  readonly state: 'begins' | 'fine' | 'overdue' | 'unknown';
  readonly restorableFrom?: string;
  readonly restorableUntil?: string;
  readonly snapshots: number;
  readonly last?: {
    readonly finishedAt: string;
    readonly tables: number;
    readonly rows: number;
    readonly bytes: number;
    readonly blobs: Stored;
  };
  readonly waiting: { readonly blobs: number; readonly bytes: number; readonly since?: string };
  readonly drill?: {
    readonly at: string;
    readonly partitions: number;
    readonly rows: number;
    readonly differences: number;
  };
  readonly verification?: { readonly at: string; readonly problems: number };
  readonly away?: readonly string[];
  readonly advice: readonly string[];
}

/** What can be restored, and whether the backup was tried. */
export function BackupPage() {
  return useApp().model.backup ? <Status /> : <Off />;
}

function Off() {
  return (
    <>
      <h1>Backup</h1>
      <Notice kind="info">
        <strong>The app keeps no backup</strong>
        <p>
          To keep one, declare <code>{'backup: { days: 35 }'}</code> in the model, and name a storage account of its own
          in the setting <code>BackupStorage</code>. In Azure, the template creates the account.
        </p>
      </Notice>
    </>
  );
}

function Status() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Backup>(api, 'backup', signal), 'backup');
  return (
    <>
      <PageHead title="Backup" loaded={loaded} />
      <Content loaded={loaded} what="the backup">
        {(backup) => {
          const { days, restorableFrom, restorableUntil, snapshots, away, advice } = backup;
          return (
            <>
              <AwayNotice away={away} />
              <State {...backup} />
              {restorableFrom !== undefined && restorableUntil !== undefined && (
                <dl class="figures">
                  <Figure title="From" value={formatInstant(restorableFrom)} />
                  <Figure title="Until" value={formatInstant(restorableUntil)} />
                  <Figure title="Retention" value={plural(days, 'day')} />
                  <Figure title="Snapshots" value={formatCount(snapshots)} />
                </dl>
              )}
              {advice.length > 0 && <h2 class="apart">What to do</h2>}
              <Advice advice={advice} />
              {restorableFrom !== undefined && (
                <p>
                  Deleted rows come back from the <a href={toAddress(['operators', 'audit'])}>audit log</a>, and the
                  page of a row has its earlier versions.
                </p>
              )}
              <Table
                label="Parts of the backup, and its checks"
                items={partsOf(backup)}
                keyOf={({ name }) => name}
                columns={[
                  { title: 'What', isHeader: true, cell: ({ name }) => name },
                  {
                    title: 'State',
                    cell: ({ state, isBad }) => <span class={isBad ? 'found' : undefined}>{state}</span>,
                  },
                  {
                    title: 'When',
                    cell: ({ at }) => (at === undefined ? '–' : <time dateTime={at}>{`${formatAge(at)} ago`}</time>),
                  },
                ]}
              />
            </>
          );
        }}
      </Content>
    </>
  );
}

function State({ state, last }: Backup) {
  if (state === 'unknown') return null;
  if (state === 'begins') return <Notice kind="info">The backup begins when its first snapshot is complete.</Notice>;
  if (state === 'fine') return <Notice kind="good">Everything can be restored.</Notice>;
  return (
    <Notice kind="bad">
      <strong>The snapshot is overdue.</strong> The last one ended {last && formatAge(last.finishedAt)} ago. Changes
      since then are in the journal.
    </Notice>
  );
}

interface Part {
  readonly name: string;
  readonly state: string;
  readonly isBad?: boolean;
  readonly at?: string | undefined;
}

function partsOf({ state, last, waiting, drill, verification }: Backup): readonly Part[] {
  const { blobs } = last ?? {};
  const stored: readonly Part[] = [
    {
      name: 'Last snapshot',
      state: last
        ? `${plural(last.rows, 'row')} of ${plural(last.tables, 'table')}, ${formatBytes(last.bytes)}`
        : 'none yet',
      at: last?.finishedAt,
    },
    {
      name: 'Files and large texts',
      state: blobs ? `${plural(blobs.count, 'copy', 'copies')}, ${formatBytes(blobs.bytes)}` : 'none yet',
      at: last?.finishedAt,
    },
    {
      name: 'Journal of changes',
      state: waiting.blobs > 0 ? `${formatBytes(waiting.bytes)} not in the account of the backup yet` : 'up to date',
      isBad: waiting.blobs > 0,
      at: waiting.since,
    },
  ];
  return [
    ...(state === 'unknown' ? [] : stored),
    {
      name: 'Last drill',
      state: drill
        ? `${plural(drill.rows, 'row')} of ${plural(drill.partitions, 'partition')} restored, ${sayFound(drill.differences, 'difference')}`
        : 'none yet: the timer has one each night',
      isBad: drill !== undefined && drill.differences > 0,
      at: drill?.at,
    },
    {
      name: 'Last verification',
      state: verification ? sayFound(verification.problems, 'problem') : 'none yet',
      isBad: verification !== undefined && verification.problems > 0,
      at: verification?.at,
    },
  ];
}

const sayFound = (count: number, noun: string) => (count === 0 ? `no ${noun}` : plural(count, noun));
