import pMap from 'p-map';
import { DAY_MS, HOUR_MS, isoInstant } from '../../base/time.ts';
import { commandLine } from '../../command-line.ts';
import type { Engine } from '../../engine/engine.ts';
import { listBlobs } from '../../storage/append-blobs.ts';
import { listContainerOf, readBlob } from '../../storage/blobs.ts';
import { askAccount, awayIn, unlessSlow } from '../../storage/errors.ts';
import { BACKUP_CONTAINER } from '../../storage/row-journal.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { type CheckResults, readCheckResults } from './check-results.ts';
import { JOURNAL, MANIFESTS, Manifest, manifestName } from './format.ts';
import { toIdTime } from './snapshot.ts';

/** As that of the alert in the template. */
const OVERDUE_AFTER_MS = 26 * HOUR_MS;

/** What operators see of a backup. Instants are ISO texts. */
export interface BackupStatus extends CheckResults {
  /** `begins` before the end of the first snapshot, `overdue` if the last one is older than 26 hours, `unknown` if its account is away. */
  readonly state: 'begins' | 'fine' | 'overdue' | 'unknown';
  /** The first instant that can be restored. Undefined without a snapshot. */
  readonly restorableFrom: string | undefined;
  /** The last instant that the account of the backup has, by itself. */
  readonly restorableUntil: string | undefined;
  /** How many snapshots of the retention there are. */
  readonly snapshots: number;
  readonly last: LastSnapshot | undefined;
  /** Lines of the journal that wait in the accounts of the app, because the account of the backup was away. */
  readonly waiting: { readonly blobs: number; readonly bytes: number; readonly since: string | undefined };
  /** The accounts that do not respond. */
  readonly away: readonly string[];
  /** What to do next, or what can be done: sentences with commands. */
  readonly advice: readonly string[];
}

interface LastSnapshot {
  readonly id: string;
  readonly begunAt: string;
  readonly finishedAt: string;
  readonly tables: number;
  readonly rows: number;
  readonly parts: number;
  /** The bytes of its parts, compressed. */
  readonly bytes: number;
  readonly took: Manifest['took'];
  /** The copies of blobs. */
  readonly blobs: { readonly count: number; readonly bytes: number };
}

/** Describes the backup: at least four storage transactions, and one for each account of the app. */
export const readBackupStatus = inPattern('backup', async (engine: Engine, days: number): Promise<BackupStatus> => {
  const { storage, now } = engine;
  const { backup } = storage;
  const [snapshots, waiting, checks] = await Promise.all([
    backup && askAccount(backup, readSnapshots(backup, now() - days * DAY_MS)),
    pMap(accountsOf(storage), async (account) => askAccount(account, readWaiting(account))),
    unlessSlow(readCheckResults(engine)),
  ]);
  const found = waiting.flatMap(({ result = [] }) => result);
  const [since] = found.flatMap(({ first }) => first ?? []).toSorted();
  const { result: { count = 0, oldest, newest } = {} } = snapshots ?? {};
  const status = {
    state: stateOf({ newest, isAway: snapshots?.away !== undefined, now: now() }),
    restorableFrom: oldest?.finishedAt,
    restorableUntil: newest && (since ?? isoInstant(now())),
    snapshots: count,
    last: newest && describe(newest),
    ...checks,
    waiting: { blobs: found.length, bytes: found.reduce((sum, { length }) => sum + length, 0), since },
    away: awayIn([...waiting, ...(snapshots ? [snapshots] : [])]),
  } as const;
  return { ...status, advice: adviceOn(status) };
});

function stateOf({ newest, isAway, now }: { newest: Manifest | undefined; isAway: boolean; now: number }) {
  if (isAway) return 'unknown';
  if (!newest) return 'begins';
  return now - Date.parse(newest.finishedAt) > OVERDUE_AFTER_MS ? 'overdue' : 'fine';
}

function adviceOn({ state, waiting, drill, verification }: Omit<BackupStatus, 'advice'>): string[] {
  const take = `run ${commandLine('backup')}`;
  const readAll = `run ${commandLine('backup', 'verify --all')}`;
  const isThere = state === 'fine' || state === 'overdue';
  const sentences: readonly (readonly [boolean, string])[] = [
    [
      state === 'begins',
      `The timer takes the first snapshot within an hour of the deployment. To take the snapshot now, ${take}.`,
    ],
    [
      state === 'overdue',
      `The last snapshot is older than 26 hours: the log of the timer "backup" says why. To take one now, ${take}.`,
    ],
    [
      waiting.blobs > 0,
      `The account of the backup lacks changes since ${waiting.since}. The timer carries them there. To do so now, ${take}.`,
    ],
    [
      (drill?.differences ?? 0) > 0,
      `The last drill found differences: the log of the timer "backup-drill" has them. To read the whole backup, ${readAll}.`,
    ],
    [(verification?.problems ?? 0) > 0, `The last verification found problems. To list them, ${readAll}.`],
    [
      isThere && !verification,
      `The backup was never compared with its checksums. To do so, run ${commandLine('backup', 'verify')}.`,
    ],
    [isThere, `To restore to another place, run ${commandLine('restore', '--at <instant> --to <prefix>')}.`],
  ];
  return sentences.flatMap(([applies, sentence]) => (applies ? [sentence] : []));
}

async function readSnapshots(backup: Storage, oldestAt: number) {
  const names = await listBlobs(backup, { container: BACKUP_CONTAINER, prefix: `${MANIFESTS}/` });
  const kept = names.filter((name) => name >= manifestName(toIdTime(oldestAt)));
  const read = async (name: string | undefined) => {
    const bytes = name && (await readBlob(backup, { container: BACKUP_CONTAINER, name }));
    return bytes ? Manifest.parse(JSON.parse(bytes.toString())) : undefined;
  };
  const [oldest, newest] = await Promise.all([read(kept[0]), read(kept.at(-1))]);
  return { count: kept.length, oldest, newest };
}

async function readWaiting(account: Storage) {
  const blobs = await Array.fromAsync(listContainerOf(account, BACKUP_CONTAINER, `${JOURNAL}/`));
  return blobs.map(({ length, metadata }) => ({ length, first: metadata.first }));
}

function describe({ id, begunAt, finishedAt, tables, took, blobs }: Manifest): LastSnapshot {
  const all = Object.values(tables);
  const parts = all.flatMap((table) => table.parts);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
  return {
    ...{ id, begunAt, finishedAt, took },
    tables: all.length,
    rows: sum(all.map(({ rows }) => rows)),
    parts: parts.length,
    bytes: sum(parts.map(({ bytes }) => bytes)),
    blobs: {
      count: sum(Object.values(blobs).map(({ count }) => count)),
      bytes: sum(Object.values(blobs).map(({ bytes }) => bytes)),
    },
  };
}
