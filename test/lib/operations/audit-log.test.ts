import { randomUUID } from 'node:crypto';
import { createDefaultHttpClient, type HttpClient, RestError } from '@azure/core-rest-pipeline';
import pMap from 'p-map';
import { beforeAll, describe, expect, test } from 'vitest';
import { RowkeyError } from '../../../lib/index.ts';
import { type AuditLog, createAuditLog, readChanges } from '../../../lib/operations/audit-log.ts';
import { tryFaults } from '../../fault-driver.ts';
import { type ChangeRecord, type Engine, engineCore, type Position } from '../../kit/engine.ts';
import { storageAccounts, storageBlobs, storageSlots } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const HOUR_MS = 3_600_000;
const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
const container = storageBlobs.AUDIT_CONTAINER;
const shared = createDefaultHttpClient();
let hours = 0;

beforeAll(async () => {
  await storage.blobs.getContainerClient(container).create();
});

/** Returns the first millisecond of an hour that no other test uses. */
function newHour(): number {
  hours += 1;
  return Date.UTC(2026, 0, 1) + hours * HOUR_MS;
}

function changeAt(at: number): ChangeRecord {
  const address = { table: 'employees', partition: 'Sales', row: 'empid_000123' };
  const change = { id: randomUUID(), by: 'ann', operation: 'replace', entity: 'employees', fields: ['phone'] } as const;
  return { ...change, ...address, at: new Date(at).toISOString(), fields: ['phone'] };
}

/** Creates a process with its own log and a constant clock. */
function processAt(now: number, httpClient?: HttpClient): { log: AuditLog; engine: Engine } {
  const opened = storageAccounts.openStorage({ connectionString, ...(httpClient ? { httpClient } : {}) });
  const engine = engineCore.createEngine(opened, { now: () => now });
  return { engine, log: createAuditLog(engine) };
}

async function readHour(hour: number, limit = 10_000): Promise<string[]> {
  const { items } = await readChanges(engineCore.createEngine(storage), { from: hour, to: hour + HOUR_MS, limit });
  return items.map(({ id }) => id);
}

/** The hour as in the names of blobs. */
function timeOf(hour: number): string {
  return `${new Date(hour).toISOString().slice(0, 13).replace(/[-T]/g, '/')}00`;
}

async function blobsOf(hour: number): Promise<{ name: string; lines: string[]; blocks: number | undefined }[]> {
  const time = timeOf(hour);
  const prefix = `${storageSlots.slotOf(time.slice(0, '2026/01/01'.length))}/${time}/`;
  return pMap(await storageBlobs.listBlobs(storage, { container, prefix }), async (name) => {
    const lines = await Array.fromAsync(storageBlobs.readLines(storage, { container, name }));
    const properties = await storage.blobs.getContainerClient(container).getBlobClient(name).getProperties();
    return { name, lines, blocks: properties.blobCommittedBlockCount };
  });
}

function codeOf(error: unknown): string {
  return error instanceof RowkeyError ? error.code : String(error);
}

test('stores each of many concurrent appends once, in few blocks of one blob', async () => {
  const hour = newHour();
  const { log } = processAt(hour);
  const changes = Array.from({ length: 500 }, (_, second) => changeAt(hour + second * 1_000));
  await Promise.all(changes.map((change) => log.append([change])));
  const [blob, ...others] = await blobsOf(hour);
  expect(others).toEqual([]);
  expect(blob?.name).toMatch(/^[\da-f]{3}\/2026\/01\/\d\d\/\d\d00\/000001\.log$/);
  expect(blob?.lines.map((line) => JSON.parse(line))).toEqual(changes);
  expect(blob?.blocks).toBe(2);
  expect(await readHour(hour)).toEqual(changes.map(({ id }) => id));
});

test('keeps each block and the number of blocks of a blob within the limits of storage', {
  tags: ['slow'],
}, async () => {
  const hour = newHour();
  const { engine } = processAt(hour);
  const log = createAuditLog(engine, { maxBlocks: 2 });
  // Two of these changes fit into a block, three do not.
  const fields = ['x'.repeat(1_500_000)];
  const changes = Array.from({ length: 7 }, () => ({ ...changeAt(hour), fields }));
  await Promise.all(changes.map((change) => log.append([change])));
  const blobs = await blobsOf(hour);
  expect(blobs.map(({ blocks, lines }) => [blocks, lines.length])).toEqual([
    [2, 3],
    [2, 4],
  ]);
  expect(await readHour(hour)).toEqual(changes.map(({ id }) => id));
});

