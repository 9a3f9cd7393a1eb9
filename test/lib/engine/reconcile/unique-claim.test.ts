import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  claim,
  claimFree,
  hasLiveClaim,
  isOwnedBy,
  releaseClaims,
} from '../../../../lib/engine/reconcile/unique-claim.ts';
import { engineCore } from '../../../kit/engine.ts';
import { storageAccounts, storageRows, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
const engine = engineCore.createEngine(storage);
beforeAll(() => storageTables.createTable(storage, 'byemail'));

const entryAt = (row: string) => ({ index: 'email', table: 'byemail', partition: 'one', row });
const ownerAt = (row: string) => ({ table: 'people', partition: 'one', row });
const find = (row: string) => storageRows.readRow(storage, entryAt(row));

test('a writer does not look for its claim after its time limit', async () => {
  const writer = new AbortController();
  const methods: string[] = [];
  const httpClient: HttpClient = {
    async sendRequest({ method }) {
      methods.push(method);
      writer.abort();
      throw Object.assign(new Error('Given up.'), { name: 'AbortError' });
    },
  };
  const slow = engineCore.createEngine(
    storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient }),
  );
  const claiming = claim(slow, entryAt('one'), ownerAt('1'), { intent: 'one', signal: writer.signal });
  await expect(claiming).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(methods).toEqual(['POST']);
});

test.each([true, false])(
  'a writer without a time limit looks for its claim after a lost reply: stored %s',
  async (isStored) => {
    const client = createDefaultHttpClient();
    let isFirst = true;
    const httpClient: HttpClient = {
      async sendRequest(request) {
        if (!isFirst) return client.sendRequest(request);
        isFirst = false;
        if (isStored) await client.sendRequest(request);
        throw Object.assign(new Error('No reply.'), { name: 'AbortError' });
      },
    };
    const losing = engineCore.createEngine(
      storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient }),
    );
    const row = `lost${isStored}`;
    const claiming = claim(losing, entryAt(row), ownerAt('1'), { intent: 'w1' });
    if (isStored) expect(await claiming).toMatchObject({ isNew: false, properties: { Claim: 'w1', SourceRow: '1' } });
    else await expect(claiming).rejects.toMatchObject({ code: 'storage-unavailable' });
  },
);

