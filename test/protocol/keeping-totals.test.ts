import type { HttpClient } from '@azure/core-rest-pipeline';
import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import type { Total, Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { costOf } from '../cost-of.ts';
import { CONSUMER_FAULTS, tryFaults, tryInterruptions } from '../fault-driver.ts';
import { sales as entity, model } from '../fixtures/model.ts';
import { type Engine, engineConsume, engineTransfer, engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { log } from '../silent-log.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, QUICK, rowsOf } from '../world.ts';
import { creating, deleting, patching, testWrites } from '../write-contract.ts';

const CONCURRENCY = 8;

const world = await openWorld(import.meta.url);

/** Creates a client that holds back the reads of totals until `count` sales are committed and wait for their totals. */
function committedFirst(count: number): HttpClient {
  const committed = Promise.withResolvers<void>();
  let commits = 0;
  return {
    async sendRequest(request) {
      if (request.method === 'GET' && /\/salesby(month|day)\(/.test(request.url)) await committed.promise;
      const response = await httpClient.sendRequest(request);
      if (request.method === 'POST' && /\/sales(\?|$)/.test(request.url)) commits += 1;
      // A sale that has its response asks for its totals without another call.
      if (commits === count) setImmediate(committed.resolve);
      return response;
    },
  };
}

const totals = entity.totals as { readonly byMonth: Total; readonly byDay: Total };
const monthOf = (branch: string, soldOn: string) =>
  featureUpkeep.readTotal(world.engine, entity, totals.byMonth, { branch, soldOn });

let counter = 0;
function sale(over: Values = {}): Values & { saleId: string } {
  counter += 1;
  return {
    branch: 'Bern',
    saleId: `S${String(counter).padStart(6, '0')}`,
    soldOn: '2026-03-07',
    amount: 12.5,
    ...over,
  };
}
const create = (one: Values, engine: Engine = world.engine) => engineWrite.createEntity(engine, entity, one);
const patch = (one: Values, change: Values, engine: Engine = world.engine) =>
  engineWrite.patchEntity(engine, entity, one, change);
const remove = (one: Values, engine: Engine = world.engine) => engineWrite.deleteEntity(engine, entity, one);
const agree = () => expectIndexesToAgree(world.storage, entity);

describe('totals', () => {
  test('follow creates, changes, another group and deletes', async () => {
    const branch = 'Zug';
    const one = sale({ branch, amount: 0.1, tip: 2 });
    const two = sale({ branch, amount: 0.2, soldOn: '2026-03-01' });
    await create(one);
    await create(two);
    expect(await monthOf(branch, '2026-03')).toEqual({
      group: { branch, soldOn: '2026-03' },
      count: 2,
      sum: { amount: 0.3, tip: 2 },
      min: { amount: 0.1, soldOn: '2026-03-01' },
      max: { amount: 0.2, tip: 2 },
    });
    await patch(two, { soldOn: '2026-04-01', amount: 7 });
    expect(await monthOf(branch, '2026-03')).toMatchObject({
      count: 1,
      min: { soldOn: '2026-03-07' },
      max: { amount: 0.1 },
    });
    expect(await monthOf(branch, '2026-04')).toMatchObject({ count: 1, sum: { amount: 7, tip: 0 } });
    await remove(two);
    const none = { count: 0, sum: { amount: 0, tip: 0 }, min: {}, max: {} };
    expect(await monthOf(branch, '2026-04')).toEqual({ group: { branch, soldOn: '2026-04' }, ...none });
    await agree();
    const left = (await rowsOf(world.storage, 'salesbymonth')).filter(({ partitionKey }) => partitionKey === branch);
    expect(left, 'a contribution and a total').toHaveLength(2);
  });

  test('leave out entities without a field of the group, and those that the condition rejects', async () => {
    const clerk = 'Kim';
    const byClerk = () => featureUpkeep.readTotal(world.engine, entity, entity.totals.byClerk as Total, { clerk });
    await create(sale({ profit: 5 }));
    await create(sale({ clerk, profit: 7, amount: -1 }));
    const one = sale({ clerk, profit: 9 });
    await create(one);
    expect(await byClerk()).toMatchObject({ count: 1, sum: { profit: 9 } });
    await patch(one, { amount: 0 });
    expect(await byClerk()).toMatchObject({ count: 0 });
    await agree();
  });

  test('go with an archived and a moved entity', async () => {
    const [old, moving] = [sale({ branch: 'Chur' }), sale({ branch: 'Chur', amount: 4 })];
    await create(old);
    await create(moving);
    await engineTransfer.requestArchive(world.engine, entity, old);
    await engineTransfer.requestMove(world.engine, entity, moving, { branch: 'Visp' });
    await world.settle();
    expect(await monthOf('Chur', '2026-03')).toMatchObject({ count: 0 });
    expect(await monthOf('Visp', '2026-03')).toMatchObject({ count: 1, sum: { amount: 4 } });
    await agree();
  });

  test('equal a recount after each of many writes, with extremes that come and go', async () => {
    const branch = 'Uri';
    const stored = new Map<string, Values>();
    const values = (fields: string) =>
      [...stored.values()].flatMap((one) => (one[fields] === undefined ? [] : [one[fields] as number]));
    const days = () => [...stored.values()].map(({ soldOn }) => String(soldOn)).toSorted();
    const extreme = (field: string, of: (...all: number[]) => number) =>
      values(field).length > 0 ? { [field]: of(...values(field)) } : {};
    const steps: readonly [string, Values | undefined][] = [
      ['a', { amount: 3, soldOn: '2026-03-05' }],
      ['b', { amount: 3, tip: 1 }],
      ['c', { amount: -2, tip: 4, soldOn: '2026-03-02' }],
      ['a', { amount: 5 }],
      ['c', { tip: 2 }],
      ['b', undefined],
      ['c', { soldOn: '2026-03-06' }],
      ['c', undefined],
      ['a', { amount: 5, tip: 0 }],
      ['a', undefined],
    ];
    for (const [name, change] of steps) {
      const known = stored.get(name);
      const next = { ...(known ?? sale({ branch })), ...change };
      if (!change) await remove(next);
      else if (known) await patch(known, change);
      else await create(next);
      if (change) stored.set(name, next);
      else stored.delete(name);
      const sum = (field: string) => values(field).reduce((all, each) => all + each, 0);
      expect(await monthOf(branch, '2026-03'), `${name} ${JSON.stringify(change)}`).toEqual({
        group: { branch, soldOn: '2026-03' },
        count: stored.size,
        sum: { amount: sum('amount'), tip: sum('tip') },
        min: { ...extreme('amount', Math.min), ...(stored.size > 0 ? { soldOn: days()[0] } : {}) },
        max: { ...extreme('amount', Math.max), ...extreme('tip', Math.max) },
      });
    }
    await agree();
  });

  test('stay exact whatever is added and taken away', { tags: ['slow'] }, async () => {
    const amounts = [0.1, 0.2, 0.3, 1e16, 1e-7, -1e16, 1.005];
    const all = amounts.map((amount) => sale({ branch: 'Thun', amount }));
    for (const one of all) await create(one);
    for (const one of all.slice(1)) await remove(one);
    expect(await monthOf('Thun', '2026-03')).toMatchObject({ count: 1, sum: { amount: 0.1 } });
    for (const one of all.slice(0, 1)) await remove(one);
  });

  describe('cost', () => {
    test('three transactions for each total that changes, none for one that stays', async () => {
      const one = sale({ branch: 'Cham', soldOn: '2027-01-01' });
      // Intent, transaction, entity, intent; and a total, a contribution and a transaction for the month and for the day.
      expect(await costOf(() => create(one))).toBe(4 + 2 * 3);
      // The entity is read first.
      expect(await costOf(() => patch(one, { clerk: 'Lee' }))).toBe(1 + 4 + 3);
      expect(await costOf(() => patch(one, { tip: 1 }))).toBe(1 + 4 + 3);
      // The last one of a group deletes its total. The tombstone is one more.
      expect(await costOf(() => remove(one))).toBe(1 + 4 + 1 + 3 * 4);
    });

    test('one transaction to read a group, and one for each bucket', async () => {
      expect(await costOf(() => monthOf('Cham', '2026-03'))).toBe(1);
      const day = () => featureUpkeep.readTotal(world.engine, entity, totals.byDay, { soldOn: '2026-03-07' });
      expect(await costOf(day)).toBe(4);
    });

    test('one more transaction to change an extreme, however many entities the group has', async () => {
      const all = Array.from({ length: 20 }, (_, amount) => sale({ branch: 'Brig', amount: amount + 1 }));
      await Promise.all(all.map((one) => create(one)));
      const [least, , third] = all;
      expect(await costOf(() => patch(third ?? {}, { tip: 3 }))).toBe(1 + 4 + 3);
      expect(await costOf(() => patch(least ?? {}, { amount: 2.5 }))).toBe(1 + 4 + 4 + 3);
      await agree();
    });

    test('concurrent writers of one process share the write of a total', { tags: ['slow'] }, async () => {
      const all = Array.from({ length: 40 }, () => sale({ branch: 'Sion' }));
      const engine = world.engineThrough(committedFirst(all.length));
      const cost = await costOf(() => Promise.all(all.map((one) => create(one, engine))));
      // The month has one total, the day has four. Each is written twice: for the first sale, and for all that waited for it.
      const writes = 2 * (1 + 4);
      // Each sale: intent, transaction, entity, intent and two contributions. Each write: a total and a transaction.
      expect(cost).toBe(all.length * 6 + writes * 2);
      expect(await monthOf('Sion', '2026-03')).toMatchObject({ count: 40, sum: { amount: 500 } });
    });
  });
});

describe('writers of several processes on one group', () => {
  test('all count', { tags: ['slow'] }, async () => {
    const engines = Array.from({ length: 4 }, () => world.engineThrough(httpClient));
    const all = Array.from({ length: 40 }, (_, at) => sale({ branch: 'Biel', amount: at + 0.25 }));
    await pMap(all, (one, at) => create(one, engines[at % 4]));
    expect(await monthOf('Biel', '2026-03')).toMatchObject({ count: 40, sum: { amount: 790 }, max: { amount: 39.25 } });
    await pMap(all, async (one, at) => {
      await (at % 2 ? remove(one, engines[at % 4]) : patch(one, { amount: 0.5 }, engines[at % 4]));
    });
    await world.settle();
    expect(await monthOf('Biel', '2026-03')).toMatchObject({ count: 20, sum: { amount: 10 }, max: { amount: 0.5 } });
    await agree();
  });
});

/** Some share a group, others have one of their own. */
const newcomer = () =>
  sale({ branch: `Branch${counter % 7}`, soldOn: `2026-0${(counter % 3) + 1}-0${(counter % 5) + 1}` });

testWrites(
  { world: () => world, entity, what: 'Write with totals', newcomer },
  {
    'a create': creating(entity),
    'a change of the amount': patching(entity, { amount: 1.75 }),
    'a change of the group': patching(entity, { soldOn: '2026-05-09' }),
    'a delete': deleting(entity),
  },
);

const consume = (engine: Engine, message: Parameters<typeof engineConsume.consumeIntent>[1]) =>
  engineConsume.consumeIntent({ engine, entities: model.list, log }, message);
const intentOf = ({ saleId }: Values) => world.take('index-changes', String(saleId));

/** A sale whose amount and month changed and whose totals are not settled yet, beside another one of its group. */
async function changed() {
  const one = sale({ branch: `Late${counter}`, amount: 2 });
  const other = sale({ branch: one.branch, amount: 3 });
  await create(one);
  await create(other);
  await patch(one, { amount: 5, soldOn: '2026-04-07' }, world.queued);
  return { one, other, intent: await intentOf(one) };
}

describe('a reconciler', () => {
  test('that dies at any call leaves its work to the next', { tags: ['slow'] }, async () => {
    await tryFaults(
      async ({ client }) => {
        const { intent } = await changed();
        await consume(world.engineThrough(client, QUICK), intent).catch(async () => {
          // The host delivers the message again.
          await world.storage.queue('index-changes').sendMessage(JSON.stringify(intent.body));
        });
      },
      {
        what: ({ fault }) => `Intent of totals, each storage call: ${fault}`,
        faults: CONSUMER_FAULTS,
        concurrency: CONCURRENCY,
      },
    );
    await world.settle();
    await countTried({ what: 'Intent of totals: totals agree afterwards' }, agree);
  });

  test('that gets its message twice, and later again, adds nothing', async () => {
    const { one, intent } = await changed();
    await Promise.all([consume(world.engine, intent), consume(world.engine, intent)]);
    await consume(world.engine, intent);
    await patch(one, { amount: 9 });
    await consume(world.engine, intent);
    await remove(one);
    await consume(world.engine, intent);
    await agree();
  });

  const INTERRUPTIONS: Readonly<Record<string, (one: Values, other: Values) => Promise<unknown>>> = {
    'a later change of the entity': async (one) => {
      await patch(one, { amount: 8, soldOn: '2026-03-02' }, world.queued);
      await consume(world.engine, await intentOf(one));
    },
    'a change back': async (one) => {
      await patch(one, { amount: 2, soldOn: '2026-03-07' }, world.queued);
      await consume(world.engine, await intentOf(one));
    },
    'a delete of the entity': async (one) => {
      await remove(one, world.queued);
      await consume(world.engine, await intentOf(one));
    },
    'another entity that leaves the group': (_, other) => remove(other),
    'another entity that joins the new group': (_, other) => patch(other, { soldOn: '2026-04-01', amount: 1 }),
    'another entity with another extreme': (_, other) => patch(other, { amount: 0.5 }),
  };

  test.each(Object.entries(INTERRUPTIONS))(
    'overtaken at any call by %s leaves totals exact',
    { tags: ['slow'] },
    async (_, interrupt) => {
      const set = async () => {
        const { one, other, intent } = await changed();
        return { act: (engine: Engine) => consume(engine, intent), interrupt: () => interrupt(one, other) };
      };
      const what = 'Reconciler of totals overtaken by another';
      await tryInterruptions(world, set, { what, concurrency: CONCURRENCY });
      // No message is left that could repair a difference.
      await countTried({ what: 'Reconciler of totals overtaken by another', times: 0 }, agree).catch(async (error) => {
        await world.settle();
        throw error;
      });
    },
  );
});
