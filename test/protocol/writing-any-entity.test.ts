import { beforeAll, describe } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { UNANSWERED_INSERT } from '../fault-driver.ts';
import { customers, model } from '../fixtures/model.ts';
import { SAMPLES } from '../fixtures/samples.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { sampleItems } from '../points.ts';
import { openWorld } from '../world.ts';
import { creating, deleting, testWrites } from '../write-contract.ts';

/** The contract of writes, for every entity of the tests' model with a value in each field. A usual run takes one entity. */

const world = await openWorld(import.meta.url);
beforeAll(async () => {
  // The samples of orders refer to this customer.
  await engineWrite.createEntity(world.engine, customers, { ...sampleOf(customers), customerId: 'ZREF' });
});

let counter = 0;
function sampleOf({ name }: Entity): Values {
  counter += 1;
  return SAMPLES[name]?.(counter) ?? {};
}

/** The fields that the engine does not set itself. */
async function givenFields(one: Values, entity: Entity): Promise<Values> {
  const select = Object.keys(entity.columns);
  const { values } = await engineRead.readEntity(world.engine, entity, one, { select });
  return baseValues.omit(await engineWrite.toPlain(world.engine, entity, values), entity.decidedFields);
}

/** Without films, whose key follows from their other fields. */
const written = model.list.filter(
  ({ series, period, keyFields, derived }) => !series && !period && !keyFields.some((field) => derived[field]),
);
describe.each(
  sampleItems(
    written.map(({ name }) => name),
    'entity',
  ),
)('%s', (name) => {
  const entity = written.find((one) => one.name === name) as Entity;
  const { childOf } = entity;
  const prepareParent = async (one: Values) =>
    childOf &&
    engineWrite.createEntity(world.engine, childOf, {
      ...sampleOf(childOf),
      ...baseValues.pick(one, childOf.keyFields),
    });
  const prepare = async (one: Values) => {
    await prepareParent(one);
    await engineWrite.createEntity(world.engine, entity, one);
  };
  // Other values of all fields, the same whenever they are asked for.
  const replaced = new Map<Values, Values>();
  const next = (one: Values) => {
    const values = replaced.get(one) ?? { ...sampleOf(entity), ...baseValues.pick(one, entity.keyFields) };
    replaced.set(one, values);
    return values;
  };
  testWrites(
    {
      world: () => world,
      entity,
      what: 'Write of any entity',
      newcomer: () => sampleOf(entity),
      whole: (one, of = entity) => givenFields(one, of),
    },
    {
      'a create': creating(entity, { prepare: prepareParent }),
      'a replace': {
        prepare,
        act: (engine, one) => engineWrite.replaceEntity(engine, entity, one, next(one)),
        after: next,
        unanswered: UNANSWERED_INSERT,
      },
      // A delete of one row is sent once.
      'a delete': { ...deleting(entity), prepare, unanswered: [...UNANSWERED_INSERT, 'reply lost'] },
    },
  );
});
