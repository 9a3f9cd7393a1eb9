import pMap from 'p-map';
import { isKnownError, RowkeyError } from '../../base/errors.ts';
import { omit, pick, type Values } from '../../base/values.ts';
import { Attachment } from '../../define/declaration/attachment.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { prefixOfChildren, rangeOfPrefix } from '../../define/keys/key-template.ts';
import type { Engine } from '../../engine/engine.ts';
import { readLive } from '../../engine/read/entity-rows.ts';
import { requireTold } from '../../engine/read/told.ts';
import type { BatchOutcome } from '../../engine/write/entity-batch.ts';
import { batchOnce } from '../../engine/write/entity-store.ts';
import { toPlain } from '../../engine/write/stored-values.ts';
import { putAttachment, readAttachment } from '../../features/large-entities/attachment.ts';
import { type Address, readRange } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import { openErased } from './erase-again.ts';
import { type DeletedRow, openBeforeDeletes } from './history.ts';

/**
 * Creates entities again that were deleted, with the values that they had, from the backup. They are written as any entity is, so indexes, lists,
 * totals and unique values follow. An entity that exists again stays as it is, and one of a person who was
 * erased since stays deleted.
 */

const FILES_CONCURRENCY = 4;
const READ_CONCURRENCY = 8;

export interface Undeleted {
  readonly entity: Entity;
  /** Undefined if the backup has no such entity at that time. */
  readonly key: Values | undefined;
  /** The state that it got, or why it did not. */
  readonly outcome: BatchOutcome;
  /** Fields that could not be restored, because their blob or their key is gone. */
  readonly lost: readonly string[];
}

/** Undeletes entities of one kind with their children, or returns what would be undeleted. An error is the outcome of its entity alone. */
export const undelete = inPattern(
  'backup',
  async (
    present: Engine,
    entity: Entity,
    { deletes, isTrial }: { readonly deletes: readonly DeletedRow[]; readonly isTrial: boolean },
  ): Promise<Undeleted[]> => {
    if (entity.existing) requireTold(entity);
    if (deletes.length === 0) return [];
    // An entity that was deleted twice is restored as it was last.
    const last = [...new Map(deletes.map((record) => [nameOf(record), record])).values()];
    const opened = await openBeforeDeletes(present, entity, last);
    const first = last.reduce((least, { at }) => (at < least ? at : least), last[0]?.at ?? '');
    const isErased = await openErased(present, [entity, ...entity.children], first);
    const parents = await pMap(
      last,
      async (record) => {
        const past = opened.get(record);
        return past && readFormer(past, entity, { table: entity.table, partition: record.partition, row: record.row });
      },
      { concurrency: READ_CONCURRENCY },
    );
    const found = parents.flatMap((parent) => (parent && !isErased(entity, parent.live.values) ? parent : []));
    const restored = isTrial ? await trialOf(present, entity, found) : await restore(present, entity, found);
    const done = parents.map((parent, index): Undeleted => {
      const outcome = parent && restored[found.indexOf(parent)];
      if (parent && !outcome)
        return { entity, key: keyOf(entity, parent.live), outcome: erasedSince(entity), lost: [] };
      return outcome ?? { entity, key: undefined, outcome: notInBackup(entity, last[index]?.row ?? ''), lost: [] };
    });
    if (isTrial) return done;
    // A child needs its parent, which another request may have created again meanwhile.
    for (const kind of entity.children) {
      const children = await pMap(found, (parent) => readChildren(entity, kind, parent), {
        concurrency: READ_CONCURRENCY,
      });
      const kept = children.flat().filter(({ live }) => !isErased(kind, live.values));
      done.push(...(await restore(present, kind, kept)));
    }
    return done;
  },
);

const nameOf = ({ partition, row }: DeletedRow) => JSON.stringify([partition, row]);

function notInBackup({ name }: Entity, row: string): RowkeyError {
  return new RowkeyError('not-found', `The backup has no ${name} entity in the row "${row}" before it was deleted.`);
}

function erasedSince({ name }: Entity): RowkeyError {
  return new RowkeyError('forbidden', `The ${name} entity is of a person whose data was erased since.`);
}

/** An entity as an engine reads it. */
export interface Former {
  /** What has read it: to undelete, an engine of the instant before the delete. */
  readonly past: Engine;
  readonly address: Address;
  readonly live: Live;
  readonly plain: Values;
  readonly lost: readonly string[];
}

/** Reads an entity with its texts. A field that cannot be read is null, and lost. */
export async function readFormer(past: Engine, entity: Entity, address: Address): Promise<Former | undefined> {
  const live = await readLive(past, entity, address);
  if (!live) return undefined;
  const lost: string[] = [];
  const plain = await toPlain(past, entity, live.values, (field) => {
    lost.push(field);
    return null;
  });
  return { past, address, live, plain, lost };
}

async function readChildren(parent: Entity, kind: Entity, { past, address }: Former): Promise<Former[]> {
  const { table, partition, row } = address;
  const range = { table, partition, ...rangeOfPrefix(prefixOfChildren(parent.row, row)), type: kind.name };
  const { rows } = await readRange(past.storage, range);
  return (await pMap(rows, (found) => readFormer(past, kind, found))).flatMap((found) => found ?? []);
}

async function trialOf(present: Engine, entity: Entity, found: readonly Former[]): Promise<Undeleted[]> {
  return pMap(found, async ({ address, live, lost }) => {
    const isThere = (await readLive(present, entity, address)) !== undefined;
    return { entity, key: keyOf(entity, live), outcome: isThere ? exists(entity) : { outcome: 'created' }, lost };
  });
}

const exists = ({ name }: Entity) => new RowkeyError('duplicate-key', `The ${name} entity exists again.`);
const keyOf = ({ keyFields }: Entity, { values }: Live) => pick(values, keyFields);

async function restore(present: Engine, entity: Entity, found: readonly Former[]): Promise<Undeleted[]> {
  const files = Object.keys(entity.attachments);
  const actions = found.map(({ plain, lost }) => ({
    put: omit(plain, [...entity.decidedFields, ...files, ...lost]),
    ifNoneMatch: '*',
  }));
  const outcomes = actions.length === 0 ? [] : await batchOnce(present, entity, actions, undefined);
  return pMap(
    found,
    async ({ past, live, lost }, index) => {
      const key = keyOf(entity, live);
      const outcome = outcomes[index] ?? exists(entity);
      if (outcome instanceof RowkeyError) return { entity, key, outcome, lost };
      const lostFiles: string[] = [];
      for (const field of files) {
        const { data } = Attachment.safeParse(live.values[field]);
        if (data && !(await restoreFile(present, past, { entity, key, field }, data))) lostFiles.push(field);
      }
      return { entity, key, outcome, lost: [...lost, ...lostFiles] };
    },
    { concurrency: FILES_CONCURRENCY },
  );
}

/** False if the file is gone, or is not accepted any more. */
async function restoreFile(
  present: Engine,
  past: Engine,
  at: { readonly entity: Entity; readonly key: Values; readonly field: string },
  file: Attachment,
): Promise<boolean> {
  try {
    await putAttachment(present, at, await readAttachment(past, at, file));
    return true;
  } catch (error) {
    if (isKnownError(error) && error.code !== 'storage-unavailable') return false;
    throw error;
  }
}
