import type { HttpClient, PipelineRequest } from '@azure/core-rest-pipeline';
import { loadOnce } from '../../base/once.ts';
import { DAY_MS } from '../../base/time.ts';
import type { Past } from '../../define/declaration/engine.ts';
import type { Engine } from '../../engine/engine.ts';
import { type BlobAddress, readBlob } from '../../storage/blobs.ts';
import { storageCall } from '../../storage/errors.ts';
import { runUnexplained } from '../../storage/explain.ts';
import { BACKUP_CONTAINER, padTime } from '../../storage/row-journal.ts';
import { type Action, submit, transactionBytes, transactionLimits } from '../../storage/rows.ts';
import { openStorage, type Storage } from '../../storage/storage.ts';
import type { MemoryStorage } from '../../testing/memory-storage.ts';
import { blobFolder } from './format.ts';
import { type BackupSource, type RowState, readState, type WantedRows } from './read-backup.ts';

/**
 * Reads the app as it was. A storage account in memory gets the rows of each partition as they were when a read asks for it, so that the engine
 * reads the past with the same code as the present: filters, children, expiry, encrypted and large fields. Tables of indexes are not in a
 * backup, so only reads by key and of ranges see anything.
 */

/** Pages of one list have the same instant. */
const MAX_OPEN = 4;

/** Creates what opens the past of an engine. */
export function createPast(source: BackupSource, roles: readonly string[]): Past {
  const opened = new Map<string, Promise<Engine>>();
  return {
    roles,
    days: source.days,
    async open(present, at) {
      const time = padTime(at);
      const engine = opened.get(time) ?? openAt(source, present as Engine, time);
      opened.delete(time);
      opened.set(time, engine);
      for (const other of opened.keys()) if (opened.size > MAX_OPEN) opened.delete(other);
      engine.catch(() => opened.delete(time));
      return engine;
    },
  };
}

function openAt(source: BackupSource, present: Engine, time: string): Promise<Engine> {
  return openRows(present, { source, time, read: async (wanted) => (await readState(source, time, wanted)).rows });
}

interface Opening {
  readonly source: BackupSource;
  readonly time: string;
  /** Returns the rows of a table, or of a partition of it. */
  read(wanted: WantedRows): Promise<AsyncIterable<RowState> | Iterable<RowState>>;
}

/** An engine of an instant that reads these rows. */
export async function openRows(present: Engine, opening: Opening): Promise<Engine> {
  // An app that never looks back does not load it.
  const { createMemoryStorage } = await import('../../testing/memory-storage.ts');
  const memory = createMemoryStorage();
  const loader = createLoader({ ...opening, present, memory });
  const storage = openStorage({ connectionString: memory.connectionString, httpClient: loader });
  return { ...present, storage, now: () => Date.parse(opening.time), rekey: undefined, past: undefined, present };
}

interface Loading extends Opening {
  readonly present: Engine;
  readonly memory: MemoryStorage;
}

/** Loads what a request asks for before the request is executed. */
function createLoader({ source, time, read, present, memory }: Loading): HttpClient {
  const inside = openStorage({ connectionString: memory.connectionString, httpClient: memory.httpClient });
  const loads = new Map<string, () => Promise<void>>();
  const load = (what: string, work: () => Promise<void>) => {
    const once = loads.get(what) ?? loadOnce(work);
    loads.set(what, once);
    return once();
  };

  async function loadRows(table: string, partition: string | undefined): Promise<void> {
    await load(table, () => storageCall(inside.table(table).createTable()));
    if (loads.has(JSON.stringify([table]))) return load(JSON.stringify([table]), async () => undefined);
    const wanted = partition === undefined ? { table } : { table, partition };
    await load(JSON.stringify(Object.values(wanted)), async () => {
      let batch: Batch | undefined;
      for await (const { partition: of, row, properties } of await read(wanted)) {
        const action: Action = { kind: 'upsert', row, properties };
        if (batch && !fits(inside, batch, { partition: of, action })) {
          await submit(inside, batch);
          batch = undefined;
        }
        batch ??= { table, partition: of, actions: [] };
        batch.actions.push(action);
      }
      if (batch) await submit(inside, batch);
    });
  }

  async function loadBlob(container: string, name: string): Promise<void> {
    await load(container, () => storageCall(inside.container(container).createIfNotExists()).then(() => undefined));
    await load(`${container}/${name}`, async () => {
      // The bytes of a blob never change.
      const blob = { container, name };
      const bytes = (await readBlob(present.storage, blob)) ?? (await readCopy(source, blob, Date.parse(time)));
      if (bytes) await storageCall(inside.container(container).getBlockBlobClient(name).uploadData(bytes));
    });
  }

  return {
    async sendRequest(request) {
      const { rows, blob } = askedBy(request, inside);
      // An explanation has the read itself, and what is loaded serves later requests too.
      if (rows) await runUnexplained(() => loadRows(rows.table, rows.partition));
      else if (blob) await runUnexplained(() => loadBlob(blob.container, blob.name));
      else throw new Error(`The past cannot be changed: ${request.method} ${new URL(request.url).pathname}.`);
      return memory.httpClient.sendRequest(request);
    },
  };
}

interface Batch {
  readonly table: string;
  readonly partition: string;
  readonly actions: Action[];
}

function fits(storage: Storage, { partition, actions }: Batch, next: { partition: string; action: Action }): boolean {
  const { mostActions, mostBytes } = transactionLimits(storage, partition);
  const all = [...actions, next.action];
  return partition === next.partition && all.length <= mostActions && transactionBytes(partition, all) <= mostBytes;
}

const ONE_ROW = /^(\w+)\(PartitionKey='((?:[^']|'')*)',RowKey='(?:[^']|'')*'\)$/s;
const OF_PARTITION = /^PartitionKey eq '((?:[^']|'')*)'/s;

/** The partition or the table, or the blob, that a request reads. */
function askedBy({ url, method }: PipelineRequest, { tables, blobs }: Storage) {
  if (method !== 'GET' && method !== 'HEAD') return {};
  const { origin, pathname, searchParams } = new URL(url);
  // The first segment is the account.
  const path = decodeURIComponent(pathname).split('/').slice(2).join('/');
  if (origin === new URL(blobs.url).origin) {
    const slash = path.indexOf('/');
    return slash < 0 ? {} : { blob: { container: path.slice(0, slash), name: path.slice(slash + 1) } };
  }
  if (origin !== new URL(tables.url).origin) return {};
  const [, table, partition] = ONE_ROW.exec(path) ?? [];
  if (table !== undefined && partition !== undefined) return { rows: { table, partition: unquote(partition) } };
  const [, of] = OF_PARTITION.exec(searchParams.get('$filter') ?? '') ?? [];
  return { rows: { table: path.replace('()', ''), partition: of === undefined ? undefined : unquote(of) } };
}

const unquote = (text: string) => text.replaceAll("''", "'");

/** The copy of a blob in the backup, of the period of an instant (milliseconds) or one beside it. Undefined if there is none. */
async function readCopy(
  { backup, days }: BackupSource,
  { container, name }: BlobAddress,
  at: number,
): Promise<Buffer | undefined> {
  // A blob of the end of a period may have been copied after it, and one of its beginning before it.
  for (const periods of [0, -1, 1]) {
    const folder = blobFolder(at + periods * days * DAY_MS, days);
    const bytes = await readBlob(backup, { container: BACKUP_CONTAINER, name: `${folder}/${container}/${name}` });
    if (bytes) return bytes;
  }
  return undefined;
}
