import { type HttpClient, RestError } from '@azure/core-rest-pipeline';
import { TableClient, type TableEntity } from '@azure/data-tables';
import fc from 'fast-check';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, indexEntity, interPartitionIndex, RowkeyError, total } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { type Point, requestTo } from '../faulty-http-client.ts';
import { appFunctions } from '../kit/api.ts';
import type { Entity } from '../kit/define.ts';
import { type Engine, engineRead, engineWrite } from '../kit/engine.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { storageRows } from '../kit/storage.ts';
import { mostInFlight } from '../most-in-flight.ts';
import { openApp } from '../open-app.ts';
import { samplePoints, sampleRuns } from '../points.ts';
import { testStorage } from '../storage.ts';
import { countEach } from '../tried-faults.ts';
import { openWorld, withClock } from '../world.ts';

/** The other program of a table writes between any two storage calls of a write of Rowkey, also of one that loses its connection or dies. */

const model = defineModel({
  roles: ['editor'],
  operatorRole: 'editor',
  entities: [
    defineEntity('members', {
      schema: z.object({
        memberId: z.string(),
        lastName: z.string(),
        badge: z.string().optional(),
        points: z.int().optional(),
      }),
      table: 'clubmembers',
      key: { partition: '{memberId}', row: 'member' },
      existing: { properties: { lastName: 'LastName', badge: 'Badge', points: 'Points' }, follow: 60 },
      indexes: {
        byName: interPartitionIndex({ table: 'membersbyname', partition: '{lastName}', row: '{memberId}' }),
        names: indexEntity({ table: 'membernames', partition: 'all', row: '{lastName}', holds: '{memberId}' }),
        byBadge: interPartitionIndex({ table: 'membersbybadge', partition: 'all', row: '{badge}', unique: true }),
      },
      totals: { perName: total({ table: 'membertotals', partition: 'all', row: '{lastName}', sum: ['points'] }) },
      access: { read: ['editor'], write: ['editor'] },
    }),
  ],
});
const [members] = model.list as [Entity];
const app = openApp(import.meta.url, model);
const world = await openWorld(import.meta.url, [members]);
const connected = { allowInsecureConnection: true };
const table = TableClient.fromConnectionString(testStorage(import.meta.url), 'clubmembers', connected);
beforeAll(async () => {
  for (const index of ['byName', 'names', 'byBadge', 'perName'])
    await operationsModel.markBuilt(world.engine, members, index);
});

type Properties = Readonly<Record<string, unknown>>;
type State = Properties | undefined;
type Write = 'create' | 'update' | 'replace' | 'delete';
type Other = 'insert' | 'merge' | 'put' | 'remove';

/** The row without its keys and the properties of the engine. */
async function stateOf(tag: string): Promise<State> {
  const found = await table.getEntity(tag, 'member').catch(() => undefined);
  if (!found) return undefined;
  const { partitionKey: _, rowKey: __, etag: ___, timestamp: ____, ...all } = found as Properties;
  const theirs = Object.entries(all)
    .filter(([name]) => !/^Rowkey|^odata/.test(name))
    .map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value] as const);
  // A tombstone is no row to the other program either: it reads one without properties.
  return theirs.length === 0 ? undefined : Object.fromEntries(theirs);
}

const given = (tag: string) => ({ memberId: tag, lastName: 'Ours', badge: `ours${tag}`, points: 3 });
const GIVEN = (tag: string) => ({ LastName: 'Ours', Badge: `ours${tag}`, Points: 3 });
const WRITES: Readonly<
  Record<
    Write,
    {
      readonly act: (engine: Engine, tag: string) => Promise<unknown>;
      /** The state after the write; 'refused' if there is none. */
      readonly after: (tag: string, state: State) => State | 'refused';
    }
  >
