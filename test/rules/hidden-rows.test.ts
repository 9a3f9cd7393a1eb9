import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, oneOf, subject } from '../../lib/define.ts';
import { openAccessApp, type Reply } from '../access-app.ts';

/** What a caller learns of rows outside of reach: nothing. */

const folders = defineEntity('folders', {
  schema: z.object({ team: z.string(), folderId: z.string().regex(/^\d+$/), owner: z.string(), label: z.string() }),
  table: 'folders',
  key: { partition: '{team}', row: 'f_{folderId}' },
  indexes: {
    label: interPartitionIndex({
      table: 'foldersbylabel',
      partition: '{label}',
      row: 'l',
      unique: true,
      copies: 'keys',
    }),
  },
  access: {
    read: ['root', { role: 'user', where: { owner: subject() }, lists: 'filtered' }],
    write: ['root', { role: 'user', where: { owner: subject() } }],
  },
});

const files = defineEntity('files', {
  schema: z.object({
    team: z.string(),
    folderId: z.string().regex(/^\d+$/),
    fileId: z.string().regex(/^\d+$/),
    author: z.string(),
  }),
  table: 'folders',
  key: { partition: '{team}', row: 'f_{folderId}_{fileId}' },
  childOf: folders,
  access: {
    read: ['root', { role: 'user', where: { team: 'open', author: subject() } }],
    write: ['root', { role: 'user', where: { author: subject() } }],
  },
});

/** An entity that is one row: without rules, a write of all of them needs no read. */
const pages = defineEntity('pages', {
  schema: z.object({ pageId: z.string(), owner: z.string(), text: z.string() }),
  table: 'pages',
  key: { partition: '{pageId}', row: 'page' },
  archive: { table: 'formerpages' },
  access: {
    read: ['root', { role: 'user', where: { owner: subject() }, lists: 'none' }],
    write: ['root', { role: 'user', where: { owner: subject() } }],
  },
});

const visits = defineEntity('visits', {
  schema: z.object({ place: z.string(), visitId: z.string(), owner: z.string() }),
  table: 'visits',
  key: { partition: '{place}', row: '{visitId}' },
  indexes: { owner: interPartitionIndex({ table: 'visitsbyowner', partition: '{owner}', row: '{place}_{visitId}' }) },
  access: {
    read: [
      'root',
      { role: 'user', where: { owner: subject() } },
      { role: 'desk', where: { place: 'oslo' } },
      { role: 'chief', where: { place: oneOf('oslo', 'bergen') } },
    ],
    write: ['root'],
  },
});

const model = defineModel({
  roles: ['user', 'desk', 'chief', 'root', 'operator'],
  operatorRole: 'operator',
  entities: [folders, files, pages, visits],
});

let app: Awaited<ReturnType<typeof openAccessApp>>;
const root = { subject: 'root', roles: ['root'] };
const ann = { subject: 'ann', roles: ['user'] };

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
  for (const [folderId, owner] of [
    ['1', 'ann'],
    ['2', 'bob'],
  ]) {
    expect((await app.ask(root, 'POST', 'folders', { team: 't', folderId, owner, label: `l${folderId}` })).status).toBe(
      201,
    );
    const file = { team: 't', folderId, fileId: '1', author: 'bob' };
    expect((await app.ask(root, 'POST', 'files', file)).status).toBe(201);
  }
});

/** All that a response says, but the id of the folder. */
const said = ({ status, headers, text }: Reply, id: string) => ({
  status,
  text: text.replaceAll(`t/${id}`, 't/…'),
  transactions: /"(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1],
});

test('a put does not tell a hidden row from an absent one if the caller may create neither', async () => {
  const putBy = (folderId: string, headers = {}) =>
    app.ask(ann, 'PUT', `folders/t/${folderId}`, { team: 't', folderId, owner: 'bob', label: 'x' }, headers);
  expect(said(await putBy('2'), '2')).toEqual(said(await putBy('9'), '9'));
  expect((await putBy('2')).status).toBe(403);
  const condition = { 'if-match': '"x"' };
  expect(said(await putBy('2', condition), '2')).toEqual(said(await putBy('9', condition), '9'));
  const invalid = (folderId: string) => app.ask(ann, 'PUT', `folders/t/${folderId}`, { owner: 5 });
  expect(said(await invalid('2'), '2')).toEqual(said(await invalid('9'), '9'));
});

test('a put on a hidden row is a conflict for a caller who may create the row, as a create is', async () => {
  const row = { team: 't', folderId: '2', owner: 'ann', label: 'x' };
  const put = await app.ask(ann, 'PUT', 'folders/t/2', row);
  const created = await app.ask(ann, 'POST', 'folders', row);
  expect([put.status, put.body]).toEqual([409, created.body]);
  expect((await app.ask(root, 'GET', 'folders/t/2')).body.owner).toBe('bob');
});

test('an include is empty if the caller reaches no child', async () => {
  const { status, body } = await app.ask(ann, 'GET', 'folders/t/1?include=files');
  expect([status, body.files]).toEqual([200, []]);
});

