import { afterEach, expect, test, vi } from 'vitest';
import { createSharedWrites, type SharedWriter } from '../../../../lib/engine/write/shared-writes.ts';
import { baseValues } from '../../../kit/base.ts';
import type { Internal } from '../../../kit/internal.ts';
import { type Storage, storageAccounts } from '../../../kit/storage.ts';
import { PATIENCE_MS } from '../../../patience.ts';

interface Request {
  readonly id: string;
  readonly hold: Internal['Hold'];
}

const storage = {} as Storage;
const request = (id: string, signal = new AbortController().signal): Request => ({
  id,
  hold: { keep: async () => signal },
});
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Collects the batches that are written. Each write waits until the test ends it. */
function openWriter(limits: Partial<SharedWriter<Request>> = {}) {
  const batches: string[][] = [];
  const ends: PromiseWithResolvers<boolean>[] = [];
  const submit = createSharedWrites<Request>({
    async write(_, requests) {
      batches.push(requests.map(({ id }) => id));
      const end = Promise.withResolvers<boolean>();
      ends.push(end);
      return end.promise;
    },
    ...limits,
  });
  /** Ends the write that has waited longest. */
  async function end(outcome: boolean | Error) {
    await turn();
    const first = ends.shift();
    if (outcome instanceof Error) first?.reject(outcome);
    else first?.resolve(outcome);
    await turn();
  }
  /** Submits one request, whose write has begun, and then the others. */
  async function submitDuringFirst(...[first = '', ...others]: readonly string[]) {
    const outcomes = [submit(storage, 'row', request(first))];
    await turn();
    outcomes.push(...others.map((id) => submit(storage, 'row', request(id))));
    return { outcomes };
  }
  return { batches, submit, submitDuringFirst, end };
}

afterEach(() => {
  vi.restoreAllMocks();
});

test('writes what arrives together with the first request, together', async () => {
  const { batches, submit, end } = openWriter();
  const outcomes = ['one', 'two', 'three'].map((id) => submit(storage, 'row', request(id)));
  await end(true);
  expect(await Promise.all(outcomes)).toEqual([true, true, true]);
  expect(batches).toEqual([['one', 'two', 'three']]);
});

test('writes what arrives during a write together, after that write', async () => {
  const { batches, submitDuringFirst, end } = openWriter();
  const { outcomes } = await submitDuringFirst('one', 'two', 'three');
  expect(batches).toEqual([['one']]);
  await end(true);
  expect(batches).toEqual([['one'], ['two', 'three']]);
  await end(true);
  expect(await Promise.all(outcomes)).toEqual([true, true, true]);
  expect(batches).toHaveLength(2);
});

test('writes a request that arrives after all others are done', async () => {
  const { batches, submit, end } = openWriter();
  const first = submit(storage, 'row', request('one'));
  await end(true);
  await first;
  const second = submit(storage, 'row', request('two'));
  await end(true);
  expect(await second).toBe(true);
  expect(batches).toEqual([['one'], ['two']]);
});

test('writes different rows, and rows of different accounts, concurrently', async () => {
  const { batches, submit } = openWriter();
  void submit(storage, 'row', request('one'));
  void submit(storage, 'other row', request('two'));
  void submit({} as Storage, 'row', request('three'));
  await turn();
  expect(batches).toEqual([['one'], ['two'], ['three']]);
});

test('writes at most as many requests as a batch may have, and one of each kind, in order', async () => {
  const { batches, submitDuringFirst, end } = openWriter({ most: () => 2, distinctBy: ({ id }) => id.charAt(0) });
  await submitDuringFirst('a1', 'a2', 'b1', 'c1', 'a3');
  for (let written = 0; written < 4; written += 1) await end(true);
  expect(batches).toEqual([['a1'], ['a2', 'b1'], ['c1', 'a3']]);
});

test('fails only the requests of the write that failed', async () => {
  const { batches, submit, submitDuringFirst, end } = openWriter();
  const { outcomes } = await submitDuringFirst('one', 'two', 'three');
  const settled = Promise.allSettled(outcomes);
  await end(true);
  await end(new Error('The write failed.'));
  const last = submit(storage, 'row', request('four'));
  await end(true);
  expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(await last).toBe(true);
  expect(batches).toEqual([['one'], ['two', 'three'], ['four']]);
});

test('tells all requests of a batch of a conflict, and waits before the next write until one succeeds', async () => {
  // The longest of the random times.
  vi.spyOn(Math, 'random').mockReturnValue(1);
  const { batches, submit, submitDuringFirst, end } = openWriter();
  const { outcomes } = await submitDuringFirst('one', 'two', 'three', 'four');
  await end(false);
  expect(await outcomes[0]).toBe(false);
  expect(batches).toHaveLength(1);
  await vi.waitFor(() => expect(batches).toHaveLength(2), PATIENCE_MS);
  const more = submit(storage, 'row', request('five'));
  await end(true);
  expect(await Promise.all(outcomes)).toEqual([false, true, true, true]);
  expect(batches).toEqual([['one'], ['two', 'three', 'four'], ['five']]);
  await end(true);
  expect(await more).toBe(true);
});

test('writes without the requests whose hold is lost, and aborts the write with any hold', async () => {
  const aborted = new AbortController();
  const held: string[][] = [];
  const signals: AbortSignal[] = [];
  const submit = createSharedWrites<Request>({
    async write(_, requests, keepHolds) {
      const kept = await keepHolds();
      held.push(kept.requests.map(({ id }) => id));
      signals.push(kept.signal);
      return requests.length > 0;
    },
  });
  const lost: Request = { id: 'lost', hold: { keep: () => Promise.reject(baseValues.busy('The hold is lost.')) } };
  const outcomes = [submit(storage, 'row', request('first'))];
  await turn();
  outcomes.push(...[request('one'), lost, request('two', aborted.signal)].map((each) => submit(storage, 'row', each)));
  const settled = await Promise.allSettled(outcomes);
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  await expect(outcomes[2]).rejects.toMatchObject({ code: 'busy' });
  expect(held).toEqual([['first'], ['one', 'two']]);
  expect(signals.map((signal) => signal.aborted)).toEqual([false, false]);
  aborted.abort();
  expect(signals.map((signal) => signal.aborted)).toEqual([false, true]);
});

test('an explanation neither waits for other requests nor carries them', async () => {
  const { batches, submit, submitDuringFirst, end } = openWriter();
  await submitDuringFirst('one', 'two');
  const explained = storageAccounts.explain(async () => {
    void submit(storage, 'row', request('explained'));
  });
  await explained;
  await turn();
  expect(batches).toEqual([['one'], ['explained']]);
  await end(true);
  expect(batches).toEqual([['one'], ['explained'], ['two']]);
});