> = {
  create: {
    act: (engine, tag) => engineWrite.createEntity(engine, members, given(tag)),
    after: (tag, state) => (state ? 'refused' : GIVEN(tag)),
  },
  update: {
    act: (engine, tag) => engineWrite.patchEntity(engine, members, { memberId: tag }, { lastName: 'Ours' }),
    after: (_, state) => (state?.LastName ? { ...state, LastName: 'Ours' } : 'refused'),
  },
  replace: {
    act: (engine, tag) => engineWrite.replaceEntity(engine, members, { memberId: tag }, given(tag)),
    after: (tag, state) => (state ? { ...state, ...GIVEN(tag) } : 'refused'),
  },
  delete: {
    act: (engine, tag) => engineWrite.deleteEntity(engine, members, { memberId: tag }),
    after: (_, state) => (state ? undefined : 'refused'),
  },
};

/** What the other program does, without a condition, and the state after it; its own when storage has refused it. */
const OTHERS: Readonly<Record<Other, (tag: string, state: State) => Promise<State>>> = {
  async insert(tag, state) {
    const row = { LastName: 'Theirs', Points: 5 };
    const isDone = await succeeds(table.createEntity({ partitionKey: tag, rowKey: 'member', ...row }));
    return isDone ? row : state;
  },
  async merge(tag, state) {
    const row = { Points: 5, Note: 'theirs' };
    await table.upsertEntity({ partitionKey: tag, rowKey: 'member', ...row }, 'Merge');
    return { ...state, ...row };
  },
  async put(tag) {
    const row = { LastName: 'Theirs', Badge: `theirs${tag}`, Points: 5 };
    await table.upsertEntity({ partitionKey: tag, rowKey: 'member', ...row } as TableEntity, 'Replace');
    return row;
  },
  async remove(tag) {
    await succeeds(table.deleteEntity(tag, 'member'));
    return undefined;
  },
};

const succeeds = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  );

const CONCURRENCY = 6;
const MODES = ['before', 'request lost', 'reply lost', 'dies before', 'dies after'] as const;
type Mode = (typeof MODES)[number];

/** Lets `meanwhile` happen at the `at`-th call, which is lost or the last one in some modes. */
function disturbed(mode: Mode, at: Point, meanwhile: () => Promise<unknown>) {
  let calls = 0;
  let isDead = false;
  let isPast = false;
  const client: HttpClient = {
    async sendRequest(request) {
      if (isDead) throw new Error('This process is dead.');
      calls += 1;
      const isHere = typeof at === 'number' ? calls === at : !isPast && at(request);
      if (!isHere) return httpClient.sendRequest(request);
      isPast = true;
      if (mode === 'reply lost' || mode === 'dies after') await httpClient.sendRequest(request);
      await meanwhile();
      if (mode === 'before') return httpClient.sendRequest(request);
      isDead = mode.startsWith('dies');
      throw isDead ? new Error('This process is dead.') : new RestError(mode, { code: 'ECONNRESET', request });
    },
  };
  return { client, calls: () => calls };
}

/** What the consistency check finds, on all its pages. */
async function verified({ repair }: { readonly repair: boolean }): Promise<string[]> {
  const found: string[] = [];
  for (let position: unknown; ; ) {
    const options = { position, top: 100, repair, patience: 0, maxTransactions: 10_000 } as never;
    const { findings, next } = await operationsCheck.verifyPage(world.engine, members, options);
    found.push(...findings.map(({ kind }) => kind));
    if (!next) return found;
    position = next;
  }
}

/** Deletes all rows of the other program, what follows from them, and what is known of earlier looks. */
beforeEach(async () => {
  for await (const { partitionKey = '', rowKey = '' } of table.listEntities())
    await table.deleteEntity(partitionKey, rowKey);
  await succeeds(world.storage.table('system').deleteEntity('follow', 'clubmembers'));
  await verified({ repair: true });
});

let counter = 0;
function newTag(): string {
  counter += 1;
  return `m${String(counter).padStart(5, '0')}`;
}
const prepare = (write: Write, tag: string) =>
  write === 'create'
    ? undefined
    : table.createEntity({ partitionKey: tag, rowKey: 'member', LastName: 'Before', Points: 1, Old: 'kept' });

