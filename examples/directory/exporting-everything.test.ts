import { dirname, join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { readTar } from '../../local/cli/everything/tar-file.ts';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { loadSamples } from '../../local/packs/load-samples.ts';
import { PNG } from '../../local/walk/png.ts';
import { model } from '../../model/model.ts';
import { engineCore } from '../../test/kit/engine.ts';
import { featureUpkeep } from '../../test/kit/features.ts';
import { PATIENCE_MS } from '../../test/patience.ts';
import { eventually, useProduct } from '../../test/product.ts';
import { RESTORE_ACCOUNTS } from '../../test/storage.ts';

/** Everything of the packs, exported from one account and imported into three. */

const [first, ...further] = RESTORE_ACCOUNTS.directory;
const source = useProduct(import.meta.url, { app: deployedApp });
const restored = useProduct(first, { app: deployedApp, further });
const roles = ['hr', 'operator', 'reader'];
const ask = source.as(roles);

const [logins] = model.list.filter(({ name }) => name === 'logins');
const DAY_MS = 86_400_000;
/** Texts that spell what the engine itself writes, and other odd ones. */
const ODD = ['{"sealed":"v1.x"}', '{"base64":"AA=="}', '$files', 'null', 'é\u2028😀"\\', ' ', '\u{10ffff}'];

async function put(path: string, bytes: Uint8Array<ArrayBuffer>) {
  const headers = { authorization: `Bearer ${await source.token(roles)}` };
  const { status } = await fetch(`${source.url}/api/${path}`, { method: 'PUT', headers, body: bytes });
  expect(status).toBe(200);
}

async function create(path: string, body: object) {
  expect(await ask('POST', `/api/${path}`, { body })).toMatchObject({ status: 201 });
}

beforeAll(async () => {
  await loadSamples({ folder: dirname(source.keyFile), url: source.url, token: await source.token(roles) });
  const now = Date.now();
  const login = { employeeId: '000123', succeeded: true };
  await create('logins', { ...login, at: new Date(now).toISOString() });
  // Archives the period of today, as the timer will.
  const later = engineCore.createEngine(source.storage, { now: () => now + 63 * DAY_MS });
  if (logins) await featureUpkeep.rollPeriods(later, logins);
  for (const days of [0, 1, 30, 59])
    await create('logins', { ...login, at: new Date(now - days * DAY_MS).toISOString() });

  const employee = { department: 'Odd', firstName: 'Ann', lastName: 'Lee' };
  for (const [index, text] of ODD.entries()) {
    const employeeId = `90000${index}`;
    await create('employees', {
      ...employee,
      employeeId,
      email: `odd${index}@contoso.com`,
      lastName: text,
      nationalId: text,
    });
    await create('reviews', { department: 'Odd', employeeId, year: 2_001, rating: 1, comments: text.repeat(20_000) });
  }
  // The department is before its manager in the order of no export.
  await create('departments', { department: 'Odd', managerId: '900000', budgetCode: '' });
  await put('employees/Odd/900001/photo', Buffer.concat([PNG, Buffer.alloc(100_000)]));
  // Archived, with a child and a photo; and there again, under the same key.
  await put('employees/Odd/900002/photo', Buffer.from(PNG));
  const { headers } = await ask('POST', '/api/employees/Odd/900002/archive');
  await eventually(
    () => ask('GET', headers.get('location') ?? ''),
    ({ body }) => body.status === 'succeeded',
  );
  await create('employees', { ...employee, employeeId: '900002', email: 'again@contoso.com' });
  const counts = (values: object) => ({ body: { counts: values } });
  for (const [path, body] of [
    ['messagehours/000123/2026-11-20', counts({ 0: 1, 23: 2_147_483_647 })],
    ['messagehours/000123/2026-11-21', counts({ 5: 0 })],
    ['messageyears/000123/2026', counts({ 1: 7, 366: 9 })],
    ['messageyears/000124/2026', counts({ 200: 3 })],
    ['doorminutes/Odd/2026-11-20', counts(Object.fromEntries(Array.from({ length: 1_440 }, (_, at) => [at, at])))],
  ] as const)
    expect((await ask('PATCH', `/api/${path}`, body)).status).toBe(204);
});

/** The lines with rows by the kind, in one order, and the hashes of files. */
async function contentOf(file: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>();
  for await (const { name, bytes } of readTar(file)) {
    const [, folder = ''] = /^(?:rows|period-archives)\/(.+)\/\d+\.ndjson$/.exec(name) ?? [];
    // The name of the member of a file is its number.
    const lines = Buffer.from(bytes)
      .toString()
      .replaceAll(/"file":"[^"]*"/g, '"file":"…"')
      .split('\n');
    if (folder !== '') found.set(folder, [...(found.get(folder) ?? []), ...lines].sort());
  }
  return found;
}

test('arrives in three accounts without a difference, and everything that follows from the rows agrees with them', {
  tags: ['slow'],
}, async () => {
  const file = join(source.folder, 'everything.tar.gz');
  expect(await source.run('export', '--all', file)).toMatchObject({
    code: 0,
    said: expect.stringMatching(/^Exported \d+ rows and 4 files of 19 kinds to [^\n]+\nNot exported: ETags [^\n]+\n$/),
  });
  expect(await restored.run('import', '--all', file)).toMatchObject({
    code: 0,
    said: expect.stringMatching(/ 0 rejected, 4 files, .*\n.*\nCompared \d+ rows with the file: no difference\.\n$/),
  });
  const back = join(source.folder, 'back.tar');
  expect(await restored.run('export', '--all', back)).toMatchObject({ code: 0 });
  const [before, after] = await Promise.all([file, back].map(contentOf));
  expect([...(before?.keys() ?? [])]).toEqual(
    expect.arrayContaining([
      ...['employees', 'formeremployees', 'formeremployees/reviews', 'logins', 'messageyears', 'doorminutes'],
      expect.stringMatching(/^logins\/\d{4}-\d\d-\d\d\/1\.ndjson\.gz$/),
    ]),
  );
  expect(after).toEqual(before);

  const there = restored.as(roles);
  for (const [index, text] of ODD.entries()) {
    const path = `/api/employees/Odd/90000${index}`;
    if (index !== 2) expect((await there('GET', path)).body).toMatchObject({ lastName: text, nationalId: text });
    const archived = `/api/formeremployees/Odd/90000${index}?include=reviews&select=reviews.comments,lastName`;
    if (index === 2)
      expect((await there('GET', archived)).body).toMatchObject({
        lastName: text,
        reviews: [{ comments: text.repeat(20_000) }],
      });
  }
  expect((await there('GET', '/api/departments/Odd')).body).toMatchObject({
    managerName: `Ann ${ODD[0]}`,
    employeeCount: ODD.length,
    budgetCode: '',
  });
  const photo = await fetch(`${restored.url}/api/operations/files/formeremployees/Odd/900002/photo`, {
    headers: { authorization: `Bearer ${await restored.token(roles)}` },
  });
  expect([photo.headers.get('content-type'), Buffer.from(await photo.bytes()).equals(PNG)]).toEqual([
    'image/png',
    true,
  ]);
  const accounts = restored.storage.accounts?.list ?? [];
  expect(accounts).toHaveLength(3);
  const tables = [...new Set(model.list.filter(({ period }) => !period).map(({ table }) => table))];
  for (const account of accounts) {
    const rows = await Promise.all(tables.map((table) => Array.fromAsync(account.table(table).listEntities())));
    expect(rows.flat().length).toBeGreaterThan(0);
  }

  for (const { name } of model.list.filter((entity) => !entity.period))
    await vi.waitFor(
      async () => {
        expect(await restored.run('verify', name), name).toMatchObject({
          code: 0,
          said: expect.stringMatching(/\d+ rows checked: 0 do not agree/),
        });
      },
      { timeout: PATIENCE_MS, interval: 500 },
    );
  const again = await restored.run('import', '--all', file);
  expect(again).toMatchObject({ code: 0, said: expect.stringMatching(/^0 created, .* 0 rejected, 0 files, /) });
});
