import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { countHolds } from '../count-holds.ts';
import {
  clubs,
  consume,
  consumers,
  create,
  expectCopies,
  fans,
  found,
  intentOf,
  lastPassOf,
  openFanOutWorld,
  patch,
  playerOf,
  players,
  teams,
  world,
} from '../fan-out.ts';
import { outcomeOf, type Scene, tryFaults, tryInterruptions } from '../fault-driver.ts';
import { type Fault, interruptedHttpClient } from '../faulty-http-client.ts';
import { type Engine, engineConsume, engineTransfer, engineWrite } from '../kit/engine.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { putAll } from '../put-all.ts';
import { countTried } from '../tried-faults.ts';
import { QUICK } from '../world.ts';

openFanOutWorld(import.meta.url);

describe('a fan-out that races', () => {
  /** Interrupts `act` right before and after a sample of its calls; afterwards every message is handled. */
  async function everywhere(what: string, set: () => Promise<Scene>) {
    const quiet = async () => {
      const { act, interrupt } = await set();
      return { act: (engine: Engine) => act(engine).catch(() => undefined), interrupt };
    };
    await tryInterruptions(world, quiet, { what, concurrency: 4 });
    await world.settle();
    await expectCopies();
  }
  const WHAT = 'Fan-out or writer of a receiver overtaken by another, before and after each storage call';

  test('with the create of a receiver leaves no stale copy', { tags: ['slow'] }, async () => {
    await everywhere(WHAT, async () => {
      const { team, club, player } = await found();
      return {
        act: (engine) => create(players, player('1', { clubId: club.clubId }), engine),
        interrupt: async () => {
          await patch(teams, team, { title: 'Second' });
          await consume(await intentOf(team.team));
          await patch(clubs, club, { clubName: 'New' });
          await consume(await intentOf(club.clubId));
        },
      };
    });
  });

  test('with a change of a receiver keeps both', { tags: ['slow'] }, async () => {
    const all: Values[] = [];
    await everywhere(WHAT, async () => {
      const { team, player } = await found();
      await create(players, player());
      await patch(teams, team, { title: 'Second' });
      const message = await intentOf(team.team);
      all.push(player());
      return {
        act: (engine) => consume(message, engine),
        interrupt: () => patch(players, player(), { note: 'kept' }),
      };
    });
    for (const one of all) expect(await playerOf(one)).toMatchObject({ note: 'kept', teamTitle: 'Second' });
  });

  test('with a move of a receiver, which changes meanwhile, leaves the values of its new source', async () => {
    await everywhere(WHAT, async () => {
      const { player } = await found();
      const { team: other } = await found();
      await create(players, player());
      await engineTransfer.requestMove(world.engine, players, player(), { team: other.team });
      const message = await world.take('transfers', other.team);
      return {
        act: (engine) => engineConsume.consumeTransfer({ ...consumers, engine }, message),
        interrupt: () => patch(players, player(), { note: 'changed' }).catch(() => undefined),
      };
    });
  });

  test('with a later change and its fan-out leaves the later values', { tags: ['slow'] }, async () => {
    await everywhere(WHAT, async () => {
      const { team, player } = await found();
      await putAll(world.engine, players, [player('1'), player('2'), player('3')]);
      await patch(teams, team, { title: 'Second' });
      const message = await intentOf(team.team);
      return {
        act: (engine) => consume(message, engine),
        interrupt: async () => {
          await patch(teams, team, { title: 'Third' });
          await consume(await intentOf(team.team));
        },
      };
    });
  });

  test('with a receiver whose index entry the queue writes after the last pass leaves no stale copy', async () => {
    const { club } = await found();
    const key = { team: 'none', playerId: club.clubId };
    // The source changes after the receiver has read it, and the entry of the receiver is left to the queue.
    const isSource = interruptedHttpClient(1, () => patch(clubs, club, { clubName: 'New' }), 'after');
    const slow = { ...world.engineThrough(isSource), settleInline: 0 };
    await create(players, { ...key, clubId: club.clubId }, slow);
    expect((await playerOf(key)).clubName).toBe('Club');
    const ofReceiver = await intentOf(`player_${club.clubId}`);
    const ofSource = await intentOf('"fanOut"');
    await consume(ofSource);
    await consume(lastPassOf(ofSource));
    expect((await playerOf(key)).clubName).toBe('Club');
    await consume(ofReceiver);
    expect((await playerOf(key)).clubName).toBe('New');
    await world.settle();
    await expectCopies();
  });
});

