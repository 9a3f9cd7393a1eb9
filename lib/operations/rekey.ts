import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { isRecent } from '../base/time.ts';
import { pick, type Values } from '../base/values.ts';
import { TOMBSTONE, toValues } from '../define/codec/entity-codec.ts';
import { type Entity, formerOf, withArchives } from '../define/declaration/entity.ts';
import type { Finding } from '../define/declaration/finding.ts';
import { addressIfAny, addressOf } from '../define/places/index-entries.ts';
import type { Engine, Rekey, RekeyPhase } from '../engine/engine.ts';
import { beingRekeyed, judgeRow, readJoinedRow } from '../engine/read/entity-rows.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { arrivesFromFormer, isTombstoneOfRekey, keyAt, moveToKey } from '../engine/transfer/move-to-key.ts';
import { type Row, scanTable } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { endRekey, readRekey, startMoves, startRekey } from './model-record.ts';
import { surviveRow } from './survive-row.ts';
import { limitTransactions, type VerifyPage, type VerifyPageOptions } from './verify.ts';

/**
 * The move of all entities of a declaration to another key of the same fields.
 *
 *   deployment   former: the entities are at the former key. Processes with the new key read and write them there, by the former declaration.
 *   command      records that the move begins -> waiting: from then on, a process with the former key does not start, and one that reads it
 *                rejects writes and lists
 *                -> waits until no write at the former key can still be executed: see PHASE_MS
 *                -> records that entities move -> moving: the entities move one by one, as by `…/move` (move-to-key.ts). A request for a key moves its entity first.
 *                   Nothing is created at the former key, so an entity that is not there never will be: a create looks there first.
 *                -> passes over the table until one has found nothing to move -> done: lists are accepted again
 *   way back     a declaration with the two keys exchanged, at any time
 *
 * test/model/rekey.ts and rekey-moves.ts are the specification.
 */

/**
 * A process uses what it has read of the phase for so long, from the start of the read. It looks when it begins the time of a transaction at
 * the former key, and after a read there. So the command waits for as long, and then for the time in which storage may execute the
 * transaction or the index entries that follow, which is that of its intent. Then no process needs a clock to know that entities move:
 * storage says so.
 */
const PHASE_MS = 5_000;
const PHASE_ATTEMPTS = 3;
const CONCURRENCY = 8;
/** Of one request. */
const LONGEST_WAIT_MS = 10_000;

/** What a process has read of the phase, and when that began. */
interface Lease {
  readonly since: number;
  readonly at: number;
  readonly phase: Promise<RekeyPhase>;
  isLast?: boolean;
}

function isUsable(lease: Lease): boolean {
  return lease.isLast || isRecent(lease, PHASE_MS);
}

/** Where the entities of changed keys are, as one process knows. Undefined if no key has changed. */
export function createRekey(entities: readonly Entity[]): Rekey | undefined {
  const rekeyed = entities.filter(({ formerKey }) => formerKey);
  // Archived entities have the key of their entity.
  const byName = new Map(rekeyed.flatMap((owner) => kindsOf(owner).map((entity) => [entity.name, { entity, owner }])));
  if (byName.size === 0) return undefined;
  const known = new Map<string, Lease>();

  async function phaseOf(engine: Engine, name: string): Promise<RekeyPhase> {
    const entity = byName.get(name)?.owner;
    if (!entity) return undefined;
    for (let attempt = 1; ; attempt += 1) {
      const last = known.get(entity.name);
      if (last && isUsable(last)) {
        const phase = await last.phase;
        // The read may have taken longer than its result can be used.
        if (isUsable(last)) return phase;
        if (known.get(entity.name) === last) known.delete(entity.name);
        if (attempt === PHASE_ATTEMPTS) throw beingRekeyed(entity);
        continue;
      }
      const phase = readRekey(engine, entity).then((found) => found?.phase);
      const lease: Lease = { since: performance.now(), at: Date.now(), phase };
      known.set(entity.name, lease);
      phase.then(
        // Only another deployment begins again.
        (found) => {
          lease.isLast = found === undefined;
        },
        () => known.get(entity.name) === lease && known.delete(entity.name),
      );
    }
  }

  return {
    has: (name) => byName.has(name),
    phaseOf,
    async find(engine, name, address, options) {
      const phase = await phaseOf(engine, name);
      const kind = byName.get(name);
      const former = kind && formerOf(kind.entity);
      if (!phase || !former) return undefined;
      const { entity } = kind;
      const plain = { ...engine, rekey: undefined };
      const select = address.select && [...address.select, 'MovingFrom', 'MovedTo', 'Incarnation'];
      const readAt = async (declared: Entity, key: Values) => {
        const { partition, row } = addressOf(declared, key);
        const found = await readJoinedRow(plain, declared, { ...address, partition, row, select }, options);
        return { found, live: found && judgeRow(declared, found).is === 'entity' ? found : undefined };
      };
      const move = async (key: Values) => {
        if ((await moveToKey(engine, entity, key, kind)) !== undefined) throw beingRekeyed(entity);
      };
      /** Before the move. A process of the release before may still move entities in the other direction. */
      const findUnmoved = async (key: Values) => {
        const { partition, row } = addressOf(entity, key);
        const isFromHere = ({ properties }: Row) => properties.MovingFrom === JSON.stringify([partition, row]);
        for (let before: string | undefined; ; ) {
          const there = await readAt(former, key);
          if (there.live && !isFromHere(there.live)) return there.live;
          // No entity is at either key, or a copy was written after its entity had left.
          if (before === (there.found?.etag ?? '')) return undefined;
          before = there.found?.etag ?? '';
          const here = await readAt(entity, key);
          if (here.live && !arrivesFromFormer(entity, key, here.live.properties)) return here.live;
          if (there.live && here.found?.properties.MovedTo === there.live.properties.Incarnation) return there.live;
          if (phase === 'former') return undefined;
        }
      };
      // An index entry may name the former address of an entity that has been moved since.
      for (const key of [keyAt(entity, address), keyAt(former, address)]) {
        if (!key) continue;
        if (phase !== 'moving') return findUnmoved(key);
        const there = await readAt(former, key);
        if (there.live || isTombstoneOfRekey(there.found?.properties ?? {})) await move(key);
        const { live } = await readAt(entity, key);
        if (!live) continue;
        if (!arrivesFromFormer(entity, key, live.properties)) return live;
        // The process that moved it may have died, or the row may be the copy of a process that was too late.
        await move(key);
        return (await readAt(entity, key)).live;
      }
      return undefined;
    },
  };
}

