import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  defineOperation,
  defineUnion,
  interPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { httpClient } from '../../../../local/walk/known-messages.ts';
import { PNG } from '../../../../local/walk/png.ts';
import { createQueueWorker } from '../../../../local/walk/queue-worker.ts';
import { openAccessApp } from '../../../access-app.ts';
import { definePlaces, type Entity } from '../../../kit/define.ts';
import { operationsCheck } from '../../../kit/operations.ts';
import { storageRows } from '../../../kit/storage.ts';
import { storeOf } from '../../../rules/marked-world.ts';
import { log } from '../../../silent-log.ts';

/** Checks of several fields of an entity. */

const MESSAGE = 'to must be after from';
const access = { read: ['user'], write: ['user', 'writer'] } as const;
const schema = z.object({
  room: z.string(),
  id: z.string().regex(/^\d+$/),
  from: z.string(),
  to: z.string(),
  guest: z.string().optional(),
  note: z.string().optional(),
});
const key = { partition: '{room}', row: 'b_{id}' } as const;
let seen: Values = {};
const checks = {
  [MESSAGE]({ from, to }: { readonly from: string; readonly to: string }) {
    if (from === 'throws') throw new TypeError(`secret ${to}`);
    if (from === 'nothing') return undefined as never;
    if (from === 'a promise') return Promise.resolve(true) as never;
    return from < to;
  },
  'a guest needs a note'(values: Values) {
    seen = values;
    return values.guest === undefined || values.note !== undefined;
  },
};

const guests = defineEntity('guests', {
  schema: z.object({ guest: z.string(), name: z.string() }),
  table: 'guests',
  key: { partition: '{guest}', row: 'guest' },
  access,
});
/** One row, which is written without a read if nothing prevents it. */
const bookings = defineEntity('bookings', { schema, table: 'bookings', key, checks, access });
/** What a patch of it has would pass alone. */
const alarms = defineEntity('alarms', {
  schema: z.object({ id: z.string(), isEarly: z.boolean().optional(), isLate: z.boolean().optional() }),
  table: 'alarms',
  key: { partition: '{id}', row: 'alarm' },
  checks: { 'not both early and late': ({ isEarly, isLate }) => !(isEarly && isLate) },
  access,
});
/** Everything else that a write may have to do with. */
const stays = defineEntity('stays', {
  schema: schema.extend({
    length: z.int32().optional(),
    long: z.string().optional(),
    pin: z.string().optional(),
    guestName: z.string().optional(),
  }),
  table: 'stays',
  key,
  checks,
  derived: { length: ({ from, to }) => String(to).length - String(from).length },
  denormalized: { guest: { source: guests, copies: { guestName: ({ name }) => name }, fanOut: true } },
  large: ['long'],
  encrypted: ['pin'],
  attachments: { photo: { container: 'photos', maxBytes: 1_000_000, types: ['image/png'] } },
  indexes: {
    guest: interPartitionIndex({ table: 'staysbyguest', partition: '{guest}', row: '{room}_{id}', copies: 'keys' }),
  },
  movable: ['room'],
  archive: { table: 'oldstays' },
  access: { ...access, restricted: { pin: ['user', 'writer'] } },
});
const nights = defineEntity('nights', {
  schema: schema.extend({ night: z.string() }),
  table: 'stays',
  key: { partition: '{room}', row: 'b_{id}_{night}' },
  childOf: stays,
  checks,
  access,
});
const trips = defineEntity('trips', {
  schema: schema.extend({ rare: z.string().optional() }),
  table: 'trips',
  key,
  checks,
  split: { seldom: ['rare'] },
  access,
});
const plans = defineEntity('plans', {
  schema: schema.extend({ text: z.string().optional(), more: z.string().optional() }),
  table: 'plans',
  key,
  checks,
  wide: true,
  attachments: { picture: { container: 'pictures', maxBytes: 1_000_000, types: ['image/png'] } },
  access,
});
const slots = defineUnion('slots', {
  schema,
  kinds: { short: z.object({ minutes: z.int32() }), open: z.object({}) },
  table: 'slots',
  key,
  checks: { ...checks, 'a short slot has minutes': (slot) => slot.kind !== 'short' || slot.minutes > 0 },
  access,
});
const entities = [guests, bookings, alarms, stays, nights, trips, plans, slots];
const model = defineModel({ roles: ['user', 'writer', 'operator'], operatorRole: 'operator', entities });
const user = { subject: 'ann', roles: ['user'] };
const writer = { subject: 'wim', roles: ['writer'] };

const app = await openAccessApp(import.meta.url, model, { httpClient });
const store = storeOf(model, app.engine);
const worker = createQueueWorker({ engine: app.engine, entities: model.list, log }, { lastLogged: () => '' });

