import fc from 'fast-check';
import { RowkeyError } from '../../lib/base/errors.ts';
import { pick, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { PNG } from './png.ts';
import { creationOf, keyOf, patchOf } from './values.ts';
import type { WalkWorld } from './walk-world.ts';

/** The steps of a walk: writes by the operations of each entity. A step is plain JSON, so that it can be printed and repeated. */

export interface Step {
  /** The name of the entity. */
  readonly of: string;
  readonly do: keyof typeof WRITES | 'settle';
  readonly key?: Values;
  readonly values?: Values;
  readonly actions?: readonly BatchAction[];
  readonly field?: string;
}

export type BatchAction = Readonly<Partial<Record<'create' | 'put' | 'patch' | 'delete', Values>>>;

/** Errors that say that the caller, or another writer, asked for something that is not possible. */
const EXPECTED = new Set<string>([
  'invalid-input',
  'not-found',
  'duplicate-key',
  'duplicate-value',
  'referenced',
  'partition-full',
  'busy',
  'etag-mismatch',
  'too-large',
]);

type Write = (world: WalkWorld, entity: Entity, step: Required<Step>) => Promise<unknown>;

const WRITES = {
  create: ({ store }, { name }, { values }) => store[name]?.create(values),
  put: ({ store }, { name, keyFields }, { key, values }) => store[name]?.put(key, omitKey(values, keyFields)),
  update: ({ store }, { name }, { key, values }) => store[name]?.update(key, values),
  merge: ({ store }, { name }, { key, values }) => store[name]?.update(key, values, { return: 'minimal' }),
  delete: ({ store }, { name }, { key }) => store[name]?.delete(key),
  deleteRange: ({ store }, { name }, { key }) => store[name]?.deleteRange(key, { all: true }),
  batch: ({ store }, { name }, { actions }) => store[name]?.batch(actions),
  atomic: ({ store }, { name }, { actions }) => store[name]?.batch(actions, { atomic: true }),
  set: ({ store }, { name }, { key, values }) => store[name]?.set(key, values),
  increment: ({ store }, { name }, { key, values }) =>
    Promise.all(Object.entries(values).map(([slot, by]) => store[name]?.increment(key, Number(slot), by))),
  move: (world, { name }, { key, values }) => world.call(`${name}-move`, key, values),
  archive: (world, { name }, { key }) => world.call(`${name}-archive`, key),
  deleteArchived: (world, { archive }, { key }) => world.call(`${archive?.name}-delete`, key),
  putFile: (world, { name }, { key, field }) => world.call(`${name}-file-${field}-put`, key, PNG),
  deleteFile: (world, { name }, { key, field }) => world.call(`${name}-file-${field}-delete`, key),
} satisfies Record<string, Write>;

/** Takes a step, and returns `ok` or the code of the error that rejected it. Throws any other error. */
export async function takeStep(world: WalkWorld, step: Step): Promise<string> {
  const entity = world.model.list.find(({ name }) => name === step.of);
  if (step.do === 'settle') await world.worker.handleVisible();
  if (step.do === 'settle' || !entity) return 'ok';
  try {
    const write: Write = WRITES[step.do];
    await write(world, entity, { key: {}, values: {}, actions: [], field: '', ...step });
    return 'ok';
  } catch (error) {
    if (error instanceof RowkeyError && EXPECTED.has(error.code)) return error.code;
    throw error;
  }
}

/** All steps that entities of these declarations allow. */
export function stepsOf(entities: readonly Entity[]): fc.Arbitrary<Step> {
  const writes = entities.map((entity) => {
    const steps = entity.series ? seriesSteps(entity) : entitySteps(entity);
    return fc.oneof(...steps.map(([weight, arbitrary]) => ({ weight, arbitrary })));
  });
  const settle = fc.constant<Step>({ of: '', do: 'settle' });
  return fc.oneof({ weight: 9, arbitrary: fc.oneof(...writes) }, { weight: 1, arbitrary: settle });
}

type Weighted = readonly [weight: number, steps: fc.Arbitrary<Step>];

function entitySteps(entity: Entity): Weighted[] {
  const { name: of, attachments, movable, archive, partition } = entity;
  const [creation, key, patch] = [creationOf(entity), keyOf(entity), patchOf(entity)];
  const step = <Part extends object>(write: Step['do'], parts: fc.Arbitrary<Part>) =>
    parts.map((part): Step => ({ of, do: write, ...part }));
  const put = fc.tuple(key, creation).map(([at, values]) => ({ key: at, values: { ...values, ...at } }));
  const change = fc.record({ key, values: patch });
  const action: fc.Arbitrary<BatchAction> = fc.oneof(
    creation.map((values) => ({ create: values })),
    put.map(({ values }) => ({ put: values })),
    change.map(({ key: at, values }) => ({ patch: { ...at, ...values } })),
    key.map((at) => ({ delete: at })),
  );
  const actions = fc.array(action, { minLength: 2, maxLength: 4 });
  // The actions of an atomic batch are on one partition.
  const inPartition = fc.tuple(key, actions).map(([at, all]) => ({
    actions: all.map((one) => {
      const given = Object.entries(one).map(([kind, values]) => [kind, { ...values, ...pick(at, partition.fields) }]);
      return Object.fromEntries(given) as BatchAction;
    }),
  }));
  const steps: Weighted[] = [
    [
      8,
      step(
        'create',
        creation.map((values) => ({ values })),
      ),
    ],
    [8, step('put', put)],
    [8, step('update', change)],
    [1, step('merge', change)],
    [2, step('delete', fc.record({ key }))],
    [3, step('batch', fc.record({ actions }))],
    [2, step('atomic', inPartition)],
    [
      1,
      step(
        'deleteRange',
        key.map((at) => ({ key: pick(at, partition.fields) })),
      ),
    ],
  ];
  if (movable.length > 0) steps.push([4, step('move', fc.record({ key, values: key.map((at) => pick(at, movable)) }))]);
  if (archive) {
    steps.push([2, step('archive', fc.record({ key }))]);
    steps.push([1, step('deleteArchived', fc.record({ key }))]);
  }
  for (const field of Object.keys(attachments)) {
    steps.push([1, step('putFile', fc.record({ key, field: fc.constant(field) }))]);
    steps.push([1, step('deleteFile', fc.record({ key, field: fc.constant(field) }))]);
  }
  return steps;
}

function seriesSteps(entity: Entity): Weighted[] {
  const { name: of, series } = entity;
  const { first = 0, last = 0 } = series ?? {};
  const key = keyOf(entity);
  const slots = fc.constantFrom(...new Set([first, first + 1, last]));
  const values = fc.dictionary(slots.map(String), fc.integer({ min: 1, max: 9 }), { minKeys: 1, maxKeys: 3 });
  const step = (write: Step['do']) => fc.record({ key, values }).map((part): Step => ({ of, do: write, ...part }));
  return [
    [2, step('set')],
    [3, step('increment')],
    [1, key.map((at): Step => ({ of, do: 'delete', key: at }))],
  ];
}

function omitKey(values: Values, keyFields: readonly string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([field]) => !keyFields.includes(field)));
}
