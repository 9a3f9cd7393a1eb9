import pMap from 'p-map';
import { busy, RowkeyError } from '../../base/errors.ts';
import { backOff } from '../../base/time.ts';
import type { Stored } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../engine.ts';
import { runExclusive } from '../run-exclusive.ts';
import { EntityChanged } from './conflict.ts';
import { type EntityWrite, type PlannedWrite, planWrite } from './entity-write.ts';
import { commit } from './eventual-transaction.ts';
import { splitAfter } from './plan.ts';

/**
 * The pipeline of every write of an API: read -> check -> plan -> claim -> announce -> commit -> settle, for the writes of one partition.
 * A single write is a batch of one. The steps from the plan on are those of eventual-transaction.ts.
 */

/** The longest time to retry one write while other requests change the same entity. */
const PATIENCE_MS = 10_000;
/** Then each half of a batch is written by itself. An atomic batch fails. */
const MAX_ATTEMPTS = 8;
const BACK_OFF_MS = 40;
const LONGEST_BACK_OFF_MS = 500;
const READS_CONCURRENCY = 16;

/** A write that succeeded, with the state of the entity after it. */
export interface Done extends Stored {
  readonly outcome: PlannedWrite['outcome'];
}
export type Outcome = Done | RowkeyError;

const NOTHING: Stored = { etag: '', values: {} };

interface Writing {
  readonly engine: Engine;
  readonly entity: Entity;
  /** All in one transaction or none. */
  readonly isAtomic: boolean;
  readonly outcomes: Map<EntityWrite, Outcome>;
  /** Attempts that certainly failed: their claims may be taken over. */
  readonly abandoned: Set<string>;
}

/** Executes one write. Throws its error. */
export async function writeOne(engine: Engine, entity: Entity, write: EntityWrite): Promise<Done> {
  const outcome = (await writeTogether(engine, entity, [write])).get(write);
  if (outcome instanceof RowkeyError) throw outcome;
  return outcome ?? { outcome: 'unchanged', ...NOTHING };
}

/**
 * Executes writes of different entities of one partition, in one transaction if possible. A write that fails does not stop the others.
 * With `isAtomic`, throws the error of the first one that fails. Throws `storage-unavailable`.
 */
export async function writeTogether(
  engine: Engine,
  entity: Entity,
  writes: readonly EntityWrite[],
  { isAtomic = false } = {},
): Promise<ReadonlyMap<EntityWrite, Outcome>> {
  const writing = { engine, entity, isAtomic, outcomes: new Map<EntityWrite, Outcome>(), abandoned: new Set<string>() };
  await writeParts(writing, writes);
  return writing.outcomes;
}

async function writeParts(writing: Writing, writes: readonly EntityWrite[]): Promise<void> {
  const { storage, now } = writing.engine;
  const [first, ...others] = writes;
  const until = now() + PATIENCE_MS;
  const untilDone = () => commitTogether(writing, writes, until);
  // Changes of one entity by this process run one after the other. Writes of several do not wait: two batches could wait for each other.
  const isExclusive = first && others.length === 0 && first.expects !== 'none' && !first.unread;
  const parts = await (isExclusive ? runExclusive(storage, JSON.stringify(first.address), untilDone) : untilDone());
  // The first ones take effect first, as if each write were alone.
  for (const part of parts) await writeParts(writing, part);
}

/** Plans and commits the writes, again while other requests change the entities. Returns the parts to write by themselves instead. */
async function commitTogether(
  writing: Writing,
  writes: readonly EntityWrite[],
  until: number,
): Promise<readonly EntityWrite[][]> {
  const { engine, isAtomic, outcomes } = writing;
  let left = writes;
  let failure: unknown = new EntityChanged();
  const mayTry = (attempt: number) => (left.length > 1 ? attempt <= MAX_ATTEMPTS : engine.now() < until);
  for (let attempt = 1; mayTry(attempt); attempt += 1) {
    const planned: PlannedWrite[] = [];
    for (const [write, plan] of await planAll(writing, left))
      if (!(plan instanceof RowkeyError)) planned.push(plan);
      else if (isAtomic) throw atPosition(writes.indexOf(write), plan);
      else outcomes.set(write, plan);
    left = planned.map(({ write }) => write);
    try {
      for (const [write, done] of await commitPlanned(writing, planned)) outcomes.set(write, done);
      return [];
    } catch (error) {
      failure = error;
      if (!isOvertaken(error, planned)) break;
      for (const write of left) write.found = undefined;
      await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
    }
  }
  const error = asOutcome(failure);
  if (isAtomic) throw error;
  const [only, ...others] = left;
  if (others.length > 0) return splitAfter(failure, left);
  if (only) outcomes.set(only, error);
  return [];
}

function planAll({ engine, entity }: Writing, writes: readonly EntityWrite[]) {
  const planOne = async (write: EntityWrite) =>
    [write, await planWrite(engine, entity, write).catch(asOutcome)] as const;
  return pMap(writes, planOne, { concurrency: READS_CONCURRENCY });
}

/** Commits the changes that have an effect. With `isAtomic`, the transaction fails if an entity that it leaves unchanged has changed. */
async function commitPlanned(
  { engine, entity, isAtomic, abandoned }: Writing,
  planned: readonly PlannedWrite[],
): Promise<ReadonlyMap<EntityWrite, Done>> {
  const acting = planned.filter(({ outcome }) => outcome !== 'unchanged');
  const others = isAtomic && acting.length > 0 ? planned.filter(({ outcome }) => outcome === 'unchanged') : [];
  const needed = [...acting, ...others.map((change) => ({ ...change, isUnchanged: true }))];
  const assumeNew = acting.every(({ outcome }) => outcome === 'created');
  const stored = await commit(engine, entity, needed, { abandoned, assumeNew });
  const committed = new Map(needed.map(({ write }, index) => [write, stored[index]]));
  return new Map(
    planned.map(({ write, outcome, before }) => {
      const { etag, values } = committed.get(write) ?? (before.state === 'live' ? before : NOTHING);
      return [write, { outcome, etag, values }];
    }),
  );
}

/** True if the writes must be planned again: an entity has changed, or has been created where a put found none. */
function isOvertaken(error: unknown, [only, ...others]: readonly PlannedWrite[]): boolean {
  if (error instanceof EntityChanged) return true;
  const isPut = only?.write.expects === 'any' && others.length === 0;
  return isPut && error instanceof RowkeyError && error.code === 'duplicate-key';
}

/** The error with the position of its write. */
export function atPosition(index: number, error: RowkeyError): RowkeyError {
  const where = `The action at ${index}:`;
  const { detail } = error;
  // Without a detail, the code decides whether a caller may see the message.
  return new RowkeyError(error.code, `${where} ${error.message}`, {
    ...error,
    ...(detail === undefined ? {} : { detail: `${where} ${detail}` }),
    cause: error,
  });
}

/** Errors of one entity are its outcome; errors of storage are thrown. */
export function asOutcome(error: unknown): RowkeyError {
  if (error instanceof EntityChanged) return busy('Other requests keep changing the same entity.');
  if (error instanceof RowkeyError && error.code !== 'storage-unavailable') return error;
  throw error;
}
