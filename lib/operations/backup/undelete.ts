import pMap from 'p-map';
import { isKnownError, RowkeyError } from '../../base/errors.ts';
import { omit, pick, type Values } from '../../base/values.ts';
import { Attachment } from '../../define/declaration/attachment.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { prefixOfChildren, rangeOfPrefix } from '../../define/keys/key-template.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ChangeRecord } from '../../engine/note-change.ts';
import { readLive } from '../../engine/read/entity-rows.ts';
import type { BatchOutcome } from '../../engine/write/entity-batch.ts';
import { batchOnce } from '../../engine/write/entity-store.ts';
import { toPlain } from '../../engine/write/stored-values.ts';
import { putAttachment, readAttachment } from '../../features/large-entities/attachment.ts';
import { type Address, readRange } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import { instantsBefore } from './history.ts';

/**
 * Creates entities again that were deleted, with the values that they had, from the backup. They are written as any entity is, so indexes, lists,
 * totals and unique values follow. An entity that exists again stays as it is.
 */

const FILES_CONCURRENCY = 4;

/** A record of the audit log that says which row was deleted. */
export type DeletedRow = ChangeRecord & { readonly row: string };

export interface Undeleted {
  readonly entity: Entity;
  /** Undefined if the backup has no such entity at that time. */
  readonly key: Values | undefined;
  /** The state that it got, or why it did not. */
  readonly outcome: BatchOutcome;
  /** Fields that could not be had back, because their blob or their key is gone. */
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
    if (deletes.length === 0 || !present.past) return [];
    const instants = await instantsBefore(present, deletes);
    const done: Undeleted[] = [];
    for (const [partition, some] of Map.groupBy(deletes, (record) => record.partition)) {
      const past = await present.past.open(present, instants.get(partition) ?? '');
      const rows = [...new Set(some.map(({ row }) => row))];
      const parents = await pMap(rows, (row) => readFormer(past, entity, { table: entity.table, partition, row }));
      for (const row of rows.filter((_, index) => !parents[index]))
        done.push({ entity, key: undefined, outcome: notInBackup(entity, row), lost: [] });
      const found = parents.flatMap((parent) => parent ?? []);
      const restored = isTrial ? await trialOf(present, entity, found) : await restore(present, past, entity, found);
      done.push(...restored);
      if (isTrial) continue;
      // A child needs its parent, which another request may have created again meanwhile.
      for (const kind of entity.children) {
        const children = await pMap(found, (parent) => readChildren(past, entity, kind, parent));
        done.push(...(await restore(present, past, kind, children.flat())));
      }
    }
    return done;
  },
);

function notInBackup({ name }: Entity, row: string): RowkeyError {
  return new RowkeyError('not-found', `The backup has no ${name} entity in the row "${row}" before it was deleted.`);
}

interface Former {
  readonly address: Address;
  readonly live: Live;
  readonly plain: Values;
  readonly lost: readonly string[];
}

async function readFormer(past: Engine, entity: Entity, address: Address): Promise<Former | undefined> {
  const live = await readLive(past, entity, address);
  if (!live) return undefined;
  const lost: string[] = [];
  const plain = await toPlain(past, entity, live.values, (field) => {
    lost.push(field);
    return null;
  });
  return { address, live, plain, lost };
}

async function readChildren(past: Engine, parent: Entity, kind: Entity, { address }: Former): Promise<Former[]> {
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

async function restore(present: Engine, past: Engine, entity: Entity, found: readonly Former[]): Promise<Undeleted[]> {
  const files = Object.keys(entity.attachments);
  const actions = found.map(({ plain, lost }) => ({
    put: omit(plain, [...entity.decidedFields, ...files, ...lost]),
    ifNoneMatch: '*',
  }));
  const outcomes = actions.length === 0 ? [] : await batchOnce(present, entity, actions, undefined);
  return pMap(
    found,
    async ({ live, lost }, index) => {
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