let id = '0';
beforeEach(() => {
  id = String(Number(id) + 1);
});
const given = (name: string, more = {}) => ({
  room: 'r',
  id,
  from: '2',
  to: '4',
  ...(name === 'slots' ? { kind: 'short', minutes: 5 } : name === 'nights' ? { night: '1' } : {}),
  ...more,
});
const pathOf = (name: string) => `${name}/r/${id}${name === 'nights' ? '/1' : ''}`;
const stored = async (name: string) => (await app.ask(user, 'GET', pathOf(name))).body;
const keyIn = (name: string) => ({ room: 'r', id, ...(name === 'nights' ? { night: '1' } : {}) });
async function begin(name: string): Promise<void> {
  if (name === 'nights') await begin('stays');
  expect((await app.ask(user, 'POST', name, given(name))).status).toBe(201);
}

type Door = (name: string, change: object, caller?: typeof user) => Promise<{ status: number; problem: Values }>;
const door =
  (toRequest: (name: string, change: object) => readonly ['POST' | 'PUT' | 'PATCH', string, unknown, object?]): Door =>
  async (name, change, caller = user) => {
    const [method, path, body, headers = {}] = toRequest(name, change);
    const reply = await app.ask(caller, method, path, body, headers as Record<string, string>);
    const one = reply.body?.results?.[0] ?? reply;
    return { status: one.status, problem: one.problem ?? reply.body };
  };
const changes: Readonly<Record<string, Door>> = {
  PUT: door((name, change) => ['PUT', pathOf(name), given(name, change)]),
  PATCH: door((name, change) => ['PATCH', pathOf(name), change]),
  'PATCH that returns nothing': door((name, change) => ['PATCH', pathOf(name), change, { prefer: 'return=minimal' }]),
  'a patch in a batch': door((name, change) => [
    'POST',
    `${name}/batch`,
    { actions: [{ patch: { ...keyIn(name), ...change } }] },
  ]),
  'a put in a batch': door((name, change) => ['POST', `${name}/batch`, { actions: [{ put: given(name, change) }] }]),
  'an atomic batch': door((name, change) => [
    'POST',
    `${name}/batch`,
    { actions: [{ put: given(name, change) }], atomic: true },
  ]),
  'a transaction': door((name, change) => [
    'POST',
    'transact',
    { actions: [{ [name]: { patch: { ...keyIn(name), ...change } } }] },
  ]),
};
const creates: Readonly<Record<string, Door>> = {
  POST: door((name, change) => ['POST', name, given(name, change)]),
  'PUT of a new entity': door((name, change) => ['PUT', pathOf(name), given(name, change), { 'if-none-match': '*' }]),
  'PUT of any entity': door((name, change) => ['PUT', pathOf(name), given(name, change)]),
  'a create in a batch': door((name, change) => [
    'POST',
    `${name}/batch`,
    { actions: [{ create: given(name, change) }] },
  ]),
  'a create in a transaction': door((name, change) => [
    'POST',
    'transact',
    { actions: [{ [name]: { create: given(name, change) } }] },
  ]),
};
const KINDS = ['bookings', 'stays', 'nights', 'trips', 'plans', 'slots'];
const isDone = (status: number) => [200, 201, 204].includes(status);

describe.each(Object.entries(changes))('%s', (_, send) => {
  test.each(KINDS)('of %s is refused with the message of the check, and changes nothing', async (name) => {
    await begin(name);
    const before = await stored(name);
    const { status, problem } = await send(name, { to: '1' });
    expect([status, problem]).toMatchObject([400, { code: 'invalid-input' }]);
    expect(String(problem.detail)).toContain(`The entity is not valid: ${MESSAGE}.`);
    expect(await stored(name)).toEqual(before);
    expect(isDone((await send(name, { to: '5' })).status)).toBe(true);
    expect(await stored(name)).toMatchObject({ from: '2', to: '5' });
  });
});

describe.each(Object.entries(creates))('%s', (_, send) => {
  test.each(KINDS)('of %s is refused with the messages of all checks that fail', async (name) => {
    if (name === 'nights') await begin('stays');
    const { status, problem } = await send(name, { to: '1', guest: 'g' });
    expect([status, problem.code]).toEqual([400, 'invalid-input']);
    expect(String(problem.detail)).toContain(`The entity is not valid: ${MESSAGE}; a guest needs a note.`);
    expect((await app.ask(user, 'GET', pathOf(name))).status).toBe(404);
    expect(isDone((await send(name, {})).status)).toBe(true);
  });
});

