import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { buildFixtures } from '../../test/fixtures/build.ts';
import { useProduct } from '../../test/product.ts';
import { RESTORE_ACCOUNTS } from '../../test/storage.ts';
import { model } from './model.ts';

/** Everything of the groups, whose rows belong to users: an operator who is also the steward exports and imports them. */

const folder = fileURLToPath(new URL('../../dist/groups', import.meta.url));
const app = { model, folder, packs: undefined };
beforeAll(async () => {
  await buildFixtures(app, '../../examples/groups/functions.ts');
  // A bundle exports nothing, and the commands look for the model.
  const main = '{app.js,../../examples/groups/model.ts}';
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', main }));
});
const [first, ...further] = RESTORE_ACCOUNTS.groups;
const source = useProduct(import.meta.url, { app });
const restored = useProduct(first, { app, further });
const [ann, bob] = ['ann@contoso.com', 'bob@contoso.com'].map((email) => source.as('user', email)) as [
  ReturnType<typeof source.as>,
  ReturnType<typeof source.as>,
];

let groupId: string;
let expenseId: string;
let code: string;
beforeAll(async () => {
  groupId = (await ann('POST', '/api/createGroup', { body: { name: 'Flat' } })).body.groupId;
  code = (await ann('POST', '/api/invitations', { body: { groupId } })).body.code;
  expect((await bob('POST', '/api/join', { body: { code } })).status).toBe(200);
  const rent = { groupId, title: 'Rent', amount: 600 };
  ({ expenseId } = (await bob('POST', '/api/expenses', { body: rent })).body);
  const headers = { authorization: `Bearer ${await source.token('user', 'bob@contoso.com')}` };
  const path = `${source.url}/api/expenses/${groupId}/${expenseId}`;
  expect((await fetch(`${path}/receipt`, { method: 'PUT', headers, body: Buffer.from(PNG) })).status).toBe(200);
  // Final, so that nobody but the steward may change it.
  const final = await bob('PATCH', `/api/expenses/${groupId}/${expenseId}`, { body: { status: 'final' } });
  expect(final.status).toBe(200);
});

test('is imported with the members and payers of each row, its files, balances and rules', {
  tags: ['slow'],
}, async () => {
  const file = join(source.folder, 'groups.tar.gz');
  expect(await source.run('export', '--all', file)).toMatchObject({ code: 0 });
  expect(await restored.run('import', '--all', file)).toMatchObject({
    code: 0,
    said: expect.stringMatching(
      /^4 created, 1 stored, 0 unchanged, 0 rejected, 1 files, .*\n.*\nCompared 5 rows with the file: no difference\.\n$/,
    ),
  });
  const [annThere, bobThere, eve] = ['ann', 'bob', 'eve'].map((name) => restored.as('user', `${name}@contoso.com`)) as [
    ReturnType<typeof source.as>,
    ReturnType<typeof source.as>,
    ReturnType<typeof source.as>,
  ];
  const path = `/api/expenses/${groupId}/${expenseId}`;
  expect((await annThere('GET', path)).body).toEqual({
    ...(await ann('GET', path)).body,
    receipt: expect.objectContaining({ type: 'image/png', bytes: PNG.length }),
  });
  expect((await annThere('GET', '/api/groups')).body.items).toEqual([{ groupId, name: 'Flat' }]);
  expect((await bobThere('GET', `/api/members/${groupId}`)).body).toEqual(
    (await bob('GET', `/api/members/${groupId}`)).body,
  );
  const support = restored.as('support');
  const [payer] = (await support('GET', `/api/expenses/${groupId}`)).body.items;
  expect((await support('GET', `/api/expenses/totals/balances/${groupId}/${payer.paidBy}`)).body).toMatchObject({
    count: 1,
    sum: { amount: 600 },
  });
  expect((await eve('GET', path)).status).toBe(404);
  for (const { name } of model.list)
    expect((await restored.run('verify', name)).said, name).toMatch(/\d+ rows checked: 0 do not agree\.\n$/);
});

test('needs the operator and the steward: neither of them may import rows of users alone', {
  tags: ['slow'],
}, async () => {
  const rows = { actions: [{ put: { groupId, userId: 'eve', name: 'eve@contoso.com', role: 'owner' } }] };
  const path = '/api/operations/import/members';
  for (const role of ['operator', 'support', 'user'])
    expect((await source.as(role, 'eve@contoso.com')('POST', path, { body: rows })).status, role).toBe(403);
  // The steward creates rows of its own alone.
  const own = await source.as('support')('POST', '/api/members/batch', { body: rows });
  expect(own.body.results).toMatchObject([{ status: 403 }]);
  const both = source.as(['operator', 'support']);
  expect((await both('POST', path, { body: rows })).body.results).toMatchObject([{ status: 201 }]);
  expect((await both('POST', path, { body: { actions: [{ delete: {} }] } })).status).toBe(400);
  expect((await both('DELETE', `/api/members/${groupId}/eve`)).status).toBe(204);
});
