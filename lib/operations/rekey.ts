import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { pick, type Values } from '../base/values.ts';
import { TOMBSTONE, toValues } from '../define/codec/entity-codec.ts';
import { type Entity, formerOf } from '../define/declaration/entity.ts';
import type { Finding } from '../define/declaration/finding.ts';
import { buildKey, parseKey } from '../define/keys/key-template.ts';
import { addressIfAny, addressOf, isSibling, projectionsOf } from '../define/places/index-entries.ts';
import type { Engine, Rekey, RekeyPhase } from '../engine/engine.ts';
import { beingRekeyed, judgeRow, readJoinedRow } from '../engine/read/entity-rows.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { moveToKey } from '../engine/transfer/transfer.ts';
import { type Address, type Row, scanTable } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { endRekey, readRekey, startRekey } from './model-guard.ts';
import { limitTransactions, type VerifyPage, type VerifyPosition } from './verify.ts';

/**
 * The move of all entities of a declaration to another key of the same fields.
 *
 *   deployment   waiting: the entities are at the former key. Processes with the new key read them there, and reject writes and lists.
 *   command      records that the move begins. From then on, a process with the former key does not start.
 *                -> waits until no request of the previous release can still be executed
 *                -> moving: the entities move one by one, as by `…/move` (transfer.ts). A request for a key moves its entity first.
 *                   Nothing is created at the former key, so an entity that is not there never will be: a create looks there first.
 *                -> passes over the table until one has found nothing to move -> done: lists are accepted again
 *   way back     a declaration with the two keys exchanged, at any time
 *
 * test/model/rekey.ts is the specification.
 */

/** A process uses for so long what it has read of the phase. No decision depends on it: see `find`. */
const PHASE_MS = 5_000;
const CONCURRENCY = 8;
/** Of one request. */
const LONGEST_WAIT_MS = 10_000;

/** Where the entities of changed keys are, as one process knows. */
export function createRekey(entities: readonly Entity[]): Rekey {
  const byName = new Map(entities.filter(({ formerKey }) => formerKey).map((entity) => [entity.name, entity]));
  const known = new Map<string, { readonly until: number; readonly phase: Promise<RekeyPhase> }>();

  async function phaseOf(engine: Engine, name: string): Promise<RekeyPhase> {
    const entity = byName.get(name);
    if (!entity) return undefined;
    const now = performance.now();
    const last = known.get(entity.name);
    if (last && now < last.until) return last.phase;
    const phase = readPhase(engine, entity);
    known.set(entity.name, { until: now + PHASE_MS, phase });
    phase.then(
      // Only another deployment begins again.
      (found) => found === undefined && known.set(entity.name, { until: Number.POSITIVE_INFINITY, phase }),
      () => known.delete(entity.name),
    );
    return phase;
  }

  return {
    phaseOf,
    async find(engine, name, address, options) {
      const phase = await phaseOf(engine, name);
      const entity = byName.get(name);
      const former = entity && formerOf(entity);
      if (!phase || !former) return undefined;
      const plain = { ...engine, rekey: undefined };
      const readAt = async (kind: Entity, key: Values) => {
        const { partition, row } = addressOf(kind, key);
        const found = await readJoinedRow(plain, kind, { ...address, partition, row }, options);
        return { found, live: found && judgeRow(kind, found).is === 'entity' ? found : undefined };
      };
      const move = async (key: Values) => {
        if ((await moveEntity(engine, entity, key)) !== undefined) throw beingRekeyed(entity);
      };
      // An index entry may name the former address of an entity that has been moved since.
      for (const key of [keyAt(entity, address), keyAt(former, address)]) {
        if (!key) continue;
        const there = await readAt(former, key);
        if (there.live && phase === 'waiting') return there.live;
        if (there.live || there.found?.properties.MovedTo) await move(key);
        const { live } = await readAt(entity, key);
        if (!live) continue;
        if (!live.properties.MovingFrom || phase === 'waiting') return live;
        // The process that moved it may have died, or the row may be the copy of a process that was too late.
        await move(key);
        return (await readAt(entity, key)).live;
      }
      return undefined;
    },
  };
}

async function readPhase(engine: Engine, entity: Entity): Promise<RekeyPhase> {
  const found = await readRekey(engine, entity);
  if (!found) return undefined;
  return found.isStarted && engine.now() >= found.since + engine.timing.claimForMs ? 'moving' : 'waiting';
}