const cases = (Object.keys(WRITES) as Write[]).flatMap((write) =>
  (Object.keys(OTHERS) as Other[]).map((other) => [write, other] as const),
);

test.each(cases)(
  '%s with an interrupting %s: no write is lost or done twice',
  async (write, other) => {
    const { act, after } = WRITES[write];
    const counted = newTag();
    await prepare(write, counted);
    const counting = disturbed('before', 0, async () => undefined);
    await act(world.engineThrough(counting.client), counted);
    // The write of the row itself is always among them.
    const ofRow = requestTo('clubmembers', 'POST', 'PUT');
    const points = MODES.flatMap((mode) => [...samplePoints(counting.calls()), ofRow].map((at) => ({ mode, at })));
    const ended: { readonly tag: string; readonly label: string; readonly found: State }[] = [];
    await countEach(
      points,
      async ({ mode, at }) => {
        const tag = newTag();
        await prepare(write, tag);
        const before = await stateOf(tag);
        let then: State;
        let between: State;
        const { client } = disturbed(mode, at, async () => {
          then = await stateOf(tag);
          between = await OTHERS[other](tag, then);
        });
        const outcome: unknown = await act(world.engineThrough(client), tag).catch((error: unknown) => error);
        const label = `${write}, ${other}: ${mode} at call ${typeof at === 'number' ? at : 'of the row'}: ${outcome}`;
        const hasActed = JSON.stringify(then) !== JSON.stringify(before);
        const found = await stateOf(tag);
        const wouldBe = after(tag, between);
        // A row that is missing does not tell who deleted it.
        const acted = write === 'delete' && wouldBe === 'refused' ? undefined : wouldBe;
        const isDead = mode.startsWith('dies');
        if (hasActed) {
          // It is not done again.
          expect(found, label).toEqual(between);
          if (!isDead && outcome instanceof RowkeyError)
            expect(['storage-unavailable', 'duplicate-key'], label).toContain(outcome.code);
        } else if (!(outcome instanceof Error)) expect(found, label).toEqual(acted);
        else if (isDead || Object(outcome).code === 'storage-unavailable')
          expect([between, acted], label).toContainEqual(found);
        else expect(found, label).toEqual(between);
        // A client that has this ETag has seen the values that it stands for.
        const { etag, values } = Object(outcome);
        const now = await engineRead.readEntity(world.engine, members, { memberId: tag }).catch(() => undefined);
        if (typeof etag === 'string' && now?.etag === etag) expect(values, label).toEqual(now.values);
        ended.push({ tag, label, found });
      },
      { what: undefined, concurrency: CONCURRENCY },
    );
    await world.settle();
    for (const { tag, label, found } of ended) expect(await stateOf(tag), label).toEqual(found);
    await verified({ repair: true });
    // A merge into a row that was deleted leaves one without its required properties, which nobody but the other program can complete.
    expect((await verified({ repair: false })).filter((kind) => kind !== 'invalid')).toEqual([]);
  },
  300_000,
);

/** A look at this many minutes from now, by the clock of the app; that of storage does not move. */
function follow(engine: Engine, minutes: number, until = Number.POSITIVE_INFINITY) {
  const at = { ...withClock(engine, Date.now), now: () => Date.now() + minutes * 60_000 };
  return operationsCheck.followTable(at, [members], { until, patience: 0 });
}
/** Each look of the file is later than those before it. */
let minute = 0;
function nextLook(minutes = 100): number {
  minute += minutes;
  return minute;
}

const put = (tag: string, row: object) =>
  table.upsertEntity({ partitionKey: tag, rowKey: 'member', ...row } as TableEntity, 'Replace');
const merge = (tag: string, row: object) =>
  table.upsertEntity({ partitionKey: tag, rowKey: 'member', ...row } as TableEntity, 'Merge');

