// @module-tag long

import { setTimeout as sleep } from 'node:timers/promises';
import { RestError } from '@azure/core-rest-pipeline';
import pMap from 'p-map';
import { expect, onTestFinished, test, vi } from 'vitest';
import { abortMoves, cleanUp, moveBack, moveSlots, resumeMoves } from '../../../lib/operations/move-slots.ts';
import type { Internal } from '../../kit/internal.ts';
import { operationsMove } from '../../kit/operations.ts';
import { type Storage, storageBlobs, storageKeys, storageRows, storageSlots } from '../../kit/storage.ts';
import { countTurns } from '../../patient-clock.ts';
import { IS_EVERY_POINT, samplePoints } from '../../points.ts';
import { accountNamed, FAULTS, type Several, TABLE } from '../storage/several-accounts.ts';
import {
  at,
  blobIn,
  contentsOf,
  createTraffic,
  put,
  QUICK,
  quick,
  resume,
  rowsIn,
  storageToMove,
  write,
} from './storage-to-move.ts';

countTurns();

test('moves the rows of slots with their types, and back', { tags: ['slow'] }, async () => {
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
  const moved = slots.filter((slot) => slot !== storageSlots.slotOf('p0'));
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

test('keeps the rows at the source until clients use it no more, by the clock of the service', {
  tags: ['slow'],
}, async () => {
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

test('waits until clients can no longer write with a grant, and signs none to write meanwhile', {
  tags: ['slow'],
}, async () => {
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
      const { sign } = storageKeys.tableSasSigner(open());
      for (const permissions of ['r', 'a'])
        void sign({ ...request, permissions }).then(
          () => signed.push(permissions),
          ({ code }) => signed.push(code),
        );
    },
  });
  expect(waits[0]).toBeGreaterThan(900);
  expect(new Set(signed)).toEqual(new Set(['r', 'storage-unavailable']));
  await expect(storageKeys.tableSasSigner(open()).sign({ ...request, permissions: 'a' })).resolves.toContain('sp=a');
});

test('aborts a move that a mover has left, and refuses to begin another one', { tags: ['slow'] }, async () => {
  const { openWith, open, storage, keys, slots } = await storageToMove();
  // It crashes after it has copied.
  const dead = openWith('crash before', 30);
  await expect(moveSlots(dead.storage, [{ slots, to: 'second' }], quick)).rejects.toThrow();
  await put(open(), 'p1', 'b', 1);
  await expect(moveSlots(open(), [{ slots, to: 'second' }], quick)).rejects.toThrow(
    'is moving. Resume or abort its move first.',
  );
  expect((await abortMoves(open(), quick)).left.length).toBeGreaterThan(0);
  const placements = await operationsMove.readPlacement(storage.accounts);
  for (const slot of slots) expect(operationsMove.findOwner(placements, slot)?.account.name).toBe('first');
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length + 1);
  const openedIn = async () => (await rowsIn(storage, 'first')).filter((row) => row.includes('~open_'));
  // A request that opens a partition may still be under way: the mark is there before it is.
  await cleanUp(open(), { ...quick, timing: { ...QUICK, keepMs: 60_000 } });
  expect(await openedIn()).toHaveLength(1);
  await cleanUp(open(), quick);
  expect((await rowsIn(storage, 'first')).filter((row) => row.includes('~'))).toEqual([]);
});

test('deletes what an aborted move has copied, and nothing that another move has left there', {
  tags: ['slow'],
}, async () => {
  const { open, storage, keys, slots } = await storageToMove();
  const name = blobIn(slots[1] ?? '', 1);
  await storageBlobs.writeBlob(storage, { container: 'files', name }, Buffer.from(name), { type: 'text/plain' });
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
  expect(await inSecond()).toEqual(keys.filter((key) => storageSlots.slotOf(key) === first).map((key) => `${key}/a`));
  const blobs = storageBlobs.listContainer(accountNamed(storage, 'second'), 'files');
  expect(await Array.fromAsync(blobs, (blob) => blob.name)).toEqual([]);
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length);
});

