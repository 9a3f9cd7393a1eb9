import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { RestError } from '@azure/core-rest-pipeline';
import pMap from 'p-map';
import { expect, onTestFinished, test, vi } from 'vitest';
import { hasCode } from '../../../lib/base/errors.ts';
import type { PlacedLayer } from '../../../lib/define/places/placement.ts';
import { arrangeLayers, planLayers, planToLayer0 } from '../../../lib/operations/layers.ts';
import { abortMoves, cleanUp, moveBack, moveSlots, resumeMoves } from '../../../lib/operations/move-slots.ts';
import { becomeMover } from '../../../lib/operations/mover-hold.ts';
import {
  findOwner,
  layersIn,
  planBalance,
  readPlacement,
  slotsIn,
  stateIn,
} from '../../../lib/operations/placement.ts';
import { MOVE_TIMING, type MoveTiming } from '../../../lib/operations/slot-mover.ts';
import { deleteBlob, listContainer, writeBlob } from '../../../lib/storage/blobs.ts';
import { listTables, provision } from '../../../lib/storage/provision.ts';
import { type Action, readRange, readRow, scanTable, submit } from '../../../lib/storage/rows.ts';
import { LEASE_MS } from '../../../lib/storage/slot-map.ts';
import {
  changeLayers,
  changeSlots,
  indexIn,
  isOwned,
  type Phase,
  SYSTEM_TABLE,
} from '../../../lib/storage/slot-row.ts';
import {
  type LayerDefinition,
  layerMatcher,
  placeOf,
  slotAt,
  slotIndex,
  slotOf,
  subtractLayers,
} from '../../../lib/storage/slots.ts';
import type { Storage } from '../../../lib/storage/storage.ts';
import { tableSasSigner } from '../../../lib/storage/table-sas.ts';
import { IS_EVERY_POINT, sampleItems, samplePoints } from '../../points.ts';
import { accountNamed, createAccounts, FAULTS, RESOURCES, type Several, TABLE } from '../storage/several-accounts.ts';

/** Nothing is late in memory, and each process of these tests reads the map when it begins. */
const QUICK: MoveTiming = {
  ...MOVE_TIMING,
  leaseMs: 200,
  lateMs: 100,
  holdMs: 1_000,
  keepMs: 0,
};
const quick = { timing: QUICK, resources: RESOURCES };

const at = (partition: string) => ({ table: TABLE, partition });
const write = (storage: Storage, partition: string, ...actions: Action[]) =>
  submit(storage, { ...at(partition), actions });
const put = (storage: Storage, partition: string, row: string, value: unknown) =>
  write(storage, partition, { kind: 'upsert', row, properties: { EntityType: 'thing', Value: value } });

/** Two accounts of which the first has all slots and some partitions. */
async function storageToMove(partitions = 12, names = ['first', 'second']) {
  const created = createAccounts(names);
  const alone = created.open(1);
  await provision(alone, RESOURCES);
  const keys = Array.from({ length: partitions }, (_, index) => `p${index}`);
  for (const key of keys) await put(alone, key, 'a', key);
  const storage = created.open() as Several;
  await provision(storage, RESOURCES);
  await scanTable(storage, { table: TABLE, limit: 1 });
  return { ...created, storage, keys, slots: [...new Set(keys.map(slotOf))] };
}

/** The rows of a table as a new process reads them. */
async function contentsOf(storage: Storage) {
  const { rows } = await scanTable(storage, { table: TABLE, limit: 10_000 });
  return Object.fromEntries(rows.map(({ partition, row, properties }) => [`${partition}/${row}`, properties.Value]));
}

/** All rows of an account, those of moves as well. */
async function rowsIn(storage: Several, account: string) {
  const rows: string[] = [];
  for await (const { partitionKey, rowKey } of accountNamed(storage, account).table(TABLE).listEntities())
    rows.push(`${partitionKey}/${rowKey}`);
  return rows.sort();
}

test('moves the rows of slots with their types, and back', async () => {
  const { open, storage, keys, slots } = await storageToMove();
  const values = {
    Whole: { type: 'Double', value: '5' },
    Half: 0.5,
    Long: 12_345_678_901n,
    Small: 7,
    Text: 'ä\u{1F600}',
    At: new Date(0),
    Bytes: Buffer.from([0, 255]),
    Id: { type: 'Guid', value: '11111111-1111-4111-8111-111111111111' },
    Is: true,
  };
  await write(storage, 'p1', { kind: 'insert', row: 'types', properties: values });
  const filter = { queryOptions: { filter: 'Whole eq 5.0 and Small eq 7' } };
  const moved = slots.filter((slot) => slot !== slotOf('p0'));
  const report = await moveSlots(storage, [{ slots: moved, to: 'second' }], quick);
  expect(report).toMatchObject({ slots: moved.length, rows: keys.length, written: keys.length, deleted: 0, left: [] });
  expect(report.pauses).toHaveLength(moved.length);
  expect(await rowsIn(storage, 'second')).toEqual([...keys.slice(1).map((key) => `${key}/a`), 'p1/types'].sort());
  const typed = await Array.fromAsync(accountNamed(storage, 'second').table(TABLE).listEntities(filter));
  expect(typed).toMatchObject([
    { rowKey: 'types', Whole: 5, Half: 0.5, Long: 12_345_678_901n, Text: 'ä\u{1F600}', Is: true },
  ]);
  let stored = '';
  await accountNamed(storage, 'second')
    .table(TABLE)
    .getEntity('p1', 'types', { onResponse: ({ bodyAsText }) => (stored = bodyAsText ?? '') });
  // Not an Int32, which storage returns without the fraction.
  expect(stored).toContain('"Whole":5.0');
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length + 1);

  await put(open(), 'p1', 'new', 1);
  await write(open(), 'p1', { kind: 'delete', row: 'a' });
  const back = await moveBack(open(), undefined, quick);
  expect(back).toMatchObject({ slots: moved.length, written: 1, deleted: 1 });
  expect(await contentsOf(open())).toMatchObject({ 'p1/new': 1, 'p2/a': 'p2' });
  expect(await contentsOf(open())).not.toHaveProperty('p1/a');
  expect(await cleanUp(open(), quick)).toEqual({ slots: moved.length, rows: keys.length, blobs: 0, kept: 0 });
  expect(await rowsIn(storage, 'second')).toEqual([]);
});