test('after a look, indexes, lists, unique values and totals are those of the changed rows', async () => {
  const [tag, other] = [newTag(), newTag()];
  await put(tag, { LastName: 'Jones', Badge: `b${tag}`, Points: 2 });
  await engineWrite.createEntity(world.engine, members, { ...given(other), lastName: 'Adams' });
  await follow(world.engine, nextLook());
  expect(await verified({ repair: false })).toEqual([]);
  await merge(tag, { LastName: 'Smith', Points: 7 });
  await merge(other, { LastName: 'Smith', Badge: `b${other}` });
  expect(await verified({ repair: false })).not.toEqual([]);
  // Before the index rows are compared again.
  const { repaired, left } = await follow(world.engine, nextLook(2));
  expect(repaired).toBeGreaterThan(0);
  expect(left).toBe(0);
  expect(await verified({ repair: false })).toEqual([]);
  // A unique value that the other program has given up is free.
  await engineWrite.createEntity(world.engine, members, { ...given(newTag()), badge: `ours${other}` });
  await table.deleteEntity(tag, 'member');
  await follow(world.engine, nextLook());
  expect(await verified({ repair: false })).toEqual([]);
});

test('a look repairs several rows at a time', async () => {
  for (const name of ['Adams', 'Berg', 'Chen', 'Diaz']) await put(newTag(), { LastName: name });
  const writing = mostInFlight(({ method, url }) => method !== 'GET' && url.includes('membersbyname'));
  await follow(world.engineThrough(writing), nextLook());
  expect(writing.most).toBeGreaterThan(1);
  expect(await verified({ repair: false })).toEqual([]);
});

test('two rows with one unique value: the first keeps it, the other one is reported', async () => {
  const [tag, other] = [newTag(), newTag()];
  await put(tag, { LastName: 'Jones', Badge: `b${tag}` });
  await follow(world.engine, nextLook());
  await put(other, { LastName: 'Jones', Badge: `b${tag}` });
  expect((await follow(world.engine, nextLook())).left).toBeGreaterThan(0);
  expect(await verified({ repair: true })).toEqual(['conflict']);
  await table.deleteEntity(tag, 'member');
  await follow(world.engine, nextLook());
  expect(await verified({ repair: false })).toEqual([]);
});

test('a look reads the rows that changed since the last one began, less a margin', async () => {
  await put(newTag(), { LastName: 'Jones' });
  const ahead = withClock(world.engine, () => Date.now() + 3 * 60_000);
  const look = (engine: Engine) => {
    const at = nextLook() * 60_000;
    return operationsCheck.followTable({ ...engine, now: () => Date.now() + at }, [members], {
      until: Infinity,
      patience: 0,
    });
  };
  await look(withClock(world.engine, Date.now));
  expect((await look(ahead)).checked).toBeGreaterThan(0);
  expect((await look(withClock(world.engine, Date.now))).checked).toBe(0);
  expect((await look(withClock(world.engine, Date.now))).checked).toBeGreaterThan(0);
});

test('a row that the other program has merged into while it was deleted is found by a read of some fields, and followed', async () => {
  const tag = newTag();
  await follow(world.engine, nextLook());
  await put(tag, { RowkeyType: 'tombstone', RowkeyWriteId: 'w', LastName: 'Jones' });
  const { values } = await engineRead.readEntity(world.engine, members, { memberId: tag }, { select: ['memberId'] });
  expect(values.memberId).toBe(tag);
  await follow(world.engine, nextLook(2));
  const { rows } = await storageRows.scanTable(world.storage, { table: 'membersbyname', limit: 10 });
  expect(rows.map(({ row }) => row)).toEqual([tag]);
});

