import { hash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import pMap from 'p-map';
import { isOutcomeUnknown } from '../../base/errors.ts';
import { listContainerOf, readBlob } from '../../storage/blobs.ts';
import { BACKUP_CONTAINER } from '../../storage/row-journal.ts';
import { compareKeys } from '../../storage/scan-accounts.ts';
import type { Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { blobFolder, JOURNAL, JournalLine, type Manifest, PARTS, type Part, SnapshotLine } from './format.ts';
import { readManifests } from './read-backup.ts';

/** Compares a backup with itself: what its manifests name is there, and has the bytes that were written. */

interface VerifyOptions {
  /** The retention. */
  readonly days: number;
  /** What an earlier verification has read, as it returned it: nothing of it changes. */
  readonly known?: ReadonlySet<string> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called for each blob that was read. */
  readonly onRead?: ((lines: number) => void) | undefined;
}

export interface Verified {
  readonly snapshots: number;
  /** All of the snapshots, and those that were read now. */
  readonly parts: { readonly all: number; readonly read: number };
  readonly journal: { readonly all: number; readonly read: number };
  /** Lines that were read. */
  readonly lines: number;
  readonly problems: readonly string[];
  /** What needs not be read again. */
  readonly known: ReadonlySet<string>;
}

const CONCURRENCY = 8;

export const verifyBackup = inPattern(
  'backup',
  async (backup: Storage, { days, known = new Set(), signal, onRead }: VerifyOptions): Promise<Verified> => {
    const problems: string[] = [];
    const read = new Set<string>();
    let lines = 0;
    const [manifests, stored] = await Promise.all([
      Array.fromAsync(readManifests({ backup })),
      lengthsIn(backup, `${PARTS}/`),
    ]);
    const parts = new Map(manifests.flatMap((manifest) => partsOf(manifest).map((part) => [part.name, part] as const)));
    const check = async (name: string, work: (bytes: Buffer) => number) => {
      if (signal?.aborted) return;
      try {
        const bytes = await readBlob(backup, { container: BACKUP_CONTAINER, name });
        if (!bytes) throw new Error('it is missing.');
        const found = work(bytes);
        lines += found;
        onRead?.(found);
        return true;
      } catch (error) {
        if (isOutcomeUnknown(error)) throw error;
        problems.push(`${name}: ${error instanceof Error ? error.message : error}`);
        return false;
      }
    };
    await pMap(
      parts.values(),
      async (part) => {
        const length = stored.get(part.name);
        if (length !== part.bytes) {
          problems.push(
            `${part.name}: ${length === undefined ? 'it is missing' : `it has ${length} bytes, not ${part.bytes}`}.`,
          );
          return;
        }
        if (!known.has(part.name) && (await check(part.name, (bytes) => readPart(part, bytes)))) read.add(part.name);
      },
      { concurrency: CONCURRENCY },
    );
    const journal = await lengthsIn(backup, `${JOURNAL}/`);
    // A blob of the current hour grows, and is then another one.
    const isNew = ([name, length]: readonly [string, number]) => !known.has(`${name}:${length}`);
    await pMap(
      [...journal].filter(isNew),
      async ([name]) => {
        // It may have grown since it was listed.
        let length = 0;
        const isRead = await check(name, (bytes) => {
          length = bytes.length;
          return readJournalBlob(bytes);
        });
        if (isRead) read.add(`${name}:${length}`);
      },
      { concurrency: CONCURRENCY },
    );
    problems.push(...(await findMissingCopies(backup, manifests[0], days)));
    for (const manifest of manifests)
      for (const [table, { rows, parts: of }] of Object.entries(manifest.tables))
        if (of.reduce((sum, part) => sum + part.rows, 0) !== rows)
          problems.push(`${manifest.id}: the parts of ${table} do not have ${rows} rows.`);
    const isThere = (name: string) => parts.has(name) || journal.has(name.replace(/:\d+$/, ''));
    return {
      snapshots: manifests.length,
      parts: { all: parts.size, read: [...read].filter((name) => parts.has(name)).length },
      journal: { all: journal.size, read: [...read].filter((name) => !parts.has(name)).length },
      lines,
      problems,
      known: new Set([...known, ...read].filter(isThere)),
    };
  },
);

const partsOf = ({ tables }: Manifest) => Object.values(tables).flatMap(({ parts }) => parts);

async function lengthsIn(backup: Storage, prefix: string): Promise<Map<string, number>> {
  const blobs = await Array.fromAsync(listContainerOf(backup, BACKUP_CONTAINER, prefix));
  return new Map(blobs.map(({ name, length }) => [name, length]));
}

/** Returns the number of rows. Throws if the bytes are not those that were written. */
function readPart({ sha256, rows, first }: Part, bytes: Buffer): number {
  if (hash('sha256', bytes) !== sha256) throw new Error('its bytes are not those that were written.');
  const texts = gunzipSync(bytes).toString().split('\n').slice(0, -1);
  if (texts.length !== rows) throw new Error(`it has ${texts.length} rows, not ${rows}.`);
  let before: SnapshotLine | undefined;
  for (const text of texts) {
    const line = SnapshotLine.parse(JSON.parse(text));
    if (before ? compareKeys(before, line) >= 0 : compareKeys(first, line) !== 0)
      throw new Error('its rows are not in the order of their keys.');
    before = line;
  }
  return rows;
}

/** Returns the number of lines. Throws if one cannot be read. */
function readJournalBlob(bytes: Buffer): number {
  const texts = bytes.toString().split('\n');
  if (texts.pop() !== '') throw new Error('its last line is not whole.');
  for (const text of texts) JournalLine.parse(JSON.parse(text));
  return texts.length;
}

/** A manifest counts the copies of blobs that there were. */
async function findMissingCopies(backup: Storage, last: Manifest | undefined, days: number): Promise<string[]> {
  const found = Object.entries(last?.blobs ?? {}).map(async ([container, { count }]) => {
    const folder = `${blobFolder(Date.parse(last?.finishedAt ?? ''), days)}/${container}/`;
    const { size } = await lengthsIn(backup, folder);
    return size < count ? [`${folder}: it has ${size} copies, not ${count}.`] : [];
  });
  return (await Promise.all(found)).flat();
}
