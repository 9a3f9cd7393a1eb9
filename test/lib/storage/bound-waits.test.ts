import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { engineCore } from '../../kit/engine.ts';
import { operationsCheck } from '../../kit/operations.ts';
import { type Storage, storageAccounts, storageBlobs, storageRows } from '../../kit/storage.ts';

/** An account that accepts each request and never responds, or stops in the middle of a response. */

let received = 0;
let respond: (response: ServerResponse) => void = () => undefined;
const server = createServer((request, response) => {
  request.resume();
  respond(response);
  received += 1;
});
let storage: Storage;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const endpoint = (service: string) => `${service}Endpoint=http://127.0.0.1:${port}/devstoreaccount1`;
  const key = Buffer.alloc(64).toString('base64');
  storage = storageAccounts.openStorage({
    connectionString: `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${key};${['Blob', 'Queue', 'Table'].map(endpoint).join(';')}`,
  });
});
afterEach(() => vi.useRealTimers());
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const blob = { container: 'files', name: 'a' };
const address = { table: 'things', partition: 'p' };
const at = Date.parse('2026-11-20T08:00:00Z');
const READS: readonly [string, () => Promise<unknown>][] = [
  ['a read of a row', () => storageRows.readRow(storage, { ...address, row: 'r' })],
  ['a range of rows', () => storageRows.readRange(storage, { ...address, from: '' })],
  ['the list of tables', () => storageAccounts.storageCall(storage.tables.listTables().next())],
  ['the state of a queue', () => storageAccounts.storageCall(storage.queue('work').getProperties())],
  ['messages', () => storageAccounts.storageCall(storage.queue('work').receiveMessages())],
  ['the list of blobs', () => storageBlobs.listBlobs(storage, { container: 'files', prefix: '' })],
  ['the lines of a blob', () => Array.fromAsync(storageBlobs.readLines(storage, blob))],
  ['a blob', () => storageBlobs.readBlob(storage, blob)],
  ['a part of a blob', () => storageBlobs.readBlobRange(storage, blob, { count: 10 })],
  [
    'the audit log',
    () => operationsCheck.readChanges(engineCore.createEngine(storage), { from: at, to: at + 1_000, limit: 10 }),
  ],
];
const WRITES: typeof READS = [
  [
    'a write of a row',
    () => storageRows.submit(storage, { ...address, actions: [{ kind: 'upsert', row: 'r', properties: {} }] }),
  ],
  ['a message', () => storageAccounts.storageCall(storage.queueSentOnce('work').sendMessage('x'))],
  ['a new append blob', () => storageBlobs.createAppendBlob(storage, blob)],
  ['a block', () => storageBlobs.appendBlock(storage, blob, { bytes: Buffer.from('x'), position: 0 })],
  ['an upload', () => storageAccounts.storageCall(storage.container('files').getBlockBlobClient('a').upload('x', 1))],
];

/** Lets the clock run until the call ends; at most ten minutes. */
async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  const before = received;
  let outcome: unknown = 'waits for ever';
  let isOver = false;
  const called = call().then(
    () => 'succeeded',
    (error: unknown) => error,
  );
  void called.then((result) => {
    outcome = result;
    isOver = true;
  });
  const pause = () => new Promise((resolve) => setImmediate(resolve));
  for (let ms = 0; !isOver && ms < 600_000; ms += 10_000) {
    for (let turn = 0; turn < 200 && (received === before || turn < 20); turn += 1) await pause();
    vi.advanceTimersByTime(10_000);
    for (let turn = 0; turn < 20 && !isOver; turn += 1) await pause();
  }
  return outcome;
}

test.each([...READS, ...WRITES])('ends %s to which no response comes', async (_, call) => {
  respond = () => undefined;
  expect(await outcomeOf(call)).toMatchObject({ code: 'storage-unavailable' });
});

test.each(READS)('ends %s whose response stops in the middle', async (_, call) => {
  respond = (response) => {
    response.writeHead(200, { 'content-length': 1_000, 'content-type': 'application/json', etag: '"1"' });
    response.write('{"value":[');
  };
  expect(await outcomeOf(call)).toMatchObject({ code: 'storage-unavailable' });
});

describe('work that reads several blobs one after another', () => {
  const names = ['a', 'b', 'c'];
  const readAll = async () => {
    const outcomes: unknown[] = [];
    for (const name of names)
      outcomes.push(await storageBlobs.readBlob(storage, { container: 'files', name }).catch((error) => error.code));
    return outcomes;
  };
  /** How many calls the account received. */
  async function callsOf(work: () => Promise<unknown>): Promise<number> {
    const before = received;
    const outcomes: unknown[] = [];
    expect(await outcomeOf(async () => outcomes.push(await work()))).toBe('succeeded');
    expect(outcomes).toEqual([names.map(() => 'storage-unavailable')]);
    return received - before;
  }
  const half = (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': 1_000, etag: '"1"' });
    response.write('half');
  };

  test.each([
    ['no response comes', () => undefined],
    ['a response stops in the middle', half],
  ])('waits once if %s, as a part of a request', async (_, given) => {
    respond = given;
    expect(await callsOf(() => storageAccounts.measureCost(readAll))).toBe(1);
    // A part of the request whose cost is hidden.
    const hidden = () =>
      storageAccounts.hideCost(
        () => readAll(),
        () => false,
      );
    expect(await callsOf(() => storageAccounts.measureCost(hidden))).toBe(1);
  });

  test('asks again in another request, and for other services', async () => {
    respond = () => undefined;
    expect(
      await callsOf(async () =>
        [...(await storageAccounts.measureCost(readAll)), ...(await storageAccounts.measureCost(readAll))].slice(3),
      ),
    ).toBe(2);
    respond = (response) => response.writeHead(404, { 'x-ms-error-code': 'ResourceNotFound' }).end();
    expect(
      await storageAccounts.measureCost(() => storageRows.readRow(storage, { ...address, row: 'r' })),
    ).toBeUndefined();
  });

  test('asks again if the reader gave up by itself', async () => {
    const before = received;
    await storageAccounts.measureCost(async () => {
      for (const name of names) {
        const reader = new AbortController();
        // Gives up once the request has arrived, however slow the machine is.
        respond = () => reader.abort();
        await expect(
          storageBlobs.blobLength(storage, { container: 'files', name }, reader.signal),
        ).rejects.toMatchObject({
          code: 'storage-unavailable',
        });
      }
    });
    expect(received - before).toBe(3);
  });
});

test('a reader of a blob may be slow', async () => {
  const bytes = Buffer.alloc(500_000, 1);
  respond = (response) => {
    response.writeHead(200, { 'content-length': bytes.length, etag: '"1"' });
    response.end(bytes);
  };
  const { readableStreamBody: stream } = await storage.container('files').getBlobClient('a').download();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.advanceTimersByTime(600_000);
  expect(await buffer(stream as NodeJS.ReadableStream)).toEqual(bytes);
});