test('a hidden row has the response, the cost and the explanation of an absent one', async () => {
  const answers = async (id: string) => {
    const one = [
      await app.ask(ann, 'GET', `folders/by/label/l${id}`),
      await app.ask(ann, 'GET', `folders/t/${id}?include=files`),
      await app.ask(ann, 'PATCH', `folders/t/${id}`, { label: 'y' }),
      await app.ask(ann, 'DELETE', `folders/t/${id}`),
    ].map((reply) => said(reply, id));
    const reads = {
      by: { by: 'label', entity: 'folders', values: { label: `l${id}` } },
      get: { get: 'folders', key: { team: 't', folderId: id }, include: ['files'] },
    };
    const several = [
      await app.ask(ann, 'POST', 'query', { reads }),
      await app.ask(ann, 'POST', 'query?explain=true', { reads }),
    ].map((reply) => said(reply, id));
    return JSON.stringify([...one, ...several]).replaceAll(`l${id}`, 'l…');
  };
  expect(await answers('2')).toBe(await answers('9'));
  expect(await answers('1')).toContain('"transactions":"2"');
});

test('what is not there costs what it cost for a caller whom no rule limits', async () => {
  for (const [method, path, body] of [
    ['PATCH', 'pages/none', { text: 'y' }],
    ['DELETE', 'pages/none'],
    ['POST', 'pages/none/archive'],
  ] as const) {
    const { status, transactions } = said(await app.ask(root, method, path, body), 'none');
    expect({ method, path, status, transactions }).toEqual({ method, path, status: 404, transactions: '1' });
  }
});

test('a child of a hidden parent is rejected like one of an absent parent', async () => {
  const create = (folderId: string) =>
    app.ask(ann, 'POST', 'files', { team: 't', folderId, fileId: '5', author: 'ann' });
  expect((await create('1')).status).toBe(201);
  const [hidden, absent] = [await create('2'), await create('9')];
  expect([hidden.status, hidden.body]).toEqual([400, absent.body]);
});

test('a put of a hidden child whose parent is missing or hidden is rejected like that of an absent child', async () => {
  const put = (path: string) => {
    const [team, folderId, fileId] = path.split('/');
    return app.ask(ann, 'PUT', `files/${path}`, { team, folderId, fileId, author: 'ann' });
  };
  const [hidden, absent, orphan] = [await put('t/2/1'), await put('t/2/7'), await put('t/9/1')];
  expect(said(hidden, '2')).toEqual(said(absent, '2'));
  expect([hidden.status, hidden.body]).toEqual([400, orphan.body]);
  // Under a parent that the caller reaches, a create tells as much.
  expect([await put('t/1/1'), await put('t/1/7')].map(({ status }) => status)).toEqual([409, 201]);
});

test('a write that would need no read follows the rules too', async () => {
  const page = { pageId: '1', owner: 'bob', text: 'x' };
  expect((await app.ask(root, 'POST', 'pages', page)).status).toBe(201);
  const mine = { ...page, owner: 'ann', text: 'y' };
  const minimal = { prefer: 'return=minimal' };
  const statuses = [
    await app.ask(ann, 'PUT', 'pages/1', mine),
    await app.ask(ann, 'PATCH', 'pages/1', { text: 'y' }, minimal),
    await app.ask(ann, 'DELETE', 'pages/1'),
    await app.ask(ann, 'DELETE', 'pages/1', undefined, { 'if-match': '*' }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([409, 404, 404, 404]);
  const actions = [{ put: mine }, { patch: { pageId: '1', text: 'y' } }, { delete: { pageId: '1' } }];
  for (const action of actions) {
    const batch = await app.ask(ann, 'POST', 'pages/batch', { actions: [action] });
    expect([404, 409]).toContain(batch.body.results[0].status);
    expect([404, 409]).toContain(
      (await app.ask(ann, 'POST', 'pages/batch', { actions: [action], atomic: true })).status,
    );
  }
  expect((await app.ask(root, 'GET', 'pages/1')).body).toEqual(page);
});

test('an include has the children that the caller reaches alone', async () => {
  const folder = { team: 'open', folderId: '1', owner: 'ann', label: 'open' };
  expect((await app.ask(root, 'POST', 'folders', folder)).status).toBe(201);
  for (const [fileId, author] of [
    ['1', 'ann'],
    ['2', 'bob'],
  ])
    await app.ask(root, 'POST', 'files', { team: 'open', folderId: '1', fileId, author });
  const { body } = await app.ask(ann, 'GET', 'folders/open/1?include=files');
  expect(body.files.map(({ author }: { author: string }) => author)).toEqual(['ann']);
});

test('a caller lists without a partition key what the caller reaches by the key, or by an index', async () => {
  for (const [place, owner] of [
    ['oslo', 'ann'],
    ['oslo', 'bob'],
    ['bergen', 'ann'],
    ['paris', 'ann'],
  ])
    expect((await app.ask(root, 'POST', 'visits', { place, visitId: `of ${owner}`, owner })).status).toBe(201);
  const listBy = async (...roles: string[]) => {
    const { status, body } = await app.ask({ subject: 'ann', roles }, 'GET', 'visits');
    return body.items?.map(({ place, owner }: Record<string, string>) => `${place} ${owner}`) ?? status;
  };
  expect(await listBy('desk')).toEqual(['oslo ann', 'oslo bob']);
  expect(await listBy('user')).toEqual(['bergen ann', 'oslo ann', 'paris ann']);
  expect(await listBy('desk', 'chief', 'user')).toEqual(['bergen ann', 'oslo ann', 'oslo bob']);
  expect(await listBy('root')).toBe(403);
});
