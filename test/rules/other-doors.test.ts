import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  between,
  type DeclaredEntity,
  defineEntity,
  defineModel,
  defineSeries,
  interPartitionIndex,
  oneOf,
  subject,
  total,
} from '../../lib/define.ts';
import { PNG } from '../../local/walk/png.ts';
import { openAccessApp, type Reply } from '../access-app.ts';
import { apiCalls } from '../kit/api.ts';

/** Rules at the doors that no random model has: files, series, references, archives, moves and totals. */

const mine = { role: 'user', where: { owner: subject() } } as const;

const albums = defineEntity('albums', {
  schema: z.object({
    place: z.enum(['home', 'attic']),
    albumId: z.string().regex(/^\d+$/),
    owner: z.string(),
    state: z.enum(['open', 'closed']),
    friend: z.string().optional(),
    copyOf: z.string().optional(),
  }),
  table: 'albums',
  key: { partition: '{place}', row: 'a_{albumId}' },
  attachments: { photo: { container: 'photos', maxBytes: 10_000, types: ['image/png'] } },
  indexes: {
    owner: interPartitionIndex({ table: 'albumsbyowner', partition: '{owner}', row: '{place}_{albumId}' }),
    albumId: interPartitionIndex({ table: 'albumsbyid', partition: '{albumId}', row: 'a', unique: true }),
    friend: interPartitionIndex({ table: 'albumsbyfriend', partition: '{friend}', row: '{place}_{albumId}' }),
  },
  totals: { perOwner: total({ table: 'albumtotals', partition: '{owner}', row: 's_{state}' }) },
  references: {
    friend: { to: (): DeclaredEntity => albums, by: 'albumId', onDelete: 'report' },
    copyOf: { to: (): DeclaredEntity => albums, by: 'albumId', onDelete: 'report', unseen: true },
  },
  archive: { table: 'oldalbums' },
  movable: ['place'],
  access: {
    read: ['root', { ...mine, lists: 'bounded' }],
    write: {
      create: ['root', mine],
      update: ['root', { role: 'user', where: { owner: subject(), place: 'home' } }],
      delete: ['root', { role: 'user', where: { owner: subject(), state: oneOf('open') } }],
    },
  },
});

const views = defineSeries('views', {
  schema: z.object({ owner: z.string(), day: z.iso.date() }),
  table: 'views',
  key: { partition: '{owner}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  span: { field: 'day', per: 'day' },
  access: { read: ['root', mine], write: ['root', mine] },
});

const labels = defineEntity('labels', {
  schema: z.object({ labelId: z.string(), owner: z.string(), rank: z.int32() }),
  table: 'labels',
  key: { partition: '{labelId}', row: 'label' },
  indexes: { all: interPartitionIndex({ table: 'labellist', partition: 'all', row: '{labelId}' }) },
  lookup: { index: 'all' },
  access: {
    read: ['root', { role: 'user', where: { owner: subject(), rank: between(1, 2) }, lists: 'filtered' }],
    write: ['root'],
  },
});

const model = defineModel({
  roles: ['user', 'root', 'operator'],
  operatorRole: 'operator',
  entities: [albums, views, labels],
});

let app: Awaited<ReturnType<typeof openAccessApp>>;
const root = { subject: 'root', roles: ['root'] };
const ann = { subject: 'ann', roles: ['user'] };

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
  for (const [place, albumId, owner, state] of [
    ['home', '1', 'ann', 'open'],
    ['home', '2', 'bob', 'open'],
    ['attic', '3', 'ann', 'open'],
    ['home', '4', 'ann', 'closed'],
  ]) {
    expect((await app.ask(root, 'POST', 'albums', { place, albumId, owner, state })).status).toBe(201);
    expect((await app.ask(root, 'PUT', `albums/${place}/${albumId}/photo`, PNG)).status).toBe(200);
  }
});

/** All that a response says, but the key. */
const said = ({ status, headers, text }: Reply) => ({
  status,
  text: text.replaceAll(/home\/\d/g, 'home/…'),
  transactions: /"(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1],
});

test.each([
  ['GET', 'photo', undefined],
  ['PUT', 'photo', PNG],
  ['DELETE', 'photo', undefined],
  ['POST', 'photo/grants', undefined],
  ['POST', 'photo/uploads', { type: 'image/png', bytes: PNG.length }],
  ['POST', 'archive', undefined],
  ['POST', 'move', { place: 'attic' }],
] as const)('%s …/%s of a hidden entity is that of an absent one', async (method, path, body) => {
  const ask = (id: string) => app.ask(ann, method, `albums/home/${id}/${path}`, body);
  const [hidden, absent] = [await ask('2'), await ask('9')];
  expect(said(hidden)).toEqual(said(absent));
  expect(hidden.status).toBe(404);
});