test('keeps the rows at the source until clients use it no more, by the clock of the service', async () => {
  const { storage, keys, slots } = await storageToMove(3);
  await moveSlots(storage, [{ slots, to: 'second' }], quick);
  const now = Date.now();
  vi.spyOn(Date, 'now').mockImplementation(() => now + 3_600_000);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await cleanUp(storage, { ...quick, timing: { ...QUICK, keepMs: 60_000 } })).toEqual({
    slots: 0,
    rows: 0,
    blobs: 0,
    kept: slots.length,
  });
  expect(await rowsIn(storage, 'first')).toHaveLength(keys.length);
});

test('waits until clients can no longer write with a grant, and signs none to write meanwhile', async () => {
  const { open, slots } = await storageToMove(2);
  const request = { table: TABLE, partition: 'p1', startsAt: new Date(0), expiresAt: new Date(1) };
  const signed: string[] = [];
  const waits: number[] = [];
  await moveSlots(open(), [{ slots, to: 'second' }], {
    ...quick,
    grantedForMs: 900,
    onProgress(progress) {
      if (progress.what !== 'wait') return;
      waits.push(progress.leftMs);
      const { sign } = tableSasSigner(open());
      for (const permissions of ['r', 'a'])
        void sign({ ...request, permissions }).then(
          () => signed.push(permissions),
          ({ code }) => signed.push(code),
        );
    },
  });
  expect(waits[0]).toBeGreaterThan(900);
  expect(new Set(signed)).toEqual(new Set(['r', 'storage-unavailable']));
  await expect(tableSasSigner(open()).sign({ ...request, permissions: 'a' })).resolves.toContain('sp=a');
});

test('aborts a move that a mover has left, and refuses to begin another one', async () => {
  const { openWith, open, storage, keys, slots } = await storageToMove();
  // It crashes after it has copied.
  const dead = openWith('crash before', 30);
  await expect(moveSlots(dead.storage, [{ slots, to: 'second' }], quick)).rejects.toThrow();
  await put(open(), 'p1', 'b', 1);
  await expect(moveSlots(open(), [{ slots, to: 'second' }], quick)).rejects.toThrow(
    'is moving. Resume or abort its move first.',
  );
  expect((await abortMoves(open(), quick)).left.length).toBeGreaterThan(0);
  const placements = await readPlacement(storage.accounts);
  for (const slot of slots) expect(findOwner(placements, slot)?.account.name).toBe('first');
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length + 1);
  const openedIn = async () => (await rowsIn(storage, 'first')).filter((row) => row.includes('~open_'));
  // A request that opens a partition may still be under way: the mark is there before it is.
  await cleanUp(open(), { ...quick, timing: { ...QUICK, keepMs: 60_000 } });
  expect(await openedIn()).toHaveLength(1);
  await cleanUp(open(), quick);
  expect((await rowsIn(storage, 'first')).filter((row) => row.includes('~'))).toEqual([]);
});

test('deletes what an aborted move has copied, and nothing that another move has left there', async () => {
  const { open, storage, keys, slots } = await storageToMove();
  const name = `${slots[1]}/photo`;
  await writeBlob(storage, { container: 'files', name }, Buffer.from(name), { type: 'text/plain' });
  const [first = '', ...others] = slots;
  await moveSlots(open(), [{ slots: [first], to: 'second' }], quick);
  await moveSlots(open(), [{ slots: [first], to: 'first' }], quick);
  const interruption = new AbortController();
  const interrupted = moveSlots(open(), [{ slots, to: 'second' }], {
    ...quick,
    signal: interruption.signal,
    onProgress: ({ what }) => what === 'switch' && interruption.abort(),
  });
  await expect(interrupted).rejects.toThrow('aborted');
  const inSecond = () => rowsIn(storage, 'second');
  expect(await inSecond()).toHaveLength(keys.length);
  expect(await abortMoves(open(), quick)).toMatchObject({ deleted: others.length });
  expect(await inSecond()).toEqual(keys.filter((key) => slotOf(key) === first).map((key) => `${key}/a`));
  const blobs = listContainer(accountNamed(storage, 'second'), 'files');
  expect(await Array.fromAsync(blobs, (blob) => blob.name)).toEqual([]);
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length);
});

test('moves the rows of tables that the model no longer has, and leaves those of other apps', async () => {
  const { open, storage, slots } = await storageToMove(1);
  const shape = { version: 1, table: 'former', partition: '{id}', row: 'r', indexes: {}, unbuilt: [] };
  const leftOver = { name: { kind: 'interPartition', table: 'formerbyname', partition: '{name}', row: 'r' } };
  await submit(storage, {
    table: SYSTEM_TABLE,
    partition: 'model',
    actions: [{ kind: 'insert', row: 'former', properties: { Shape: JSON.stringify({ ...shape, leftOver }) } }],
  });
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const actions: Action[] = [{ kind: 'insert', row: 'r', properties: {} }];
  for (const table of ['former', 'formerbyname', 'others']) {
    await first.table(table).createTable();
    await submit(first, { table, partition: 'p0', actions });
  }
  await moveSlots(open(), [{ slots, to: 'second' }], quick);
  await cleanUp(open(), quick);
  expect(await listTables(second, '')).toEqual(['former', 'formerbyname', SYSTEM_TABLE, TABLE]);
  for (const [account, table, count] of [
    [first, 'former', 0],
    [second, 'former', 1],
    [second, 'formerbyname', 1],
    [first, 'others', 1],
  ] as const)
    expect((await readRange(account, { table, partition: 'p0', from: '' })).rows).toHaveLength(count);
});

