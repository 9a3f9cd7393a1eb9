import { RowkeyError } from '../../base/errors.ts';
import { MINUTE_MS } from '../../base/time.ts';
import type { Values } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { fieldsOfUser } from '../../define/places/user-rows.ts';
import type { Engine } from '../../engine/engine.ts';
import { ChangeRecord } from '../../engine/note-change.ts';
import type { Position } from '../../engine/read/continuation.ts';
import { listBlobs, readLines } from '../../storage/append-blobs.ts';
import { AUDIT_CONTAINER } from '../../storage/blob-owner.ts';
import { isStorageError } from '../../storage/errors.ts';
import { BACKUP_CONTAINER } from '../../storage/row-journal.ts';
import { readChanges } from '../audit-log.ts';
import { BLOBS } from './format.ts';
import type { RowSource } from './read-backup.ts';

/**
 * A restore to before the data of a person was erased would bring them back. The audit log says who was erased since, so they are erased again:
 * both the log of the app, if it is still there, and its copies in the backup are read.
 */

/** What was erased of a person. `failed` has sentences for operators. */
export interface Erased {
  readonly deleted: number;
  readonly changed: number;
  readonly failed: readonly string[];
}

export interface ErasedAgain extends Erased {
  readonly subjects: number;
  /** False if the log of the app could not be read, and only its copies were. */
  readonly isLogRead: boolean;
}

/** A request that erases is recorded when it begins, and has a minute at most. The clocks of processes may differ. */
const RECORDED_BEFORE_MS = 2 * MINUTE_MS;
const PAGE_SIZE = 1_000;

interface EraseOptions {
  readonly source: RowSource;
  readonly at: string;
  /** Erases all that the app has stored about a person, as the operation of the API does. */
  readonly erase: (engine: Engine, subject: string) => Promise<Erased>;
}

export async function eraseAgain(engine: Engine, { source, at, erase }: EraseOptions): Promise<ErasedAgain> {
  const since = Date.parse(at) - RECORDED_BEFORE_MS;
  const subjects = new Set<string>();
  const note = ({ operation, subject, at: erasedAt }: ChangeRecord) => {
    if (operation === 'erase' && subject !== undefined && Date.parse(erasedAt) >= since) subjects.add(subject);
  };
  for await (const change of readCopies(source, since)) note(change);
  const isLogRead = await readLog(engine, source, since, note);
  const done = { deleted: 0, changed: 0, failed: [] as string[] };
  for (const subject of subjects) {
    const { deleted, changed, failed } = await erase(engine, subject);
    done.deleted += deleted;
    done.changed += changed;
    done.failed.push(...failed);
  }
  return { subjects: subjects.size, ...done, isLogRead };
}

/** The name of a copy: the day of its copies, the container, and the slot, the day and the hour of the log. */
const COPY = new RegExp(`^${BLOBS}/[^/]+/${AUDIT_CONTAINER}/(?:[\\da-f]{3}/)?(\\d{4})/(\\d\\d)/(\\d\\d)/(\\d\\d)00/`);
const HOUR = 60 * MINUTE_MS;

/** The records in the copies of the audit log. */
async function* readCopies({ backup }: RowSource, since: number): AsyncGenerator<ChangeRecord> {
  for (const name of await listBlobs(backup, { container: BACKUP_CONTAINER, prefix: `${BLOBS}/` })) {
    const [, year, month, day, hour] = COPY.exec(name) ?? [];
    if (year === undefined || Date.parse(`${year}-${month}-${day}T${hour}:00:00Z`) < since - HOUR) continue;
    for await (const text of readLines(backup, { container: BACKUP_CONTAINER, name }))
      yield ChangeRecord.parse(JSON.parse(text));
  }
}

/** Reads the log of the app. False if there is no app any more, or its account is away. */
async function readLog(
  engine: Engine,
  { storage }: RowSource,
  since: number,
  note: (change: ChangeRecord) => void,
): Promise<boolean> {
  if (!storage) return false;
  try {
    await readChangesSince({ ...engine, storage }, since, note);
    return true;
  } catch (error) {
    if (error instanceof RowkeyError || isStorageError(error)) return false;
    throw error;
  }
}

async function readChangesSince(engine: Engine, since: number, note: (change: ChangeRecord) => void): Promise<void> {
  let after: Position | undefined;
  do {
    const to = engine.now() + HOUR;
    const { items, next } = await readChanges(engine, { from: since, to, limit: PAGE_SIZE, after });
    items.forEach(note);
    after = next;
  } while (after);
}

/** Tells of values that were stored at an instant whether they are of a person who was erased since, as the log of the app has it. */
export async function openErased(
  engine: Engine,
  kinds: readonly Entity[],
  at: string,
): Promise<(kind: Entity, values: Values) => boolean> {
  const fieldsOf = (kind: Entity) =>
    fieldsOfUser(kind).flatMap(([field, erasing]) => (erasing === 'keep' ? [] : [field]));
  const erased = new Set<unknown>();
  if (kinds.some((kind) => fieldsOf(kind).length > 0))
    await readChangesSince(engine, Date.parse(at) - RECORDED_BEFORE_MS, ({ operation, subject }) => {
      if (operation === 'erase' && subject !== undefined) erased.add(subject);
    });
  return (kind, values) => fieldsOf(kind).some((field) => erased.has(values[field]));
}