test('writes each hour to its own blobs, including a late change of a previous hour', async () => {
  const hour = newHour();
  const next = newHour();
  let now = next - 1;
  const engine = engineCore.createEngine(storage, { now: () => now });
  const log = createAuditLog(engine);
  const kept: ChangeRecord[] = [];
  const keep = async (changes: readonly ChangeRecord[]) => {
    kept.push(...changes);
    await log.append(changes);
  };
  const address = { table: 't', partition: 'p', row: 'r' };
  const change = { operation: 'count', entity: 'e', address } as const;
  await engineCore.collectChanges('ann', async () => engineCore.noteChange(engine, change), keep);
  const late = changeAt(next - 1);
  now = next;
  await engineCore.collectChanges('ann', async () => engineCore.noteChange(engine, change), keep);
  await log.append([late]);
  await log.append([changeAt(next)]);
  const [first, second] = kept;
  expect(await readHour(hour)).toEqual([first?.id, late.id]);
  expect((await readHour(next))[0]).toBe(second?.id);
  expect([await blobsOf(hour), await blobsOf(next)].map((blobs) => blobs.length)).toEqual([1, 1]);
});

test('returns changes under names of earlier releases, which begin with the year, in their order and page by page', async () => {
  const [hour, next] = [newHour(), newHour()];
  const changes = [hour, hour, next, next].map(changeAt);
  const storeAs = async (name: string, change: ChangeRecord | undefined) => {
    await storageBlobs.createAppendBlob(storage, { container, name });
    await storageBlobs.appendBlock(
      storage,
      { container, name },
      { bytes: Buffer.from(`${JSON.stringify(change)}\n`), position: 0 },
    );
  };
  await storeAs(`${timeOf(hour)}/000001.log`, changes[0]);
  await storeAs(`${timeOf(next)}/000001.log`, changes[2]);
  await processAt(hour).log.append(changes.slice(1, 2));
  await processAt(next).log.append(changes.slice(3));
  const ids = changes.map(({ id }) => id);
  const found: string[] = [];
  const query = { from: hour, to: next + HOUR_MS, limit: 1 };
  for (let after: Position | undefined, pages = 0; pages < 5; pages += 1) {
    const page = await readChanges(engineCore.createEngine(storage), { ...query, after });
    found.push(...page.items.map(({ id }) => id));
    after = page.next;
    if (!after) break;
  }
  expect(found).toEqual(ids);
});

test('stores the instant of the first record in the metadata', async () => {
  const hour = newHour();
  const { log } = processAt(hour);
  await log.append([changeAt(hour + 1_000)]);
  await log.append([changeAt(hour + 2_000)]);
  const [blob] = await blobsOf(hour);
  const client = storage.blobs.getContainerClient(container).getBlobClient(blob?.name ?? '');
  expect((await client.getProperties()).metadata).toEqual({ first: new Date(hour + 1_000).toISOString() });
});

// https://learn.microsoft.com/azure/storage/blobs/immutable-container-level-worm-policies
test('creates blobs and appends to them, which is all that an immutable container allows', async () => {
  const hour = newHour();
  const writes: string[] = [];
  const httpClient: HttpClient = {
    sendRequest: (request) => {
      const { method, headers } = request;
      const isCreate = headers.get('x-ms-blob-type') === 'AppendBlob' && headers.get('if-none-match') === '*';
      const operation = new URL(request.url).searchParams.get('comp') ?? (isCreate ? 'create' : 'unknown');
      if (method !== 'GET' && method !== 'HEAD') writes.push(`${method} ${operation}`);
      return shared.sendRequest(request);
    },
  };
  let now = hour;
  const log = createAuditLog(
    engineCore.createEngine(storageAccounts.openStorage({ connectionString, httpClient }), { now: () => now }),
  );
  for (const late of [0, 6_000, HOUR_MS, HOUR_MS + 6_000]) {
    now = hour + late;
    await log.append([changeAt(now)]);
  }
  hours += 1;
  await log.append([changeAt(now)]);
  const blobOfHour = ['PUT create', 'PUT appendblock', 'PUT appendblock'];
  expect(writes).toEqual([...blobOfHour, ...blobOfHour, 'PUT appendblock']);
});