test('rejects a move for which the row of an account has no room, and begins none', async () => {
  const { open, storage, slots } = await storageToMove(1);
  const first = accountNamed(storage, 'first');
  const others = Array.from({ length: 320 }, (_, index) => slotAt(index)).filter((slot) => !slots.includes(slot));
  const state = { phase: 'gone', to: 'second', turn: 1, goneAt: Date.now() } as const;
  await changeSlots(first, others, (_, slot) => ({ ...state, move: `m1234567890abc${slot}` }));
  await changeSlots(accountNamed(storage, 'second'), others, () => ({ phase: 'at rest' }));
  const plans = [{ slots, to: 'second' }];
  await expect(moveSlots(open(), plans, quick)).rejects.toThrow('has no room for another move');
  await cleanUp(open(), quick);
  expect(await moveSlots(open(), plans, quick)).toMatchObject({ slots: 1, left: [] });
});

test('keeps a blob that another process has written at the target since it was listed', async () => {
  const { open, storage, memories } = await storageToMove(1);
  const [container = ''] = RESOURCES.containers;
  const [at, second] = [{ container, name: '07a/one' }, accountNamed(storage, 'second')];
  const [, memory] = memories;
  if (!memory) throw new Error('There is no account.');
  await writeBlob(storage, at, Buffer.from('old'), { type: 'text/plain' });
  memory.intercept = async (request, send) => {
    if (request.method !== 'PUT' || !request.url.includes(at.name)) return send();
    memory.intercept = undefined;
    await writeBlob(second, at, Buffer.from('new'), { type: 'text/plain' });
    return send();
  };
  expect((await moveSlots(open(), [{ slots: ['07a'], to: 'second' }], quick)).blobs).toBe(0);
  expect(memory.intercept).toBeUndefined();
  expect((await second.container(container).getBlobClient(at.name).downloadToBuffer()).toString()).toBe('new');
});

test('moves the blobs of slots, and leaves those of others and of containers without slots', async () => {
  const { open, storage } = await storageToMove(1);
  const container = RESOURCES.containers[0] ?? '';
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  const content = { type: 'text/plain', cacheControl: 'max-age=5', metadata: { owner: 'x' } };
  const names = ['07a/one', '07a/two', '0f1/other', 'old'];
  for (const name of names) await writeBlob(storage, { container, name }, Buffer.from(name), content);
  await writeBlob(storage, { container, name: '07a/empty' }, Buffer.alloc(0), content);
  const namesIn = (account: Storage) => Array.fromAsync(listContainer(account, container), ({ name }) => name);
  const slots = ['07a', slotOf('old')];
  expect((await moveSlots(open(), [{ slots, to: 'second' }], quick)).blobs).toBe(4);
  expect(await namesIn(second)).toEqual(['07a/empty', '07a/one', '07a/two', 'old']);
  const copied = await second.container(container).getBlobClient('07a/one').getProperties();
  const original = await first.container(container).getBlobClient('07a/one').getProperties();
  for (const name of ['contentType', 'cacheControl', 'metadata', 'contentLength', 'contentMD5'] as const)
    expect(copied[name]).toEqual(original[name]);
  // A client that has a grant of the former account.
  await writeBlob(first, { container, name: '07a/late' }, Buffer.from('late'), content);
  await deleteBlob(open(), { container, name: '07a/two' });
  expect(await cleanUp(open(), quick)).toMatchObject({ blobs: 4 });
  expect(await namesIn(first)).toEqual(['0f1/other']);
  expect(await namesIn(open())).toEqual(['07a/empty', '07a/late', '07a/one', '0f1/other', 'old']);
});

test.each([
  { what: 'few opened partitions at a time', timing: { openedPerSwitch: 2 }, expected: [0, 2, 4, 6] },
  { what: 'fewer after a long pause', timing: { openedPerSwitch: 3, pauseMs: 0 }, expected: [0, 3, 4, 5, 6] },
])('lets writes wait for $what', async ({ timing, expected }) => {
  const { open, storage, keys, slots } = await storageToMove(6);
  const writer = open();
  const switched: number[] = [];
  let written: Promise<unknown> | undefined;
  const { left } = await moveSlots(storage, [{ slots, to: 'second' }], {
    ...quick,
    timing: { ...QUICK, ...timing },
    onProgress(progress) {
      if (progress.what === 'wait') written ??= pMap(keys, (key) => put(writer, key, 'b', 1));
      if (progress.what === 'switch') switched.push(progress.slots);
    },
  });
  await written;
  expect(left).toEqual([]);
  expect(slots).toHaveLength(6);
  expect(switched).toEqual(expected);
  expect(await rowsIn(storage, 'second')).toEqual(keys.flatMap((key) => [`${key}/a`, `${key}/b`]).sort());
});

