// @module-tag long

import { RestError } from '@azure/core-rest-pipeline';
import { expect, test, vi } from 'vitest';
import { deleteFences, listRegistered, sealPartition } from '../../../lib/storage/fence.ts';
import type { Internal } from '../../kit/internal.ts';
import { type Action, type Storage, storageJournal, storageRows, storageSlots } from '../../kit/storage.ts';
import { IS_EVERY_POINT } from '../../points.ts';
import { accountNamed, FAULTS, provisionAccounts, type Several, TABLE } from './several-accounts.ts';

/** A partition of the first of two accounts. */
const PARTITION = 'Engineering';
const SLOT = storageSlots.slotOf(PARTITION);
const AT = { table: TABLE, partition: PARTITION };
const MOVE = '!m1';

const write = (storage: Storage, ...actions: Action[]) => storageRows.submit(storage, { ...AT, actions });
const insert = (storage: Storage, row: string, value = 1) =>
  write(storage, { kind: 'insert', row, properties: { EntityType: 'thing', Value: value } });

/** Sets the state of the slot in an account. */
async function set(storage: Several, account: string, phase: Internal['Phase']): Promise<void> {
  const state: Internal['SlotState'] =
    phase === 'at rest' || phase === 'none' ? { phase } : { phase, move: MOVE, to: 'second' };
  expect(await storageSlots.changeSlots(accountNamed(storage, account), [SLOT], () => state)).toBeDefined();
}

/** Two accounts with the slot in a phase of a move from the first to the second one. */
async function beginMove(phase: Internal['Phase'] = 'fencing', clocksMs?: readonly number[]) {
  const created = await provisionAccounts(['first', 'second'], clocksMs);
  expect((await storageSlots.ownerOf(created.storage, PARTITION)).name).toBe('first');
  await set(created.storage, 'first', phase);
  // Another process knows nothing of the time before.
  return { ...created, storage: created.open() as Several };
}

/** Lets the first account go, with a copy of the partition at the second one. */
async function switchOwner(storage: Several): Promise<void> {
  const { rows } = await storageRows.readRange(accountNamed(storage, 'first'), { ...AT, from: '', before: '~' });
  for (const { row, properties } of rows)
    await write(accountNamed(storage, 'second'), { kind: 'upsert', row, properties });
  await set(storage, 'first', 'gone');
  await set(storage, 'second', 'at rest');
}

const rowsAt = async (storage: Storage) =>
  (await storageRows.readRange(storage, { ...AT, from: '' })).rows.map(({ row }) => row);

test('opens a partition at the first write of a move, and then writes in one transaction', async () => {
  const { storage, requests } = await beginMove();
  await storageSlots.ownerOf(storage, PARTITION);
  requests.length = 0;
  await insert(storage, 'a');
  // Rejected, registered, looked, opened, written.
  expect(requests).toHaveLength(5);
  await insert(storage, 'b');
  expect(requests).toHaveLength(6);
  expect(await listRegistered(accountNamed(storage, 'first'), MOVE, SLOT)).toEqual([{ ...AT, slot: SLOT }]);
  expect(await rowsAt(storage)).toEqual(['a', 'b']);
  expect((await storageRows.scanTable(storage, { table: TABLE, limit: 10 })).rows).toHaveLength(2);
});

test('writes in every way that has no fence', async () => {
  const { storage } = await beginMove();
  const first = await insert(storage, 'a');
  await expect(insert(storage, 'a')).rejects.toMatchObject({ reason: 'exists', action: 0 });
  const merged = await write(storage, {
    kind: 'merge',
    row: 'a',
    properties: { Other: 2 },
    etag: first.get('a') ?? '',
  });
  const stale = first.get('a') ?? '';
  await expect(write(storage, { kind: 'replace', row: 'a', properties: {}, etag: stale })).rejects.toMatchObject({
    reason: 'changed',
    action: 0,
  });
  await expect(write(storage, { kind: 'delete', row: 'a', etag: stale })).rejects.toMatchObject({ reason: 'changed' });
  await expect(
    write(storage, { kind: 'replace', row: 'z', properties: {}, etag: storageRows.ANY_ETAG }),
  ).rejects.toMatchObject({
    reason: 'missing',
    action: 0,
  });
  const both = write(
    storage,
    { kind: 'upsert', row: 'b', properties: {} },
    { kind: 'insert', row: 'a', properties: {} },
  );
  await expect(both).rejects.toMatchObject({ reason: 'exists', action: 1 });
  expect(await storageRows.readRow(storage, { ...AT, row: 'a' })).toMatchObject({
    etag: merged.get('a'),
    properties: { Value: 1, Other: 2 },
  });
  await write(
    storage,
    { kind: 'upsert-merge', row: 'b', properties: {} },
    { kind: 'upsert', row: 'c', properties: {} },
  );
  await write(storage, { kind: 'delete', row: 'a', etag: merged.get('a') ?? '' });
  await write(storage, { kind: 'delete', row: 'b' });
  expect(await rowsAt(storage)).toEqual(['c']);
});

