import { compareAnswers } from '../../local/walk/compare-answers.ts';
import { openWorld } from '../../local/walk/walk-world.ts';
import { apiCalls } from '../kit/api.ts';
import { baseValues } from '../kit/base.ts';
import { type Entity, type Model, modelParts } from '../kit/define.ts';
import { type Engine, engineCore } from '../kit/engine.ts';
import { operationsBackup, operationsModel } from '../kit/operations.ts';
import { type KeyRing, type Storage, storageAccounts, storageRows, storageTables } from '../kit/storage.ts';
import { ABSENT, type Cuts, formatProperties } from './backup-oracle.ts';
import type { Chance } from './world/chance.ts';
import type { Network } from './world/network.ts';
import type { VirtualProcess } from './world/virtual-world.ts';

/**
 * Whole restores of a moment: to another prefix, to another account, or to another number of accounts, of everything, one entity or one partition. The
 * processes that restore die at their requests, and others continue. Then each row is what the histories allow, and every answer follows from the rows.
 */

/** Where, and what. */
interface RestorePlan {
  readonly at: string;
  readonly place: 'prefix' | 'account' | 'two accounts' | 'three accounts';
  readonly what: 'all' | 'entity' | 'partition';
  readonly entity?: string;
  readonly partition?: string;
  /** The requests at which the processes die, one after another. */
  readonly diesAt: readonly number[];
}

const PLACES: Readonly<Record<RestorePlan['place'], number>> = {
  prefix: 0,
  account: 1,
  'two accounts': 2,
  'three accounts': 3,
};
const NAMES = ['first', 'second', 'third'];
/** The last request at which a restore dies. */
const MOST_REQUESTS = 400;
const MOST_SHOWN = 5;

type States = ReturnType<Cuts['statesAt']>;

export function planRestore(model: Model, at: string, states: States, chance: Chance): RestorePlan {
  const place = chance.pick(Object.keys(PLACES) as RestorePlan['place'][]);
  const what = chance.pick(['all', 'all', 'all', 'entity', 'partition'] as const);
  const diesAt = Array.from({ length: chance.below(4) }, () => 1 + chance.below(MOST_REQUESTS));
  if (what === 'all') return { at, place, what, diesAt };
  const entity = chance.pick(model.list.filter(({ series }) => !series));
  const isIn = tablesOf(entity);
  const partitions = [...states.keys()].flatMap((id) => {
    const [table, partition] = JSON.parse(id);
    return isIn(table) ? [partition as string] : [];
  });
  if (what === 'entity' || partitions.length === 0) return { at, place, what: 'entity', entity: entity.name, diesAt };
  return { at, place, what, entity: entity.name, partition: chance.pick(partitions), diesAt };
}

/** True for the tables of an entity, its archive and its periods. */
function tablesOf(entity: Entity): (table: string) => boolean {
  const own = modelParts.withArchives([entity]);
  return (table) =>
    own.some(
      (one) =>
        table === one.table ||
        (one.period && table.startsWith(one.table) && /^\d+$/.test(table.slice(one.table.length))),
    );
}

type RestoreReport = Awaited<ReturnType<typeof operationsBackup.restoreBackup>>;

interface Opened {
  readonly engine: Engine;
  readonly storage: Storage;
}

/** The place of a restore, for a process or for the world itself. Nothing is there before the first restore. */
export function openPlace(
  network: Network,
  { model, keys, name, place }: { model: Model; keys: KeyRing; name: string; place: RestorePlan['place'] },
  process: VirtualProcess | undefined,
): Opened {
  const count = PLACES[place];
  const accounts =
    count === 0
      ? process
        ? network.accountsFor(process)
        : network.direct
      : Array.from({ length: count }, (_, index) => ({
          ...network.furtherFor(process, `${name}${index}`),
          name: NAMES[index] ?? '',
        }));
  const [only] = accounts;
  const storage = storageAccounts.openStorage(
    accounts.length === 1 && only ? only : { accounts },
    count === 0 ? name : model.prefix,
  );
  const rekey = operationsModel.createRekey(model.list);
  return { engine: engineCore.createEngine(storage, { keys, queueParts: model.queueParts, rekey }), storage };
}

export function restoreTo(
  target: Opened,
  model: Model,
  plan: RestorePlan,
  source: { readonly backup: Storage; readonly storage: Storage },
): Promise<RestoreReport> {
  const { at, entity, partition } = plan;
  return operationsBackup.restoreBackup(target.engine, model, {
    ...{ source, at, entity, partition },
    erase: (of, subject) => apiCalls.eraseAll(of, model, subject),
  });
}

/** Says what a restore that is done reports, and should not. */
export function problemsOf(report: RestoreReport, { entity }: RestorePlan): string[] {
  const { tables = [], blobs, undeclared, settled, erased, findings } = report;
  return [
    ...tables.flatMap(({ table, isEqual }) => (isEqual ? [] : [`the table ${table} is not that of the backup`])),
    ...(blobs?.missing ?? []).map((name) => `the blob ${name} is missing`),
    ...undeclared.map((table) => `the model has no table ${table}`),
    ...settled.left,
    ...erased.failed,
    ...findings
      // Of one entity, copies stay as they were, because they may be the last ones.
      .filter(({ kind }) => kind !== 'dangling' && !(entity !== undefined && kind === 'stale-copy'))
      .map((finding) => `the check finds ${JSON.stringify(finding)}`),
  ];
}