test('moves closed slots without fences', async () => {
  const { open, memories, storage, keys, slots } = await storageToMove();
  const phases = new Set<string>();
  for (const memory of memories)
    memory.intercept = (request, send) => {
      for (const phase of /"Slots":"([^"]+)"/.exec(String(request.body))?.[1] ?? '') phases.add(phase);
      return send();
    };
  await moveSlots(storage, [{ slots, to: 'second' }], { ...quick, isClosed: true });
  expect(phases).toEqual(new Set(['o', 'd', 'g', '-']));
  expect((await rowsIn(storage, 'first')).filter((row) => row.includes('~'))).toEqual([]);
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length);
  expect(await rowsIn(storage, 'second')).toHaveLength(keys.length);
});

test('spreads the slots evenly over an account that was added, with as few moves as possible', async () => {
  const { open } = createAccounts();
  const two = open(2);
  await provision(two, RESOURCES);
  await scanTable(two, { table: TABLE, limit: 1 });
  await provision(open(), RESOURCES);
  const { accounts } = open() as Several;
  const before = await readPlacement(accounts);
  expect(before.map((placement) => slotsIn(placement, 'at rest').length)).toEqual([2_048, 2_048, 0]);
  const [plan, ...others] = planBalance(before);
  expect(others).toEqual([]);
  expect(plan?.to).toBe('third');
  expect(plan?.slots).toHaveLength(1_365);
  const counts = before.map((placement) => plan?.slots.filter((slot) => findOwner(before, slot) === placement).length);
  expect(counts).toEqual([682, 683, 0]);
});

test('has one mover at a time', async () => {
  const { open, slots } = await storageToMove(4);
  const [one, other] = [slots.slice(0, 2), slots.slice(2)];
  const reports = await Promise.all([
    moveSlots(open(), [{ slots: one, to: 'second' }], quick),
    moveSlots(open(), [{ slots: other, to: 'second' }], quick),
  ]);
  expect(reports.map((report) => report.slots)).toEqual([one.length, other.length]);
});

/** A move of all slots whose mover has died between the seal and the switch, and the partition that was opened. */
async function sealedMove() {
  const created = await storageToMove(2);
  const { storage, open, slots } = created;
  const first = accountNamed(storage, 'first');
  const setAll = (phase: Phase) =>
    changeSlots(first, slots, () => ({ phase, move: 'm1', to: 'second', turn: 1, isClosed: false, goneAt: 0 }));
  await setAll('fencing');
  await put(open(), 'p1', 'b', 1);
  await setAll('draining');
  return { ...created, first };
}

test('reports and repeats what a mover has left between the seal and the switch', async () => {
  const { open, memories, slots } = await sealedMove();
  const late = { ...quick, timing: { ...QUICK, pauseWithinMs: -1 } };
  const ids = new Set<string>();
  for (const memory of memories)
    memory.intercept = (request, send) => {
      for (const [, id] of String(request.body).matchAll(/\\"(m\w+)\\":/g)) if (id) ids.add(id);
      return send();
    };
  expect(await resumeMoves(open(), late)).toMatchObject({ slots: 0, left: slots });
  // Each attempt has an id of its own: marks of the earlier one keep partitions closed.
  expect(ids.size).toBe(3);
});

test('copies again what a lost request has not copied', async () => {
  const { open, memories, keys, slots } = await storageToMove(2);
  const [, memory] = memories;
  if (!memory) throw new Error('There is no account.');
  memory.intercept = async (request, send) => {
    if (request.method === 'GET' || !`${request.url}${request.body}`.includes('p1')) return send();
    memory.intercept = undefined;
    throw new RestError('request lost', { code: 'ECONNRESET', request });
  };
  await moveSlots(open(), [{ slots, to: 'second' }], quick);
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length);
});

test('creates a table at the target that was created at the source alone', async () => {
  const { open, storage, first, slots } = await sealedMove();
  for (const { row } of (await readRange(first, { ...at('p0'), from: '' })).rows)
    await write(first, 'p0', { kind: 'delete', row });
  await accountNamed(storage, 'second').table(TABLE).deleteTable();
  expect(await resumeMoves(open(), quick)).toMatchObject({ slots: slots.length, left: [] });
  expect(await contentsOf(open())).toEqual({ 'p1/a': 'p1', 'p1/b': 1 });
});

test('keeps what was sealed at the source closed while requests may be late', async () => {
  const { open, storage } = await sealedMove();
  await resumeMoves(open(), quick);
  await cleanUp(open(), { ...quick, timing: { ...QUICK, keepMs: 60_000 } });
  expect(await rowsIn(storage, 'first')).toContain('p1/~open_m1');
  await cleanUp(open(), quick);
  expect(await rowsIn(storage, 'first')).toEqual([]);
});

test('moves a slot back to the last account that it has left', async () => {
  const { open, storage } = await storageToMove(2, ['first', 'second', 'third']);
  const slots = [slotOf('p1')];
  for (const to of ['second', 'third']) await moveSlots(open(), [{ slots, to }], quick);
  expect(await moveBack(open(), undefined, quick)).toMatchObject({ slots: 1, left: [] });
  expect(findOwner(await readPlacement(storage.accounts), slotOf('p1'))?.account.name).toBe('second');
});

/** Writes, deletes and reads rows in each partition until it is ended, and remembers what must be there. */
function createTraffic(open: () => Storage, keys: readonly string[]) {
  const known = new Map<string, unknown>(keys.map((key) => [`${key}/a`, key]));
  let isOver = false;
  const work = async (key: string) => {
    for (let round = 1; !isOver; round += 1) {
      const storage = open();
      const row = ['a', 'b', 'c'][round % 3] ?? '';
      const isDelete = round % 4 === 3;
      if (isDelete) await put(storage, key, row, 'to be deleted');
      if (isDelete) await write(storage, key, { kind: 'delete', row });
      else await put(storage, key, row, round);
      known.set(`${key}/${row}`, isDelete ? undefined : round);
      const found = await readRow(storage, { ...at(key), row });
      expect(found?.properties.Value, `${key}/${row} in round ${round}`).toBe(known.get(`${key}/${row}`));
      await sleep(20);
    }
  };
  const running = Promise.all(keys.map(work));
  return {
    async end() {
      isOver = true;
      await running;
    },
    /** The rows that must be there. */
    rows: () => Object.fromEntries([...known].filter(([, value]) => value !== undefined)),
  };
}

