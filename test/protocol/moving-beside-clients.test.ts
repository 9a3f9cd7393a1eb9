import { createHttpHeaders, createPipelineRequest } from '@azure/core-rest-pipeline';
import type { HttpMethod } from '@azure/functions';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { compareStored } from '../../local/walk/compare-stored.ts';
import { createQueueWorker, parsed } from '../../local/walk/queue-worker.ts';
import { receivePath } from '../hosted-path.ts';
import { engineConsume, engineCore, engineReconcile, engineWrite } from '../kit/engine.ts';
import { httpDoor } from '../kit/http.ts';
import { operationsModel, operationsMove } from '../kit/operations.ts';
import { storageQueues, storageSlots, storageTables } from '../kit/storage.ts';
import { testApp, testInvocation, testRequest } from '../lib/http/request.ts';
import { QUICK } from '../lib/operations/storage-to-move.ts';
import { createAccounts, NAMES, type Several } from '../lib/storage/several-accounts.ts';
import { countTurns } from '../patient-clock.ts';
import { sampleItems } from '../points.ts';
import { log } from '../silent-log.ts';

countTurns();

/** What clients hold across a move: continuations, ETags, grants to upload, a file that they import, and messages that wait for an operator. */

const SHELVES = ['north', 'south', 'east'] as const;
const papers = defineEntity('papers', {
  schema: z.object({ shelf: z.enum(SHELVES), paperId: z.string(), title: z.string(), pages: z.int32().default(1) }),
  table: 'papers',
  key: { partition: '{shelf}', row: '{paperId}' },
  indexes: { title: interPartitionIndex({ table: 'papersbytitle', partition: '{title}', row: '{shelf}_{paperId}' }) },
  attachments: { scan: { container: 'scans', maxBytes: 1_000, types: ['image/png'] } },
  access: { read: ['operator'], write: ['operator'] },
});
const model = defineModel({ roles: ['operator'], operatorRole: 'operator', entities: [papers] });
const [entity] = model.list;
if (!entity) throw new Error('The model has no entity.');
const routes = httpDoor.createRoutes(model);

const TITLE = 'Atlas';
const IDS = Array.from({ length: 10 }, (_, index) => `p${index}`);
const SLOTS_IN_USE = [...SHELVES, TITLE].map(storageSlots.slotOf);
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex');