test('lets the writes of a draining slot wait, and then writes at its new owner', async () => {
  const { storage } = await beginMove('draining');
  const writing = insert(storage, 'a');
  expect(await rowsAt(storage)).toEqual([]);
  await switchOwner(storage);
  await writing;
  expect(await rowsAt(accountNamed(storage, 'first'))).toEqual([]);
  expect(await rowsAt(accountNamed(storage, 'second'))).toEqual(['a']);
  expect(await rowsAt(storage)).toEqual(['a']);
});

test('lets a write wait between two owners', async () => {
  const { storage, open } = await beginMove('gone');
  await write(accountNamed(storage, 'second'), { kind: 'insert', row: 'b', properties: {} });
  const writing = insert(storage, 'a');
  const scanning = storageRows.scanTable(open(), { table: TABLE, limit: 10 });
  await set(storage, 'second', 'at rest');
  await writing;
  expect((await scanning).rows.map(({ row }) => row)).toContain('b');
  expect(await rowsAt(storage)).toEqual(['a', 'b']);
});

test('ends a hand-over whose mover has died between two owners, for a write and for a scan', {
  tags: ['slow'],
}, async () => {
  for (const use of [
    (storage: Storage) => insert(storage, 'a'),
    (storage: Storage) => storageRows.scanTable(storage, { table: TABLE, limit: 1 }),
  ]) {
    const { storage, open } = await beginMove('gone');
    await use(storage);
    expect((await storageSlots.ownerOf(open(), PARTITION)).name).toBe('second');
  }
});

test('gives a slot to the target once its clock has passed the last write at the source', async () => {
  const clocksMs = [0, -60_000];
  const { storage, memories } = await beginMove('gone', clocksMs);
  let looks = 0;
  for (const memory of memories)
    memory.intercept = (request, send) => {
      looks += request.method === 'GET' && request.url.includes('owned') ? 1 : 0;
      // More than it takes until a writer ends a move.
      if (looks > 200) clocksMs[1] = 2_000;
      return send();
    };
  await insert(storage, 'a');
  const timeOf = async (account: string) =>
    storageJournal.timeOf((await storageSlots.readOwned(accountNamed(storage, account)))?.etag) ?? '';
  expect((await timeOf('second')) > (await timeOf('first'))).toBe(true);
});

test('gives a slot to no account that has had it and let it go meanwhile', { tags: ['slow'] }, async () => {
  const { storage, open, memories } = await beginMove('gone');
  let [before, isBack] = ['', false];
  for (const [index, memory] of memories.entries())
    memory.intercept = async (request, send) => {
      const name = storage.accounts.list[index]?.name ?? '';
      const isRow = request.method === 'GET' && /owned/.test(request.url);
      // The target's row is read twice in succession only to be changed.
      if (isRow && !isBack && name === 'second' && before === 'second') {
        isBack = true;
        await set(storage, 'second', 'at rest');
        expect(
          await storageSlots.changeSlots(accountNamed(storage, 'second'), [SLOT], () => ({
            phase: 'gone',
            move: '!m2',
            to: 'first',
            turn: 2,
          })),
        ).toBeDefined();
        await set(storage, 'first', 'at rest');
      }
      if (isRow) before = name;
      return send();
    };
  await insert(open(), 'a');
  expect(isBack).toBe(true);
  for (const memory of memories) memory.intercept = undefined;
  expect(await rowsAt(accountNamed(storage, 'first'))).toEqual(['a']);
  const owned = await storageSlots.readOwned(accountNamed(storage, 'second'));
  expect(owned?.texts.get(0)?.[Number.parseInt(SLOT, 16)]).toBe('g');
});