/** Continues with other movers. A machine that is busy elsewhere may not renew the hold of one in time. */
async function resume(open: () => Storage, attempts = 10): Promise<unknown> {
  return resumeMoves(open(), quick).catch((error: unknown) => {
    if (attempts === 0 || !hasCode(error, 'busy')) throw error;
    return resume(open, attempts - 1);
  });
}

test.each(FAULTS)('loses nothing if the mover meets a fault at any call: %s', async (fault) => {
  const play = async (call: number) => {
    const { openWith, open, storage, keys, slots } = await storageToMove(5);
    const label = `${fault} at call ${call}`;
    const traffic = createTraffic(open, keys.slice(0, 2));
    const mover = openWith(call === 0 ? undefined : fault, call);
    const moving = moveSlots(mover.storage, [{ slots, to: 'second' }], quick);
    await moving.catch(() => resume(open));
    await traffic.end();
    const placements = await readPlacement(storage.accounts);
    // The mover may have died before it began.
    expect(new Set(slots.map((slot) => findOwner(placements, slot)?.account.name)).size, label).toBe(1);
    const others = Object.fromEntries(keys.slice(2).map((key) => [`${key}/a`, key]));
    expect(await contentsOf(open()), label).toEqual({ ...others, ...traffic.rows() });
    return mover.countCalls();
  };
  const calls = await play(0);
  expect(calls).toBeGreaterThan(40);
  await pMap(samplePoints(calls), play, { concurrency: IS_EVERY_POINT ? 8 : 2 });
});

/** Requests are executed late, but within this time. */
const LATE = { ...quick, timing: { ...QUICK, lateMs: 400 } };

test('waits for copies without a reply before it hands over', async () => {
  const { open, memories, slots } = await storageToMove(2);
  const [, memory] = memories;
  if (!memory) throw new Error('There is no account.');
  memory.intercept = async (request, send) => {
    if (request.method === 'GET' || !`${request.url}${request.body}`.includes('p1')) return send();
    memory.intercept = undefined;
    setTimeout(send, 0.75 * LATE.timing.lateMs);
    await put(open(), 'p1', 'a', 'new');
    throw new RestError('reply lost', { code: 'ECONNRESET', request });
  };
  await moveSlots(open(), [{ slots, to: 'second' }], LATE);
  expect(memory.intercept).toBeUndefined();
  expect(await contentsOf(open())).toMatchObject({ 'p1/a': 'new' });
});

test('hands over nothing while the last copy may still be executed', async () => {
  const { open, memories, first } = await sealedMove();
  const [source, target] = memories;
  if (!source || !target) throw new Error('There are no accounts.');
  let writing: Promise<unknown> | undefined;
  source.intercept = async (request, send) => {
    if (!String(request.body).includes('~open_m1')) return send();
    source.intercept = undefined;
    // The last write before the seal, whose copy is executed late.
    await put(first, 'p1', 'a', 'old');
    target.intercept = async (copy, execute) => {
      if (copy.method === 'GET' || !`${copy.url}${copy.body}`.includes('p1')) return execute();
      target.intercept = async (accept, change) => {
        const reply = await change();
        if (!writing && accept.method !== 'GET' && String(accept.body).includes('"Slots"')) {
          target.intercept = undefined;
          writing = put(open(), 'p1', 'a', 'new');
        }
        return reply;
      };
      setTimeout(execute, 0.75 * LATE.timing.lateMs);
      throw new RestError('reply lost', { code: 'ECONNRESET', request: copy });
    };
    return send();
  };
  await resumeMoves(open(), LATE);
  await writing;
  await sleep(LATE.timing.lateMs);
  expect(await contentsOf(open())).toMatchObject({ 'p1/a': 'new', 'p1/b': 1 });
});

test('gives a slot to nobody before its owner has let it go', async () => {
  const { open, memories, storage, slots } = await storageToMove(2);
  const owners: number[] = [];
  for (const memory of memories)
    memory.intercept = async (request, send) => {
      const reply = await send();
      if (request.method === 'GET' || !String(request.body).includes('"Slots"')) return reply;
      const placements = await readPlacement(storage.accounts);
      owners.push(...slots.map((slot) => placements.filter(({ owned }) => isOwned(owned, slotIndex(slot))).length));
      return reply;
    };
  await moveSlots(open(), [{ slots, to: 'second' }], quick);
  for (const memory of memories) memory.intercept = undefined;
  expect(new Set(owners)).toEqual(new Set([0, 1]));
});

test('lets a mover write no longer than its hold', async () => {
  const { storage } = await storageToMove(1);
  const [first] = storage.accounts.list;
  const hold = await becomeMover(first, { holdMs: 100, lateMs: 0 });
  hold.mayWrite();
  hold.stop();
  await sleep(110);
  expect(() => hold.mayWrite()).toThrow('Another mover of slots has taken over');
});

