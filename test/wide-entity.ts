import { beforeAll } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, intraPartitionIndex, type Values } from '../lib/index.ts';
import { allPages } from './all-pages.ts';
import { deploy } from './fixtures/deploy.ts';
import { rowKeysOf as keysOf } from './further-rows-contract.ts';
import { baseValues } from './kit/base.ts';
import type { Entity, Finding } from './kit/define.ts';
import { engineRead, engineWrite } from './kit/engine.ts';
import { operationsCheck, type VerifyPosition } from './kit/operations.ts';
import { storageAccounts } from './kit/storage.ts';
import { openWorld, type World } from './world.ts';
import type { WriteSubject } from './write-contract.ts';

/** An entity that does not fit into one row. */

export const access = { read: ['hr'], write: ['hr'] } as const;
type Measured = `m${number}`;
export const names = Array.from({ length: 1_980 }, (_, index): Measured => `m${index + 1}`);
export const measurements = (count: number): Record<Measured, z.ZodOptional<z.ZodString>> =>
  Object.fromEntries(names.slice(0, count).map((name) => [name, z.string().optional()]));
const schema = z.object({
  plant: z.string(),
  testId: z.string(),
  status: z.string().optional(),
  batch: z.string().optional(),
  note: z.string().optional(),
  secret: z.string().optional(),
  ...measurements(1_978),
  m1979: z.string().optional(),
  m1980: z.string().optional(),
});
export const ofTests = { schema, table: 'tests', key: { partition: '{plant}', row: 'test_{testId}' }, access } as const;
export const status = intraPartitionIndex({ row: 'status_{status}_{testId}', copies: ['batch'] });
const declared = defineEntity('tests', {
  ...ofTests,
  wide: true,
  access: { ...access, restricted: { secret: ['hr'] } },
  large: ['note'],
  encrypted: ['secret'],
  indexes: {
    status,
    batch: interPartitionIndex({
      table: 'testsbybatch',
      partition: '{batch}',
      row: '{plant}_{testId}',
      copies: 'keys',
      when: ({ m1980 }) => m1980 !== 'hidden',
    }),
    last: indexEntity({ row: 'last_{m1979}', holds: '{testId}' }),
  },
  archive: { table: 'formertests' },
  movable: ['plant'],
});
const declaredRemarks = defineEntity('remarks', {
  schema: z.object({ plant: z.string(), testId: z.string(), remark: z.string() }),
  table: 'tests',
  key: { partition: '{plant}', row: 'test_{testId}_{remark}' },
  childOf: declared,
  access,
});
/** Nothing but its rows. */
const plainTests = defineEntity('plaintests', { ...ofTests, table: 'plaintests', wide: true });
export const { tests, remarks, plaintests } = deploy(declared, declaredRemarks, plainTests);
/** The same rows as they were stored before the entity was declared wide. */
export const { plaintests: narrow } = deploy(
  defineEntity('plaintests', {
    ...ofTests,
    schema: schema.pick({ plant: true, testId: true, status: true, note: true }).extend(measurements(2)),
    table: 'plaintests',
  }),
);
export const former = tests.archive as Entity;

/** A text of 60 kB in storage: sixteen fill a row. */
export const LONG = 'x'.repeat(30_000);

export let world: World;
/** Opens the world of a test file before its tests. */
export function openWideWorld(url: string): void {
  beforeAll(async () => {
    world = await openWorld(url, [tests, remarks, plaintests]);
  });
}

let counter = 0;
/** An entity of three rows, whose indexed fields are in the last one, after the others have filled the first. */
export function tested(over: Values = {}): Values {
  counter += 1;
  const testId = `T${counter}`;
  return { plant: 'Oslo', testId, ...numbered(480, `of ${testId}`), m1979: testId, m1980: 'z', ...over };
}
export function numbered(count: number, value: unknown, first = 1): Values {
  return baseValues.pick(
    Object.fromEntries(names.map((name) => [name, value])),
    names.slice(first - 1, first - 1 + count),
  );
}
export const create = (one: Values, entity: Entity = tests) => engineWrite.createEntity(world.engine, entity, one);
export const read = (one: Values, entity: Entity = tests, select?: readonly string[]) =>
  engineRead.readEntity(world.engine, entity, one, { select });
export const whole = async (one: Values, entity: Entity = tests) =>
  engineWrite.toPlain(world.engine, entity, (await read(one, entity)).values);
export const rowKeysOf = (one: Values, entity: Entity = tests) => keysOf(world, entity, one);
export const verify = async (repair: boolean): Promise<readonly Finding[]> => {
  const options = { top: 1_000, repair, patience: 10, maxTransactions: 100_000 };
  const pages = await allPages((position: VerifyPosition | undefined) =>
    operationsCheck.verifyPage(world.engine, tests, { ...options, position }),
  );
  return pages.flatMap(({ findings }) => findings);
};
export const subject: WriteSubject = {
  world: () => world,
  entity: tests,
  what: 'Wide entity',
  newcomer: (name) => tested({ plant: name, status: 'new', batch: name }),
  whole,
};
/** What a piece of work reads and writes, without executing its writes. */
export async function stepsOf(work: () => Promise<unknown>) {
  const steps = await storageAccounts.explain(work);
  const actions = steps.flatMap((step) => ('write' in step && step.write === 'rows' ? step.actions : []));
  const kinds = steps.map((step) => ('read' in step ? step.read : step.write));
  return { rows: actions.map(({ kind, row }) => `${kind} ${row}`), kinds };
}