describe('any fault at any call', () => {
  const FAULTED: readonly Fault[] = ['crash before', 'crash after', 'reply lost'];

  test.each<[string, (engine: Engine, name: string) => Promise<unknown>]>([
    ['of a change of the source', (engine, clubId) => patch(clubs, { clubId }, { clubName: 'New' }, engine)],
    ['of a delete of the source', (engine, clubId) => engineWrite.deleteEntity(engine, clubs, { clubId })],
    [
      'of the fan-out',
      async (engine, clubId) => {
        await patch(clubs, { clubId }, { clubName: 'New' });
        const message = await intentOf(clubId);
        await consume(message, engine).catch(async (error) => {
          // The host delivers the message again.
          await world.storage.queue('index-changes').sendMessage(JSON.stringify(message.body));
          throw error;
        });
      },
    ],
    [
      'of the create of a receiver',
      async (engine, clubId) => create(players, { team: clubId, playerId: '9', clubId }, engine),
    ],
  ])('%s leaves no stale copy', { tags: ['slow'] }, async (what, act) => {
    const set = async () => {
      const { club } = await found();
      await create(fans, { clubId: club.clubId, fanId: '1' });
      await create(players, { team: 'none', playerId: club.clubId, clubId: club.clubId });
      return club.clubId;
    };
    await tryFaults(async ({ client }) => outcomeOf(act(world.engineThrough(client, QUICK), await set())), {
      what: `Fan-out, each storage call ${what}`,
      faults: FAULTED,
      concurrency: 6,
    });
    await world.settle();
    await countTried({ what: 'Fan-out: copies agree afterwards' }, expectCopies);
  });
});

describe('random schedules', () => {
  const ROUNDS = IS_EVERY_POINT ? 40 : 2;
  const id = fc.constantFrom('1', '2');
  const group = fc.constantFrom('A', 'B');
  const step = fc.oneof(
    fc.record({ does: fc.constant('rename' as const), group }),
    fc.record({ does: fc.constant('remove' as const), group }),
    fc.record({ does: fc.constant('join' as const), id, group }),
    fc.record({ does: fc.constant('switch' as const), id, group }),
    fc.record({ does: fc.constant('leave' as const), id }),
  );
  const schedule = fc.array(fc.array(step, { minLength: 2, maxLength: 4 }), { minLength: 2, maxLength: 3 });
  let run = 0;
  const holds = countHolds();

  test('of writers, with messages twice, late and out of order, end with exact copies', {
    tags: ['slow'],
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(schedule, { minLength: 20, maxLength: 20 }), async (all) => {
        const engine = world.engineThrough(httpClient);
        const processes = [engine, { ...engine, settleInline: 0 }, { ...engine, settleInline: 0 }];
        const delivering = new AbortController();
        const delivery = deliver(delivering.signal);
        await pMap(all, (writers) => race(writers, run++, processes), { concurrency: 20 });
        delivering.abort();
        await delivery;
        await world.settle();
        await countTried(
          { what: 'Random schedule of sources, receivers and messages', times: all.length },
          expectCopies,
        );
      }),
      { numRuns: ROUNDS, endOnFailure: true },
    );
    expect(holds.counts.hidden).toBeGreaterThan(0);
    expect(holds.counts.immediate).toBeGreaterThan(0);
  });

  type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

  async function race(writers: readonly (readonly Step[])[], number: number, processes: readonly Engine[]) {
    await Promise.all(
      writers.map(async (steps, index) => {
        const engine = processes[index % processes.length] ?? world.engine;
        for (const [position, one] of steps.entries()) {
          const clubId = `${number}${'group' in one ? one.group : ''}`;
          const key = { team: `R${number}`, playerId: 'id' in one ? one.id : '' };
          const clubName = `N${index}-${position}`;
          const team = { team: key.team, title: clubName };
          const work =
            one.does === 'rename'
              ? Promise.all([
                  engineWrite.putEntity(engine, clubs, { clubId }, { clubId, clubName }),
                  engineWrite.putEntity(engine, teams, team, team),
                ])
              : one.does === 'remove'
                ? engineWrite.deleteEntity(engine, clubs, { clubId })
                : one.does === 'join'
                  ? create(players, { ...key, clubId }, engine)
                  : one.does === 'switch'
                    ? patch(players, key, { clubId }, engine)
                    : engineWrite.deleteEntity(engine, players, key);
          expect(['done', 'duplicate-key', 'not-found', 'busy', 'storage-unavailable']).toContain(
            await outcomeOf(work),
          );
        }
      }),
    );
  }

  async function deliver(signal: AbortSignal): Promise<void> {
    const client = world.storage.queue('index-changes');
    const engine = world.engineThrough(holds.client);
    for (let turn = 0; !signal.aborted; turn += 1) {
      await sleep(5);
      const { receivedMessageItems } = await client.receiveMessages({ numberOfMessages: 16, visibilityTimeout: 1 });
      await Promise.all(
        receivedMessageItems.reverse().map(async ({ messageId, messageText, popReceipt, dequeueCount }, at) => {
          if ((turn + at) % 3 === 0) return;
          const body = JSON.parse(messageText);
          const message = { queue: 'index-changes', id: messageId, insertedAt: Date.now(), body };
          let attempts = dequeueCount - 1;
          const once = () =>
            holds
              .count(() => consume({ ...message, attempts: ++attempts }, engine))
              .then(
                () => true,
                () => false,
              );
          const done = (turn + at) % 3 === 1 ? await Promise.all([once(), once()]) : [await once()];
          if (done.every(Boolean)) await client.deleteMessage(messageId, popReceipt).catch(() => undefined);
        }),
      );
    }
  }
});