test.each(FAULTS)('keeps what a writer knows to be written, whatever call of it meets a fault: %s', async (fault) => {
  const play = async (at: number) => {
    const { openWith, open, slots } = await storageToMove(2);
    // The partition is written while the slot is in the first phase, and its mover dead.
    const moving = moveSlots(openWith('crash before', 25).storage, [{ slots, to: 'second' }], quick);
    await expect(moving).rejects.toThrow();
    const { accounts } = open() as Several;
    const [first] = await readPlacement(accounts);
    expect(first && stateIn(first, slotOf('p0')).phase).toBe('fencing');
    const writer = openWith(fault, at).storage;
    const isWritten = await put(writer, 'p0', 'b', 1).then(
      () => true,
      () => false,
    );
    const resumed = resume(open);
    const others = createTraffic(open, ['p1']);
    await resumed;
    await others.end();
    const found = await contentsOf(open());
    if (isWritten) expect(found['p0/b'], `${fault} at call ${at}`).toBe(1);
    delete found['p0/b'];
    expect(found).toEqual({ 'p0/a': 'p0', ...others.rows() });
  };
  await pMap(samplePoints(7), play, { concurrency: 4 });
});

/** A process that uses the map for as long as it may. */
const kept = (open: () => Storage) => {
  const storage = open();
  return () => storage;
};

test.runIf(IS_EVERY_POINT)('loses nothing to processes that use the map until their lease ends', async () => {
  const { open, keys, slots } = await storageToMove(8);
  const timing = { ...QUICK, leaseMs: LEASE_MS };
  const traffic = createTraffic(kept(open), keys);
  const there = await moveSlots(open(), [{ slots, to: 'second' }], { ...quick, timing });
  expect(there.slots).toBe(slots.length);
  await moveBack(open(), undefined, { ...quick, timing });
  await traffic.end();
  expect(await contentsOf(open())).toEqual(traffic.rows());
});

test('counts the hold of a mover from the write that changed its row, if the reading of that write failed', async () => {
  const { storage, memories } = await storageToMove(1);
  const [first] = storage.accounts.list;
  vi.useFakeTimers({ toFake: ['setInterval', 'performance'] });
  try {
    const hold = await becomeMover(first, { holdMs: 500, lateMs: 0 });
    const [memory] = memories;
    if (!memory) throw new Error('There is no account.');
    let renewals = 0;
    memory.intercept = async (request, send) => {
      if (request.method === 'PUT') renewals += 1;
      if (request.method === 'GET' && renewals === 1) throw new RestError('away', { statusCode: 400, request });
      return send();
    };
    for (const renewal of [1, 2]) {
      vi.advanceTimersByTime(100);
      while (renewals < renewal) await setImmediate();
      await sleep(20);
    }
    hold.stop();
    vi.advanceTimersByTime(350);
    hold.mayWrite();
    vi.advanceTimersByTime(100);
    expect(() => hold.mayWrite()).toThrow('Another mover of slots has taken over');
  } finally {
    vi.useRealTimers();
  }
});

test('gives a slot without an owner to the account to which it went last', async () => {
  const { open, storage, slots } = await storageToMove(1, ['first', 'second', 'third']);
  for (const [name, to, turn] of [
    ['first', 'second', 1],
    ['second', 'third', 2],
  ] as const)
    await changeSlots(accountNamed(storage, name), slots, () => ({ phase: 'gone', move: `m${turn}`, to, turn }));
  await resumeMoves(open(), quick);
  expect(findOwner(await readPlacement(storage.accounts), slots[0] ?? '')?.account.name).toBe('third');
});

const ACME = { name: 'acme', keys: ['acme'], separator: '_' };
const TENANTS = ['acme', 'acme_1', 'acme_2', 'acmeco', 'globex'];

async function storageWithTenants() {
  const created = await storageToMove(1);
  for (const key of TENANTS) await put(created.open(), key, 'a', key);
  return created;
}

/** Carves the layer and brings it to an account. Continues where another process has died. */
async function bring(process: Storage, to: string, layer: LayerDefinition = ACME): Promise<unknown> {
  await arrangeLayers(process, [{ layer, account: to }], quick);
  const placements = await readPlacement((process as Several).accounts);
  await moveSlots(process, planLayers(placements, [{ layer, account: to }]), quick);
  return resumeMoves(process, quick);
}

const partitionsIn = async (storage: Several, account: string) => [
  ...new Set((await rowsIn(storage, account)).map((row) => row.split('/')[0])),
];

test('carves a tenant, moves its partitions alone, and removes the layer when it is back', async () => {
  const { open, storage } = await storageWithTenants();
  const stored = async () =>
    Object.keys(await accountNamed(storage, 'first').table('system').getEntity('slots', 'owned')).filter((name) =>
      /Slots|Moves|Layers/.test(name),
    );
  expect(await stored()).toEqual(['Slots', 'Moves']);
  const stale = open();
  await readRow(stale, { ...at('acme_1'), row: 'a' });
  await bring(open(), 'second');
  expect(await stored()).toEqual(['Layers', 'Slots0', 'Moves0', 'Slots1', 'Moves1']);
  expect(await partitionsIn(storage, 'second')).toEqual(['acme', 'acme_1', 'acme_2']);
  await put(open(), 'acme_1', 'b', 'new');
  await put(open(), 'acme_3', 'a', 'acme_3');
  await put(open(), 'acmeco', 'b', 'new');
  const found = { 'acme_1/b': 'new', 'acme_3/a': 'acme_3', 'acmeco/b': 'new', 'globex/a': 'globex' };
  expect(await contentsOf(open())).toMatchObject(found);
  expect((await cleanUp(open(), quick)).rows).toBe(3);
  expect(await partitionsIn(storage, 'first')).toEqual(['acmeco', 'globex', 'p0']);
  await expect(
    arrangeLayers(open(), [{ layer: { ...ACME, separator: '-' }, account: 'second' }], quick),
  ).rejects.toThrow('"acme" has the separator "-", and "acme" in the storage accounts has "_"');

  await arrangeLayers(open(), [], quick);
  const plans = planToLayer0(await readPlacement(storage.accounts), 'acme');
  const { pauses } = await moveSlots(open(), plans, quick);
  expect(pauses).toHaveLength(4_096);
  const layers = async () => layersIn(await readPlacement(storage.accounts));
  await arrangeLayers(open(), [], quick);
  expect(await layers()).toMatchObject([{ number: 1, isFormer: true }]);
  await cleanUp(open(), quick);
  await arrangeLayers(open(), [], quick);
  expect(await layers()).toEqual([]);
  expect(await partitionsIn(storage, 'second')).toEqual([]);
  expect(await contentsOf(open())).toMatchObject({ ...found, 'acme/a': 'acme' });
  await arrangeLayers(open(), [{ layer: ACME, account: 'second' }], quick);
  expect(await layers()).toEqual([{ ...ACME, number: 4 }]);
});