test('names an account whose row takes longer than a process may use it', async () => {
  const { storage, memories } = await beginMove('at rest');
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    for (const memory of memories)
      memory.intercept = (request, send) => {
        if (/owned/.test(request.url)) vi.advanceTimersByTime(storageSlots.LEASE_MS);
        return send();
      };
    await expect(insert(storage, 'a')).rejects.toThrow('the account first takes more than 5 seconds');
  } finally {
    vi.useRealTimers();
  }
});

test('returns each row once in every phase, and none that the former owner has left', async () => {
  const { storage, open } = await beginMove();
  await insert(storage, 'a');
  const scan = async () => (await storageRows.scanTable(open(), { table: TABLE, limit: 1 })).rows.map(({ row }) => row);
  expect(await scan()).toEqual(['a']);
  await set(storage, 'first', 'draining');
  expect(await scan()).toEqual(['a']);
  await switchOwner(storage);
  expect(await scan()).toEqual(['a']);
  await write(accountNamed(storage, 'second'), { kind: 'delete', row: 'a' });
  expect(await scan()).toEqual([]);
});

test('stays writable after a move that ended where it began', async () => {
  const { storage, open } = await beginMove();
  await insert(storage, 'a');
  await set(storage, 'first', 'at rest');
  await insert(storage, 'b');
  await insert(open(), 'c');
  expect(await rowsAt(storage)).toEqual(['a', 'b', 'c']);
});

test('writes nothing to a sealed partition, and opens it for nobody', async () => {
  const { storage, open } = await beginMove();
  await insert(storage, 'a');
  // A process that has read the phase, but does nothing before the seal.
  const late = open() as Several;
  await storageSlots.ownerOf(late, PARTITION);
  await set(storage, 'first', 'draining');
  await sealPartition(accountNamed(storage, 'first'), MOVE, AT);
  const writing = insert(late, 'b');
  await switchOwner(storage);
  await writing;
  expect(await rowsAt(accountNamed(storage, 'second'))).toEqual(['a', 'b']);
  expect(await rowsAt(storage)).toEqual(['a', 'b']);
});

test.each([
  ['opened after the mover has sealed it', /~open_/],
  ['registered after the mover has listed those that are', /slots-/],
])('writes nothing at the source if the partition is %s', async (_, late) => {
  const { storage, open, memoryOf } = await beginMove();
  const memory = memoryOf('first');
  memory.intercept = async (request, send) => {
    if (!late.test(String(request.body))) return send();
    memory.intercept = undefined;
    await set(storage, 'first', 'draining');
    for (const partition of await listRegistered(accountNamed(storage, 'first'), MOVE, SLOT))
      await sealPartition(accountNamed(storage, 'first'), MOVE, partition);
    await switchOwner(storage);
    return send();
  };
  await insert(open(), 'a');
  expect(memory.intercept).toBeUndefined();
  // A process that still reads the former phase writes wherever it finds the fence.
  expect(await rowsAt(accountNamed(storage, 'first'))).not.toContain(`~own_${MOVE}`);
  expect(await rowsAt(accountNamed(storage, 'second'))).toEqual(['a']);
});

test('does not write again what may have been written before the seal', async () => {
  const { storage, open, memories } = await beginMove();
  const [memory] = memories;
  if (!memory) throw new Error('There is no account.');
  const etag = (await insert(storage, 'a')).get('a') ?? '';
  let isWritten = false;
  memory.intercept = async (request, send) => {
    if (!request.url.includes('$batch')) return send();
    if (!isWritten) {
      isWritten = true;
      await send();
      throw new RestError('reply lost', { code: 'ECONNRESET', request });
    }
    // The SDK sends the transaction again when the partition is sealed.
    memory.intercept = undefined;
    await set(storage, 'first', 'draining');
    await sealPartition(accountNamed(storage, 'first'), MOVE, AT);
    await switchOwner(storage);
    return send();
  };
  await expect(write(open(), { kind: 'merge', row: 'a', properties: { Value: 2 }, etag })).rejects.toMatchObject({
    code: 'storage-unavailable',
  });
  expect((await storageRows.readRow(open(), { ...AT, row: 'a' }))?.properties.Value).toBe(2);
});

