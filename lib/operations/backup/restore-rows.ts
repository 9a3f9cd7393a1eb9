import { createHash, type Hash } from 'node:crypto';
import pMap from 'p-map';
import { toBatches } from '../../storage/copy-rows.ts';
import { createTable } from '../../storage/provision.ts';
import { padTime } from '../../storage/row-journal.ts';
import { type Properties, type Row, scanTable, submit, transactionLimits } from '../../storage/rows.ts';
import { compareKeys } from '../../storage/scan-accounts.ts';
import { isOfApp } from '../../storage/slot-row.ts';
import type { Storage } from '../../storage/storage.ts';
import type { RowState } from './read-backup.ts';

/**
 * Copies the rows of a backup to another place, as they were stored: the types of their values are the same, and encrypted fields stay
 * ciphertexts. It compares in the order of keys and writes the differences, so it can be repeated, and then costs no write.
 */

export interface RestoredTable {
  readonly table: string;
  /** In the backup. */
  readonly rows: number;
  /** The hash of the rows in the backup, in the order of their keys. */
  readonly sha256: string;
  /** Rows that this run has written or deleted. */
  readonly changed: number;
  /** True if the rows that were read back have the same hash. */
  readonly isEqual: boolean;
}

interface CopyOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onRows?: ((table: string, rows: number) => void) | undefined;
  /** True for some rows of their tables: no other row is deleted, and nothing is compared. */
  readonly isPart?: boolean | undefined;
}

const CONCURRENCY = 8;
const PAGE_SIZE = 1_000;
const REPORT_EVERY = 500;

/** Makes the rows of each table those of the backup, which come in the order of tables and keys. */
export async function restoreRows(
  storage: Storage,
  rows: AsyncIterable<RowState>,
  options: CopyOptions = {},
): Promise<RestoredTable[]> {
  const restored: RestoredTable[] = [];
  const from = rows[Symbol.asyncIterator]();
  let next = await from.next();
  async function* ofTable(table: string): AsyncGenerator<RowState> {
    for (; !next.done && next.value.table === table; next = await from.next()) yield next.value;
  }
  while (!next.done) {
    const { table } = next.value;
    // A process that died may have created it in some of the accounts.
    await createTable(storage, table);
    restored.push(await restoreTable(storage, table, ofTable(table), options));
  }
  return restored;
}

interface Canonical {
  readonly partition: string;
  readonly row: string;
  readonly properties: Properties;
  readonly text: string;
}

async function restoreTable(
  storage: Storage,
  table: string,
  stored: AsyncGenerator<RowState>,
  { signal, onRows, isPart = false }: CopyOptions,
): Promise<RestoredTable> {
  const sum = createHash('sha256');
  const counts = { rows: 0, changed: 0 };
  const source = hashed(sum, stored, () => {
    counts.rows += 1;
    if (counts.rows % REPORT_EVERY === 0) onRows?.(table, REPORT_EVERY);
  });
  await pMap(
    toBatches(differences(source, isPart ? noRows() : readTable(storage, table)), (partition) =>
      transactionLimits(storage, partition),
    ),
    async ({ partition, actions }) => {
      signal?.throwIfAborted();
      await submit(storage, { table, partition, actions, isRepeatable: true });
      counts.changed += actions.length;
    },
    { concurrency: CONCURRENCY },
  );
  onRows?.(table, counts.rows % REPORT_EVERY);
  const sha256 = sum.digest('hex');
  const isEqual = isPart || counts.changed === 0 || (await hashTable(storage, table)) === sha256;
  return { table, ...counts, sha256, isEqual };
}

/** The hash of the rows of the app in a table, as in `RestoredTable`. */
async function hashTable(storage: Storage, table: string): Promise<string> {
  const sum = createHash('sha256');
  for await (const { text } of readTable(storage, table)) sum.update(text);
  return sum.digest('hex');
}

async function* hashed(
  sum: Hash,
  rows: AsyncGenerator<RowState>,
  onRow: () => void,
): AsyncGenerator<Canonical, undefined> {
  for await (const row of rows) {
    const canonical = toCanonical(row);
    sum.update(canonical.text);
    onRow();
    yield canonical;
  }
}

async function* noRows(): AsyncGenerator<Canonical, undefined> {}

/** The rows of the app in a table, of all accounts, in the order of their keys. */
async function* readTable(storage: Storage, table: string): AsyncGenerator<Canonical, undefined> {
  for (let after: Row | undefined; ; ) {
    const { rows, more } = await scanTable(storage, { table, after, limit: PAGE_SIZE, isTyped: true });
    for (const row of rows) if (isOfApp(row)) yield toCanonical(row);
    after = rows.at(-1);
    if (!more || !after) return;
  }
}

async function* differences(
  source: AsyncGenerator<Canonical, undefined>,
  target: AsyncGenerator<Canonical, undefined>,
) {
  let [here, there] = await Promise.all([source.next(), target.next()]);
  while (here.value || there.value) {
    const order = !here.value ? 1 : !there.value ? -1 : compareKeys(here.value, there.value);
    if (here.value && (order < 0 || (order === 0 && here.value.text !== there.value?.text))) {
      const { partition, row, properties } = here.value;
      yield { partition, action: { kind: 'upsert', row, properties } as const };
    } else if (there.value && order > 0)
      yield { partition: there.value.partition, action: { kind: 'delete', row: there.value.row } as const };
    const [isHere, isThere] = [order <= 0, order >= 0];
    if (isHere) here = await source.next();
    if (isThere) there = await target.next();
  }
}

/** A row as a text, equal for equal rows. */
export const textOf = (row: Pick<RowState, 'partition' | 'row' | 'properties'>) => toCanonical(row).text;

/** A row with equal text for equal values: 5 and 5.0, which are the same Double, have the same. */
function toCanonical({ partition, row, properties }: Pick<RowState, 'partition' | 'row' | 'properties'>): Canonical {
  const sorted = Object.keys(properties)
    .sort()
    .flatMap((name) => {
      const value = toCanonicalValue(properties[name]);
      return value === undefined ? [] : [[name, value] as const];
    });
  const canonical = Object.fromEntries(sorted);
  // Of an object, the properties whose names are numbers would come first.
  return { partition, row, properties: canonical, text: `${JSON.stringify([partition, row, sorted])}\n` };
}

interface Typed {
  readonly type: string;
  readonly value: unknown;
}

function toCanonicalValue(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (typeof value !== 'object') return value;
  const { type, value: inner } = value as Typed;
  switch (type) {
    case 'Double':
      return { type, value: String(Number(inner)) };
    case 'Int64':
      return { type, value: String(BigInt(String(inner))) };
    case 'DateTime':
      return { type, value: padTime(String(inner)) };
    case 'Guid':
      return { type, value: String(inner).toLowerCase() };
    case 'Binary':
      return { type, value: Buffer.from(String(inner), 'base64').toString('base64') };
    // The types of JSON.
    default:
      return inner;
  }
}