test('the app has a timer for its looks, which tells what it has repaired', async () => {
  await put(newTag(), { LastName: 'Jones' });
  const logged: string[] = [];
  const log = (text: string) => logged.push(text);
  const timer = appFunctions.timersOf(model).find(([name]) => name === 'follow')?.[1];
  await app.provision();
  await timer?.run(app.runtime, { log, warn: log, error: log } as never);
  expect(logged.filter((text) => text.startsWith('clubmembers'))).toEqual([
    expect.stringMatching(/^clubmembers: [1-9]\d* changed rows, [1-9]\d* repairs\.$/),
  ]);
});

test('a look is repeated after its time, and not before', async () => {
  await put(newTag(), { LastName: 'Jones' });
  const at = nextLook();
  expect((await follow(world.engine, at)).checked).toBeGreaterThan(0);
  expect((await follow(world.engine, at)).checked).toBe(0);
  expect((await follow(world.engine, at + 4)).checked).toBeGreaterThan(0);
});

test('a look that dies at any call, or meets another one, leaves nothing wrong', async () => {
  const tag = newTag();
  const change = () => merge(tag, { LastName: `L${newTag()}`, Badge: `b${newTag()}`, Points: 1 });
  await change();
  await follow(world.engine, nextLook());
  await change();
  const counting = disturbed('before', 0, async () => undefined);
  await follow(world.engineThrough(counting.client), nextLook());
  for (const at of samplePoints(counting.calls(), 4)) {
    await change();
    const { client } = disturbed(at % 2 ? 'dies before' : 'dies after', at, async () => undefined);
    await follow(world.engineThrough(client), nextLook()).catch(() => undefined);
    await follow(world.engine, nextLook());
    expect(await verified({ repair: false }), `dies at call ${at}`).toEqual([]);
  }
  await change();
  const both = nextLook();
  await Promise.all([follow(world.engine, both), follow(world.engine, both)]);
  expect(await verified({ repair: false })).toEqual([]);
});

test('both programs write concurrently, and no acknowledged write is lost', async () => {
  const tags = [newTag(), newTag()];
  const names = ['Jones', 'Smith', 'Adams'];
  const acknowledged = new Map(tags.map((tag) => [tag, { points: 0, theirs: 0, note: 0 }]));
  for (const tag of tags) await put(tag, { LastName: 'Jones', Badge: `b${tag}`, Points: 0, Theirs: 0 });
  const rounds = Array.from({ length: 12 }, (_, index) => index);
  await Promise.all(
    tags.flatMap((tag) => {
      const done = acknowledged.get(tag) ?? { points: 0, theirs: 0, note: 0 };
      /** Under the ETag that was read, until it holds. */
      const ofTheirs = async () => {
        for (const round of rounds)
          for (let isDone = false; !isDone; ) {
            const row = await table.getEntity<{ Points: bigint | number; Theirs: number }>(tag, 'member');
            const next = { LastName: names[round % 3], Points: Number(row.Points) + 1, Theirs: row.Theirs + 1 };
            const keys = { partitionKey: tag, rowKey: 'member' };
            isDone = await succeeds(table.updateEntity({ ...keys, ...next }, 'Merge', { etag: row.etag }));
            if (isDone) Object.assign(done, { points: done.points + 1, theirs: done.theirs + 1 });
          }
      };
      /** Without a condition: a property that nothing else writes. */
      const ofNotes = async () => {
        for (const round of rounds) {
          await merge(tag, { Note: round });
          done.note = round;
        }
      };
      const ofOurs = async () => {
        for (const round of rounds)
          for (let isDone = false; !isDone; ) {
            const { etag, values } = await engineRead.readEntity(world.engine, members, { memberId: tag });
            const patch = { points: Number(values.points) + 1, lastName: names[(round + 1) % 3] };
            isDone = await succeeds(
              engineWrite.patchEntity(world.engine, members, { memberId: tag }, patch, { ifMatch: etag }),
            );
            if (isDone) done.points += 1;
          }
      };
      return [ofTheirs(), ofNotes(), ofOurs(), ofOurs()];
    }),
  );
  for (const tag of tags) {
    const { points, theirs, note } = acknowledged.get(tag) ?? {};
    expect(await stateOf(tag)).toMatchObject({ Points: points, Theirs: theirs, Note: note, Badge: `b${tag}` });
  }
  await world.settle();
  await follow(world.engine, nextLook());
  expect(await verified({ repair: false })).toEqual([]);
});