test('reads at the new owner if the slot was moved during the read', async () => {
  const { storage, open, memories } = await beginMove('draining');
  const [memory] = memories;
  await storageRows.submit(accountNamed(storage, 'first'), {
    ...AT,
    actions: [{ kind: 'insert', row: 'a', properties: { Value: 1 } }],
  });
  for (const read of [
    async (reader: Storage) => (await storageRows.readRow(reader, { ...AT, row: 'a' }))?.properties.Value,
    async (reader: Storage) => (await storageRows.readRange(reader, { ...AT, from: '' })).rows[0]?.properties.Value,
    async (reader: Storage) =>
      (await storageRows.scanTable(reader, { table: TABLE, limit: 1 })).rows[0]?.properties.Value,
  ]) {
    await set(storage, 'second', 'none');
    await set(storage, 'first', 'draining');
    if (!memory) throw new Error('There is no account.');
    let isMoved = false;
    memory.intercept = async (request, send) => {
      const reply = await send();
      if (isMoved || !/things/.test(request.url)) return reply;
      isMoved = true;
      await switchOwner(storage);
      await write(accountNamed(storage, 'second'), { kind: 'upsert', row: 'a', properties: { Value: 2 } });
      return reply;
    };
    expect(await read(open())).toBe(2);
    memory.intercept = undefined;
    expect(isMoved).toBe(true);
  }
});

/**
 * A process that scans, and the slots that the first account hands over, one at each read of it. Their rows are changed or deleted then.
 */
async function handOverWhileScanned(keys: readonly string[], { isDeleted = false } = {}) {
  const { storage, open, memories, requests } = await beginMove('at rest');
  const [first, second] = storage.accounts.list;
  for (const partition of keys)
    await storageRows.submit(storage, {
      table: TABLE,
      partition,
      actions: [{ kind: 'insert', row: 'a', properties: {} }],
    });
  const moving = [...new Set(keys.toSorted().map(storageSlots.slotOf))].filter((slot) => slot < '800');
  const [memory] = memories;
  if (!first || !second || !memory) throw new Error('There are no accounts.');
  await storageSlots.changeSlots(first, moving, () => ({ phase: 'draining', move: MOVE, to: 'second' }));
  const changed: Action = { kind: 'upsert', row: 'a', properties: { New: 1 } };
  const handedOver: string[] = [];
  memory.intercept = async (request, send) => {
    const reply = await send();
    const slot = request.method === 'GET' && /things/.test(request.url) ? moving[handedOver.length] : undefined;
    if (slot === undefined) return reply;
    handedOver.push(slot);
    for (const partition of keys.filter((key) => storageSlots.slotOf(key) === slot)) {
      if (!isDeleted) await storageRows.submit(second, { table: TABLE, partition, actions: [changed] });
      await storageRows.submit(first, { table: TABLE, partition, actions: [{ kind: 'delete', row: 'a' }] });
    }
    await storageSlots.changeSlots(first, [slot], (state) => ({ ...state, phase: 'gone' }));
    await storageSlots.changeSlots(second, [slot], () => ({ phase: 'at rest' }));
    return reply;
  };
  const process = open();
  requests.length = 0;
  return { process, handedOver, requests };
}

test('reads again only accounts that got slots during a scan, while slots are handed over one after another', async () => {
  const keys = Array.from({ length: 40 }, (_, index) => `p${index}`);
  const { process, handedOver, requests } = await handOverWhileScanned(keys);
  const { rows } = await storageRows.scanTable(process, { table: TABLE, limit: 100 });
  expect(rows.map(({ partition }) => partition)).toEqual(keys.toSorted());
  expect(
    rows.filter(({ properties }) => properties.New).map(({ partition }) => storageSlots.slotOf(partition)),
  ).toEqual(handedOver);
  expect(handedOver).toHaveLength(1);
  // The first account once, and the second one twice.
  expect(requests.filter(({ method, url }) => method === 'GET' && /things/.test(url))).toHaveLength(3);
});

