// @module-tag long

import { createHttpHeaders } from '@azure/core-rest-pipeline';
import { afterEach, expect, it, vi } from 'vitest';
import { adaptToLoad, failIfSilent, inBackground, retryAfterMs } from '../../../lib/storage/load.ts';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { baseValues } from '../../kit/base.ts';
import { storageAccounts, storageRows } from '../../kit/storage.ts';

afterEach(() => void vi.useRealTimers());

const ADDRESS = { table: 'things', partition: 'p', row: 'r' };

/** An account that responds to the next requests with these, and then executes them. */
async function open(replies: { status: number; headers?: Record<string, string> }[] = []) {
  const memory = createMemoryStorage();
  const pace = baseValues.createPace();
  const storage = storageAccounts.openStorage(memory, '', () => pace);
  await storage.table(ADDRESS.table).createTable();
  let sent = 0;
  memory.intercept = async (request, send) => {
    sent += 1;
    const reply = replies.shift();
    return reply
      ? { request, status: reply.status, headers: createHttpHeaders(reply.headers), bodyAsText: '' }
      : send();
  };
  return { pace, storage, countSent: () => sent };
}

it.each([
  ['ServerBusy', { status: 503 }],
  ['a 429', { status: 429 }],
  ['OperationTimedOut', { status: 500, headers: { 'x-ms-error-code': 'OperationTimedOut' } }],
])('slows background work down after %s to a caller, whose request is repeated at once', async (_, reply) => {
  const { pace, storage, countSent } = await open([reply]);
  expect(await storageRows.readRow(storage, ADDRESS)).toBeUndefined();
  expect([pace.allowed, countSent()]).toEqual([4, 2]);
});

it('does not slow down after another error', async () => {
  const { pace, storage } = await open([{ status: 500, headers: { 'x-ms-error-code': 'InternalError' } }]);
  expect(await storageRows.readRow(storage, ADDRESS)).toBeUndefined();
  expect(pace.allowed).toBe(8);
});

it('sends no request in the background before the time of Retry-After', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  const pace = baseValues.createPace();
  const sentAt: number[] = [];
  const client = storageAccounts.through([adaptToLoad(pace)], {
    async sendRequest(request) {
      sentAt.push(performance.now());
      const isFirst = sentAt.length === 1;
      return {
        request,
        status: isFirst ? 503 : 200,
        headers: createHttpHeaders({ 'retry-after': isFirst ? '30' : '' }),
      };
    },
  });
  const send = () => client.sendRequest({ url: '', method: 'GET', headers: createHttpHeaders() } as never);
  await inBackground(send);
  void inBackground(send);
  await vi.advanceTimersByTimeAsync(29_900);
  expect(sentAt).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(sentAt).toHaveLength(2);
});

it('does not send a write whose time is over while it waits', async () => {
  const { pace, storage, countSent } = await open();
  const ends = await Promise.all(Array.from({ length: 8 }, () => pace.enter('background')));
  const actions = [{ kind: 'insert', row: 'r', properties: {} }] as const;
  const write = inBackground(() =>
    storageRows.submit(storage, { ...ADDRESS, actions, signal: AbortSignal.timeout(5) }),
  );
  await expect(write).rejects.toMatchObject({ code: 'storage-unavailable' });
  for (const end of ends) end();
  expect(countSent()).toBe(0);
});

it('limits the requests to each account by itself, so that one without a response delays no other', async () => {
  const memories = ['first', 'second'].map((account) => createMemoryStorage({ account }));
  const accounts = memories.map((memory, at) => ({ name: ['first', 'second'][at] ?? '', ...memory }));
  const [first, second] =
    storageAccounts.openStorage({ accounts }, '', () => baseValues.createPace({ limit: 2 })).accounts?.list ?? [];
  if (!first || !second) throw new Error('There are no accounts.');
  await first.table(ADDRESS.table).createTable();
  const { promise: away, reject: end } = Promise.withResolvers<never>();
  let sent = 0;
  for (const memory of memories.slice(1))
    memory.intercept = () => {
      sent += 1;
      return away;
    };
  const reads = [1, 2, 3].map(() => storageRows.readRow(second, ADDRESS));
  await expect.poll(() => sent).toBe(2);
  expect(await storageRows.readRow(first, ADDRESS)).toBeUndefined();
  end(new Error('The account is away.'));
  await Promise.allSettled(reads);
  expect(sent).toBe(3);
});

it('reads Retry-After as seconds and as a date', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-20T08:00:00Z') });
  expect(retryAfterMs('12')).toBe(12_000);
  expect(retryAfterMs('Fri, 20 Nov 2026 08:00:05 GMT')).toBe(5_000);
  expect(retryAfterMs('Fri, 20 Nov 2026 07:00:00 GMT')).toBe(0);
  for (const none of [undefined, null, '', 'soon']) expect(retryAfterMs(none)).toBeUndefined();
});

it('lets requests to an account fail that responds to none for ten seconds, but for one at a time', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const sent: PromiseWithResolvers<{ status: number }>[] = [];
  const client = storageAccounts.through([failIfSilent()], {
    sendRequest() {
      const reply = Promise.withResolvers<{ status: number }>();
      sent.push(reply);
      return reply.promise as never;
    },
  });
  const send = () => client.sendRequest({ url: '', method: 'GET', headers: createHttpHeaders() } as never);
  const fails = () => expect(send()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const first = send();
  vi.advanceTimersByTime(9_000);
  const second = send();
  sent[1]?.resolve({ status: 503 });
  await second;
  // Others get responses: the first request alone takes long.
  vi.advanceTimersByTime(9_000);
  const third = send();
  vi.advanceTimersByTime(2_000);
  await fails();
  expect(sent).toHaveLength(3);
  for (const reply of sent) reply.reject(new Error('No response.'));
  await Promise.allSettled([first, third]);
  vi.advanceTimersByTime(5_000);
  const fourth = send();
  await fails();
  expect(sent).toHaveLength(4);
  sent[3]?.resolve({ status: 200 });
  await fourth;
  void send();
  void send();
  expect(sent).toHaveLength(6);
});

it('sends nothing for five seconds after a request to which an account has not responded', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const lost = { code: 'REQUEST_SEND_ERROR' };
  const replies = [40_000, 1_000, 40_000, 0];
  let sent = 0;
  const client = storageAccounts.through([failIfSilent()], {
    async sendRequest() {
      const after = replies[sent] ?? 0;
      sent += 1;
      vi.advanceTimersByTime(after);
      if (after > 0) throw Object.assign(new Error('No response.'), lost);
      return { status: 200 } as never;
    },
  });
  const send = () => client.sendRequest({ url: '', method: 'GET', headers: createHttpHeaders() } as never);
  const refused = { code: 'ECONNREFUSED' };
  await expect(send()).rejects.toMatchObject(lost);
  await expect(send()).rejects.toMatchObject(refused);
  vi.advanceTimersByTime(5_000);
  // A connection that fails sooner tells no more of the account.
  await expect(send()).rejects.toMatchObject(lost);
  await expect(send()).rejects.toMatchObject(refused);
  vi.advanceTimersByTime(5_000);
  await expect(send()).rejects.toMatchObject(lost);
  vi.advanceTimersByTime(5_000);
  await send();
  await send();
  expect(sent).toBe(5);
});