test('gives each process its own blob', async () => {
  const hour = newHour();
  const changes = await pMap([1, 2, 3, 4], async () => {
    const { log } = processAt(hour);
    const own = Array.from({ length: 20 }, () => changeAt(hour));
    for (const change of own) await log.append([change]);
    return own.map(({ id }) => id);
  });
  const blobs = await blobsOf(hour);
  const found = blobs.map(({ lines }) => lines.map(idOf));
  expect(found.toSorted()).toEqual(changes.toSorted());
});

describe('with a fault at any storage call', () => {
  /** Appends one change to a fresh blob and then three concurrently to the open one. */
  async function work(httpClient: HttpClient, hour: number): Promise<{ acknowledged: string[]; outcomes: string[] }> {
    const { log } = processAt(hour, httpClient);
    const changes = Array.from({ length: 4 }, () => changeAt(hour));
    const append = async (change: ChangeRecord) =>
      log.append([change]).then(
        () => 'done',
        (error: unknown) => codeOf(error),
      );
    const [first, ...others] = changes;
    const outcomes = first ? [await append(first), ...(await Promise.all(others.map(append)))] : [];
    const ids = changes.map(({ id }) => id);
    return { outcomes, acknowledged: ids.filter((_, index) => outcomes[index] === 'done') };
  }

  test('stores every acknowledged change once', async () => {
    await tryFaults(
      async ({ fault, label, client }) => {
        const hour = newHour();
        const { acknowledged, outcomes } = await work(client, hour);
        if (fault?.startsWith('crash')) expect(outcomes, label).toContain('storage-unavailable');
        else expect(outcomes, label).toEqual(['done', 'done', 'done', 'done']);
        const found = await readHour(hour);
        expect(found, label).toEqual(expect.arrayContaining(acknowledged));
        expect(new Set(found).size, label).toBe(found.length);
        // The retry recognizes its own block, so a lost reply duplicates nothing.
        const lines = (await blobsOf(hour)).flatMap((blob) => blob.lines);
        if (fault === 'reply lost') expect(lines, label).toHaveLength(4);
      },
      { moreCallsThan: 4, concurrency: 8 },
    );
  });

  test('appends a block with an unknown outcome to a fresh blob again, and returns its change once', {
    tags: ['slow'],
  }, async () => {
    const hour = newHour();
    let isLost = false;
    const httpClient: HttpClient = {
      async sendRequest(request) {
        const isAppend = request.url.includes('comp=appendblock') && request.url.includes('000001.log');
        if (!isAppend || !isLost) return shared.sendRequest(request);
        await shared.sendRequest(request).catch(() => undefined);
        throw new RestError('reply lost', { code: 'ECONNRESET', request });
      },
    };
    const { log } = processAt(hour, httpClient);
    const changes = [changeAt(hour), changeAt(hour), changeAt(hour)];
    await log.append(changes.slice(0, 1));
    isLost = true;
    await log.append(changes.slice(1, 2));
    await log.append(changes.slice(2));
    const blobs = await blobsOf(hour);
    expect(blobs.map(({ lines }) => lines.map(idOf))).toEqual([
      [changes[0]?.id, changes[1]?.id],
      [changes[1]?.id, changes[2]?.id],
    ]);
    expect(await readHour(hour)).toEqual(changes.map(({ id }) => id));
    const engine = engineCore.createEngine(storage);
    const query = { from: hour, to: hour + HOUR_MS };
    const page = await readChanges(engine, { ...query, limit: 2 });
    const rest = await readChanges(engine, { ...query, limit: 2, after: page.next });
    expect([...page.items, ...rest.items]).toEqual(changes);
    expect(rest.next).toBeUndefined();
  });

  test('appends failed changes first once storage is available', async () => {
    const hour = newHour();
    let isDown = true;
    const httpClient: HttpClient = {
      async sendRequest(request) {
        if (isDown) throw new Error('down');
        return shared.sendRequest(request);
      },
    };
    const { log } = processAt(hour, httpClient);
    await log.catchUp();
    const changes = [changeAt(hour), changeAt(hour)];
    await expect(Promise.all(changes.map((change) => log.append([change])))).rejects.toMatchObject({
      code: 'storage-unavailable',
    });
    await expect(log.catchUp()).rejects.toMatchObject({ code: 'storage-unavailable' });
    isDown = false;
    await log.catchUp();
    expect(await readHour(hour)).toEqual(changes.map(({ id }) => id));
    expect(await blobsOf(hour)).toHaveLength(1);
  });
});

function idOf(line: string): string {
  return JSON.parse(line).id;
}