test('an upload is accepted only by a caller who may still change the entity', async () => {
  const album = { place: 'home', albumId: '5', owner: 'ann', state: 'open' };
  expect((await app.ask(ann, 'POST', 'albums', album)).status).toBe(201);
  const asked = { type: 'image/png', bytes: PNG.length };
  const { body } = await app.ask(ann, 'POST', 'albums/home/5/photo/uploads', asked);
  const headers = { ...body.headers, 'content-type': 'image/png' };
  expect((await fetch(body.url, { method: 'PUT', headers, body: PNG })).status).toBe(201);
  const accept = () => app.ask(ann, 'POST', `albums/home/5/photo/uploads/${body.uploadId}`);
  await app.ask(root, 'PATCH', 'albums/home/5', { owner: 'bob' });
  expect((await accept()).status).toBe(404);
  await app.ask(root, 'PATCH', 'albums/home/5', { owner: 'ann' });
  expect((await accept()).status).toBe(200);
});

test('a file, an archive and a move of a readable entity need the rule of the write', async () => {
  expect((await app.ask(ann, 'GET', 'albums/attic/3/photo')).status).toBe(200);
  for (const [method, path, body] of [
    ['PUT', 'albums/attic/3/photo', PNG],
    ['DELETE', 'albums/attic/3/photo', undefined],
    ['POST', 'albums/attic/3/photo/uploads', { type: 'image/png', bytes: PNG.length }],
    ['POST', 'albums/home/4/archive', undefined],
    ['POST', 'albums/attic/3/move', { place: 'home' }],
    ['POST', 'albums/home/1/move', { place: 'attic' }],
  ] as const)
    expect((await app.ask(ann, method, path, body)).status, `${method} ${path}`).toBe(403);
  expect((await app.ask(ann, 'POST', 'albums/home/1/archive')).status).toBe(202);
});

test('the files of a store of a caller follow the rules', async () => {
  const source = { engine: async () => app.engine, record: <Done>(_: string, write: () => Promise<Done>) => write() };
  const store = apiCalls.createStore<typeof model.entities>(model.list, source);
  const { photo } = store.as({ ...ann, claims: {} }).albums.files;
  expect((await photo.get({ place: 'attic', albumId: '3' }))?.blob.size).toBe(PNG.length);
  expect(await photo.put({ place: 'home', albumId: '4' }, PNG)).toMatchObject({ type: 'image/png' });
  const hidden = { place: 'home', albumId: '2' } as const;
  expect(await photo.get(hidden)).toBeUndefined();
  await expect(photo.put(hidden, PNG)).rejects.toMatchObject({ code: 'not-found' });
  await expect(photo.delete(hidden)).rejects.toMatchObject({ code: 'not-found' });
  await expect(photo.delete({ place: 'attic', albumId: '3' })).rejects.toMatchObject({ code: 'forbidden' });
  expect((await store.albums.files.photo.get(hidden))?.blob.size).toBe(PNG.length);
});

test('a caller can refer to readable entities only', async () => {
  const create = (albumId: string, friend: string) =>
    app.ask(ann, 'POST', 'albums', { place: 'home', albumId, owner: 'ann', state: 'open', friend });
  expect((await create('20', '4')).status).toBe(201);
  const [hidden, absent] = [await create('21', '2'), await create('21', '9')];
  // Before each answer, the app looks in the unique index; only for a hidden album, it reads a second row.
  expect(said(hidden)).toEqual(said(absent));
  expect(hidden.status).toBe(400);
});

test('a caller can refer to any entity by a reference that is declared unseen', async () => {
  const create = (albumId: string, copyOf: string) =>
    app.ask(ann, 'POST', 'albums', { place: 'home', albumId, owner: 'ann', state: 'open', copyOf });
  expect((await create('22', '2')).status).toBe(201);
  expect((await create('23', '9')).body).toMatchObject({ status: 400, field: 'copyOf' });
  const patch = (body: object) => app.ask(ann, 'PATCH', 'albums/home/4', body);
  expect((await patch({ copyOf: '2', friend: '1' })).status).toBe(200);
  // The other reference stays refused.
  expect((await patch({ copyOf: '2', friend: '2' })).body).toMatchObject({ status: 400, field: 'friend' });
});