test('fills the page of a scan from which a hand-over has taken rows', { tags: ['slow'] }, async () => {
  const keys = Array.from({ length: 20 }, (_, index) => `p${index}`);
  const { process, handedOver } = await handOverWhileScanned(keys, { isDeleted: true });
  const found: string[] = [];
  for (let after: { partition: string; row: string } | undefined, more = true; more; ) {
    const page = await storageRows.scanTable(process, { table: TABLE, limit: 2, after });
    if (page.more) expect(page.rows).toHaveLength(2);
    found.push(...page.rows.map(({ partition }) => partition));
    ({ more } = page);
    after = page.rows.at(-1);
  }
  // What was deleted may have been returned before.
  const left = keys.filter((key) => !handedOver.includes(storageSlots.slotOf(key)));
  expect(found).toEqual(expect.arrayContaining(left));
  expect(found.toSorted()).toEqual([...new Set(found)]);
});

test.each(FAULTS)(
  'keeps what was written and registers each open partition: %s at each call',
  { tags: ['slow'] },
  async (fault) => {
    // Two rows of accounts are read, the write is rejected, and the partition registered, looked at, opened and written.
    for (let at = 1; at <= 7; at += 1) {
      const { storage, open, openWith } = await beginMove();
      const writer = openWith(fault, at);
      const isWritten = await insert(writer.storage, 'a').then(
        () => true,
        () => false,
      );
      expect(writer.countCalls()).toBeGreaterThanOrEqual(at);
      const first = accountNamed(storage, 'first');
      const found = await storageRows.readRange(first, { ...AT, from: '' });
      const isThere = found.rows.some(({ row }) => row === 'a');
      const isOpen = found.rows.some(({ row }) => row.startsWith('~own_'));
      const registered = await listRegistered(first, MOVE, SLOT);
      if (isWritten) expect(isThere).toBe(true);
      if (isThere) expect(isOpen).toBe(true);
      if (isOpen) expect(registered).toEqual([{ ...AT, slot: SLOT }]);
      // Another process writes, whatever the first one has left.
      await insert(open(), 'b');
      expect(await rowsAt(storage)).toEqual(isThere ? ['a', 'b'] : ['b']);
    }
  },
);

test.each([
  ['a fence', 'fencing'],
  ['no fence', 'at rest'],
] as const)('repeats a write with %s for a while only', async (_, phase) => {
  const { storage, memoryOf } = await beginMove(phase);
  await insert(storage, 'a');
  const memory = memoryOf('first');
  const signals: unknown[] = [];
  memory.intercept = (request, send) => {
    signals.push(request.abortSignal);
    return send();
  };
  await insert(storage, 'b');
  expect(signals).toEqual([expect.any(AbortSignal)]);
});

test('continues a paused scan whose account has got a slot with rows before its pause', {
  tags: ['slow'],
}, async () => {
  const { storage, open } = await beginMove('at rest');
  // Behind the partition, the second account has many rows of the first one.
  const left = Array.from({ length: 60 }, (_, index) => `left${index}`).filter(
    (key) => storageSlots.slotOf(key) < '800',
  );
  const rows = Array.from({ length: 100 }, (_, row): Action => ({ kind: 'insert', row: String(row), properties: {} }));
  for (const partition of left.slice(0, 12))
    await storageRows.submit(accountNamed(storage, 'second'), { table: TABLE, partition, actions: rows });
  for (const row of ['a', 'b']) await insert(storage, row);
  const scan = { table: TABLE, limit: 1, mayPause: true };
  const { resume, ...page } = await storageRows.scanTable(open(), scan);
  expect(page).toEqual({ rows: [], more: true });
  await switchOwner(storage);
  expect((await storageRows.scanTable(open(), { ...scan, resume })).rows).toMatchObject([
    { partition: PARTITION, row: 'a' },
  ]);
});

