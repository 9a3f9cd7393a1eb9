import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createPace, type Pace, type Priority } from '../../../lib/base/pace.ts';

/** All of these run in virtual time. */
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const LATENCY_MS = 10;
const WORKERS = 32;
const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** Storage that executes so many requests in a tenth of a second, and is busy for the others. */
function createStorage(perSecond: () => number) {
  let [tenth, executed] = [0, 0];
  const counts = { executed: 0, refused: 0, inProgress: 0, most: 0 };
  return {
    counts,
    async request(): Promise<{ busyForMs: undefined } | undefined> {
      counts.inProgress += 1;
      counts.most = Math.max(counts.most, counts.inProgress);
      await sleep(LATENCY_MS);
      counts.inProgress -= 1;
      const now = Math.floor(performance.now() / 100);
      if (now !== tenth) [tenth, executed] = [now, 0];
      executed += 1;
      const isBusy = executed > perSecond() / 10;
      counts[isBusy ? 'refused' : 'executed'] += 1;
      return isBusy ? { busyForMs: undefined } : undefined;
    },
  };
}

/** Workers that always want to send the next request. */
function startWork(storage: ReturnType<typeof createStorage>, workers: number, pace?: Pace): () => void {
  let isOver = false;
  for (let worker = 0; worker < workers; worker += 1)
    void (async () => {
      while (!isOver) {
        const end = await pace?.enter('background');
        const report = await storage.request();
        end?.(report);
      }
    })();
  return () => {
    isOver = true;
  };
}

async function simulate(
  perSecond: number,
  pace: Pace | undefined,
  ms: number,
  storage = createStorage(() => perSecond),
) {
  const before = { ...storage.counts };
  const stop = startWork(storage, WORKERS, pace);
  await vi.advanceTimersByTimeAsync(ms);
  stop();
  await vi.advanceTimersByTimeAsync(20_000);
  const executed = storage.counts.executed - before.executed;
  const refused = storage.counts.refused - before.refused;
  return {
    perSecond: executed / (ms / 1_000),
    refusedShare: refused / (executed + refused),
    most: storage.counts.most,
  };
}

describe('background work on storage that serves 400 requests a second', () => {
  it('uses most of what is served, and is rarely refused', async () => {
    const { perSecond, refusedShare } = await simulate(400, createPace(), 30_000);
    expect(perSecond).toBeGreaterThan(0.7 * 400);
    expect(refusedShare).toBeLessThan(0.05);
  });

  it('would be refused at four requests of five without a pace', async () => {
    expect((await simulate(400, undefined, 1_000)).refusedShare).toBeGreaterThan(0.8);
  });
});

it('pauses between requests while storage serves fewer than one worker sends', async () => {
  const { perSecond, refusedShare } = await simulate(10, createPace(), 60_000);
  expect(perSecond).toBeGreaterThan(2);
  expect(refusedShare).toBeLessThan(0.6);
});

it('gets faster again when storage recovers from an outage', { tags: ['slow'] }, async () => {
  let served = 0;
  const storage = createStorage(() => served);
  const pace = createPace();
  const stop = startWork(storage, WORKERS, pace);
  await vi.advanceTimersByTimeAsync(60_000);
  // A pause doubles up to 15 s.
  expect(storage.counts.refused).toBeLessThan(30);
  served = 2_000;
  await vi.advanceTimersByTimeAsync(25_000);
  expect(pace.allowed).toBeGreaterThan(8);
  stop();
});

it('begins with eight, has one more each second, and begins anew after a minute without work', async () => {
  const pace = createPace();
  const storage = createStorage(() => 1_000_000);
  const stop = startWork(storage, WORKERS, pace);
  await vi.advanceTimersByTimeAsync(LATENCY_MS / 2);
  expect(storage.counts.most).toBe(8);
  await vi.advanceTimersByTimeAsync(5_100);
  expect(storage.counts.most).toBeGreaterThan(11);
  expect(storage.counts.most).toBeLessThanOrEqual(13);
  stop();
  await vi.advanceTimersByTimeAsync(61_000);
  const end = await pace.enter('background');
  expect(pace.allowed).toBe(8);
  end();
});

it('does not grow while the work needs no more', async () => {
  const pace = createPace();
  const stop = startWork(
    createStorage(() => 1_000_000),
    4,
    pace,
  );
  await vi.advanceTimersByTimeAsync(5_000);
  expect(pace.allowed).toBe(8);
  stop();
});

it('halves once for requests that were in progress together', async () => {
  const pace = createPace();
  const ends = await Promise.all(Array.from({ length: 8 }, () => pace.enter('background')));
  await vi.advanceTimersByTimeAsync(5);
  for (const end of ends) end({ busyForMs: undefined });
  expect(pace.allowed).toBe(4);
});

it('starts no background work before the time that storage demands, and lets callers through', async () => {
  const pace = createPace();
  const end = await pace.enter('caller');
  end({ busyForMs: 7_000 });
  const started: Priority[] = [];
  void pace.enter('background').then(() => started.push('background'));
  void pace.enter('caller').then(() => started.push('caller'));
  await vi.advanceTimersByTimeAsync(6_900);
  expect(started).toEqual(['caller']);
  await vi.advanceTimersByTimeAsync(200);
  expect(started).toEqual(['caller', 'background']);
});

describe('with a limit', () => {
  it('lets callers go before background work, of which one piece is always in progress', async () => {
    const pace = createPace({ limit: 3 });
    const ends = await Promise.all([pace.enter('background'), pace.enter('caller'), pace.enter('caller')]);
    const started: string[] = [];
    const enter = (name: string, priority: Priority) =>
      void pace.enter(priority).then((end) => {
        started.push(name);
        ends.push(end);
      });
    enter('background 1', 'background');
    enter('caller 1', 'caller');
    enter('caller 2', 'caller');
    await vi.advanceTimersByTimeAsync(1);
    expect(started).toEqual([]);
    ends[1]?.();
    await vi.advanceTimersByTimeAsync(1);
    expect(started).toEqual(['caller 1']);
    // None of the background is in progress any more.
    ends[0]?.();
    await vi.advanceTimersByTimeAsync(1);
    expect(started).toEqual(['caller 1', 'background 1']);
    ends[2]?.();
    await vi.advanceTimersByTimeAsync(1);
    expect(started).toEqual(['caller 1', 'background 1', 'caller 2']);
  });

  it('never has more in progress', async () => {
    const storage = createStorage(() => 1_000_000);
    const stop = startWork(storage, WORKERS, createPace({ limit: 5 }));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(storage.counts.most).toBe(5);
    stop();
  });
});

it('gives up the wait of work that is aborted, and begins others in its place', async () => {
  const pace = createPace({ limit: 1 });
  const end = await pace.enter('caller');
  const { signal, abort } = (() => {
    const controller = new AbortController();
    return { signal: controller.signal, abort: () => controller.abort() };
  })();
  const given = pace.enter('caller', signal).then(
    () => 'begun',
    (error: Error) => error.name,
  );
  const next = pace.enter('caller').then(() => 'begun');
  abort();
  expect(await given).toBe('AbortError');
  end();
  expect(await next).toBe('begun');
  await expect(pace.enter('caller', AbortSignal.abort())).rejects.toThrow(/aborted/);
});
