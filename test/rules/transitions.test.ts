import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, defineSeries, oneOf, subject } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { openAccessApp } from '../access-app.ts';
import { httpDoor } from '../kit/http.ts';
import { log } from '../silent-log.ts';

/** Rules to update that have a part for the row before the change and one for the row after it. */

const of = (side: 'borrower' | 'owner', state: string) =>
  ({ role: 'user', where: { [side]: subject(), state } }) as const;
const shown = { role: 'user', where: { state: oneOf('asked', 'lent', 'withdrawn') }, lists: 'filtered' } as const;

const loans = defineEntity('loans', {
  schema: z.object({
    shelf: z.string(),
    loanId: z.string(),
    borrower: z.string(),
    owner: z.string(),
    state: z.enum(['asked', 'lent', 'withdrawn', 'lost', 'hidden', 'gone']),
    note: z.string().optional(),
    story: z.string().optional(),
    pin: z.string().optional(),
  }),
  table: 'loans',
  key: { partition: '{shelf}', row: 'loan_{loanId}' },
  movable: ['shelf'],
  large: ['story'],
  encrypted: ['pin'],
  attachments: { photo: { container: 'loanphotos', types: ['image/png'], maxBytes: 10_000 } },
  access: {
    read: ['root', shown],
    write: {
      create: ['user', 'root'],
      update: [
        'root',
        { role: 'user', where: { borrower: subject(), state: 'lost' } },
        { before: [of('borrower', 'asked')], after: [of('borrower', 'withdrawn'), of('borrower', 'gone')] },
        { before: [of('owner', 'asked')], after: [of('owner', 'lent'), of('owner', 'hidden')] },
        {
          before: [{ role: 'user', where: { owner: subject(), state: 'hidden' } }, 'clerk'],
          after: ['clerk', of('owner', 'asked')],
        },
        {
          before: [{ role: 'mover', where: { state: 'asked', shelf: 'a' } }],
          after: [{ role: 'mover', where: { shelf: 'b' } }],
        },
        {
          before: [{ role: 'mover', where: { state: 'lent', note: 'ok' } }],
          after: [{ role: 'mover', where: { shelf: oneOf('b', 'd') } }],
        },
      ],
      delete: ['root'],
    },
    restricted: { pin: ['root', 'user', 'clerk', 'mover'] },
  },
});
const model = defineModel({ roles: ['user', 'clerk', 'mover', 'root'], operatorRole: 'root', entities: [loans] });
const as = (name: string, ...roles: string[]) => ({ subject: name, roles: roles.length > 0 ? roles : ['user'] });
const [borrower, owner, root] = [as('bob'), as('olga'), as('root', 'root')];

const app = await openAccessApp(import.meta.url, model);
const worker = createQueueWorker({ engine: app.engine, entities: model.list, log }, { lastLogged: () => '' });

let loanId = '0';
beforeEach(() => {
  loanId = String(Number(loanId) + 1);
});
const path = () => `loans/a/${loanId}`;
const loan = (state: string, more = {}) => ({ shelf: 'a', loanId, borrower: 'bob', owner: 'olga', state, ...more });
const store = async (state: string, more = {}) => {
  const { status } = await app.ask(root, 'PUT', path(), loan(state, more));
  expect([200, 201]).toContain(status);
};
const stateOf = async () => (await app.ask(root, 'GET', path())).body.state;

type Door = (caller: typeof root, state: string, more?: object) => Promise<number>;
const single = (reply: { readonly status: number; readonly body: { results?: { status: number }[] } }) =>
  reply.body?.results?.[0]?.status ?? reply.status;
const action = (state: string, more = {}) => ({ shelf: 'a', loanId, state, ...more });
const doors: Readonly<Record<string, Door>> = {
  PUT: async (caller, state, more) => single(await app.ask(caller, 'PUT', path(), loan(state, more))),
  PATCH: async (caller, state, more) => single(await app.ask(caller, 'PATCH', path(), { state, ...more })),
  'PATCH that returns nothing': async (caller, state, more) =>
    single(await app.ask(caller, 'PATCH', path(), { state, ...more }, { prefer: 'return=minimal' })),
  'a batch': async (caller, state, more) =>
    single(await app.ask(caller, 'POST', 'loans/batch', { actions: [{ patch: action(state, more) }] })),
  'an atomic batch': async (caller, state, more) =>
    single(await app.ask(caller, 'POST', 'loans/batch', { actions: [{ put: loan(state, more) }], atomic: true })),
  'a transaction': async (caller, state, more) =>
    single(await app.ask(caller, 'POST', 'transact', { actions: [{ loans: { patch: action(state, more) } }] })),
};
const isDone = (status: number) => [200, 204, 304].includes(status);

