import pMap from 'p-map';
import { busy, RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { toProperties, toSnapshot } from '../../define/codec/entity-codec.ts';
import {
  type CarriedRows,
  type Change,
  liveValues,
  type PlanDraft,
  type Siblings,
  whyClosed,
} from '../../define/declaration/change.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import { type Entity, type Feature, hasRowsBeside } from '../../define/declaration/entity.ts';
import { hasExpired } from '../../define/declaration/expiry.ts';
import { buildKey, prefixOfChildren, rangeOfPrefix } from '../../define/keys/key-template.ts';
import { addressOf, isCopy } from '../../define/places/index-entries.ts';
import { oracleErrors } from '../../define/validate/feature-errors.ts';
import { TooManyCarried } from '../../engine/write/plan.ts';
import { announceBlobsOf, toPlaced } from '../../engine/write/stored-values.ts';
import { isMarked } from '../../storage/row-marks.ts';
import {
  type Action,
  type Address,
  MAX_TRANSACTION_ACTIONS,
  type Row,
  readRange,
  readRow,
} from '../../storage/rows.ts';

/**
 * Compound key pattern: `empid_000123` and `empid_000123_2012` are stored side by side, so that one range query reads an
 * entity with its children. Each write of a child also writes its parent, under the parent's ETag, in the same transaction.
 * A delete, an archive or a move of the parent includes its children, so this conflict keeps it from missing a new child.
 */
export const compoundKey: Feature = {
  name: 'compound key',
  isUsed: ({ childOf, children }) => childOf !== undefined || children.length > 0,
  write: {
    leavesTombstone: true,
    *siblings({ childOf: parent }, { before, after }) {
      if (parent) yield buildKey(parent.row, after ?? liveValues(before) ?? {});
    },
    plan(entity, changes, { siblings, actions, writeId, now, guard }) {
      for (const change of changes)
        for (const action of planChildren(entity, change, siblings))
          actions.push({ action, part: { of: 'sibling', isCarried: true } });
      for (const [row, etag] of collectParentEtags(entity, changes, { siblings, now, guard }))
        actions.push({
          action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag },
          part: { of: 'sibling' },
        });
    },
    carried: {
      read: readChildren,
      async move(engine, entity, from, there) {
        const put = await copyChildren(engine, entity, await readChildren(engine, entity, from), there);
        // An earlier attempt may have written them.
        const found = await readBelow(engine, there.entity, there.address);
        requireFree(found, put);
        const former = found.filter((row) => findChildKind(there.entity, row));
        await announceBlobsOf(engine.storage, there.entity.children, former);
        return { put, drop: former.map(({ row }) => row) };
      },
    },
  },
  check: {
    /** Nobody but a person knows whether the parent or the child is the mistake. */
    async entity({ storage }, { childOf: parent }, { address, snapshot }) {
      const row = parent && buildKey(parent.row, snapshot.values);
      if (!parent || row === undefined) return [];
      const found = await readRow(storage, { ...address, row, select: ['EntityType', 'SourceRow'] });
      const isThere = found?.properties.EntityType === parent.name && !isCopy(found);
      return isThere ? [] : [{ kind: 'dangling', of: parent.name, ...address }];
    },
  },
  *validate(entity) {
    const { childOf: parent, name, archive, movable } = entity;
    if (!parent) return;
    const isWithin =
      parent.table === entity.table &&
      parent.partition.template === entity.partition.template &&
      entity.row.template.startsWith(`${parent.row.template}_`);
    if (!isWithin)
      yield `the key does not begin with that of its parent "${parent.name}" and "_". Use the table and the partition key of the parent, and its row key with "_" and a field after it.`;
    // A write of a child without its parent is rejected.
    yield* oracleErrors(`it is a child of "${parent.name}"`, {
      writer: entity,
      seen: parent,
      field: parent.keyFields.at(-1) ?? '',
      isUnique: true,
    });
    if (parent.childOf) yield `its parent "${parent.name}" is a child itself. Remove childOf from one of them.`;
    if (Object.hasOwn(parent.schema.shape, name))
      yield `its parent "${parent.name}" has a field "${name}", which a read with ?include=${name} would replace. Rename one of them.`;
    const others = entity.features.filter(
      (feature) => feature !== compoundKey && (hasRowsBeside(feature) || feature.layout?.further),
    );
    if (others.length > 0)
      yield `a child goes where its parent "${parent.name}" goes, and only its row goes along. Remove ${others.map(({ name: pattern }) => pattern).join(', ')}.`;
    if (archive || movable.length > 0)
      yield `a child of "${parent.name}" is archived and moved with its parent. Remove archive and movable.`;
  },
};

const CHILDREN_CONCURRENCY = 8;
/** One row of the transaction is that of the parent. */
const MAX_CHILDREN = MAX_TRANSACTION_ACTIONS - 1;

/** Reads the rows of the children of an entity: one range query. With a limit, the first ones, of their fields only those that name blobs. */
async function readChildren(...read: Parameters<typeof readBelow>): Promise<Row[]> {
  const [, entity] = read;
  return (await readBelow(...read)).filter((found) => findChildKind(entity, found));
}

/** Reads the rows whose keys continue that of an entity. */
async function readBelow(
  { storage }: Engine,
  entity: Entity,
  { table, partition, row }: Address,
  limit?: number,
): Promise<Row[]> {
  if (entity.children.length === 0) return [];
  const range = rangeOfPrefix(prefixOfChildren(entity.row, row));
  const named = entity.children.flatMap((kind) =>
    kind.features.flatMap(({ stored }) => stored?.blobs?.properties(kind) ?? []),
  );
  const type = entity.children.map(({ name }) => name);
  const some = limit && { limit, type, select: [...new Set(['EntityType', ...named])] };
  const { rows } = await readRange(storage, { table, partition, ...range, ...(some || {}) });
  return rows;
}