test('rejects a move for which the row of an account has no room, and begins none', { tags: ['slow'] }, async () => {
  const { open, storage, slots } = await storageToMove(1);
  const first = accountNamed(storage, 'first');
  const others = Array.from({ length: 330 }, (_, index) => storageSlots.slotAt(index)).filter(
    (slot) => !slots.includes(slot),
  );
  const state = { phase: 'gone', to: 'second', turn: 1, goneAt: Date.now() } as const;
  await storageSlots.changeSlots(first, others, (_, slot) => ({ ...state, move: `m1234567890abc${slot}` }));
  await storageSlots.changeSlots(accountNamed(storage, 'second'), others, () => ({ phase: 'at rest' }));
  const plans = [{ slots, to: 'second' }];
  await expect(moveSlots(open(), plans, quick)).rejects.toThrow('has no room for the change: with it, ');
  await cleanUp(open(), quick);
  expect(await moveSlots(open(), plans, quick)).toMatchObject({ slots: 1, left: [] });
});

test.each([
  { what: 'few opened partitions at a time', timing: { openedPerSwitch: 2 }, expected: [0, 2, 4, 6] },
  { what: 'fewer after a long pause', timing: { openedPerSwitch: 3, pauseMs: 0 }, expected: [0, 3, 4, 5, 6] },
])('lets writes wait for $what', { tags: ['slow'] }, async ({ timing, expected }) => {
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
  const passes = new Set<number>();
  await moveSlots(storage, [{ slots, to: 'second' }], {
    ...quick,
    isClosed: true,
    onProgress: (progress) => progress.what === 'copy' && passes.add(progress.pass),
  });
  expect(phases).toEqual(new Set(['o', 'd', 'g', '-']));
  // The second comparison finds no difference.
  expect(passes).toEqual(new Set([1, 2]));
  expect((await rowsIn(storage, 'first')).filter((row) => row.includes('~'))).toEqual([]);
  expect(Object.keys(await contentsOf(open()))).toHaveLength(keys.length);
  expect(await rowsIn(storage, 'second')).toHaveLength(keys.length);
});

test('counts the pause of closed slots from their closing, also when another mover continues', {
  tags: ['slow'],
}, async () => {
  const { open, storage, slots } = await storageToMove();
  const waitedMs = QUICK.leaseMs + QUICK.lateMs;
  const begunAt = Date.now();
  const { pauses } = await moveSlots(storage, [{ slots, to: 'second' }], { ...quick, isClosed: true });
  expect(pauses).toHaveLength(slots.length);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(waitedMs);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(Date.now() - begunAt);

  const abort = new AbortController();
  const onProgress = () => abort.abort(new Error('The mover dies.'));
  const closedFrom = Date.now();
  const dying = { ...quick, isClosed: true, signal: abort.signal, onProgress };
  await expect(moveSlots(open(), [{ slots, to: 'first' }], dying)).rejects.toThrow('The mover dies.');
  await sleep(500);
  const resumed = await resumeMoves(open(), quick);
  expect(resumed.pauses).toHaveLength(slots.length);
  expect(Math.min(...resumed.pauses)).toBeGreaterThanOrEqual(500 + waitedMs);
  expect(Math.max(...resumed.pauses)).toBeLessThanOrEqual(Date.now() - closedFrom);
});

/** A move of all slots whose mover has died between the seal and the switch, and the partition that was opened. */
async function sealedMove() {
  const created = await storageToMove(2);
  const { storage, open, slots } = created;
  const first = accountNamed(storage, 'first');
  const setAll = (phase: Internal['Phase']) =>
    storageSlots.changeSlots(first, slots, () => ({
      phase,
      move: '!m1',
      to: 'second',
      turn: 1,
      isClosed: false,
      goneAt: 0,
    }));
  await setAll('fencing');
  await put(open(), 'p1', 'b', 1);
  await setAll('draining');
  return { ...created, first };
}

test('reports and repeats what a mover has left between the seal and the switch', { tags: ['slow'] }, async () => {
  const { open, memories, slots } = await sealedMove();
  const late = { ...quick, timing: { ...QUICK, pauseWithinMs: -1 } };
  const ids = new Set<string>();
  for (const memory of memories)
    memory.intercept = (request, send) => {
      for (const [, id] of String(request.body).matchAll(/\\"(!m\w+)\\":/g)) if (id) ids.add(id);
      return send();
    };
  expect(await resumeMoves(open(), late)).toMatchObject({ slots: 0, left: slots });
  // Each attempt has an id of its own: marks of the earlier one keep partitions closed.
  expect(ids.size).toBe(3);
});