test('continues a paused read of a partition at its new owner without the continuation of the former one', async () => {
  const { open, storage, memoryOf, requests } = await beginMove('at rest');
  for (const row of ['a', 'b']) await insert(storage, row);
  const memory = memoryOf('first');
  // The service returns a continuation if it finds nothing for five seconds.
  memory.intercept = async (request, send) => {
    const reply = await send();
    if (request.method !== 'GET' || !decodeURIComponent(request.url).includes(`eq '${PARTITION}'`)) return reply;
    reply.headers.set('x-ms-continuation-nextpartitionkey', 'cGFydGl0aW9u');
    reply.headers.set('x-ms-continuation-nextrowkey', 'cm93');
    return { ...reply, bodyAsText: JSON.stringify({ value: [] }) };
  };
  const range = { ...AT, from: '', limit: 10, mayPause: true };
  const { resume, ...page } = await storageRows.readRange(storage, range);
  expect(page).toEqual({ rows: [], more: true });
  expect((await storageRows.readRange(storage, { ...range, resume })).resume).toBe(resume);
  const sent = () => requests.filter(({ url }) => url.includes('NextRowKey=cm93')).map(({ account }) => account);
  expect(new Set(sent())).toEqual(new Set(['first']));
  memory.intercept = undefined;
  await switchOwner(storage);
  requests.length = 0;
  expect((await storageRows.readRange(open(), { ...range, resume })).rows).toHaveLength(2);
  expect(sent()).toEqual([]);
});

test('seals a partition against a request that opens it between the two of the seal', async () => {
  const { storage, memoryOf } = await beginMove();
  const first = accountNamed(storage, 'first');
  const memory = memoryOf('first');
  const rows = [`~open_${MOVE}`, `~own_${MOVE}`];
  let requests = 0;
  memory.intercept = async (_, send) => {
    requests += 1;
    if (requests === 2) {
      memory.intercept = undefined;
      const actions = rows.map((row): Action => ({ kind: 'insert', row, properties: {} }));
      await write(first, ...actions).catch(() => {});
    }
    return send();
  };
  await sealPartition(first, MOVE, AT);
  expect(memory.intercept).toBeUndefined();
  expect(await rowsAt(first)).toEqual([`~open_${MOVE}`]);
});

test('reads again if the slot came back under another move during the read', async () => {
  const { storage, open, memoryOf } = await beginMove();
  await insert(storage, 'a');
  const first = accountNamed(storage, 'first');
  const memory = memoryOf('first');
  memory.intercept = async (request, send) => {
    const reply = await send();
    if (!/things/.test(request.url)) return reply;
    memory.intercept = undefined;
    await switchOwner(storage);
    await set(storage, 'second', 'gone');
    await write(first, { kind: 'upsert', row: 'a', properties: { Value: 2 } });
    const state = { phase: 'fencing', move: '!m2', to: 'second' } as const;
    expect(await storageSlots.changeSlots(first, [SLOT], () => state)).toBeDefined();
    return reply;
  };
  expect((await storageRows.readRow(open(), { ...AT, row: 'a' }))?.properties.Value).toBe(2);
});

test('changes slots of an account beside another process', async () => {
  const { storage } = await beginMove('at rest');
  const first = accountNamed(storage, 'first');
  const state = { phase: 'fencing', move: MOVE, to: 'second' } as const;
  await Promise.all(['000', '001', '002'].map((slot) => storageSlots.changeSlots(first, [slot], () => state)));
  expect((await storageSlots.readOwned(first))?.moves.size).toBe(3);
});

test('uses what it knows of a slot at rest for five seconds, and a read for less than the wait of a mover', async () => {
  const { storage, open, memoryOf } = await beginMove('at rest');
  await insert(storage, 'a');
  const now = performance.now.bind(performance);
  let passed = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + passed);
  try {
    const [reader, writer] = [open(), open()];
    for (const process of [reader, writer]) await storageSlots.ownerOf(process, PARTITION);
    const memory = memoryOf('first');
    memory.intercept = async (request, send) => {
      const reply = await send();
      if (!/things/.test(request.url)) return reply;
      memory.intercept = undefined;
      passed += 25_000;
      await switchOwner(storage);
      await write(accountNamed(storage, 'second'), { kind: 'upsert', row: 'a', properties: { Value: 2 } });
      return reply;
    };
    expect((await storageRows.readRow(reader, { ...AT, row: 'a' }))?.properties.Value).toBe(2);
    await insert(writer, 'b');
    expect(await rowsAt(accountNamed(storage, 'second'))).toEqual(['a', 'b']);
  } finally {
    clock.mockRestore();
  }
});

