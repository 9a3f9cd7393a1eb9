import { describe, expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { httpDoor } from '../kit/http.ts';
import { pause, useBackedUpProduct } from '../looking-back/backed-up-product.ts';
import { model } from '../looking-back/model.ts';
import type { Client, Reply } from '../product.ts';
import { BACKUP_ACCOUNTS } from '../storage.ts';

/** Reads as of an instant, the versions of an entity, and deleted entities restored, over HTTP. */

const product = useBackedUpProduct(import.meta.url, BACKUP_ACCOUNTS.lookingBack);
const hr = product.as('hr', 'hr@contoso.com');
const ann = product.as('reader', 'ann@contoso.com');
const bob = product.as('reader', 'bob@contoso.com');
/** Has the role of operators, and may write every row. */
const operator = product.as(['operator', 'hr'], 'olga@contoso.com');

const employee = (department: string, number: number, over: object = {}) => ({
  department,
  employeeId: String(number).padStart(6, '0'),
  email: `e${number}@${department.toLowerCase()}.example`,
  owner: 'ann@contoso.com',
  grade: 1,
  ...over,
});
const path = (department: string, number: number) => `/api/employees/${department}/${String(number).padStart(6, '0')}`;

async function create(...all: readonly object[]): Promise<void> {
  const { body } = await hr('POST', '/api/employees/batch', { body: { actions: all.map((one) => ({ create: one })) } });
  expect(body.results.filter(({ status }: { status: number }) => status !== 201)).toEqual([]);
}

const nextOf = ({ headers }: Reply) => /<(.*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

/** All items of the pages of a list. */
async function itemsOf(client: Client, first: string, options: { method?: string; body?: unknown } = {}) {
  const pages: Reply['body'][][] = [];
  for (let next: string | undefined = first; next; ) {
    const reply: Reply = await client(options.method ?? 'GET', next, { body: options.body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    pages.push(reply.body.items);
    next = nextOf(reply);
  }
  return { items: pages.flat(), pages: pages.length };
}

describe('a read as of an instant', () => {
  test('by key returns the values, children and texts of that instant', { tags: ['slow'] }, async () => {
    const story = 's'.repeat(100_000);
    await create(employee('Key', 1, { story, nationalId: 'secret', salary: 100 }));
    const review = { department: 'Key', employeeId: '000001', year: '2025', rating: 3, text: 't'.repeat(70_000) };
    expect((await hr('POST', '/api/reviews', { body: review })).status).toBe(201);
    const at = await pause();
    const changed = employee('Key', 1, { grade: 2, story: 'new', nationalId: 'x' });
    expect((await hr('PUT', path('Key', 1), { body: changed })).status).toBe(200);
    await hr('PATCH', '/api/reviews/Key/000001/2025', { body: { rating: 5 } });
    await hr('POST', '/api/reviews', { body: { ...review, year: '2026' } });
    const before = await hr('GET', `${path('Key', 1)}?at=${at}`);
    expect(before).toMatchObject({ status: 200, body: { grade: 1, story, nationalId: 'secret', salary: 100 } });
    const whole = await hr(
      'GET',
      `${path('Key', 1)}?at=${at}&include=reviews&select=grade,reviews.rating,reviews.text`,
    );
    expect(whole.body).toEqual({ grade: 1, reviews: [{ rating: 3, text: review.text }] });
    const filtered = await hr('GET', `${path('Key', 1)}?at=${at}&include=reviews&reviews.rating=gt:3`);
    expect(filtered.body.reviews).toEqual([]);
    expect((await hr('GET', path('Key', 1))).body).toMatchObject({ grade: 2, story: 'new' });
    expect((await hr('DELETE', path('Key', 1))).status).toBe(204);
    expect((await hr('GET', path('Key', 1))).status).toBe(404);
    expect((await hr('GET', `${path('Key', 1)}?at=${at}`)).body).toEqual(before.body);
  });

  test('accepts an instant with an offset, to the digits of the versions of a history', async () => {
    await create(employee('Digits', 1));
    await hr('PATCH', path('Digits', 1), { body: { grade: 2 } });
    await hr('PATCH', path('Digits', 1), { body: { grade: 3 } });
    const { items } = await itemsOf(hr, '/api/operations/history/employees/Digits/000001');
    const grades: unknown[] = [];
    for (const { at } of items.slice(1)) {
      expect(at).toMatch(/\.\d{7}Z$/);
      grades.push((await hr('GET', `${path('Digits', 1)}?at=${at}`)).body.grade);
      const elsewhere = at.replace(/T(\d\d)/, (_: string, hour: string) => `T${hour}`).replace('Z', '%2B00:00');
      expect((await hr('GET', `${path('Digits', 1)}?at=${elsewhere}`)).body.grade).toBe(grades.at(-1));
    }
    expect(grades).toEqual([1, 2, 3]);
  });

  test('of a partition filters, selects and continues over pages', { tags: ['slow'] }, async () => {
    await create(...Array.from({ length: 30 }, (_, index) => employee('Range', index, { grade: index % 3 })));
    const at = await pause();
    expect((await hr('DELETE', '/api/employees/Range?all=true')).body.deleted).toBe(30);
    await create(employee('Range', 99));
    const list = `/api/employees/Range?at=${at}`;
    const { items, pages } = await itemsOf(hr, `${list}&top=7`);
    expect(pages).toBe(5);
    expect(items.map(({ employeeId }) => Number(employeeId))).toEqual(Array.from({ length: 30 }, (_, index) => index));
    const some = await itemsOf(hr, `${list}&top=4&grade=2&select=email`);
    expect(some.items).toEqual(
      Array.from({ length: 10 }, (_, index) => ({ email: `e${index * 3 + 2}@range.example` })),
    );
    const bounded = await itemsOf(hr, `${list}&from=000003&to=000005`);
    expect(bounded.items.map(({ employeeId }) => employeeId)).toEqual(['000003', '000004', '000005']);
    expect((await itemsOf(hr, '/api/employees/Range')).items).toHaveLength(1);
    // A continuation belongs to its instant.
    const link = nextOf(await hr('GET', `${list}&top=7`)) ?? '';
    expect((await hr('GET', link.replace(/at=[^&]+/, `at=${await pause()}`))).status).toBe(400);
  });

  test('follows the rules on rows and the restricted fields of now', { tags: ['slow'] }, async () => {
    const bobs = { owner: 'bob@contoso.com' };
    await create(employee('Rules', 1, { bonus: 1, salary: 7 }), employee('Rules', 2, { bonus: 2, salary: 8, ...bobs }));
    await create(employee('Rules', 3, { bonus: 3 }));
    const at = await pause();
    // Ann's row becomes Bob's, and Bob's one Ann's.
    await hr('PATCH', path('Rules', 1), { body: bobs });
    await hr('PATCH', path('Rules', 2), { body: { owner: 'ann@contoso.com' } });
    await hr('DELETE', path('Rules', 3));
    const read = async (client: Client, number: number) => {
      const { status, body } = await client('GET', `${path('Rules', number)}?at=${at}`);
      return status === 200 ? body : status;
    };
    expect(await read(ann, 1)).toBe(404);
    expect(await read(bob, 1)).toEqual(employee('Rules', 1, { bonus: 1 }));
    expect(await read(ann, 2)).toEqual(employee('Rules', 2, { bonus: 2, ...bobs }));
    expect(await read(bob, 2)).toBe(404);
    // No rule on rows reaches a row that is gone.
    expect(await read(ann, 3)).toBe(404);
    expect(await read(hr, 3)).toEqual(employee('Rules', 3, { bonus: 3 }));
    const listed = async (client: Client, query = '') =>
      (await itemsOf(client, `/api/employees/Rules?at=${at}${query}`)).items;
    expect((await listed(ann)).map(({ employeeId }) => employeeId)).toEqual(['000002']);
    expect(await listed(bob)).toEqual([employee('Rules', 1, { bonus: 1 })]);
    expect(await listed(bob, '&select=bonus&top=1')).toEqual([{ bonus: 1 }]);
    expect(await listed(hr, '&select=bonus,salary')).toEqual([
      { bonus: 1, salary: 7 },
      { bonus: 2, salary: 8 },
      { bonus: 3 },
    ]);
    const included = await bob('GET', `${path('Rules', 1)}?at=${at}&include=reviews`);
    expect(included).toMatchObject({ status: 200, body: { reviews: [], bonus: 1 } });
    expect((await ann('GET', `${path('Rules', 1)}?at=${at}&include=reviews`)).status).toBe(404);
    // A filter by a restricted field would tell its value.
    expect((await bob('GET', `/api/employees/Rules?at=${at}&salary=7`)).status).toBe(403);
    const history = (client: Client, number: number) =>
      itemsOf(client, `/api/operations/history/employees/Rules/${String(number).padStart(6, '0')}`);
    expect((await history(ann, 1)).items.map(({ isDeleted }) => isDeleted)).toEqual([true, true, true]);
    expect((await history(bob, 1)).items.at(-2)).toMatchObject({ values: employee('Rules', 1, { bonus: 1 }) });
  });

  test('is only for the roles of the backup, and within it', async () => {
    await create(employee('Roles', 1));
    const at = await pause();
    const one = `${path('Roles', 1)}?at=`;
    expect((await product.as('guest')('GET', one + at)).status).toBe(403);
    expect((await product.as(undefined)('GET', one + at)).status).toBe(401);
    // A role that reads the past reads nothing that it may not read now.
    expect((await product.as('operator')('GET', one + at)).status).toBe(403);
    const future = await hr('GET', one + new Date(Date.now() + 60_000).toISOString());
    expect(future).toMatchObject({
      status: 400,
      body: { field: 'at', accepted: expect.stringContaining('up to now') },
    });
    const early = await hr('GET', `${one}2020-01-01T00:00:00Z`);
    expect(early).toMatchObject({ status: 404, body: { title: 'Not found' } });
    expect(early.body.detail).toMatch(/^The backup has nothing of 2020-01-01T00:00:00.0000000Z. It begins at 20/);
    for (const wrong of ['', 'yesterday', '2026-11-29', '2026-11-29T12:00:00', '2026-02-31T00:00:00Z'])
      expect(await hr('GET', one + wrong), wrong).toMatchObject({ status: 400, body: { field: 'at' } });
    expect((await hr('GET', `/api/employees/by/email/e1@roles.example?at=${at}`)).status).toBe(400);
    expect((await hr('GET', `/api/employees/Roles?at=2020-01-01T00:00:00Z`)).status).toBe(404);
  });

  test('by HEAD, with an ETag that is known, and explained reads the same', async () => {
    await create(employee('Head', 1));
    const at = await pause();
    await hr('PATCH', path('Head', 1), { body: { grade: 9 } });
    const one = `${path('Head', 1)}?at=${at}`;
    const explained = await hr('GET', `${one}&explain=true`);
    expect(explained.status).toBe(200);
    expect(explained.body.steps.filter((step: object) => 'write' in step)).toEqual([]);
    expect(explained.body.steps).toContainEqual(expect.objectContaining({ read: 'row', table: 'employees' }));
    const found = await hr('GET', one);
    expect(found).toMatchObject({ status: 200, body: { grade: 1 } });
    const etag = found.headers.get('etag') ?? '';
    expect((await hr('HEAD', one)).headers.get('etag')).toBe(etag);
    expect(await hr('GET', one, { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304, body: '' });
    expect((await hr('GET', path('Head', 1), { headers: { 'if-none-match': etag } })).status).toBe(200);
    // The state that the ETag names is not the present one.
    const stale = await hr('PATCH', path('Head', 1), { body: { grade: 2 }, headers: { 'if-match': etag } });
    expect(stale.status).toBe(412);
  });

  test('is described, and without a backup no route has the parameter', async () => {
    const { body } = await hr('GET', '/api/openapi.json');
    const names = (operation: string) =>
      body.paths[operation].get.parameters.map(
        (one: { name?: string; $ref?: string }) => one.name ?? one.$ref,
      ) as string[];
    for (const operation of ['/api/employees/{department}/{employeeId}', '/api/employees/{department}'])
      expect(names(operation).map((name) => name.replace(/^.*\//, ''))).toContain('at');
    expect(body.paths).toHaveProperty(['/api/operations/history/employees/{department}/{employeeId}', 'get']);
    expect(body.paths).toHaveProperty(['/api/operations/undelete/employees', 'post']);
    const routes = httpDoor.createRoutes({ ...model, backup: undefined });
    expect(routes.filter(({ query = {} }) => 'at' in query)).toEqual([]);
    expect(routes.filter(({ name }) => /history|undelete/.test(name))).toEqual([]);
  });
});

const UNDELETE = '/api/operations/undelete/employees';
const undeleted = async (body: object, query = '') => itemsOf(operator, UNDELETE + query, { method: 'POST', body });
const countOutcomes = (items: readonly { readonly outcome: string }[]) =>
  Object.fromEntries([...Map.groupBy(items, ({ outcome }) => outcome)].map(([name, some]) => [name, some.length]));

describe('an undelete', () => {
  test('has back 610 employees, with ten later creates and twenty later edits', { tags: ['slow'] }, async () => {
    const all = Array.from({ length: 600 }, (_, index) => employee('Ops', index));
    for (let first = 0; first < all.length; first += 100) await create(...all.slice(first, first + 100));
    await create(...Array.from({ length: 10 }, (_, index) => employee('Ops', 600 + index)));
    for (let number = 0; number < 20; number += 1)
      expect((await hr('PATCH', path('Ops', number * 30), { body: { grade: 50 + number } })).status).toBe(200);
    const before = (await itemsOf(hr, '/api/employees/Ops?top=1000')).items;
    const from = await pause();
    let deleted = 0;
    for (let next: string | undefined = '/api/employees/Ops?all=true'; next; ) {
      const reply = await hr('DELETE', next);
      deleted += reply.body.deleted;
      next = nextOf(reply);
    }
    expect(deleted).toBe(610);
    const span = { from, to: await pause(), by: 'hr@contoso.com' };
    const trial = await undeleted({ ...span, dryRun: true }, '?top=100');
    expect(countOutcomes(trial.items)).toEqual({ restored: 610 });
    expect((await itemsOf(hr, '/api/employees/Ops')).items).toEqual([]);
    expect(countOutcomes((await undeleted({ ...span, by: 'somebody else' })).items)).toEqual({});
    const done = await undeleted(span);
    expect(countOutcomes(done.items)).toEqual({ restored: 610 });
    expect(done.pages).toBeGreaterThan(6);
    expect((await itemsOf(hr, '/api/employees/Ops?top=1000')).items).toEqual(before);
    expect((await hr('GET', '/api/employees/by/email/e609@ops.example')).status).toBe(200);
    expect(countOutcomes((await undeleted(span)).items)).toEqual({ exists: 610 });
  });

  test('brings children, files, encrypted fields and texts, and leaves what exists', { tags: ['slow'] }, async () => {
    const story = 's'.repeat(100_000);
    await create(
      employee('Parts', 1, { story, nationalId: 'secret', salary: 5 }),
      employee('Parts', 2),
      employee('Parts', 3),
    );
    const review = { department: 'Parts', employeeId: '000001', year: '2025', rating: 3, text: 't'.repeat(70_000) };
    await hr('POST', '/api/reviews', { body: review });
    const headers = { authorization: `Bearer ${await product.token('hr')}`, 'content-type': 'image/png' };
    const photo = new URL(`${path('Parts', 1)}/photo`, product.url);
    expect((await fetch(photo, { method: 'PUT', headers, body: PNG })).status).toBe(200);
    const from = await pause();
    for (const number of [1, 2, 3]) await hr('DELETE', path('Parts', number));
    // One is created again, and another employee takes the address of the second one.
    await create(employee('Parts', 3, { grade: 7 }), employee('Parts', 4, { email: 'e2@parts.example' }));
    const span = { from, to: await pause() };
    const { items } = await undeleted(span);
    expect(items).toMatchObject([
      { entity: 'employees', key: { department: 'Parts', employeeId: '000001' }, outcome: 'restored' },
      { key: { employeeId: '000002' }, outcome: 'failed', problem: { code: 'duplicate-value', field: 'email' } },
      { key: { employeeId: '000003' }, outcome: 'exists' },
      { entity: 'reviews', key: { employeeId: '000001', year: '2025' }, outcome: 'restored' },
    ]);
    const back = await hr('GET', `${path('Parts', 1)}?include=reviews&select=story,nationalId,salary,reviews.text`);
    expect(back.body).toEqual({ story, nationalId: 'secret', salary: 5, reviews: [{ text: review.text }] });
    const bytes = Buffer.from(await (await fetch(photo, { headers })).arrayBuffer());
    expect(bytes.equals(PNG)).toBe(true);
    expect((await hr('GET', path('Parts', 3))).body.grade).toBe(7);
    expect((await hr('GET', '/api/employees/by/email/e2@parts.example')).body.employeeId).toBe('000004');
  });

  test('is for operators who may write every row, and of a span', async () => {
    const span = { from: '2026-11-29T12:00:00Z', to: '2026-11-29T13:00:00Z' };
    const status = async (client: Client, body: object) => (await client('POST', UNDELETE, { body })).status;
    expect(await status(hr, span)).toBe(403);
    expect(await status(product.as('operator'), span)).toBe(403);
    expect(await status(operator, { from: span.to, to: span.from })).toBe(400);
    expect(await status(operator, { ...span, until: 'x' })).toBe(400);
    expect(await status(operator, { from: 'x', to: span.to })).toBe(400);
    expect((await operator('POST', '/api/operations/undelete/movies', { body: span })).status).toBe(404);
    expect(await status(operator, span)).toBe(200);
  });
});

describe('a restore in place', () => {
  const list = '/api/operations/differences/employees';
  const apply = '/api/operations/restore/employees';

  test('lists what differs, restores it, and keeps what has changed since', { tags: ['slow'] }, async () => {
    const all = [1, 2, 3].map((number) => employee('Place', number));
    await create(...all);
    const review = { department: 'Place', employeeId: '000002', year: '2025', rating: 3 };
    await hr('POST', '/api/reviews', { body: review });
    const at = await pause();
    await hr('PATCH', path('Place', 1), { body: { grade: 9 } });
    await hr('DELETE', path('Place', 2));
    await hr('PATCH', path('Place', 3), { body: { email: 'e2@place.example' } });
    await create(employee('Place', 4));
    const body = { at, partition: 'Place' };
    const { items, pages } = await itemsOf(operator, `${list}?top=2`, { method: 'POST', body });
    expect(pages).toBeGreaterThan(1);
    expect(items.map(({ entity, key, change }) => [entity, key.employeeId, change])).toEqual([
      ['employees', '000001', 'replace'],
      ['employees', '000002', 'create'],
      ['reviews', '000002', 'create'],
      ['employees', '000003', 'replace'],
      ['employees', '000004', 'delete'],
    ]);
    const one = { ...body, row: 'empid_000002' };
    expect((await itemsOf(operator, list, { method: 'POST', body: one })).items.map(({ row }) => row)).toEqual([
      'empid_000002',
      'empid_000002_2025',
    ]);
    await hr('PATCH', path('Place', 1), { body: { grade: 10 } });
    const chosen = items.map(({ key: _, change: __, ...item }) => item);
    const reply = await operator('POST', apply, { body: { at, items: chosen } });
    // The second one needs the address that the third one lets go of.
    expect(reply.body.items).toMatchObject([
      { outcome: 'changed', problem: { code: 'etag-mismatch' } },
      { outcome: 'restored' },
      { outcome: 'restored' },
      { outcome: 'restored' },
      { outcome: 'restored' },
    ]);
    expect((await itemsOf(hr, '/api/employees/Place')).items).toEqual([{ ...all[0], grade: 10 }, all[1], all[2]]);
    expect((await hr('GET', '/api/reviews/Place/000002/2025')).body).toEqual(review);
    expect((await hr('GET', '/api/employees/by/email/e2@place.example')).body.employeeId).toBe('000002');
    const again = await operator('POST', apply, { body: { at, items: chosen.slice(1) } });
    expect(countOutcomes(again.body.items)).toEqual({ restored: 4 });
  });

  test('is for operators who may write every row, and of the past', async () => {
    const at = await pause();
    const item = { entity: 'employees', table: 'employees', partition: 'x', row: 'y' };
    const status = async (client: Client, one: string, body: object) => (await client('POST', one, { body })).status;
    for (const [one, body] of [
      [list, { at }],
      [apply, { at, items: [item] }],
    ] as const) {
      expect(await status(hr, one, body)).toBe(403);
      expect(await status(product.as('operator'), one, body)).toBe(403);
      expect(await status(operator, one, body)).toBe(200);
      expect(await status(operator, one, { ...body, at: '2999-01-01T00:00:00Z' })).toBe(400);
      expect(await status(operator, one, { ...body, until: at })).toBe(400);
    }
    expect(await status(operator, list, { at, row: 'y' })).toBe(400);
    expect(await status(operator, list, { at: '2020-01-01T00:00:00Z' })).toBe(404);
    expect(await status(operator, apply, { at, items: [{ ...item, table: 'notes' }] })).toBe(400);
    expect(await status(operator, apply, { at, items: [{ ...item, entity: 'notes' }] })).toBe(400);
    expect(await status(operator, '/api/operations/differences/reviews', { at })).toBe(404);
  });

  test('by the command shows what differs, and changes it only when that is confirmed', {
    tags: ['slow'],
  }, async () => {
    await create(employee('Confirm', 1), employee('Confirm', 2));
    const at = await pause();
    await hr('DELETE', path('Confirm', 1));
    await hr('PATCH', path('Confirm', 2), { body: { grade: 9 } });
    await create(employee('Confirm', 3));
    const before = (await itemsOf(hr, '/api/employees/Confirm')).items;
    const restore = (...more: string[]) =>
      product.run('restore', '--in-place', '--at', at, '--entity', 'employees', ...more);
    const shown = [
      'employees: 1 to create, 1 to replace, 1 to delete',
      '  create employees Confirm/000001',
      '  replace employees Confirm/000002',
      '  delete employees Confirm/000003',
      '',
    ].join('\n');
    expect(await restore('--partition', 'Confirm', '--dry-run')).toEqual({ code: 0, said: shown });
    const unconfirmed = await restore('--partition', 'Confirm');
    expect(unconfirmed).toEqual({ code: 0, said: `${shown}Nothing is changed without --yes.\n` });
    expect((await itemsOf(hr, '/api/employees/Confirm')).items).toEqual(before);
    const one = await restore('--partition', 'Confirm', '--row', 'empid_000003', '--yes');
    expect(one.said).toMatch(/0 to create, 0 to replace, 1 to delete\n.*\n1 restored, 0 have changed/);
    const done = await restore('--partition', 'Confirm', '--yes');
    expect(done).toEqual({
      code: 0,
      said: expect.stringMatching(/\n2 restored, 0 have changed since and stay as they are, 0 failed\.\n$/),
    });
    expect((await itemsOf(hr, '/api/employees/Confirm')).items).toEqual([
      employee('Confirm', 1),
      employee('Confirm', 2),
    ]);
    expect((await restore('--partition', 'Confirm', '--yes')).said).toMatch(/^Everything is as it was at /);
    const future = await product.run('restore', '--in-place', '--at', at, '--to', 'other');
    expect(future).toMatchObject({ code: 1, said: expect.stringContaining('Name a place with --to') });
  });

  test('by the command is of the whole app without an entity', { tags: ['slow'] }, async () => {
    const at = await pause();
    await hr('PUT', '/api/notes/whole/1', { body: { pad: 'whole', noteId: '1', text: 'x' } });
    await create(employee('Whole', 1));
    const done = await product.run('restore', '--in-place', '--at', at, '--yes');
    expect(done.said).toMatch(
      /employees: 0 to create, 0 to replace, 1 to delete\nnotes: 0 to create, 0 to replace, 1 to delete\n/,
    );
    expect(done.said).toContain(
      'parts stays as it is: Another program writes parts, and a backup has what it wrote in',
    );
    expect((await hr('GET', '/api/notes/whole/1')).status).toBe(404);
    expect((await hr('GET', path('Whole', 1))).status).toBe(404);
  });
});

describe('a history', () => {
  test('lists the versions of an entity, page by page', { tags: ['slow'] }, async () => {
    const from = await pause();
    await create(employee('History', 1, { nationalId: 'first' }));
    await hr('PUT', path('History', 1), { body: employee('History', 1, { grade: 2, nationalId: 'second' }) });
    const review = { department: 'History', employeeId: '000001', year: '2025', rating: 3 };
    await hr('POST', '/api/reviews', { body: review });
    await hr('DELETE', path('History', 1));
    const list = '/api/operations/history/employees/History/000001';
    const { items } = await itemsOf(hr, `${list}?from=${from}`);
    const states = items.map(({ isDeleted, values }) => (isDeleted ? 'none' : `${values.grade} ${values.nationalId}`));
    expect(states.filter((state, index) => index === 0 || state !== states[index - 1])).toEqual([
      'none',
      '1 first',
      '2 second',
      'none',
    ]);
    const paged = await itemsOf(hr, `${list}?from=${from}&top=1`);
    expect(paged.items.map(({ at }) => at)).toEqual(items.map(({ at }) => at));
    // The row is gone, so no rule on rows lets read what it was.
    expect((await itemsOf(ann, `${list}?from=${from}`)).items).toEqual(
      items.map(({ at }) => ({ at, isDeleted: true })),
    );
    expect((await hr('GET', `${list}?from=${from}&to=${from}`)).status).toBe(400);
    expect((await hr('GET', `${list}?from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z`)).status).toBe(400);
    expect((await product.as('guest')('GET', list)).status).toBe(403);
    expect((await product.as('operator')('GET', list)).status).toBe(403);
  });
});

test('the commands list the versions of an entity, and have deleted ones back', { tags: ['slow'] }, async () => {
  await create(employee('Commands', 1), employee('Commands', 2));
  await hr('PATCH', path('Commands', 1), { body: { grade: 2 } });
  const from = await pause();
  for (const number of [1, 2]) await hr('DELETE', path('Commands', number));
  await create(employee('Commands', 3, { email: 'e2@commands.example' }));
  const span = ['--from', from, '--to', await pause()];
  const listed = await product.run('history', 'employees', 'Commands', '000001');
  expect(listed.code).toBe(0);
  const time = '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z\\n';
  expect(listed.said).toMatch(
    new RegExp(`  absent\\n${time}  department: "Commands"\\n[^]*${time}  grade: 2\\n${time}  deleted\\n$`),
  );
  expect(await product.run('undelete', 'employees', ...span, '--by', 'hr@contoso.com', '--dry-run')).toEqual({
    code: 0,
    said: 'employees Commands/000001\nemployees Commands/000002\n2 would be restored, 0 exist and stay as they are, 0 failed.\n',
  });
  expect((await hr('GET', path('Commands', 1))).status).toBe(404);
  const done = await product.run('undelete', 'employees', ...span);
  expect(done.code).toBe(1);
  expect(done.said).toMatch(
    /^employees Commands\/000002: "email" is taken: .*\n1 restored, 0 exist and stay as they are, 1 failed\.\n$/,
  );
  expect((await hr('GET', path('Commands', 1))).body.grade).toBe(2);
  expect(await product.run('undelete', 'nothing', ...span)).toMatchObject({
    code: 1,
    said: expect.stringContaining('/api/operations/undelete/nothing returned 404'),
  });
});
