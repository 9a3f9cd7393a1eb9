import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { omit, pick, type Values } from '../../lib/base/values.ts';
import type { Denormalized, Entity } from '../../lib/define/declaration/entity.ts';
import type { Index } from '../../lib/define/declaration/indexes.ts';
import { isIndexed } from '../../lib/define/places/index-entries.ts';
import { copiedFields, indexFields, isOfMany, rangeStarts } from '../../lib/define/places/index-range.ts';
import { listedFields } from '../../lib/engine/read/retrieve.ts';
import { copiesOf } from '../../lib/features/denormalization/denormalization.ts';
import { canVerify, type VerifyPosition, verifyPage } from '../../lib/operations/verify.ts';
import { compareArchives, tablesOf } from './compare-periods.ts';
import { compareSeries, type History } from './compare-series.ts';
import { compareStored } from './compare-stored.ts';
import { compareTotals } from './compare-totals.ts';
import type { WalkWorld } from './walk-world.ts';

/**
 * Compares what the store returns with the entities, once the queues are empty: each index by value and by range, lists, children,
 * copies, totals, counts of series and archived periods. The consistency check must find nothing either.
 */

const CONCURRENCY = 8;

/**
 * Returns a sentence for each difference. `entities` are those that the walk has written, and those that they refer to. Drops the
 * tables of periods that are archived. The counts of series are compared with the steps of `history`.
 */
export async function compareAll(
  world: WalkWorld,
  entities: readonly Entity[],
  history: History = { steps: [], isInOrder: true },
): Promise<string[]> {
  const all: string[] = world.logged.map((line) => `a queue function logged: ${line}`);
  const { differences, current } = await compareAnswers(world, entities);
  all.push(...differences);
  for (const [entity, values] of current) all.push(...(await compareArchives(world, entity, values)));
  for (const entity of entities) all.push(...(await compareSeries(world, entity, history)));
  for (const entity of entities.filter(canVerify)) all.push(...(await verify(world, entity)));
  return all;
}

/**
 * Compares the answers that follow from the stored entities, but for counts of series. A question that fails is a difference, too.
 * `current` has the entities as a read by their keys returns them.
 */
export async function compareAnswers(
  world: WalkWorld,
  entities: readonly Entity[],
): Promise<{ readonly differences: readonly string[]; readonly current: ReadonlyMap<Entity, readonly Values[]> }> {
  const { storage } = world.engine;
  const live = new Map<string, readonly Values[]>();
  const differences: string[] = [];
  const ask = async (what: string, compare: () => Promise<readonly string[]> | readonly string[]) => {
    try {
      differences.push(...(await compare()));
    } catch (error) {
      differences.push(`${what} fails: ${error instanceof Error ? error.message : error}`);
    }
  };
  const all = entities.filter(({ series }) => !series);
  for (const entity of all)
    for (const table of await tablesOf(storage, entity))
      await ask(`${entity.name}: what is stored`, async () => {
        const stored = await compareStored(storage, { ...entity, table });
        live.set(entity.name, [...(live.get(entity.name) ?? []), ...stored.values]);
        return stored.differences;
      });
  const current = new Map<Entity, readonly Values[]>();
  for (const entity of all) {
    const values = live.get(entity.name) ?? [];
    await ask(`${entity.name}: copies`, () => compareCopies(entity, values, live));
    await ask(`${entity.name}: derived`, () => compareDerived(entity, values));
    const found: Values[] = [];
    const read = (one: Values) =>
      ask(`${entity.name} ${idOf(entity, one)}`, async () => {
        found.push(await readCurrent(world, entity, one));
        return [];
      });
    await pMap(values, read, { concurrency: CONCURRENCY });
    current.set(entity, found);
    await ask(`${entity.name}: lists`, () => compareLists(world, entity, found));
    for (const [of, index] of Object.entries(entity.indexes))
      await ask(`${entity.name}: the index ${of}`, () => compareIndex(world, entity, { of, index, current: found }));
    await ask(`${entity.name}: totals`, () => compareTotals(world, entity, found));
  }
  return { differences, current };
}

/** An entity as a read by its key returns it, with all its fields. */
async function readCurrent({ store }: WalkWorld, entity: Entity, values: Values): Promise<Values> {
  const found = await store[entity.name].get(pick(values, entity.keyFields), { include: Object.keys(entity.split) });
  if (!found) throw new Error(`${entity.name} ${idOf(entity, values)} is stored and cannot be read.`);
  return found.values;
}

const idOf = ({ keyFields }: Entity, values: Values) => JSON.stringify(keyFields.map((field) => values[field]));

function compareCopies(
  entity: Entity,
  values: readonly Values[],
  live: ReadonlyMap<string, readonly Values[]>,
): string[] {
  const sourceOf = ({ source, field: referring, by }: Denormalized, one: Values) =>
    live
      .get(source.name)
      ?.find((other) => source.keyFields.every((field) => other[field] === one[field === by ? referring : field]));
  return Object.values(entity.denormalized).flatMap((link) =>
    values
      .filter((one) => !isDeepStrictEqual(pick(one, Object.keys(link.copies)), copiesOf(link, sourceOf(link, one))))
      .map((one) => `${entity.name} ${idOf(entity, one)} has stale copies of ${link.source.name}`),
  );
}