test('completes a layer in an account that was added, before slots move there', async () => {
  const { open } = await storageToMove(3, ['first', 'second', 'third']);
  const two = open(2) as Several;
  await arrangeLayers(two, [{ layer: ACME, account: 'second' }], quick);
  const all = open() as Several;
  await put(all, 'acme', 'a', 1);
  await bring(all, 'third');
  expect(await partitionsIn(all, 'third')).toEqual(['acme']);
  expect((await readPlacement(all.accounts)).map(({ owned }) => owned.layers)).toEqual(
    all.accounts.list.map(() => ({ version: 1, list: [{ ...ACME, number: 1 }] })),
  );
});

test('reads no row of ownership again because an added account lacks a layer', async () => {
  const { open, requests } = await storageToMove(1, ['first', 'second', 'third']);
  const two = open(2);
  await put(two, 'acme_1', 'a', 1);
  await bring(two, 'second');
  const all = open() as Several;
  await provision(all, RESOURCES);
  const placements = await readPlacement(all.accounts);
  expect(placements.map(({ owned }) => owned.layers.version)).toEqual([1, 1, 0]);
  const process = open();
  await scanTable(process, { table: TABLE, limit: 1 });
  requests.length = 0;
  for (const key of ['acme_1', 'p0', 'acme_1', 'p0'])
    expect(await readRow(process, { ...at(key), row: 'a' }), key).toBeDefined();
  expect(requests).toHaveLength(4);
});

test('continues a scan that finds nothing for long while a layer is carved in one account only', async () => {
  const { open, storage, keys } = await storageToMove(80);
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  // What moves have left.
  for (const partition of keys)
    await submit(second, { ...at(partition), actions: [{ kind: 'insert', row: 'left', properties: {} }] });
  await write(storage, 'p0', { kind: 'delete', row: 'a' });
  await changeSlots(first, [slotOf('q')], () => ({ phase: 'none' }));
  await changeSlots(second, [slotOf('q')], () => ({ phase: 'at rest' }));
  await changeLayers(first, { version: 1, list: [{ ...ACME, number: 1 }] }, () => {});
  const process = open();
  let resume: string | undefined;
  const found: string[] = [];
  const places = new Set<string | undefined>();
  do {
    const bound = { rowsPerCall: 1, length: Number.POSITIVE_INFINITY };
    const page = await scanTable(process, { table: TABLE, limit: 100, bound, mayPause: true, resume });
    found.push(...page.rows.map(({ partition }) => partition));
    resume = page.resume;
    expect(places).not.toContain(resume);
    places.add(resume);
  } while (resume !== undefined);
  expect(found).toEqual(keys.slice(1).sort());
});

test('moves the blobs of the rows of an entity with it, and those of a tenant not', async () => {
  const { open, storage } = await storageWithTenants();
  const names = ['000/others/acme/1', `000/${TABLE}/acme/1`, `fff/${TABLE}/acme/2`, `${TABLE}/acme/3`];
  for (const name of names)
    await writeBlob(storage, { container: 'files', name }, Buffer.from(name), { type: 'text/plain' });
  const listIn = (account: string) =>
    Array.fromAsync(listContainer(accountNamed(storage, account), 'files'), ({ name }) => name);
  await bring(open(), 'second');
  expect(await listIn('second')).toEqual([]);
  await bring(open(), 'second', { name: 'work', tables: [TABLE] });
  expect(await listIn('second')).toEqual(names.slice(1, 3));
  await cleanUp(open(), quick);
  expect(await listIn('first')).toEqual([names[0], names[3]]);
  expect(await Array.fromAsync(listContainer(open(), 'files'), ({ name }) => name)).toEqual(names);
  expect(await partitionsIn(storage, 'second')).toEqual(['acme', 'acme_1', 'acme_2', 'acmeco', 'globex', 'p0']);
});

let callsOfLayer: number | undefined;

test.each(FAULTS)('loses nothing of a layer if its mover meets a fault at any call: %s', async (fault) => {
  const play = async (call: number) => {
    const { openWith, open, storage } = await storageWithTenants();
    const label = `${fault} at call ${call}`;
    const traffic = createTraffic(open, ['acme_1', 'globex']);
    const mover = openWith(call === 0 ? undefined : fault, call);
    const again = async (attempts = 10): Promise<unknown> =>
      bring(open(), 'second').catch((error: unknown) => {
        if (attempts === 0 || !hasCode(error, 'busy')) throw error;
        return resume(open).then(() => again(attempts - 1));
      });
    await bring(mover.storage, 'second').catch(() => resume(open).then(() => again()));
    await traffic.end();
    expect(await partitionsIn(storage, 'second'), label).toEqual(['acme', 'acme_1', 'acme_2']);
    const others = Object.fromEntries(['acme', 'acme_2', 'acmeco', 'p0'].map((key) => [`${key}/a`, key]));
    expect(await contentsOf(open()), label).toEqual({ ...others, ...traffic.rows() });
    return mover.countCalls();
  };
  callsOfLayer ??= await play(0);
  expect(callsOfLayer).toBeGreaterThan(40);
  await pMap(samplePoints(callsOfLayer), play, { concurrency: 4 });
});

