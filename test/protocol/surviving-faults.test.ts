import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { UNANSWERED_INSERT } from '../fault-driver.ts';
import { type Fault, type FaultyHttpClient, faultyHttpClient } from '../faulty-http-client.ts';
import { departments, employees, model } from '../fixtures/model.ts';
import { type Engine, engineConsume, engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { samplePoints } from '../points.ts';
import { log } from '../silent-log.ts';
import { countEach, countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, LONG_HOLDS, openWorld, somebody } from '../world.ts';
import { creating, deleting, patching, replacing, testWrites } from '../write-contract.ts';

const CONCURRENCY = 12;

const world = await openWorld(import.meta.url);

let counter = 0;
const hire = (one: Values) => engineWrite.createEntity(world.engine, employees, one);

function newcomer(): Values {
  counter += 1;
  return somebody({ department: `Dept${counter}`, lastName: `Shared${counter % 5}` });
}

async function stateOf(one: Values): Promise<Values | undefined> {
  return engineRead.readEntity(world.engine, employees, one).then(
    ({ values }) => values,
    () => undefined,
  );
}

const renamed = (one: Values) => ({ ...one, lastName: 'Renamed', email: `x${one.email}` });

testWrites(
  { world: () => world, entity: employees, what: 'Write', newcomer },
  {
    'a create': creating(employees),
    'a create with a shared last name': creating(employees, {
      prepare: (one) => hire(somebody({ department: one.department, lastName: one.lastName })),
      // A lost reply is found, unless it rejects the first attempt, which does not know the list that another employee is in.
      unanswered: [...UNANSWERED_INSERT, 'reply lost'],
    }),
    'a replace of email and last name': replacing(employees, renamed, { unanswered: UNANSWERED_INSERT }),
    'a patch': patching(employees, { jobTitle: 'Clerk' }),
    'a delete': deleting(employees),
    'a patch of a manager': patching(
      employees,
      { lastName: 'Boss' },
      {
        prepare: async (one) => {
          await hire(one);
          await engineWrite.createEntity(world.engine, departments, {
            department: one.department,
            managerId: one.employeeId,
          });
        },
      },
    ),
  },
);

describe('a consumer that dies at any call', () => {
  const consumerOf = (engine: Engine) => ({ engine, entities: model.list, log });

  /** Returns every message of a queue without deleting it. */
  async function messagesOf(queue: string) {
    const client = world.storage.queue(queue);
    const found: { id: string; receipt: string; text: string; attempts: number }[] = [];
    for (;;) {
      const { receivedMessageItems } = await client.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 600 });
      if (receivedMessageItems.length === 0) break;
      for (const {
        messageId: id,
        popReceipt: receipt,
        messageText: text,
        dequeueCount: attempts,
      } of receivedMessageItems)
        found.push({ id, receipt, text, attempts });
    }
    await pMap(found, ({ id, receipt, text }) => client.updateMessage(id, receipt, text, 0), {
      concurrency: CONCURRENCY,
    });
    return found.map(({ id, text, attempts }) => {
      const message = { queue, id, attempts, insertedAt: Date.now(), body: JSON.parse(text) };
      return { message, text };
    });
  }

  const sender = () => ({ ...world.engine, timing: LONG_HOLDS });
  const queued = () => ({ ...sender(), settleInline: 0 });
  const changed = (one: Values) => ({ ...one, lastName: 'Other', email: `y${one.email}` });
  const moved = (one: Values) => ({ ...one, department: `To${one.department}` });
  const gone = () => undefined;

  test.each<
    [
      string,
      string,
      typeof engineConsume.consumeIntent,
      (one: Values) => Promise<unknown>,
      (one: Values) => Values | undefined,
    ]
  >([
    [
      'Intent',
      'index-changes',
      engineConsume.consumeIntent,
      (one) => engineWrite.replaceEntity(queued(), employees, one, changed(one)),
      changed,
    ],
    [
      'Intent of a delete',
      'index-changes',
      engineConsume.consumeIntent,
      (one) => engineWrite.deleteEntity(queued(), employees, one),
      gone,
    ],
    [
      'Archive message',
      'transfers',
      engineConsume.consumeTransfer,
      (one) => engineTransfer.requestArchive(sender(), employees, one),
      gone,
    ],
    [
      'Move message',
      'transfers',
      engineConsume.consumeTransfer,
      (one) => engineTransfer.requestMove(sender(), employees, one, { department: moved(one).department }),
      gone,
    ],
  ])('%s: the next consumer finishes the work', { tags: ['slow'] }, async (name, queue, consume, act, after) => {
    const run = async (clients: readonly { client: FaultyHttpClient; fault?: Fault }[]) => {
      const all = clients.map((each) => ({ ...each, one: newcomer() }));
      await pMap(all, ({ one }) => hire(one), { concurrency: CONCURRENCY });
      await world.settle();
      await pMap(all, ({ one }) => act(one), { concurrency: CONCURRENCY });
      const messages = await messagesOf(queue);
      await pMap(
        all,
        async ({ client, one }) => {
          const found = messages.find(({ text }) => text.includes(String(one.employeeId)));
          if (!found) throw new Error(`No message about ${one.employeeId}.`);
          await consume(consumerOf(world.engineThrough(client, LONG_HOLDS)), found.message).catch(() => undefined);
        },
        { concurrency: CONCURRENCY },
      );
      await world.settle();
      const check = async ({ one }: { one: Values }) => {
        expect(await stateOf(one)).toEqual(after(one));
        const archived =
          employees.archive &&
          (await engineRead.readEntity(world.engine, employees.archive, one).catch(() => undefined));
        if (name === 'Archive message') expect(archived?.values).toEqual(one);
        if (name === 'Move message') expect(await stateOf(moved(one))).toEqual(moved(one));
      };
      await countEach(all, check, { what: ({ fault }) => `${name}, each storage call: ${fault ?? 'no fault'}` });
      await countTried({ what: `${name}: indexes agree afterwards` }, () =>
        expectIndexesToAgree(world.storage, employees),
      );
    };
    const counting = faultyHttpClient();
    await run([{ client: counting }]);
    const faults = ['crash before', 'crash after', 'reply lost'] as const;
    const each = (fault: Fault) =>
      samplePoints(counting.calls).map((at) => ({ client: faultyHttpClient(fault, at), fault }));
    await run(faults.flatMap(each));
  });
});