test("a series is read and written by the caller's rule", async () => {
  expect((await app.ask(ann, 'PATCH', 'views/ann/2026-11-20', { counts: { 1: 5 } })).status).toBe(204);
  expect((await app.ask(root, 'PATCH', 'views/bob/2026-11-20', { counts: { 1: 5 } })).status).toBe(204);
  for (const [method, path, body] of [
    ['GET', 'views/bob/2026-11-20', undefined],
    ['PATCH', 'views/bob/2026-11-20', { counts: { 1: 6 } }],
    ['DELETE', 'views/bob/2026-11-20', undefined],
    ['POST', 'views/bob/2026-11-20/1/increment', { by: 1 }],
  ] as const)
    expect((await app.ask(ann, method, path, body)).status, `${method} ${path}`).toBe(404);
  expect((await app.ask(root, 'GET', 'views/bob/2026-11-20')).body.counts[1]).toBe(5);
  expect((await app.ask(ann, 'GET', 'views/ann/2026-11-20')).body.counts[1]).toBe(5);
});

test('totals are those of groups that the rule binds', async () => {
  expect((await app.ask(ann, 'GET', 'albums/totals/perOwner/ann/closed')).status).toBe(200);
  expect(await app.ask(ann, 'GET', 'albums/totals/perOwner/bob/open')).toMatchObject({
    status: 403,
    body: { accepted: 'root' },
  });
});

test('a whole list has the rows of the caller, with an ETag of these alone', async () => {
  const create = (labelId: string, owner: string, rank: number) =>
    app.ask(root, 'POST', 'labels', { labelId, owner, rank });
  for (const [labelId, owner, rank] of [
    ['a', 'ann', 0],
    ['b', 'ann', 1],
    ['c', 'ann', 2],
    ['d', 'ann', 3],
    ['e', 'bob', 1],
  ] as const)
    expect((await create(labelId, owner, rank)).status).toBe(201);
  const idsIn = (items: { labelId: string }[]) => items.map(({ labelId }) => labelId);
  const list = await app.ask(ann, 'GET', 'labels');
  expect(idsIn(list.body.items)).toEqual(['b', 'c']);
  const query = await app.ask(ann, 'POST', 'query', { reads: { all: { list: 'labels' } } });
  expect(idsIn(query.body.reads.all.items)).toEqual(['b', 'c']);
  expect((await create('f', 'bob', 1)).status).toBe(201);
  const etag = list.headers.get('etag') ?? '';
  expect((await app.ask(ann, 'GET', 'labels', undefined, { 'if-none-match': etag })).status).toBe(304);
  const bob = { subject: 'bob', roles: ['user'] };
  expect((await app.ask(bob, 'GET', 'labels', undefined, { 'if-none-match': etag })).status).toBe(200);
});

test('the status of an operation is for the caller who began it, and for those who may read the row', async () => {
  const [cid, dan] = ['cid', 'dan'].map((subject) => ({ subject, roles: ['user'] }));
  const album = { place: 'home', albumId: '21', owner: 'cid', state: 'open' };
  expect((await app.ask(root, 'POST', 'albums', album)).status).toBe(201);
  const key = { 'idempotency-key': 'k', 'content-length': '0' };
  const moved = await app.ask(cid ?? {}, 'POST', 'albums/home/21/archive', undefined, key);
  expect(moved.status).toBe(202);
  const of = (id: string) => `albums/home/21/archive/${id}`;
  const path = of(moved.body.operationId);
  const statusFor = async (caller: object) => (await app.ask(caller, 'GET', path)).status;
  expect(await statusFor(cid ?? {})).toBe(200);
  expect(await statusFor(root)).toBe(200);
  expect(await statusFor(dan ?? {})).toBe(404);
  const absent = await app.ask(dan ?? {}, 'GET', of('2026-11-28-00000000-0000-0000-0000-000000000000'));
  expect(said(await app.ask(dan ?? {}, 'GET', path))).toEqual(said(absent));
  // Neither the digest of the subject nor anything else of the requester is shown.
  expect(Object.keys((await app.ask(root, 'GET', path)).body).sort()).toEqual([
    'key',
    'operation',
    'operationId',
    'status',
  ]);
  // Somebody else's operation on a row of the caller, and a row that the caller may read later.
  const byRoot = await app.ask(root, 'POST', 'albums/home/1/move', { place: 'attic' });
  expect(byRoot.status).toBe(202);
  const ofMove = `albums/home/1/move/${byRoot.body.operationId}`;
  expect((await app.ask(ann, 'GET', ofMove)).status).toBe(200);
  expect((await app.ask(dan ?? {}, 'GET', ofMove)).status).toBe(404);
});