test('lets a slot go no more that a writer has opened again', async () => {
  const { open, memories, first, storage, slots } = await sealedMove();
  let opening: Promise<unknown> | undefined;
  for (const memory of memories)
    memory.intercept = async (request, send) => {
      if (opening || request.method !== 'PUT' || !request.url.includes('~open_!m1')) return send();
      // The last rows are copied: the writer has waited for long.
      opening = storageSlots.changeSlots(first, slots, () => ({ phase: 'at rest' }));
      await opening;
      return send();
    };
  await expect(resumeMoves(open(), quick)).rejects.toThrow('Something else has changed the slots');
  expect(await opening).toBeDefined();
  const placements = await operationsMove.readPlacement(storage.accounts);
  for (const slot of slots) expect(operationsMove.findOwner(placements, slot)?.account.name).toBe('first');
});

test('creates a table at the target that was created at the source alone', async () => {
  const { open, storage, first, slots } = await sealedMove();
  for (const { row } of (await storageRows.readRange(first, { ...at('p0'), from: '' })).rows)
    await write(first, 'p0', { kind: 'delete', row });
  await accountNamed(storage, 'second').table(TABLE).deleteTable();
  expect(await resumeMoves(open(), quick)).toMatchObject({ slots: slots.length, left: [] });
  expect(await contentsOf(open())).toEqual({ 'p1/a': 'p1', 'p1/b': 1 });
});

test('keeps what was sealed at the source closed while requests may be late', async () => {
  const { open, storage } = await sealedMove();
  await resumeMoves(open(), quick);
  await cleanUp(open(), { ...quick, timing: { ...QUICK, keepMs: 60_000 } });
  expect(await rowsIn(storage, 'first')).toContain('p1/~open_!m1');
  await cleanUp(open(), quick);
  expect(await rowsIn(storage, 'first')).toEqual([]);
});

test('moves a slot back to the last account that it has left', { tags: ['slow'] }, async () => {
  const { open, storage } = await storageToMove(2, ['first', 'second', 'third']);
  const slots = [storageSlots.slotOf('p1')];
  for (const to of ['second', 'third']) await moveSlots(open(), [{ slots, to }], quick);
  expect(await moveBack(open(), undefined, quick)).toMatchObject({ slots: 1, left: [] });
  expect(
    operationsMove.findOwner(await operationsMove.readPlacement(storage.accounts), storageSlots.slotOf('p1'))?.account
      .name,
  ).toBe('second');
});