test('repeats no write for so long that a move could have begun and ended, even if its caller waits', async () => {
  const { storage, memoryOf } = await provisionAccounts(['first', 'second']);
  await storageSlots.ownerOf(storage, PARTITION);
  const memory = memoryOf('first');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let sent = 0;
  memory.intercept = async (request) => {
    sent += 1;
    // No reply, until the caller gives up.
    await new Promise((_, reject) => {
      request.abortSignal?.addEventListener('abort', () =>
        reject(Object.assign(new Error('Given up.'), { name: 'AbortError' })),
      );
      vi.advanceTimersByTimeAsync(14_000).then(() => vi.advanceTimersByTimeAsync(1_000));
    });
    throw new Error('The request was not aborted.');
  };
  const { signal } = new AbortController();
  const writing = storageRows.submit(storage, {
    ...AT,
    signal,
    actions: [{ kind: 'insert', row: 'a', properties: {} }],
  });
  await expect(writing)
    .rejects.toMatchObject({ code: 'storage-unavailable' })
    .finally(() => vi.useRealTimers());
  expect(sent).toBe(1);
});

test.runIf(IS_EVERY_POINT)(
  'opens a slot again whose writes wait for a mover that has died',
  async () => {
    const { storage, open } = await beginMove('draining');
    await Promise.all([insert(storage, 'a'), insert(open(), 'b')]);
    expect(await rowsAt(open())).toEqual(['a', 'b']);
    expect((await storageSlots.ownerOf(open(), PARTITION)).name).toBe('first');
  },
  30_000,
);

const FORMER = 'mwy512yl949b8d40';

test('tells rows of a move of an earlier release from entities by their properties, also in a projection', async () => {
  const { storage, requests } = await provisionAccounts(['first', 'second']);
  const named = ['~own_1999', `~own_${FORMER}`, '~open_', '~accounts', '~containers'];
  for (const row of ['a', ...named]) await insert(storage, row);
  const fence = { kind: 'insert', row: `~open_${FORMER}`, properties: {} } as const;
  await write(accountNamed(storage, 'first'), fence);
  const wanted = ['a', ...named].sort();
  const read = async (select?: readonly string[]) => {
    const { rows } = await storageRows.readRange(storage, { ...AT, from: '', select });
    const scanned = await storageRows.scanTable(storage, { table: TABLE, select, limit: 100 });
    expect(scanned.rows.map(({ row }) => row)).toEqual(rows.map(({ row }) => row));
    return rows;
  };
  for (const select of [undefined, ['Value'], ['Absent'], ['EntityType']])
    expect((await read(select)).map(({ row }) => row)).toEqual(wanted);
  expect((await read(['Value']))[0]?.properties).toMatchObject({ Value: 1 });
  await write(storage, { kind: 'delete', row: `~own_${FORMER}` });
  await write(accountNamed(storage, 'first'), { kind: 'delete', row: fence.row });
  requests.length = 0;
  expect((await storageRows.readRange(storage, { ...AT, from: '', select: ['Absent'] })).rows).toHaveLength(
    wanted.length - 1,
  );
  expect(requests).toHaveLength(1);
});

test('deletes what a move of an earlier release has left in a partition, and no entity with such a key', async () => {
  const { storage } = await provisionAccounts(['first', 'second']);
  const first = accountNamed(storage, 'first');
  await storageRows.submit(first, {
    table: 'system',
    partition: `slots-${FORMER}-${SLOT}`,
    actions: [{ kind: 'insert', row: 'x', properties: { Table: TABLE, Partition: PARTITION } }],
  });
  await write(first, { kind: 'insert', row: `~open_${FORMER}`, properties: {} });
  await insert(storage, `~own_${FORMER}`);
  await deleteFences(first, { isLive: () => false, before: Date.now() + 60_000 });
  expect(await rowsAt(storage)).toEqual([`~own_${FORMER}`]);
  expect(await Array.fromAsync(first.table(TABLE).listEntities(), ({ rowKey }) => rowKey)).toEqual([`~own_${FORMER}`]);
  expect(await listRegistered(first, FORMER)).toEqual([]);
});