describe.each(Object.entries(doors))('%s', (_, send) => {
  test('lets each caller make the changes of one pair, and mixes no pairs', async () => {
    for (const [caller, from, to, expected] of [
      [borrower, 'asked', 'withdrawn', 200],
      [borrower, 'asked', 'lent', 403],
      [borrower, 'asked', 'asked', 403],
      [borrower, 'lent', 'withdrawn', 403],
      [borrower, 'asked', 'lost', 403],
      [borrower, 'lost', 'lost', 200],
      [borrower, 'lost', 'withdrawn', 403],
      [borrower, 'asked', 'gone', 200],
      [borrower, 'withdrawn', 'gone', 403],
      [owner, 'asked', 'lent', 200],
      [owner, 'asked', 'hidden', 200],
      [owner, 'asked', 'withdrawn', 403],
      [owner, 'hidden', 'asked', 200],
      [owner, 'hidden', 'lent', 403],
      [owner, 'withdrawn', 'lent', 403],
      [as('eve'), 'asked', 'lent', 403],
      [as('eve'), 'hidden', 'asked', 404],
      [as('eve', 'clerk'), 'withdrawn', 'lost', 200],
      [root, 'withdrawn', 'asked', 200],
    ] as const) {
      await store(from);
      const status = await send(caller, to, { note: `${from} to ${to}` });
      const what = `${caller.subject}: ${from} to ${to}`;
      // A put of a row that the caller may not know of is one of a new row.
      if (expected === 404) expect([404, 409], what).toContain(status);
      else expect(isDone(status) ? 200 : status, what).toBe(expected);
      expect(await stateOf(), what).toBe(expected === 200 ? to : from);
    }
  });

  test('accepts a repetition that changes nothing, and only that', async () => {
    await store('asked');
    expect(isDone(await send(borrower, 'withdrawn', { note: 'n' }))).toBe(true);
    const { headers } = await app.ask(root, 'GET', path());
    expect(isDone(await send(borrower, 'withdrawn', { note: 'n' }))).toBe(true);
    expect((await app.ask(root, 'GET', path())).headers.get('etag')).toBe(headers.get('etag'));
    expect(await send(borrower, 'withdrawn', { note: 'other' })).toBe(403);
    // Another caller, whom no pair lets have the row so, and one whose pair has another state.
    expect(await send(as('eve'), 'withdrawn', { note: 'n' })).toBe(403);
    expect(await send(owner, 'withdrawn', { note: 'n' })).toBe(403);
  });

  test('tells a caller who cannot read the row nothing by a repetition', async () => {
    await store('asked');
    expect(isDone(await send(borrower, 'gone', { note: 'n' }))).toBe(true);
    // As if there were no such row.
    for (const caller of [borrower, as('eve')]) expect([404, 409]).toContain(await send(caller, 'gone', { note: 'n' }));
  });
});

test('a repetition is refused like the first request for its body and its conditions', async () => {
  await store('withdrawn', { note: 'n' });
  const patch = (body: object, headers = {}) => app.ask(borrower, 'PATCH', path(), body, headers);
  const { headers } = await app.ask(borrower, 'GET', path());
  expect((await patch({ state: 'withdrawn' }, { 'if-match': headers.get('etag') ?? '' })).status).toBe(200);
  expect((await patch({ state: 'withdrawn' }, { 'if-match': 'W/"other"' })).status).toBe(412);
  expect((await patch({ state: 3 })).status).toBe(403);
});

test('a repetition is recognized by texts in blobs and encrypted fields too, and stores no blob', async () => {
  const more = { story: 'x'.repeat(70_000), pin: '1234' };
  await store('asked', more);
  const put = (body: object) => app.ask(borrower, 'PUT', path(), body);
  expect((await put(loan('withdrawn', more))).status).toBe(200);
  expect((await put(loan('withdrawn', more))).status).toBe(200);
  expect((await put(loan('withdrawn', { ...more, pin: '1235' }))).status).toBe(403);
  expect((await put(loan('withdrawn', { ...more, story: 'y'.repeat(70_000) }))).status).toBe(403);
});

test('an action of a batch sees what those before it have changed', async () => {
  await store('asked');
  const actions = ['hidden', 'asked', 'lent', 'asked'].map((state) => ({ patch: action(state) }));
  const { body } = await app.ask(owner, 'POST', 'loans/batch', { actions });
  expect(body.results.map(({ status }: { status: number }) => status)).toEqual([200, 200, 200, 403]);
  expect(await stateOf()).toBe('lent');
});

test('a file is stored only if the row may stay as it is', async () => {
  const filesOf = async () => {
    const blobs = app.storage.container('loanphotos').listBlobsFlat();
    return (await Array.fromAsync(blobs)).length;
  };
  const attach = async () => (await app.ask(borrower, 'PUT', `${path()}/photo`, PNG)).status;
  const announce = async () =>
    (await app.ask(borrower, 'POST', `${path()}/photo/uploads`, { type: 'image/png', bytes: PNG.byteLength })).status;
  await store('asked');
  expect([await attach(), await announce(), await filesOf()]).toEqual([403, 403, 0]);
  await store('lost');
  expect([await attach(), await announce(), await filesOf()]).toEqual([200, 201, 1]);
});

