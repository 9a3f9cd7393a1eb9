import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/define.ts';
import { PNG } from '../../local/walk/png.ts';
import { openAccessApp } from '../access-app.ts';
import { logins, model } from '../fixtures/model.ts';
import { model as relations } from '../fixtures/relations.ts';
import { engineCore } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { storageBlobs } from '../kit/storage.ts';

/** The routes with which an operator reads and imports what no other caller writes: archives, series, rows of all periods. */

const DAY_MS = 86_400_000;
const clock = { ahead: 0 };
const { ask, engine, storage } = await openAccessApp(import.meta.url, model, { now: () => Date.now() + clock.ahead });
const both = { roles: ['operator', 'hr'] };
const dayOf = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

/** All items of a scan, page by page. */
async function scan(name: string, top = 1): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let next: string | undefined = `operations/scan/${name}?top=${top}`; next; ) {
    const { status, body, headers } = await ask(both, 'GET', next);
    expect([next, status]).toEqual([next, 200]);
    expect(body.items.length).toBeLessThanOrEqual(top);
    items.push(...body.items);
    next = /<\/api\/([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  }
  return items;
}

test('lists each series once with all its counts, also one whose rows are several or in the tables of periods', async () => {
  const set = async (path: string, counts: object) =>
    expect((await ask(both, 'PATCH', path, { counts })).status).toBe(204);
  await set('messageyears/000001/2025', { 1: 5, 366: 7 });
  await set('messageyears/000001/2026', { 300: 1 });
  // A client with a grant may write the second row alone.
  const alone = { partitionKey: '000002', rowKey: '2026_2', EntityType: 'messageyears', Count200: 9 };
  await storage.table('messageyears').createEntity(alone);
  const years = await scan('messageyears');
  expect(years.map(({ employeeId, year }) => `${employeeId} ${year}`)).toEqual([
    '000001 2025',
    '000001 2026',
    '000002 2026',
  ]);
  const countsOf = ({ counts }: Record<string, unknown>) =>
    (counts as number[]).flatMap((count, index) => (count === 0 ? [] : [[index + 1, count]]));
  expect(years.map(countsOf)).toEqual([
    [
      [1, 5],
      [366, 7],
    ],
    [[300, 1]],
    [[200, 9]],
  ]);

  const months = [dayOf(200), dayOf(40), dayOf(0)];
  for (const [index, day] of months.entries()) await set(`doorminutes/Sales/${day}`, { [index]: 1, 1439: 2 });
  expect((await scan('doorminutes')).map(({ day }) => day)).toEqual(months);
});

test('lists the rows of all kept periods in the order of the periods, and none past retention', async () => {
  const employeeId = '000003';
  for (const days of [3, 0, 59, 3])
    expect(
      (await ask(both, 'POST', 'logins', { employeeId, at: `${dayOf(days)}T10:00:00Z`, succeeded: true })).status,
    ).toBe(201);
  const past = `logins${dayOf(70).replaceAll('-', '')}`;
  await storage.table(past).createTable();
  const [row] = await Array.fromAsync(storage.table(`logins${dayOf(59).replaceAll('-', '')}`).listEntities());
  await storage.table(past).createEntity({ ...row, partitionKey: employeeId, rowKey: 'past', EntityType: 'logins' });
  for (const top of [1, 3, 100])
    expect(
      (await scan('logins', top)).map(({ at }) => String(at).slice(0, 10)),
      `${top}`,
    ).toEqual([59, 3, 3, 0].map(dayOf));
});

const ANN = { department: 'Sales', employeeId: '000004', email: 'ann@contoso.com', firstName: 'Ann', lastName: 'Lee' };

test('imports archived rows with their children and their files', async () => {
  const put = (path: string, row: object, who: { readonly roles: string[] } = both) =>
    ask(who, 'POST', `operations/import/${path}`, { actions: [{ put: row }] });
  const archived = { ...ANN, nationalId: '000-1' };
  const review = {
    department: 'Sales',
    employeeId: ANN.employeeId,
    year: 2_001,
    rating: 1,
    comments: 'é'.repeat(50_000),
  };
  for (const [path, row] of [
    ['formeremployees', archived],
    ['formeremployees/reviews', review],
  ] as const) {
    // A child needs its parent.
    if (row === archived)
      expect((await put('formeremployees/reviews', review)).body.results).toMatchObject([{ status: 400 }]);
    for (const roles of [['operator'], ['hr'], ['reader', 'operator']])
      expect((await put(path, row, { roles })).status, `${roles}`).toBe(403);
    expect((await put(path, row)).body.results, path).toMatchObject([{ status: 201 }]);
    expect((await put(path, row)).body.results).toMatchObject([{ status: 304 }]);
    expect(await scan(path)).toEqual([row]);
  }
  expect((await put('formeremployees', { ...archived, age: 'old' })).body.results).toMatchObject([{ status: 400 }]);
  expect((await put('employees', ANN)).status).toBe(404);
  for (const actions of [[{ delete: ANN }], [{ create: ANN }], []])
    expect((await ask(both, 'POST', 'operations/import/formeremployees', { actions })).status).toBe(400);
  const whole = `formeremployees/Sales/${ANN.employeeId}`;
  expect((await ask(both, 'GET', `${whole}?include=reviews`)).body).toMatchObject({
    ...archived,
    reviews: [{ rating: 1 }],
  });
  // Its own unique values stay free.
  expect((await ask(both, 'POST', 'employees', ANN)).status).toBe(201);

  const file = `operations/files/${whole}/photo`;
  expect((await ask(both, 'GET', file)).status).toBe(404);
  for (const roles of [['operator'], ['hr']]) expect((await ask({ roles }, 'PUT', file, PNG)).status).toBe(403);
  expect((await ask(both, 'PUT', file, Buffer.from('no picture'))).status).toBe(415);
  expect((await ask(both, 'PUT', file, PNG)).body).toMatchObject({ type: 'image/png', bytes: PNG.length });
  const got = await ask(both, 'GET', file);
  expect([got.status, got.headers.get('content-type'), got.headers.get('content-disposition')]).toEqual([
    200,
    'image/png',
    'attachment',
  ]);
  const known = { 'if-none-match': got.headers.get('etag') ?? '' };
  expect((await ask(both, 'GET', file, undefined, known)).status).toBe(304);
  for (const roles of [['operator'], ['hr']]) expect((await ask({ roles }, 'GET', file)).status).toBe(403);
  // A row that is imported again keeps its file.
  await put('formeremployees', { ...archived, lastName: 'Low' });
  expect((await ask(both, 'GET', whole)).body).toMatchObject({ lastName: 'Low', photo: { type: 'image/png' } });
});

test('imports archived rows with the computed values that they had when they were archived', async () => {
  const others = await openAccessApp(import.meta.url, relations);
  const row = { team: '1', memberId: '2', mentor: '3', teamTitle: 'Old', lead: '9', initials: 'as it was' };
  const put = { actions: [{ put: row }] };
  const imported = await others.ask({ roles: ['reader'] }, 'POST', 'operations/import/formermembers', put);
  expect(imported.body.results).toMatchObject([{ status: 201 }]);
  expect((await others.ask({ roles: ['reader'] }, 'GET', 'formermembers/1/2')).body).toEqual(row);
});

test('imports nothing for an operator whose roles may write some rows only', async () => {
  const access = {
    read: ['clerk', 'chief'],
    write: [{ role: 'clerk', where: { shop: 'a' } }, 'chief'],
  } as const;
  const tills = defineEntity('tills', {
    ...{ table: 'tills', key: { partition: '{shop}', row: '{id}' }, archive: { table: 'formertills' } },
    schema: z.object({ shop: z.string(), id: z.string() }),
    access,
  });
  const receipts = defineEntity('receipts', {
    ...{ table: 'receipts', key: { partition: '{shop}', row: '{at}' } },
    schema: z.object({ shop: z.string(), at: z.iso.datetime() }),
    period: { per: 'day', field: 'at', keep: 60, archiveTo: 'blob' },
    access,
  });
  const roles = ['clerk', 'chief', 'operator'];
  const others = await openAccessApp(
    import.meta.url,
    defineModel({ roles, operatorRole: 'operator', entities: [tills, receipts] }),
  );
  const put = { actions: [{ put: { shop: 'a', id: '1' } }] };
  for (const [role, status] of [
    ['clerk', 403],
    ['chief', 200],
  ] as const) {
    const sent = others.ask({ roles: [role, 'operator'] }, 'POST', 'operations/import/formertills', put);
    expect((await sent).status, role).toBe(status);
    const lines = { name: `receipts/${dayOf(1)}/1.ndjson.gz`, after: 0, lines: ['{}'], isLast: false };
    const added = others.ask({ roles: [role, 'operator'] }, 'POST', 'operations/period-archives/lines', lines);
    expect((await added).status, `${role}, lines`).toBe(status);
  }
});

test('imports the lines of an archive of a period in parts, once each, and verifies it', async () => {
  const day = dayOf(2);
  for (const at of ['10', '11', '12'])
    expect(
      (await ask(both, 'POST', 'logins', { employeeId: '000005', at: `${day}T${at}:00:00Z`, succeeded: true })).status,
    ).toBe(201);
  const later = engineCore.createEngine(storage, { now: () => Date.now() + 62 * DAY_MS });
  await featureUpkeep.rollPeriods(later, logins);
  const path = 'operations/period-archives';
  const archives = (await ask(both, 'GET', path)).body.items;
  const { hash } = archives.find(({ name }: { name: string }) => name === `logins/${day}/1.ndjson.gz`);
  const stored = await featureUpkeep.listPeriodArchives(storage, 'logins');
  const blob = stored.find(({ period }) => period === day);
  const zipped = blob && (await storageBlobs.readBlob(storage, blob));
  const lines = gunzipSync(zipped ?? Buffer.alloc(0))
    .toString()
    .trim()
    .split('\n');
  expect(lines).toHaveLength(3);

  const name = `logins/${day}/7.ndjson.gz`;
  const send = async (body: object, who: { readonly roles: string[] } = both) =>
    ask(who, 'POST', `${path}/lines`, { name, ...body });
  const first = { after: 0, lines: lines.slice(0, 2), isLast: false };
  for (const roles of [['hr'], ['reader']]) expect((await send(first, { roles })).status).toBe(403);
  expect((await send(first)).body).toMatchObject({ rows: 2, state: 'partial' });
  // A repetition, and lines that do not follow, change nothing.
  for (const other of [first, { ...first, after: 1 }, { ...first, after: 3, isLast: true }])
    expect((await send(other)).body).toMatchObject({ rows: 2, state: 'partial' });
  const last = { after: 2, lines: lines.slice(2), isLast: true };
  expect((await send(last)).body).toMatchObject({ rows: 3, state: 'verified', hash });
  expect((await send(last)).body).toMatchObject({ rows: 3, state: 'verified', hash });
  // The timer leaves it as it is.
  await featureUpkeep.rollPeriods(engine, logins);
  expect((await ask(both, 'GET', path)).body.items).toContainEqual(
    expect.objectContaining({ name, state: 'verified', rows: 3 }),
  );

  for (const wrong of [{ name: 'logins/7.ndjson.gz' }, { lines: ['[]'] }, { lines: ['{}\n{}'] }, { after: -1 }])
    expect((await send({ ...first, ...wrong })).status, JSON.stringify(wrong)).toBe(400);
  for (const unknown of ['employees', 'doorminutes', 'nothing'])
    expect((await send({ ...first, name: `${unknown}/${day}/1.ndjson.gz` })).status).toBe(404);
});