/** A write of either program, whose last name is its own. */
type Step = (key: { readonly tag: string; readonly LastName: string }) => Promise<unknown>;
const seen = async (tag: string) => (await table.getEntity(tag, 'member')).etag;
const keysOf = (tag: string) => ({ partitionKey: tag, rowKey: 'member' });
const ours = (key: { readonly tag: string; readonly LastName: string }) => ({
  memberId: key.tag,
  lastName: key.LastName,
  points: 1,
});
const STEPS: Readonly<Record<string, Step>> = {
  'their insert': ({ tag, LastName }) => table.createEntity({ ...keysOf(tag), LastName }),
  'their put': ({ tag, LastName }) => put(tag, { LastName }),
  'their merge': ({ tag, LastName }) => merge(tag, { LastName, Points: 3 }),
  'their put under its ETag': async ({ tag, LastName }) =>
    table.updateEntity({ ...keysOf(tag), LastName }, 'Replace', { etag: await seen(tag) }),
  'their merge under its ETag': async ({ tag, LastName }) =>
    table.updateEntity({ ...keysOf(tag), LastName }, 'Merge', { etag: await seen(tag) }),
  'their delete': ({ tag }) => table.deleteEntity(tag, 'member'),
  'their delete under its ETag': async ({ tag }) => table.deleteEntity(tag, 'member', { etag: await seen(tag) }),
  'our create': (key) => engineWrite.createEntity(world.engine, members, ours(key)),
  'our put': (key) => engineWrite.putEntity(world.engine, members, { memberId: key.tag }, ours(key)),
  'our update': ({ tag, LastName }) =>
    engineWrite.patchEntity(world.engine, members, { memberId: tag }, { lastName: LastName }),
  'our delete': ({ tag }) => engineWrite.deleteEntity(world.engine, members, { memberId: tag }),
};

test('after any concurrent writes of both, each row is that of a write after which no other one began', async () => {
  const step = fc.constantFrom(...Object.keys(STEPS));
  const writer = fc.array(step, { minLength: 1, maxLength: 6 });
  const run = async (writers: readonly (readonly string[])[]) => {
    const tag = newTag();
    await put(tag, { LastName: 'first' });
    let clock = 0;
    const tick = () => {
      clock += 1;
      return clock;
    };
    const log: { name: string; isDelete: boolean; began: number; ended: number; isKnown: boolean }[] = [
      { name: 'first', isDelete: false, began: 0, ended: 0, isKnown: true },
    ];
    await Promise.all(
      writers.map(async (steps, writing) => {
        for (const [index, does] of steps.entries()) {
          const name = `w${writing}-${index}`;
          const began = tick();
          const error: unknown = await STEPS[does]?.({ tag, LastName: name }).then(
            () => undefined,
            (why: unknown) => why,
          );
          const isKnown = error === undefined;
          if (isKnown || Object(error).code === 'storage-unavailable')
            log.push({ name, isDelete: does.includes('delete'), began, ended: tick(), isKnown });
        }
      }),
    );
    const found = await stateOf(tag);
    const last = log.filter(({ name, isDelete }) => (found ? name === found.LastName : isDelete));
    const isLast = ({ ended, isKnown }: (typeof log)[number]) =>
      !isKnown || !log.some((other) => other.isKnown && other.began > ended);
    expect(last.some(isLast), JSON.stringify({ found, log })).toBe(true);
    await world.settle();
    expect(await stateOf(tag)).toEqual(found);
    await follow(world.engine, nextLook());
    expect(await verified({ repair: false })).toEqual([]);
  };
  await fc.assert(fc.asyncProperty(fc.array(writer, { minLength: 2, maxLength: 4 }), run), sampleRuns(100));
});