/** What a restore was of, and what it had to end. */
export function situationsOf({ settled }: RestoreReport, { what, place }: RestorePlan): string[] {
  return [
    `restored: ${what}`,
    `restored to: ${place}`,
    ...(['tombstones', 'finished', 'undone', 'rekeyed'] as const).flatMap((name) =>
      settled[name] > 0 ? [`restored: ${name}`] : [],
    ),
  ];
}

/** Compares the rows of a restore with what each may be at the moment, and every answer with the rows. */
export async function compareRestored(
  { engine, storage }: Opened,
  model: Model,
  {
    plan,
    states,
    hasMoved,
    movedBy,
  }: Pick<Cuts, 'hasMoved' | 'movedBy'> & { readonly plan: RestorePlan; readonly states: States },
): Promise<string[]> {
  const isIn = operationsBackup.tablesInBackup(model.list);
  const entity = model.list.find(({ name }) => name === plan.entity);
  const ofEntity = entity && tablesOf(entity);
  const isWanted = (table: string, partition: string) =>
    table !== baseValues.SYSTEM_TABLE &&
    isIn(table, partition) &&
    (ofEntity?.(table) ?? true) &&
    (plan.partition === undefined || partition === plan.partition);
  const found = new Map<string, string>();
  for (const table of await storageTables.listTables(storage, '')) {
    if (!isIn(table)) continue;
    for await (const { partition, row, properties } of allRows(storage, table))
      if (isWanted(table, partition)) found.set(JSON.stringify([table, partition, row]), formatProperties(properties));
  }
  const compare = comparerOf(model);
  const isLeft = unfinishedIn(states);
  const rekeyed = model.list.filter(({ formerKey }) => formerKey);
  const problems = plan.what === 'all' ? [...twicePlaced(model, { states, found, hasMoved, movedBy })] : [];
  for (const id of new Set([...states.keys(), ...found.keys()])) {
    const [table, partition] = JSON.parse(id);
    if (!isWanted(table, partition) || isLeft(table, partition) || rekeyed.some((one) => one.table === table)) continue;
    const state = found.get(id) ?? ABSENT;
    const allowed = [...(states.get(id) ?? [ABSENT])];
    if (![...allowed, state].some(compare.isBuilt) && !allowed.map(compare.toText).includes(compare.toText(state)))
      problems.push(`${id} is ${state} in place of ${allowed.join(' or ')}`);
  }
  for (const one of rekeyed)
    if (plan.partition === undefined && isWanted(one.table, '')) problems.push(...compareKeyed(one, { states, found }));
  const shown = problems.slice(0, MOST_SHOWN);
  if (plan.what !== 'all') return shown;
  const { differences } = await compareAnswers(openWorld(model, engine), model.list);
  return [...shown, ...differences];
}

async function* allRows(storage: Storage, table: string) {
  let after: { readonly partition: string; readonly row: string } | undefined;
  do {
    const { rows, more } = await storageRows.scanTable(storage, { table, after, limit: 1_000, isTyped: true });
    for (const row of rows) if (!isOfEngine(row)) yield row;
    after = more ? rows.at(-1) : undefined;
  } while (after);
}

const isOfEngine = ({ row }: { readonly row: string }) => /^~(own|open)_!m/.test(row);

/** Compares entities that a restore brings to the key of the model, by their values. */
function* compareKeyed(
  entity: Entity,
  { states, found }: { readonly states: States; readonly found: ReadonlyMap<string, string> },
): Generator<string> {
  const given = (state: string) => baseValues.pick(toProperties(state), Object.keys(entity.schema.shape));
  const keyOf = (state: string) => JSON.stringify(baseValues.pick(toProperties(state), entity.keyFields));
  const wanted = new Map<string, Set<string>>();
  for (const [id, allowed] of states)
    for (const state of allowed) {
      if (JSON.parse(id)[0] !== entity.table || toProperties(state).EntityType !== entity.name) continue;
      // What has not arrived yet is as its former row.
      const some = wanted.get(keyOf(state)) ?? new Set<string>();
      wanted.set(keyOf(state), some.add(JSON.stringify(given(state))));
      if (allowed.size > 1) some.add(ABSENT);
    }
  const there = Map.groupBy(
    [...found].filter(
      ([id, state]) => JSON.parse(id)[0] === entity.table && toProperties(state).EntityType === entity.name,
    ),
    ([, state]) => keyOf(state),
  );
  for (const key of new Set([...wanted.keys(), ...there.keys()])) {
    const [first, ...others] = there.get(key) ?? [];
    const text = first ? JSON.stringify(given(first[1])) : ABSENT;
    if (others.length > 0) yield `${entity.name} ${key} is at several keys`;
    else if (!(wanted.get(key) ?? new Set([ABSENT])).has(text))
      yield `${entity.name} ${key} is ${text} in place of ${[...(wanted.get(key) ?? [])].join(' or ')}`;
  }
}