function compareDerived(entity: Entity, values: readonly Values[]): string[] {
  const given = (one: Values) => omit(one, entity.decidedFields);
  return Object.entries(entity.derived).flatMap(([field, derive]) =>
    values
      .filter((one) => !isDeepStrictEqual(one[field], derive(given(one))))
      .map((one) => `${entity.name} ${idOf(entity, one)} has a stale ${field}: ${JSON.stringify(one)}`),
  );
}

/** The ranges of the partitions with their children, and the list of a lookup. */
async function compareLists({ store }: WalkWorld, entity: Entity, current: readonly Values[]): Promise<string[]> {
  const { name, partition, children } = entity;
  const all: string[] = [];
  const hasOwnFields = partition.fields.every((field) => entity.keyFields.includes(field));
  const groups = Map.groupBy(current, (one) => JSON.stringify(pick(one, partition.fields)));
  for (const [group, wanted] of hasOwnFields ? groups : []) {
    const items = await Array.fromAsync<Values>(store[name].range(JSON.parse(group)));
    all.push(...difference(entity, `range of ${group}`, { wanted, items }));
  }
  if (entity.lookup) {
    const index = entity.indexes[entity.lookup.index];
    all.push(...difference(entity, 'lookup', { wanted: current, items: await store[name].list(), index }));
  }
  for (const child of children)
    for (const one of current) {
      const found = await store[name].get(pick(one, entity.keyFields), { include: [child.name] });
      const range = await Array.fromAsync<Values>(store[child.name].range(pick(one, partition.fields)));
      const wanted = range.filter((other) => entity.keyFields.every((field) => other[field] === one[field]));
      all.push(
        ...difference(child, `children of ${name} ${idOf(entity, one)}`, { wanted, items: found.values[child.name] }),
      );
    }
  return all;
}

interface IndexOf {
  readonly of: string;
  readonly index: Index;
  readonly current: readonly Values[];
}

async function compareIndex({ store }: WalkWorld, entity: Entity, { of, index, current }: IndexOf): Promise<string[]> {
  const by = store[entity.name].by[of];
  const indexed = current.filter((one) => isIndexed(index, one));
  const all: string[] = [];
  for (const [group, wanted] of groupBy(indexed, indexFields(entity, index))) {
    const given = JSON.parse(group);
    const found = isOfMany(entity, index) ? await Array.fromAsync<Values>(by(given)) : await by(given);
    const items = Array.isArray(found) ? found : [found].filter((item) => item !== undefined);
    // One entity is read whole, by a second lookup.
    const list = isOfMany(entity, index) ? { index } : { isWhole: true };
    all.push(...difference(entity, `index ${of} of ${group}`, { wanted, items, ...list }));
  }
  for (const start of rangeStarts(entity, index))
    for (const [group, wanted] of groupBy(indexed, start)) {
      const items = await Array.fromAsync<Values>(by.range(JSON.parse(group)));
      all.push(...difference(entity, `range of the index ${of} from ${group}`, { wanted, items, index }));
    }
  return all;
}

/** The entities by their values of some fields; an entity is in the group of each element of a list. */
function groupBy(values: readonly Values[], fields: readonly string[]): Map<string, Values[]> {
  const groups = new Map<string, Values[]>();
  for (const one of values) {
    const given = fields.reduce<Values[]>(
      (some, field) => some.flatMap((group) => [one[field]].flat().map((value) => ({ ...group, [field]: value }))),
      [{}],
    );
    for (const group of new Set(given.map((each) => JSON.stringify(each))))
      groups.set(group, [...(groups.get(group) ?? []), one]);
  }
  return groups;
}

interface Compared {
  readonly wanted: readonly Values[];
  readonly items: readonly Values[];
  readonly index?: Index | undefined;
  readonly isWhole?: boolean;
}

function difference(entity: Entity, what: string, { wanted, items, index, isWhole }: Compared): string[] {
  const fields = isWhole ? undefined : (index && copiedFields(entity, index)) || listedFields(entity);
  const shown = (values: Values) => {
    const defined = Object.entries(values).filter(
      ([field, value]) => value !== undefined && (fields?.includes(field) ?? true),
    );
    return Object.fromEntries(defined);
  };
  // A list with an entry for each element of a field returns an entity once for each.
  const itemOf = new Map(items.map((item) => [idOf(entity, item), item]));
  const missing = wanted.filter((one) => {
    const item = itemOf.get(idOf(entity, one));
    return !item || !isDeepStrictEqual(sorted(item), sorted(shown(one)));
  });
  const ids = new Set(wanted.map((one) => idOf(entity, one)));
  const other = [...itemOf.keys()].filter((id) => !ids.has(id));
  return [
    ...missing.map((one) => {
      const item = itemOf.get(idOf(entity, one));
      return `${entity.name}, ${what}: ${item ? `returns ${JSON.stringify(item)} for` : 'lacks'} ${JSON.stringify(shown(one))}`;
    }),
    ...other.map((id) => `${entity.name}, ${what}: returns ${id}, which does not belong to it`),
  ];
}

const sorted = (values: Values) => JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(values).sort())));

async function verify({ engine }: WalkWorld, entity: Entity): Promise<string[]> {
  const all: string[] = [];
  for (let position: VerifyPosition | undefined, isFirst = true; isFirst || position; isFirst = false) {
    const page = await verifyPage(engine, entity, { position, top: 100, repair: false, patience: 0 });
    all.push(...page.findings.filter(({ kind }) => kind !== 'dangling').map((finding) => JSON.stringify(finding)));
    position = page.next;
  }
  return all.map((finding) => `the consistency check of ${entity.name} finds ${finding}`);
}