async function openApp() {
  const { open: openAll, memories } = createAccounts();
  const open = openAll as () => Several;
  const given = { timing: QUICK, resources: operationsModel.resourcesOf(model.list, Date.now(), model) };
  await storageTables.provision(open(), given.resources);
  /** Sends a request to a process that reads the map when it begins: the movers of these tests do not wait until a lease has ended. */
  async function ask(method: HttpMethod, path: string, body?: unknown, more: Readonly<Record<string, string>> = {}) {
    const authenticate = async () => ({ subject: 'ann', roles: ['operator'], claims: {} });
    const app = testApp(import.meta.url, {
      engine: engineCore.createEngine(open()),
      entities: model.list,
      authenticate,
    });
    const received = receivePath('local', path, more);
    const request = testRequest({
      method,
      path,
      params: { path: received.path },
      headers: { 'content-type': 'application/json', authorization: 'Bearer x', ...received.headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const reply = await httpDoor.createApiHandler(() => app, routes)(request, testInvocation().invocation);
    const bytes = Buffer.from(
      await new Response(reply.body as ConstructorParameters<typeof Response>[0]).arrayBuffer(),
    );
    const headers = new Headers(reply.headers as ConstructorParameters<typeof Headers>[0]);
    const isJson = /json/.test(headers.get('content-type') ?? '') && bytes.length > 0;
    return { status: reply.status, headers, bytes, body: isJson ? JSON.parse(bytes.toString()) : undefined };
  }
  /** Moves all partitions of the test to an account, and the slots of files. */
  const move = (to: string, ofFiles: readonly string[] = []) =>
    operationsMove.moveSlots(open(), [{ slots: [...new Set([...SLOTS_IN_USE, ...ofFiles])], to }], given);
  const put = async () => {
    const all = SHELVES.flatMap((shelf) => IDS.map((paperId) => ({ shelf, paperId, title: TITLE })));
    for (const some of Object.values(Object.groupBy(all, ({ shelf }) => shelf)))
      expect((await ask('POST', 'papers/batch', { actions: some?.map((each) => ({ put: each })) })).status).toBe(200);
    return all.map(({ shelf, paperId }) => `${shelf}/${paperId}`);
  };
  return { open, ask, move, put, given, memories };
}

const LISTS: readonly (readonly [path: string, shelves: number])[] = [
  ['papers/north', 1],
  ['papers/by/title/Atlas', 3],
  ['operations/scan/papers', 3],
];

test.each(sampleItems(LISTS, 'list beside a move'))(
  'a list that begins before a move goes on after it: %s',
  { tags: ['slow'] },
  async (path, shelves) => {
    const { ask, move, put } = await openApp();
    const all = await put();
    const found: string[] = [];
    let next: string | undefined = `${path}?top=4`;
    for (let page = 0; next; page += 1) {
      const { body, headers, status } = await ask('GET', next);
      expect(status).toBe(200);
      for (const { shelf, paperId } of body.items) found.push(`${shelf}/${paperId}`);
      next = /<\/api\/([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
      if (page < 3) await move(NAMES[2 - page] ?? '');
    }
    expect(found.sort()).toEqual(all.slice(0, shelves * IDS.length).sort());
  },
);

test('an ETag of before a move is rejected, and that of the same entity after it is accepted', {
  tags: ['slow'],
}, async () => {
  const { ask, move, put } = await openApp();
  await put();
  await move('first');
  const path = 'papers/north/p1';
  const { headers } = await ask('GET', path);
  for (const to of ['second', 'third']) {
    await move(to);
    const before = { 'if-match': headers.get('etag') ?? '' };
    expect((await ask('PATCH', path, { pages: 7 }, before)).status).toBe(412);
    const { body, headers: now } = await ask('GET', path);
    expect(body.pages).toBe(1);
    expect((await ask('PATCH', path, { pages: 1 }, { 'if-match': now.get('etag') ?? '' })).status).toBe(200);
  }
});

test('a client uploads with a grant of before, during and after a move, and the file is attached once', {
  tags: ['slow'],
}, async () => {
  const { open, ask, move, put, given, memories } = await openApp();
  await put();
  const grant = async (id: string) => {
    const reply = await ask('POST', `papers/north/${id}/scan/uploads`, { type: 'image/png', bytes: PNG.length });
    expect(reply.status).toBe(201);
    return { id, ...reply.body };
  };
  type Granted = Awaited<ReturnType<typeof grant>>;
  const upload = async ({ url, headers }: Granted) => {
    const memory = memories.find((_, at) => new URL(url).pathname.startsWith(`/${NAMES[at]}/`));
    const request = { url, method: 'PUT', headers: createHttpHeaders(headers), body: PNG } as const;
    return memory?.httpClient.sendRequest(createPipelineRequest({ ...request, allowInsecureConnection: true }));
  };
  const accept = ({ id, uploadId }: Granted) => ask('POST', `papers/north/${id}/scan/uploads/${uploadId}`);
  const expectAttached = async (granted: Granted) => {
    expect((await accept(granted)).status, granted.id).toBe(200);
    expect((await ask('GET', `papers/north/${granted.id}/scan`)).bytes).toEqual(PNG);
  };
  const granted: Granted[] = [];
  for (const id of IDS.slice(0, 5)) granted.push(await grant(id));
  const [uploaded, late, aborted, cleaned, twice] = granted;
  // The name of a blob begins with its slot, after the account and the container.
  const slots = granted.map(({ url }) => new URL(url).pathname.split('/')[3] ?? '');
  await move('first', slots);
  await upload(uploaded);
  await upload(twice);
  expect((await accept(twice)).status).toBe(200);
  // Ends before the slots are handed over.
  const interruption = new AbortController();
  const interrupted = operationsMove.moveSlots(open(), [{ slots: [...new Set(slots)], to: 'third' }], {
    ...given,
    signal: interruption.signal,
    onProgress: ({ what }) => what === 'switch' && interruption.abort(),
  });
  await expect(interrupted).rejects.toThrow('aborted');
  await upload(aborted);
  await operationsMove.abortMoves(open(), given);
  await expectAttached(aborted);
  await move('third', slots);
  await upload(late);
  await upload(cleaned);
  await expectAttached(uploaded);
  await expectAttached(late);
  expect((await accept(twice)).status).toBe(404);
  expect((await upload(twice))?.status).toBe(403);
  await operationsMove.cleanUp(open(), given);
  await expectAttached(cleaned);
  for (const { id } of [uploaded, late, aborted, cleaned, twice])
    expect((await ask('GET', `papers/north/${id}/scan`)).bytes, id).toEqual(PNG);
  expect((await accept(uploaded)).status).toBe(404);
});

test('an import during a move stores each entity once', { tags: ['slow'] }, async () => {
  const { open, ask, move, given } = await openApp();
  let isOver = false;
  const moving = (async () => {
    for (let round = 0; !isOver; round += 1) await move(NAMES[round % NAMES.length] ?? '');
  })();
  const ids = Array.from({ length: 20 }, (_, batch) => IDS.map((id) => `${batch}${id}`));
  for (const [at, some] of ids.entries()) {
    let actions = some.map((paperId) => ({ put: { shelf: SHELVES[at % 3], paperId, title: TITLE } }));
    for (let attempt = 0; actions.length > 0; attempt += 1) {
      const { status, body } = await ask('POST', 'papers/batch', { actions });
      expect([200, 503]).toContain(status);
      expect(attempt).toBeLessThan(6);
      // As the command repeats them.
      if (status === 200) actions = actions.filter((_, index) => body.results[index].status === 503);
    }
  }
  isOver = true;
  await moving;
  await operationsMove.cleanUp(open(), given);
  const engine = engineCore.createEngine(open());
  const worker = createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' });
  while ((await worker.handleVisible()) > 0);
  const { values, differences } = await compareStored(open(), entity);
  expect(differences).toEqual([]);
  expect(values).toHaveLength(ids.flat().length);
});

test('a message that failed before a move is replayed after it', { tags: ['slow'] }, async () => {
  const { open, ask, move, given } = await openApp();
  const queued = engineCore.createEngine(open(), { settleInline: 0 });
  await engineWrite.createEntity(queued, entity, { shelf: 'north', paperId: 'p1', title: TITLE });
  for (const queue of engineReconcile.listParts(queued))
    for (const { text, ...message } of await storageQueues.receiveMessages(queued.storage, queue, {
      limit: 32,
      hiddenFor: 600,
    }))
      await engineConsume.recordPoison(queued, { ...message, attempts: 5, body: parsed(text) }, 'It failed.');
  expect((await compareStored(open(), entity)).differences).not.toEqual([]);
  await move('third');
  await operationsMove.cleanUp(open(), given);
  const [{ id = '' } = {}] = (await engineConsume.listPoison(engineCore.createEngine(open()), { limit: 10 })).items;
  expect((await ask('POST', `operations/poison/${id}/replay`)).status).toBe(202);
  const engine = engineCore.createEngine(open());
  const worker = createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' });
  while ((await worker.handleVisible()) > 0);
  expect((await compareStored(open(), entity)).differences).toEqual([]);
  expect((await engineConsume.listPoison(engineCore.createEngine(open()), { limit: 10 })).items).toEqual([]);
});