const toProperties = (state: string): Record<string, unknown> =>
  state === ABSENT ? {} : Object.fromEntries(JSON.parse(state));

/** Counts, copies of other entities and what follows from them are as new as the check makes them: of these, `compareAnswers` judges. */
function comparerOf(model: Model) {
  const copying = new Map(
    model.list.flatMap((entity) => {
      const copies = Object.values(entity.denormalized).flatMap((link) => Object.keys(link.copies));
      return copies.length === 0
        ? []
        : [[entity.name, [...copies, ...Object.keys(entity.derived), 'WriteId']] as const];
    }),
  );
  return {
    /** True for a row of an index in the partition that may follow from a copy. */
    isBuilt(state: string): boolean {
      const { EntityType, SourceRow } = toProperties(state);
      return SourceRow !== undefined && copying.has(String(EntityType));
    },
    toText(state: string): string {
      const { EntityType } = toProperties(state);
      const counts = model.list.find(({ name }) => name === EntityType)?.counts ?? {};
      const others = ['TouchedBy', ...Object.keys(counts), ...(copying.get(String(EntityType)) ?? [])];
      return state === ABSENT
        ? state
        : JSON.stringify(JSON.parse(state).filter(([name]: [string]) => !others.includes(name)));
    },
  };
}

/**
 * The partitions in which an operation may not have ended: a restore finishes it or undoes it. So is that of its record, which says so: the record
 * may be in another account, whose clock is behind.
 */
function unfinishedIn(states: States): (table: string, partition: string) => boolean {
  const all = new Set<string>();
  const operations = new Set<unknown>();
  for (const [id, allowed] of states) {
    const [table, partition] = JSON.parse(id);
    for (const state of [...allowed].filter(isUnfinished)) {
      all.add(JSON.stringify([table, partition]));
      const { MovedTo, Leaving, Incarnation } = toProperties(state);
      for (const operation of [MovedTo, Leaving, Incarnation]) operations.add(operation);
    }
  }
  return (table, partition) => all.has(JSON.stringify([table, partition])) || operations.has(partition);
}

function isUnfinished(state: string): boolean {
  const { EntityType, MovedTo, MovingFrom, Leaving, status } = toProperties(state);
  return EntityType === 'tombstone' || [MovedTo, MovingFrom, Leaving].some(Boolean) || status === 'running';
}

/** True if an operation may not have ended. */
export const hasUnfinished = (states: States) =>
  [...states.values()].some((allowed) => [...allowed].some(isUnfinished));

/** An entity that was being moved is at one of its places, and only there. One that a caller deleted meanwhile is at none. */
function* twicePlaced(
  model: Model,
  {
    states,
    found,
    hasMoved,
    movedBy,
  }: Pick<Cuts, 'hasMoved' | 'movedBy'> & {
    readonly states: States;
    readonly found: ReadonlyMap<string, string>;
  },
): Generator<string> {
  const sourceOf = new Map(
    model.list.flatMap(({ table, archive }) => (archive ? [[archive.table, table] as const] : [])),
  );
  const isLive = (id: string) => {
    const { EntityType, MovingFrom } = toProperties(found.get(id) ?? ABSENT);
    return EntityType !== undefined && EntityType !== 'tombstone' && !MovingFrom;
  };
  for (const [id, allowed] of states)
    for (const { MovingFrom, SourceRow, Incarnation } of [...allowed].map(toProperties)) {
      if (allowed.size > 1 || SourceRow !== undefined || typeof MovingFrom !== 'string' || MovingFrom === '') continue;
      const [table] = JSON.parse(id);
      const from = JSON.stringify([sourceOf.get(table) ?? table, ...JSON.parse(MovingFrom)]);
      const [was = ABSENT, ...others] = states.get(from) ?? [];
      const { EntityType } = toProperties(was);
      const isDeleted = (!EntityType || EntityType === 'tombstone') && !hasMoved(from, Incarnation);
      if (others.length === 0 && states.has(from) && isLive(id) === isLive(from) && !(isDeleted && !isLive(id)))
        yield `${id} and ${from} are ${isLive(id) ? 'both there' : 'both gone'}`;
    }
  // Also one that had arrived, if the clock of its former account is ahead.
  const live = [...found].filter(([id, state]) => isLive(id) && incarnationOf(state) !== undefined);
  const arrived = new Map(live.map(([id, state]) => [incarnationOf(state), id]));
  for (const [id, state] of live) {
    const operation = movedBy(id, incarnationOf(state));
    if (operation && arrived.has(operation)) yield `${id} is there, and has moved to ${arrived.get(operation)}`;
  }
}

/** Undefined for a row that follows from an entity, and for the record of an operation. */
function incarnationOf(state: string): unknown {
  const { Incarnation, SourceRow, operationId } = toProperties(state);
  return SourceRow === undefined && operationId === undefined ? Incarnation : undefined;
}