test.each([
  ['a patch', 'PATCH', 'x', { isEarly: true }, {}],
  ['a patch that returns nothing', 'PATCH', 'x', { isEarly: true }, { prefer: 'return=minimal' }],
  ['a batch', 'POST', 'batch', { actions: [{ patch: { id: 'x', isEarly: true } }], atomic: true }, {}],
] as const)('%s of some fields is checked with the stored ones', async (_, method, path, body, headers) => {
  expect((await app.ask(user, 'PUT', 'alarms/x', { isLate: true })).status).toBeLessThan(300);
  const { status } = await app.ask(user, method, `alarms/${path}`, body, headers);
  expect([status, (await app.ask(user, 'GET', 'alarms/x')).body]).toEqual([400, { id: 'x', isLate: true }]);
});

test('an entity of several kinds has checks that know the kind', async () => {
  const { status, body } = await app.ask(user, 'POST', 'slots', given('slots', { minutes: 0 }));
  expect([status, body.detail]).toEqual([400, 'The entity is not valid: a short slot has minutes.']);
  const { minutes: _, ...open } = given('slots', { kind: 'open' }) as Values;
  expect((await app.ask(user, 'POST', 'slots', open)).status).toBe(201);
});

test('the app itself has the same checks', async () => {
  const { bookings: of } = store as unknown as Record<string, { create(values: object): Promise<unknown> }>;
  await expect(of?.create(given('bookings', { to: '1' }))).rejects.toMatchObject({ code: 'invalid-input' });
});

test('a check sees what callers write, and neither ciphertexts, large texts nor fields apart', async () => {
  await app.ask(user, 'PUT', 'guests/g', { name: 'Gus' });
  const stay = given('stays', { guest: 'g', note: 'n', pin: '12', long: 'x'.repeat(70_000) });
  expect((await app.ask(user, 'POST', 'stays', stay)).status).toBe(201);
  expect((await app.ask(user, 'PUT', `${pathOf('stays')}/photo`, PNG)).status).toBe(200);
  expect(seen).toEqual(given('stays', { guest: 'g', note: 'n' }));
  expect((await app.ask(user, 'POST', 'trips', given('trips', { rare: 'r' }))).status).toBe(201);
  expect(seen).toEqual(given('trips'));
});

test('a file of a wide entity leaves its fields to the checks', async () => {
  const text = 'x'.repeat(30_000);
  expect(
    (await app.ask(user, 'POST', 'plans', given('plans', { text, more: text, guest: 'g', note: 'n' }))).status,
  ).toBe(201);
  expect((await app.ask(user, 'PUT', `${pathOf('plans')}/picture`, PNG)).status).toBe(200);
  expect(seen).toEqual(given('plans', { text, more: text, guest: 'g', note: 'n' }));
});

test.each([
  ['throws', 'threw TypeError'],
  ['nothing', 'returned neither true nor false'],
  ['a promise', 'returned neither true nor false'],
])('a check that %s is a mistake of the app, whose log has no value', async (from, expected) => {
  await begin('bookings');
  for (const send of [creates.POST, changes.PUT, changes.PATCH])
    expect(await send?.('bookings', { from, to: 'zz' })).toMatchObject({
      status: 500,
      problem: { code: 'wrong-operation' },
    });
  const { text, logged } = await app.ask(user, 'PATCH', pathOf('bookings'), { from, to: 'zz' });
  expect(logged.join('\n')).toContain(`The check "${MESSAGE}" of bookings ${expected}`);
  expect([text, ...logged].join('\n')).not.toContain('zz');
});

const linked = (name: string) => model.list.find((entity) => entity.name === name) as Entity;
/** Changes a row as an earlier release, which had no check, may have left it. */
async function spoil(name: string): Promise<void> {
  const { table, partition, row } = definePlaces.addressOf(linked(name), keyIn(name));
  const action = { kind: 'merge', row, properties: { to: '1' }, etag: '*' } as const;
  await storageRows.submit(app.storage, { table, partition, actions: [action] });
}