/** Throws `duplicate-value` if another program has a row at the key of a child that arrives. */
function requireFree(found: readonly Row[], put: CarriedRows['put']): void {
  const arriving = new Set(put.map(({ row }) => row));
  if (found.some(({ row, properties }) => arriving.has(row) && !isMarked(properties)))
    throw new RowkeyError('duplicate-value', 'A row of another program has the key of a child at the destination.');
}

/**
 * Returns the rows of the children for the destination of their parent. `to` has the key fields that change. Throws `invalid-input` if a child
 * would get a key that is not below that of its parent.
 */
async function copyChildren(
  engine: Engine,
  entity: Entity,
  rows: readonly Row[],
  there: { readonly entity: Entity; readonly address: Address; readonly to: Values | undefined },
): Promise<CarriedRows['put']> {
  const { table, partition, row: parent } = there.address;
  const prefix = prefixOfChildren(there.entity.row, parent);
  const moved = await pMap(
    rows,
    async (found) => {
      const kind = findChildKind(entity, found);
      const snapshot = kind && toSnapshot(kind, found);
      if (!kind || snapshot?.state !== 'live') return [];
      const before = snapshot.values;
      const values = await toPlaced(engine, kind, before, { entity: { ...kind, table }, to: there.to });
      const address = addressOf(kind, values);
      // A derived field may be a part of the key.
      if (there.to && (address.partition !== partition || !address.row.startsWith(prefix)))
        throw new RowkeyError(
          'invalid-input',
          `A child of ${kind.name} would get a key outside of its ${entity.name}.`,
        );
      return [{ row: address.row, properties: toProperties(kind, values, snapshot.system), before }];
    },
    { concurrency: CHILDREN_CONCURRENCY },
  );
  const arriving = moved.flat();
  // Derived fields may make two keys equal, and a later transaction would replace the row of an earlier one.
  if (new Set(arriving.map(({ row }) => row)).size < arriving.length)
    throw new RowkeyError('duplicate-value', `Two children of an entity of ${entity.name} would get the same key.`);
  return arriving;
}

/**
 * Returns the row keys of the parents of changed children, with their ETags. Throws `invalid-input` if a new child has no parent that
 * the caller can read, and `busy` while the parent is being moved to this partition.
 */
function collectParentEtags(
  entity: Entity,
  changes: readonly Change[],
  { siblings, now, guard }: Pick<PlanDraft, 'siblings' | 'now' | 'guard'>,
): Map<string, string> {
  const { childOf: parent, name } = entity;
  const touched = new Map<string, string>();
  if (!parent) return touched;
  for (const { before, after } of changes) {
    const values = after ?? liveValues(before) ?? {};
    const row = buildKey(parent.row, values);
    const found = siblings.get(row);
    const snapshot = toSnapshot(parent, found?.properties.EntityType === parent.name ? found : undefined);
    const isSeen = before.state === 'live' || !guard || guard.canRefer(parent.name, liveValues(snapshot) ?? {});
    const isGone = after !== undefined && hasExpired(parent, liveValues(snapshot) ?? {}, now);
    if (snapshot.state === 'live' && isSeen && !isGone) {
      if (whyClosed(snapshot.system)) throw busy('The parent entity is being deleted, archived or moved.');
      touched.set(row, snapshot.etag);
    } else if (after) {
      const field = parent.keyFields.at(-1) ?? 'key';
      throw new RowkeyError(
        'invalid-input',
        `"${field}" refers to no entity of ${parent.name}, the parent of ${name}.`,
        {
          field,
          accepted: `the key of an existing entity of ${parent.name}`,
        },
      );
    }
  }
  return touched;
}

/** Plans the deletion of the children of a deleted entity, or the writes of children that move with their parent. */
function planChildren(entity: Entity, { address, after, carried }: Change, siblings: Siblings): Action[] {
  const put = carried?.put ?? [];
  const prefix = prefixOfChildren(entity.row, address.row);
  const isOwn = (found: Row) => found.row.startsWith(prefix) && findChildKind(entity, found) !== undefined;
  const own = [...siblings.values()].filter(isOwn).map(({ row }) => row);
  const dropped = after ? (carried?.drop ?? []) : own;
  const kept = new Set(put.map(({ row }) => row));
  const actions = [
    ...put.map(({ row, properties }) => ({ kind: 'upsert', row, properties }) as const),
    ...dropped.filter((row) => !kept.has(row)).map((row) => ({ kind: 'delete', row }) as const),
  ];
  if (actions.length > MAX_CHILDREN) {
    const kinds = entity.children.map(({ name }) => name).join(' and ');
    throw new TooManyCarried(
      `An entity of ${entity.name} is deleted, archived or moved in one transaction with its children; it has ${actions.length}, and at most ${MAX_CHILDREN} are possible.`,
      {
        needed: actions.length,
        limit: MAX_CHILDREN,
        accepted: `at most ${MAX_CHILDREN} children; delete ranges of ${kinds} first`,
      },
    );
  }
  return actions;
}

function findChildKind(entity: Entity, { properties }: Row): Entity | undefined {
  return entity.children.find(({ name }) => name === properties.EntityType);
}