describe('a claim of a unique value', () => {
  test('inserts a free row for its owner, and finds its own claim again', async () => {
    const claimed = await claim(engine, entryAt('free'), ownerAt('1'), { intent: 'w1' });
    const stored = await find('free');
    expect(claimed).toMatchObject({ ...stored, isNew: true });
    expect(stored?.properties).toMatchObject({
      EntityType: 'claim',
      SourcePartition: 'one',
      SourceRow: '1',
      Confirmed: false,
      Claim: 'w1',
    });
    expect(await claim(engine, entryAt('free'), ownerAt('1'), { intent: 'w1' })).toMatchObject({ isNew: false });
    expect((await find('free'))?.etag).toBe(stored?.etag);
  });

  test('is refused for the row of another owner, and while another writer of the owner has a live claim', async () => {
    await claim(engine, entryAt('held'), ownerAt('1'), { intent: 'w1' });
    const { etag } = (await find('held')) ?? {};
    for (const other of [ownerAt('2'), { ...ownerAt('1'), partition: 'two' }])
      expect(await claim(engine, entryAt('held'), other, { intent: 'w2' })).toBe('held-by-another');
    expect(await claim(engine, entryAt('held'), ownerAt('1'), { intent: 'w2' })).toBe('being-claimed');
    expect((await find('held'))?.etag).toBe(etag);
  });

  test('takes over a claim of its owner that has expired or that was abandoned', async () => {
    await claim(engine, entryAt('old'), ownerAt('1'), { intent: 'w1' });
    const abandoned = new Set(['w1']);
    const second = await claim(engine, entryAt('old'), ownerAt('1'), { intent: 'w2', abandoned });
    expect(second).toMatchObject({ isNew: false, properties: { Claim: 'w2' } });
    expect(second).toMatchObject((await find('old')) ?? {});
    const expired = { Claim: 'w2', ClaimExpires: new Date(Date.now() - 3_600_000).toISOString() };
    await storageRows.tryAction(storage, entryAt('old'), {
      kind: 'merge',
      row: 'old',
      properties: expired,
      etag: storageRows.ANY_ETAG,
    });
    expect(await claim(engine, entryAt('old'), ownerAt('1'), { intent: 'w3' })).toMatchObject({ isNew: false });
    expect((await find('old'))?.properties).toMatchObject({ Claim: 'w3', SourceRow: '1', EntityType: 'claim' });
  });

  test('of a reconciler is made only if the row is free', async () => {
    expect(await claimFree(engine, entryAt('anew'), ownerAt('1'), 'w1')).toBe(true);
    expect(await claimFree(engine, entryAt('anew'), ownerAt('1'), 'w1')).toBe(false);
    expect((await find('anew'))?.properties).toMatchObject({ Claim: 'w1', SourceRow: '1' });
  });

  test('is released if this write inserted the row and nothing changed it since', async () => {
    const claimed = async (row: string, intent: string) => {
      const one = await claim(engine, entryAt(row), ownerAt('1'), { intent });
      if (typeof one === 'string') throw new Error(one);
      return one;
    };
    const [first, second] = [await claimed('r1', 'w1'), await claimed('r2', 'w1')];
    expect(await releaseClaims(engine, [first, second])).toBe(true);
    expect([await find('r1'), await find('r2')]).toEqual([undefined, undefined]);
    expect(await releaseClaims(engine, [])).toBe(true);
    const changed = await claimed('r3', 'w1');
    await storageRows.tryAction(storage, entryAt('r3'), {
      kind: 'merge',
      row: 'r3',
      properties: { Confirmed: true },
      etag: changed.etag,
    });
    expect(await releaseClaims(engine, [changed])).toBe(false);
    const existing = await claimed('r3', 'w1');
    expect(await releaseClaims(engine, [existing])).toBe(false);
    expect(await find('r3')).toMatchObject({ properties: { Confirmed: true } });
  });
});

test('a claim is live until it expires, unless it is the claimant’s own or was abandoned', () => {
  const now = Date.parse('2026-11-20T10:00:00.000Z');
  const fresh = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  const at = engineCore.createEngine(fresh, { now: () => now });
  const isLive = (properties: object, claimant = { intent: 'w1' }) =>
    hasLiveClaim({ ...entryAt('x'), etag: '', properties: { ...properties } }, claimant, at);
  const later = new Date(now + 1).toISOString();
  expect(isLive({ Claim: 'w2', ClaimExpires: later })).toBe(true);
  expect(isLive({ Claim: 'w2', ClaimExpires: new Date(now).toISOString() })).toBe(false);
  expect(isLive({ Claim: 'w2' })).toBe(false);
  expect(isLive({ Claim: 'w1', ClaimExpires: later })).toBe(false);
  expect(isLive({ Claim: '', ClaimExpires: later })).toBe(false);
  expect(isLive({ Claim: 2, ClaimExpires: later })).toBe(false);
  expect(isLive({ ClaimExpires: later })).toBe(false);
  const claimant = { intent: 'w1', abandoned: new Set(['w2']) };
  expect(isLive({ Claim: 'w2', ClaimExpires: later }, claimant)).toBe(false);
  expect(isLive({ Claim: 'w3', ClaimExpires: later }, claimant)).toBe(true);
  const row = { ...entryAt('x'), etag: '', properties: { SourcePartition: 'one', SourceRow: '1' } };
  expect([isOwnedBy(row, ownerAt('1')), isOwnedBy(row, ownerAt('2'))]).toEqual([true, false]);
  expect(isOwnedBy(row, { partition: 'two', row: '1' })).toBe(false);
});