describe('an entity that is older than a check', () => {
  test('is changed by a caller only into one that passes', async () => {
    await begin('stays');
    await spoil('stays');
    const patch = async (change: object) => (await app.ask(user, 'PATCH', pathOf('stays'), change)).status;
    expect([await patch({ note: 'n' }), await patch({ note: 'n', to: '3' })]).toEqual([400, 200]);
  });

  test('gets no file, and none is stored', async () => {
    await begin('plans');
    await spoil('plans');
    const filesOf = async () => (await Array.fromAsync(app.storage.container('pictures').listBlobsFlat())).length;
    const before = await filesOf();
    expect((await app.ask(user, 'PUT', `${pathOf('plans')}/picture`, PNG)).status).toBe(400);
    expect(await filesOf()).toBe(before);
  });

  test('is deleted', async () => {
    await begin('bookings');
    await spoil('bookings');
    expect((await app.ask(user, 'DELETE', pathOf('bookings'))).status).toBe(204);
  });

  test.each(['move', 'archive'])('is not kept from its %s', async (kind) => {
    await begin('stays');
    await spoil('stays');
    const body = kind === 'move' ? { room: `away${id}` } : undefined;
    const reply = await app.ask(user, 'POST', `${pathOf('stays')}/${kind}`, body);
    expect(reply.status).toBe(202);
    await worker.settle();
    const { body: done } = await app.ask(user, 'GET', `${pathOf('stays')}/${kind}/${reply.body.operationId}`);
    expect(done.status).toBe('succeeded');
  });

  test('gets the copies of a field that has changed', async () => {
    await app.ask(user, 'PUT', 'guests/h', { name: 'Hal' });
    expect((await app.ask(user, 'POST', 'stays', given('stays', { guest: 'h', note: 'n' }))).status).toBe(201);
    await spoil('stays');
    await app.ask(user, 'PUT', 'guests/h', { name: 'Hugo' });
    await worker.settle();
    expect(await stored('stays')).toMatchObject({ to: '1', guestName: 'Hugo' });
  });

  test('is reported by the consistency check, and left as it is', async () => {
    const verify = async () => {
      const page = { position: undefined, top: 1000, repair: true, patience: 1 };
      const { findings } = await operationsCheck.verifyPage(app.engine, linked('bookings'), page);
      return findings.filter(({ row }) => row === `b_${id}`);
    };
    await begin('bookings');
    expect(await verify()).toEqual([]);
    await spoil('bookings');
    const reason = `The entity is not valid: ${MESSAGE}.`;
    expect(await verify()).toEqual([
      expect.objectContaining({ kind: 'failed-check', of: 'bookings', reason, repaired: false }),
    ]);
    expect(await stored('bookings')).toMatchObject({ to: '1' });
  });
});

test('a role that writes and does not read gets the message, which has no value', async () => {
  await begin('bookings');
  const { status, problem } = await (changes.PATCH as Door)('bookings', { to: '1' }, writer);
  expect([status, problem.detail]).toEqual([400, `The entity is not valid: ${MESSAGE}.`]);
});

test.each([
  ['a check that is no function', { checks: { wrong: true } }, /"checks.wrong" .*needs a function of the fields/],
  ['a check without a message', { checks: { '': () => true } }, /"checks" .*needs a message for each function/],
])('%s is rejected at the start', (_, part, error) => {
  expect(() => defineEntity('bookings', { schema, table: 'bookings', key, access, ...part } as never)).toThrow(error);
});

const hosts = defineEntity('hosts', {
  schema: z.object({ owner: z.string(), subject: z.string() }),
  table: 'hosts',
  key: { partition: '{owner}', row: 'host' },
  indexes: { subject: interPartitionIndex({ table: 'hostids', partition: '{subject}', row: 'h', unique: true }) },
  access: { read: ['user'], write: ['user'], own: { claim: 'sub', index: 'subject' } },
});

test('rows that clients write have no checks', () => {
  const owned = defineEntity('owned', {
    schema: z.object({ owner: z.string(), id: z.string(), from: z.string(), to: z.string() }),
    table: 'owned',
    key: { partition: '{owner}', row: '{id}' },
    checks: { [MESSAGE]: ({ from, to }) => from < to },
    access: { read: ['user'], write: ['user'], own: { through: hosts, permissions: 'ra' } },
  });
  expect(() =>
    defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities: [owned, hosts] }),
  ).toThrow(/where no checks run. Remove checks, or grant only r/);
});

test('a check that fails in an operation of the app is told to the caller of the operation', async () => {
  const book = defineOperation('book', {
    summary: 'Book a room',
    kind: 'write',
    roles: ['user'],
    input: z.object({ from: z.string(), to: z.string() }),
    output: z.object({}),
  });
  const withBooking = defineModel({
    roles: ['user', 'writer'],
    operatorRole: 'writer',
    entities: [bookings],
    operations: [book],
  });
  const { ask } = await openAccessApp(import.meta.url, withBooking, {
    operations: {
      async book({ input, unlimited }) {
        await unlimited.bookings.create({ room: 'r', id: '1', ...input });
        return {};
      },
    },
  });
  const { status, body } = await ask({ roles: ['user'] }, 'POST', 'book', { from: '2', to: '1' });
  expect([status, body.code, body.detail]).toEqual([400, 'invalid-input', `The entity is not valid: ${MESSAGE}.`]);
});