/** An entity whose key changes, or its archive, and the entity whose archive it is, or itself. */
interface Kind {
  readonly entity: Entity;
  readonly owner: Entity;
}

const kindsOf = (owner: Entity) => withArchives([owner]);

/** Moves the entities in a page of rows. The walk ends with a pass over the table that has found nothing to move. */
export const rekeyPage = inPattern(
  'move to another key',
  async (
    engine: Engine,
    entity: Entity,
    { position = { table: 0, left: 0 }, top, maxTransactions }: VerifyPageOptions,
  ): Promise<VerifyPage> => {
    const nothing = { checked: 0, findings: [], left: 0 };
    if (!entity.formerKey) return { ...nothing, next: undefined };
    const found = await readRekey(engine, entity);
    if (!found) return { ...nothing, next: undefined };
    if (found.phase !== 'moving') {
      const since = found.since ?? (await startRekey(engine, entity));
      const wait = since + PHASE_MS + engine.timing.hideIntentForSeconds * 1_000 - engine.now();
      if (wait > 0) await sleep(Math.min(wait, LONGEST_WAIT_MS));
      else await startMoves(engine, entity);
      return { ...nothing, next: { table: 0, left: 0 } };
    }
    const kinds = kindsOf(entity);
    const kind = { entity: kinds[position.table] ?? entity, owner: entity };
    const { rows, more } = await scanTable(engine.storage, {
      table: kind.entity.table,
      after: position.after,
      limit: top,
      bound: ANY_ROWS,
    });
    const isOver = limitTransactions(maxTransactions);
    const findings: Finding[] = [];
    let checked = 0;
    while (checked < rows.length && !(checked > 0 && isOver())) {
      const some = rows.slice(checked, checked + CONCURRENCY);
      const move = (row: Row) =>
        surviveRow<Finding[]>(
          () => moveRow(engine, kind, row),
          (reason) => [{ ...unreachable(kind, row), reason, repaired: false }],
        );
      const moved = await pMap(some, move, { concurrency: CONCURRENCY });
      findings.push(...moved.flat());
      checked += some.length;
    }
    const stuck = findings.filter(({ repaired }) => !repaired);
    const left = position.left + stuck.length;
    const hasMoved = position.hasMoved || findings.length > stuck.length;
    const { table, isLast } = position;
    // What an operation has begun with another entity may be in the way until that one is moved.
    const page = { checked, findings: isLast ? findings : findings.filter(({ repaired }) => repaired), left };
    const last = more || checked < rows.length ? rows[checked - 1] : undefined;
    const after = last && { partition: last.partition, row: last.row };
    if (after) return { ...page, next: { table, after, left, hasMoved, isLast } };
    if (table + 1 < kinds.length) return { ...page, next: { table: table + 1, left, hasMoved, isLast } };
    if (hasMoved) return { ...page, next: { table: 0, left: 0 } };
    if (left > 0) return { ...page, next: isLast ? undefined : { table: 0, left: 0, isLast: true } };
    await endRekey(engine, entity);
    return { ...page, next: undefined };
  },
);

/** Moves the entity of a row, or finishes its move. */
async function moveRow(engine: Engine, kind: Kind, row: Row): Promise<Finding[]> {
  const key = keyToMove(kind.entity, row);
  if (!key) return [];
  const reason = await moveToKey(engine, kind.entity, key, kind);
  const found = unreachable(kind, row);
  return [reason === undefined ? { ...found, repaired: true } : { ...found, reason, repaired: false }];
}

function unreachable({ entity }: Kind, { table, partition, row }: Row) {
  return { kind: 'unreachable', of: entity.name, table, partition, row } as const;
}

/** The key fields of the entity that a row belongs to, if its move has still to be done or finished. */
function keyToMove(entity: Entity, { partition, row, properties }: Row): Values | undefined {
  const former = formerOf(entity);
  const { EntityType, SourceRow, MovedTo } = properties;
  if (EntityType === TOMBSTONE && MovedTo) return former && keyAt(former, { partition, row });
  if (EntityType !== entity.name || SourceRow !== undefined || !former) return undefined;
  const values = pick(toValues(entity, properties), entity.keyFields);
  const isAt = (kind: Entity) => {
    const address = addressIfAny(kind, values);
    return address?.partition === partition && address.row === row;
  };
  const isToMove = isAt(former) && !isAt(entity);
  return isToMove || arrivesFromFormer(entity, values, properties) ? values : undefined;
}