const TABLES = [TABLE, 'others', 'indexes'];

/** A sequence of numbers that a seed determines. */
function createRandom(seed: number) {
  let state = seed;
  const below = (count: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
  return { below, someOf: <Item>(items: readonly Item[]) => items.filter(() => below(2) === 0) };
}

/** What a model may place: tenants, and entities, of all tenants or of some. */
function createModel({ below, someOf }: ReturnType<typeof createRandom>): PlacedLayer[] {
  const account = () => ['first', 'second', 'third'][below(3)] ?? '';
  const keys = someOf(TENANTS);
  const tables = someOf(TABLES).sort();
  const ofSome = below(3) === 0 ? { keys: ['acme_1', 'globex'], separator: '_' } : {};
  const sales = { layer: { name: 'sales', keys, separator: '_' }, account: account() };
  const work = { layer: { name: 'work', tables, ...ofSome }, account: account() };
  const placed = [...(keys.length > 0 ? [sales] : []), ...(tables.length > 0 ? [work] : [])];
  return below(2) === 0 ? placed : placed.reverse();
}

test.each(
  sampleItems(
    Array.from({ length: 8 }, (_, index) => index + 1),
    'walk of placements',
  ),
)('has everything where the model says after changes of it, moves and crashes: walk %i', async (seed) => {
  const random = createRandom(seed);
  const resources = { ...RESOURCES, tables: [...RESOURCES.tables, ...TABLES] };
  const given = { ...quick, resources };
  const { openWith, open } = createAccounts();
  const storage = open() as Several;
  await provision(storage, resources);
  const places = TABLES.flatMap((table) => TENANTS.map((partition) => ({ table, partition })));
  for (const place of places)
    await submit(storage, { ...place, actions: [{ kind: 'insert', row: 'a', properties: { EntityType: 'thing' } }] });
  const traffic = createTraffic(open, ['acme_1', 'globex']);
  let placed: PlacedLayer[] = [];
  const balance = async (process: Storage) => {
    await resumeMoves(process, given);
    await arrangeLayers(process, placed, given);
    const placements = await readPlacement((process as Several).accounts);
    // As by the command that ends placements which the model no longer has.
    const names = new Set(layersIn(placements).map(({ name }) => name));
    for (const { layer } of placed) names.delete(layer.name);
    const ended = [...names].flatMap((name) => planToLayer0(placements, name));
    await moveSlots(process, [...planLayers(placements, placed), ...ended, ...planBalance(placements)], given);
  };
  const tidy = async (process: Storage) => {
    await resumeMoves(process, given);
    await cleanUp(process, given);
    await arrangeLayers(process, placed, { ...given, isTidying: true });
  };
  const works = [balance, balance, tidy, (process: Storage) => moveBack(process, undefined, given)];
  const surely = async (work: (process: Storage) => Promise<unknown>, attempts = 10): Promise<unknown> =>
    work(open()).catch(async (error: unknown) => {
      if (attempts === 0 || !hasCode(error, 'busy')) throw error;
      return surely(work, attempts - 1);
    });
  for (let step = 0; step < (IS_EVERY_POINT ? 5 : 3); step += 1) {
    placed = createModel(random);
    const work = works[random.below(works.length)] ?? balance;
    const isFaulty = random.below(2) === 0;
    const { storage: process } = openWith(isFaulty ? FAULTS[random.below(3)] : undefined, 1 + random.below(120));
    await work(process).catch(() => {});
  }
  for (let round = 0; round < 2; round += 1) {
    await surely(balance);
    await surely(tidy);
  }
  await traffic.end();
  const label = JSON.stringify(placed);
  const placements = await readPlacement(storage.accounts);
  // A placement has no layer if those before it have all that it would have.
  const before = (at: number) => placed.slice(0, at).map(({ layer }) => layer);
  const parts = placed.filter(({ layer }, at) => subtractLayers(layer, before(at)));
  // Parts of a placement on both sides of another one are not joined.
  expect(
    [...new Set(layersIn(placements).map(({ name, isFormer }) => (isFormer ? `${name} (former)` : name)))].sort(),
    label,
  ).toEqual(parts.map(({ layer }) => layer.name).sort());
  for (const { account, owned } of placements)
    for (const { table, partition } of places) {
      const model = placed.find(({ layer }) => layerMatcher(layer)(placeOf(table, partition)));
      const expected = model?.account ?? findOwner(placements, slotOf(partition))?.account.name;
      const { layers } = owned;
      const index = indexIn({ layers }, placeOf(table, partition));
      const isHere = account.name === expected;
      expect([table, partition, isOwned(owned, index)], label).toEqual([table, partition, isHere]);
      const filter = `PartitionKey eq '${partition}'`;
      const rows = await Array.fromAsync(account.table(table).listEntities({ queryOptions: { filter } }));
      expect(rows.length > 0, `${account.name}: ${table}/${partition} of ${label}`).toBe(isHere);
    }
  expect(Object.keys(await contentsOf(open()))).toEqual(expect.arrayContaining(Object.keys(traffic.rows())));
  expect(await contentsOf(open())).toMatchObject(traffic.rows());
});