/** The key fields of an address; undefined if no entity of the declaration has it. */
function keyAt(
  { partition: inPartition, row: inRow }: Entity,
  { partition, row }: Omit<Address, 'table'>,
): Values | undefined {
  const [first, second] = [parseKey(inPartition, partition), parseKey(inRow, row)];
  if (!first || !second) return undefined;
  const key = { ...first, ...second };
  return buildKey(inPartition, key) === partition && buildKey(inRow, key) === row ? key : undefined;
}

/** Moves an entity. Returns why it cannot be moved. */
async function moveEntity(engine: Engine, entity: Entity, key: Values): Promise<string | undefined> {
  const former = formerOf(entity);
  const hasSiblings = projectionsOf(entity).some(isSibling);
  if (hasSiblings && former && addressOf(former, key).partition === addressOf(entity, key).partition)
    return 'Both keys are in one partition, in which the entity has index entries.';
  return moveToKey(engine, entity, key);
}

interface RekeyPageOptions {
  readonly position: VerifyPosition | undefined;
  /** The most rows to read. */
  readonly top: number;
  /** A page ends after this many storage transactions. */
  readonly maxTransactions?: number;
}

/** Moves the entities in a page of rows. The walk ends with a pass over the table that has found nothing to move. */
export const rekeyPage = inPattern(
  'move to another key',
  async (
    engine: Engine,
    entity: Entity,
    { position = { table: 0, left: 0 }, top, maxTransactions }: RekeyPageOptions,
  ): Promise<VerifyPage> => {
    const nothing = { checked: 0, findings: [], left: 0 };
    if (!entity.formerKey) return { ...nothing, next: undefined };
    const found = await readRekey(engine, entity);
    if (!found) return { ...nothing, next: undefined };
    if (!found.isStarted) await startRekey(engine, entity);
    const since = found.isStarted ? found.since : engine.now();
    const wait = since + engine.timing.claimForMs - engine.now();
    if (wait > 0) {
      await sleep(Math.min(wait, LONGEST_WAIT_MS));
      return { ...nothing, next: { table: 0, left: 0 } };
    }
    const { rows, more } = await scanTable(engine.storage, {
      table: entity.table,
      after: position.after,
      limit: top,
      bound: ANY_ROWS,
    });
    const isOver = limitTransactions(maxTransactions);
    const findings: Finding[] = [];
    let checked = 0;
    while (checked < rows.length && !(checked > 0 && isOver())) {
      const some = rows.slice(checked, checked + CONCURRENCY);
      const moved = await pMap(some, (row) => moveRow(engine, entity, row), { concurrency: CONCURRENCY });
      findings.push(...moved.flat());
      checked += some.length;
    }
    const left = position.left + findings.length;
    const last = more || checked < rows.length ? rows[checked - 1] : undefined;
    if (last)
      return { checked, findings, left, next: { table: 0, after: { partition: last.partition, row: last.row }, left } };
    if (left === 0) await endRekey(engine, entity);
    const isStuck = findings.some(({ repaired }) => !repaired);
    return { checked, findings, left, next: left === 0 || isStuck ? undefined : { table: 0, left: 0 } };
  },
);

/** Moves the entity of a row, or finishes its move. */
async function moveRow(engine: Engine, entity: Entity, row: Row): Promise<Finding[]> {
  const key = keyToMove(entity, row);
  if (!key) return [];
  const reason = await moveEntity(engine, entity, key);
  const { table, partition } = row;
  const found = { kind: 'unreachable', of: entity.name, table, partition, row: row.row } as const;
  return [reason === undefined ? { ...found, repaired: true } : { ...found, reason, repaired: false }];
}

/** The key fields of the entity that a row belongs to, if its move has still to be done or finished. */
function keyToMove(entity: Entity, { partition, row, properties }: Row): Values | undefined {
  const former = formerOf(entity);
  const { EntityType, SourceRow, MovingFrom, MovedTo } = properties;
  if (EntityType === TOMBSTONE && MovedTo) return former && keyAt(former, { partition, row });
  if (EntityType !== entity.name || SourceRow !== undefined || !former) return undefined;
  const values = pick(toValues(entity, properties), entity.keyFields);
  const isAt = (kind: Entity) => {
    const address = addressIfAny(kind, values);
    return address?.partition === partition && address.row === row;
  };
  return MovingFrom || (isAt(former) && !isAt(entity)) ? values : undefined;
}