describe('a move', () => {
  const move = (shelf: string) => app.ask(as('max', 'mover'), 'POST', `${path()}/move`, { shelf });
  const stateAfter = async (operationId: string) => {
    await worker.settle();
    return (await app.ask(root, 'GET', `${path()}/move/${operationId}`)).body.status;
  };

  test('is a change from the row that is found to the row at the destination', async () => {
    await store('asked');
    for (const shelf of ['c', 'd']) expect((await move(shelf)).status).toBe(403);
    const { status, body } = await move('b');
    expect([status, await stateAfter(body.operationId)]).toEqual([202, 'succeeded']);
  });

  test.each([
    ['asked', 'b', 'failed', { state: 'lent' }],
    ['asked', 'b', 'succeeded', { state: 'lent', note: 'ok' }],
    ['lent', 'd', 'failed', { state: 'asked' }],
    ['lent', 'b', 'succeeded', { state: 'asked' }],
  ])('of a loan that is %s to %s is asked again when it runs, and has %s', async (state, shelf, expected, change) => {
    await store(state, { note: state === 'lent' ? 'ok' : 'n' });
    const { status, body } = await move(shelf);
    expect(status).toBe(202);
    await app.ask(root, 'PATCH', path(), change);
    expect(await stateAfter(body.operationId)).toBe(expected);
  });
});

test('an operator is told which side of which change the row is compared with', async () => {
  await store('asked');
  const question = { entity: 'loans', key: { shelf: 'a', loanId }, caller: { subject: 'bob', roles: ['user'] } };
  const { body } = await app.ask(root, 'POST', 'operations/why', question);
  expect(body.update.allowed).toBe(true);
  const mine = body.update.alternatives.filter(({ transition }: { transition?: object }) => transition);
  expect(mine.slice(0, 2)).toEqual([
    {
      role: 'user',
      transition: { number: 3, side: 'before' },
      hasRole: true,
      allows: true,
      terms: [
        { term: 'borrower is the caller', caller: ['bob'], holds: true, row: 'bob' },
        { term: 'state is "asked"', holds: true, row: 'asked' },
      ],
    },
    {
      role: 'user',
      transition: { number: 3, side: 'after' },
      hasRole: true,
      allows: false,
      terms: [{ term: 'borrower is the caller', caller: ['bob'] }, { term: 'state is "withdrawn"' }],
    },
  ]);
  const rules = httpDoor.describeModel(model).entities.loans?.access.rules;
  expect(rules?.update.slice(2, 4)).toEqual([
    { role: 'user', terms: ['borrower is the caller', 'state is "asked"'], transition: { number: 3, side: 'before' } },
    {
      role: 'user',
      terms: ['borrower is the caller', 'state is "withdrawn"'],
      transition: { number: 3, side: 'after' },
    },
  ]);
});

const user = (state: string) => [{ role: 'user', where: { state } }] as const;
const papers = { table: 'papers', key: { partition: '{id}', row: 'paper' } } as const;
const declare = (update: unknown) => {
  const schema = z.object({ id: z.string(), state: z.enum(['open', 'done']) });
  const entity = defineEntity('papers', { ...papers, schema, access: { read: ['root'], write: { update } } } as never);
  return defineModel({ roles: ['user', 'root'], operatorRole: 'root', entities: [entity as never] });
};

test.each([
  ['one part', { before: user('open') }, /"access.write.update" .*Give both, before and after/],
  ['one part in a list', ['root', { after: user('done') }], /"access.write.update.1" .*Give both, before and after/],
  [
    'another option',
    { before: user('open'), after: ['root'], where: {} },
    /"access.write.update.where" is not an option. Use before, after/,
  ],
  [
    'no terms',
    { before: ['user'], after: ['root'] },
    /without terms is every change. Name a term in before or after, or the roles alone/,
  ],
  [
    'a field that the schema does not have',
    { before: [{ role: 'user', where: { stat: 'open' } }], after: user('done') },
    /compares "stat", which the schema does not have/,
  ],
  [
    'a value that no row has',
    { before: user('open'), after: user('finished') },
    /compares "state", which cannot be "finished"/,
  ],
  ['an unknown role', { before: user('open'), after: [{ role: 'other', where: { state: 'done' } }] }, /other/],
])('%s is rejected at the start', (_, update, error) => {
  expect(() => declare(update)).toThrow(error);
});

test('a data series, of which an update changes no field, has no such rule', () => {
  const keyed = [{ role: 'user', where: { id: 'a' } }] as const;
  const hours = defineSeries('hours', {
    ...papers,
    schema: z.object({ id: z.string() }),
    slots: { name: 'hour', first: 0, last: 23 },
    access: { read: ['root'], write: { update: { before: keyed, after: keyed } } },
  });
  expect(() => defineModel({ roles: ['user', 'root'], operatorRole: 'root', entities: [hours] })).toThrow(
    /has no field that an update changes/,
  );
});
