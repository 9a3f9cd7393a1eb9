// @module-tag long

import { expect, test } from 'vitest';
import { createRandom, createSampler, exponential, zipfShares } from '../../../local/scale/random.ts';
import { createStation, quantile, type Station, simulate } from '../../../local/scale/simulate.ts';

/** Runs one station at the given load and returns the mean wait, in units of its mean service time. */
function meanWait(load: number, options: { servers?: number; isRandom: boolean }) {
  const random = createRandom(1);
  const station = createStation('one', { seconds: 1, ...options });
  const { begun } = simulate({
    random,
    arrivals: { rate: load * station.free.length },
    seconds: 60_000 / station.free.length,
    request: () => [{ uses: [{ station, work: 1 }], delay: 0 }],
  });
  return station.waited / begun;
}

/** The mean wait of M/M/c, in units of the service time: the formula of Erlang. */
function erlang(load: number, servers: number): number {
  const offered = load * servers;
  let [term, sum] = [1, 1];
  for (let server = 1; server < servers; server += 1) {
    term *= offered / server;
    sum += term;
  }
  const waiting = (term * offered) / servers / (1 - load);
  return waiting / (sum + waiting) / (servers * (1 - load));
}

test.each([0.3, 0.5, 0.7])('a station at a load of %d waits as long as queueing theory says', (load) => {
  // M/M/1: load / (1 - load). M/D/1: half of it. M/M/4: by Erlang.
  const theory = load / (1 - load);
  expect(erlang(load, 1)).toBeCloseTo(theory, 9);
  expect(meanWait(load, { isRandom: true })).toBeGreaterThan(0.93 * theory);
  expect(meanWait(load, { isRandom: true })).toBeLessThan(1.07 * theory);
  expect(meanWait(load, { isRandom: false })).toBeGreaterThan(0.95 * (theory / 2));
  expect(meanWait(load, { isRandom: false })).toBeLessThan(1.05 * (theory / 2));
  expect(meanWait(load, { servers: 4, isRandom: true })).toBeGreaterThan(0.9 * erlang(load, 4));
  expect(meanWait(load, { servers: 4, isRandom: true })).toBeLessThan(1.1 * erlang(load, 4));
});

test('callers that wait for their responses share one station', () => {
  const station = createStation('one', { seconds: 0.01, isRandom: true });
  const { begun, served, times } = simulate({
    random: createRandom(2),
    arrivals: { callers: 8 },
    seconds: 100,
    request: () => [{ uses: [{ station, work: 1 }], delay: 0 }],
  });
  expect(served).toBe(begun);
  expect(served / 100).toBeGreaterThan(97);
  expect(served / 100).toBeLessThan(103);
  // Little's law: 8 callers, 100 requests a second.
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  expect(mean).toBeCloseTo(0.08, 2);
});

test('every request is served or fails, and each attempt is counted, also above the limits', () => {
  const random = createRandom(3);
  const account = createStation('account', { seconds: 1 / 100, patience: 0.1 });
  const partitions = [0, 1, 2].map((name) => createStation(`${name}`, { seconds: 1 / 40, patience: 0.1 }));
  let steps = 0;
  const { begun, served, failed, late } = simulate({
    random,
    arrivals: { rate: 150 },
    seconds: 60,
    request() {
      const partition = partitions[Math.floor(random() * 3)] as Station;
      steps += 2;
      return [
        {
          uses: [
            { station: account, work: 1 },
            { station: partition, work: 1 },
          ],
          delay: 0.001,
        },
        { uses: [{ station: account, work: 1 }], delay: 0 },
      ];
    },
    retries: [0.2, 0.4],
  });
  expect(begun).toBeGreaterThan(8_000);
  expect(served + failed).toBe(begun);
  expect(failed).toBeGreaterThan(1_000);
  expect(late).toBe(0);
  // Two steps of a served request, and at most one of a failed one. Each attempt but the last of a failed request is tried again.
  expect(account.served).toBeGreaterThanOrEqual(2 * served);
  expect(account.served).toBeLessThanOrEqual(2 * served + failed);
  expect(account.served).toBeLessThan(steps);
  expect(account.busy).toBeCloseTo(account.served / 100, 6);
  expect(partitions.reduce((sum, partition) => sum + partition.served, 0)).toBeGreaterThanOrEqual(served);
  // The account works all the time, and no longer than its patience after the last request.
  expect(account.busy).toBeGreaterThan(58);
  expect(account.busy).toBeLessThan(62);
});

test('the seed determines a run', () => {
  const run = (seed: number) => {
    const random = createRandom(seed);
    const station = createStation('one', { seconds: 0.5, isRandom: true });
    return simulate({
      random,
      arrivals: { rate: 1 },
      seconds: 500,
      request: () => [{ uses: [{ station, work: 1 }], delay: 0 }],
    });
  };
  expect(run(7)).toEqual(run(7));
  expect(run(7)).not.toEqual(run(8));
});

test('keys are drawn with their shares', () => {
  const shares = zipfShares(1_000, 1);
  expect(shares[0]).toBeCloseTo(1 / 7.485, 4);
  expect(shares[9]).toBeCloseTo((shares[0] ?? 0) / 10, 9);
  const random = createRandom(4);
  const draw = createSampler(shares);
  const drawn = Array.from({ length: 100_000 }, () => draw(random));
  expect(drawn.filter((key) => key === 0).length / 100_000).toBeCloseTo(shares[0] ?? 0, 2);
  expect(drawn.filter((key) => key < 100).length / 100_000).toBeCloseTo(5.187 / 7.485, 2);
});

test('a quantile is the value that the part does not exceed', () => {
  const values = Float64Array.from({ length: 100 }, (_, index) => index + 1);
  expect([0.5, 0.99, 1].map((part) => quantile(values, part))).toEqual([50, 99, 100]);
  const random = createRandom(5);
  const times = Float64Array.from({ length: 50_000 }, () => exponential(random, 2)).sort();
  expect(quantile(times, 0.5)).toBeCloseTo(2 * Math.LN2, 1);
});