test.each(FAULTS)('loses nothing if the mover meets a fault at any call: %s', { tags: ['slow'] }, async (fault) => {
  const play = async (call: number) => {
    const { openWith, open, storage, keys, slots } = await storageToMove(5);
    const label = `${fault} at call ${call}`;
    const traffic = createTraffic(open, keys.slice(0, 2));
    const mover = openWith(call === 0 ? undefined : fault, call);
    const moving = moveSlots(mover.storage, [{ slots, to: 'second' }], quick);
    await moving.catch(() => resume(open));
    await traffic.end();
    const placements = await operationsMove.readPlacement(storage.accounts);
    // The mover may have died before it began.
    expect(new Set(slots.map((slot) => operationsMove.findOwner(placements, slot)?.account.name)).size, label).toBe(1);
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

test('waits for copies without a reply before it hands over', { tags: ['slow'] }, async () => {
  const { open, memoryOf, slots } = await storageToMove(2);
  const memory = memoryOf('second');
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

test('hands over nothing while the last copy may still be executed', { tags: ['slow'] }, async () => {
  const { open, memoryOf, first } = await sealedMove();
  const [source, target] = [memoryOf('first'), memoryOf('second')];
  let writing: Promise<unknown> | undefined;
  source.intercept = async (request, send) => {
    if (!String(request.body).includes('~open_!m1')) return send();
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
      const placements = await operationsMove.readPlacement(storage.accounts);
      owners.push(
        ...slots.map(
          (slot) => placements.filter(({ owned }) => storageSlots.isOwned(owned, storageSlots.slotIndex(slot))).length,
        ),
      );
      return reply;
    };
  await moveSlots(open(), [{ slots, to: 'second' }], quick);
  for (const memory of memories) memory.intercept = undefined;
  expect(new Set(owners)).toEqual(new Set([0, 1]));
});

test.each(FAULTS)(
  'keeps what a writer knows to be written, whatever call of it meets a fault: %s',
  { tags: ['slow'] },
  async (fault) => {
    const play = async (at: number) => {
      const { openWith, open, slots } = await storageToMove(2);
      // The partition is written while the slot is in the first phase, and its mover dead.
      const moving = moveSlots(openWith('crash before', 25).storage, [{ slots, to: 'second' }], quick);
      await expect(moving).rejects.toThrow();
      const { accounts } = open() as Several;
      const [first] = await operationsMove.readPlacement(accounts);
      expect(first && operationsMove.stateIn(first, storageSlots.slotOf('p0')).phase).toBe('fencing');
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
  },
);

/** A process that uses the map for as long as it may. */
const kept = (open: () => Storage) => {
  const storage = open();
  return () => storage;
};

test.runIf(IS_EVERY_POINT)('loses nothing to processes that use the map until their lease ends', async () => {
  const { open, keys, slots } = await storageToMove(8);
  const timing = { ...QUICK, leaseMs: storageSlots.LEASE_MS };
  const traffic = createTraffic(kept(open), keys);
  const there = await moveSlots(open(), [{ slots, to: 'second' }], { ...quick, timing });
  expect(there.slots).toBe(slots.length);
  await moveBack(open(), undefined, { ...quick, timing });
  await traffic.end();
  expect(await contentsOf(open())).toEqual(traffic.rows());
});

test('gives a slot without an owner to the account to which it went last', async () => {
  const { open, storage, slots } = await storageToMove(1, ['first', 'second', 'third']);
  for (const [name, to, turn] of [
    ['first', 'second', 1],
    ['second', 'third', 2],
  ] as const)
    await storageSlots.changeSlots(accountNamed(storage, name), slots, () => ({
      phase: 'gone',
      move: `m${turn}`,
      to,
      turn,
    }));
  await resumeMoves(open(), quick);
  expect(
    operationsMove.findOwner(await operationsMove.readPlacement(storage.accounts), slots[0] ?? '')?.account.name,
  ).toBe('third');
});

/** Slots that an earlier release has moved, which took rows whose keys begin as those of fences for its own. */
async function movedByFormerRelease() {
  const { open, storage, slots } = await storageToMove(2);
  for (const [row, value] of [
    ['~own_1999', 'kept'],
    ['~open_', 'new'],
  ] as const)
    await put(storage, 'p1', row, value);
  const before = await contentsOf(open());
  await moveSlots(open(), [{ slots, to: 'second' }], quick);
  const second = accountNamed(storage, 'second');
  await write(second, 'p1', { kind: 'delete', row: '~own_1999' }, { kind: 'delete', row: '~open_' });
  await put(accountNamed(storage, 'first'), 'p1', '~open_', 'old');
  await put(open(), 'p1', '~open_', 'new');
  const move = 'mwy512yl949b8d40';
  await storageSlots.changeSlots(accountNamed(storage, 'first'), slots, (state) => ({ ...state, move }));
  return { open, storage, before };
}

test('brings what a move of an earlier release has left to its owner before the clean-up', {
  tags: ['slow'],
}, async () => {
  const { open, storage, before } = await movedByFormerRelease();
  expect(await contentsOf(open())).not.toHaveProperty('p1/~own_1999');
  await cleanUp(open(), quick);
  expect(await contentsOf(open())).toEqual(before);
  expect(await rowsIn(storage, 'first')).toEqual([]);
});

test('brings what a move of an earlier release has left to its owner before the way back', {
  tags: ['slow'],
}, async () => {
  const { open, before } = await movedByFormerRelease();
  await moveBack(open(), undefined, quick);
  expect(await contentsOf(open())).toEqual(before);
  await cleanUp(open(), quick);
  expect(await contentsOf(open())).toEqual(before);
});
