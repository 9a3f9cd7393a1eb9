// @module-tag long

import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { EntityCost } from '../../../local/capacity/entity-cost.ts';
import { readPublished } from '../../../local/capacity/published.ts';
import { deployedApp } from '../../../local/instance/deployed-app.ts';
import { compareWithBench, readBench } from '../../../local/scale/bench.ts';
import { even, rebalance, skewed, slotShares, spreadSlots } from '../../../local/scale/keys.ts';
import { costOfMove } from '../../../local/scale/move.ts';
import { createRandom } from '../../../local/scale/random.ts';
import { SCALE_PAGE, updateScale } from '../../../local/scale/scale-page.ts';
import { planSystem, serveLoad, usesOf } from '../../../local/scale/system.ts';
import { operationsMove } from '../../kit/operations.ts';
import { storageRows, storageSlots, storageTables } from '../../kit/storage.ts';
import { createAccounts, RESOURCES, TABLE } from '../../lib/storage/several-accounts.ts';
import { IS_EVERY_POINT } from '../../points.ts';

const { targets } = await readPublished();
const row = { fields: [], partitions: undefined, rows: 1, isWhole: true };
const cost: EntityCost = {
  read: 1,
  tables: 4,
  queues: 2,
  isQueued: false,
  rows: [
    { ...row, what: 'entities', table: 'things', calls: 1 },
    { ...row, what: 'index', table: 'thingsbyname', partitions: 256, calls: 2 },
  ],
};
const assumed = { cost, targets, readCpu: 0.0005, writeCpu: 0.005, delay: 0.005, utilization: 0.7 };
const read = (page: string) => readFile(new URL(`../../../${page}`, import.meta.url), 'utf8');

describe('a simulated system', () => {
  test('uses its limits as much as the averages say', { tags: ['slow'] }, () => {
    const load = { rate: 4_000, writes: 0.1, keys: skewed };
    const system = { accounts: 3, queues: 1, processes: 6, isAuditApart: true };
    const { outcome, seconds, accounts, processes } = serveLoad(load, system, assumed, createRandom(1));
    expect(outcome.served).toBe(outcome.begun);
    const uses = new Map(usesOf(load, system, assumed).map(({ what, part }) => [what, part]));
    const busiest = Math.max(...accounts.map(({ busy }) => busy / seconds));
    expect(busiest / (uses.get('account') ?? 0)).toBeGreaterThan(0.97);
    expect(busiest / (uses.get('account') ?? 0)).toBeLessThan(1.03);
    const working = processes.reduce((sum, { busy }) => sum + busy, 0) / seconds / processes.length;
    expect(working / (uses.get('process') ?? 0)).toBeGreaterThan(0.97);
    expect(working / (uses.get('process') ?? 0)).toBeLessThan(1.03);
    // A read, and five calls of every tenth request instead of it.
    const calls = accounts.reduce((sum, { served }) => sum + served, 0) / seconds;
    expect(calls / 4_000 / (0.9 + 0.1 * 6)).toBeCloseTo(1, 1);
  });

  test('serves about as many requests as its account has room for', { tags: ['slow'] }, () => {
    const load = { rate: 40_000, writes: 0, keys: even };
    const system = { accounts: 1, queues: 1, processes: 100, isAuditApart: false };
    const { outcome, accounts } = serveLoad(load, system, assumed, createRandom(2));
    expect(outcome.served + outcome.failed + outcome.late).toBe(outcome.begun);
    // Half of them; some are served too late.
    expect(outcome.served / outcome.begun).toBeGreaterThan(0.35);
    expect(outcome.served / outcome.begun).toBeLessThan(0.55);
    expect(accounts[0]?.rejected).toBeGreaterThan(1_000);
  });

  test('is planned below the targets', () => {
    for (const rate of [10, 10_000, 100_000]) {
      const load = { rate, writes: 0.1, keys: even };
      for (const { what, part } of usesOf(load, planSystem(load, assumed), assumed))
        expect(part, `${rate}: ${what}`).toBeLessThan(0.75);
    }
  });
});

test('slots move to the least busy account until the busiest one cannot be less busy', () => {
  const shares = slotShares(skewed);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
  const { owners, peaks } = rebalance(shares, spreadSlots(4), 4);
  for (const [index, peak] of peaks.entries()) expect(peak).toBeLessThanOrEqual(peaks[index - 1] ?? peak);
  expect(peaks.at(-1)).toBeLessThan(1.01);
  expect(new Set(owners)).toEqual(new Set([0, 1, 2, 3]));
  // A slot that is busier than an account should be stays, and bounds what moves can do.
  const many = rebalance(shares, spreadSlots(64), 64).peaks.at(-1) ?? 0;
  expect(many).toBeCloseTo(64 * Math.max(...shares), 6);
});

test('a move takes the calls that its steps take', () => {
  const move = {
    rows: 10_000,
    rowsOfTarget: 0,
    rowsOfPartition: 10,
    slots: 10,
    ownedSlots: 100,
    together: 10,
    writes: 0,
    delay: 0.008,
    pageDelay: 0.05,
  };
  // 1,000 rows of 100 partitions move. Without writes, nothing is opened: the registries of 16 slots, and of 10 twice; three changes.
  const { seconds, pause, opened, transactions } = costOfMove(move);
  expect(transactions).toEqual({ copy: 100, compare: 21, open: 0, drain: 42, cleanUp: 110 });
  expect(opened).toBe(0);
  expect(pause).toBeCloseTo(0.01 + 6 * 0.008, 9);
  expect(seconds).toBeCloseTo(40 + 2 * 10 * 0.05 + 0.026 + pause, 9);
  // With many writes, all partitions are opened, and each takes five calls in the pause.
  const busy = costOfMove({ ...move, writes: 1e6 });
  expect(busy.opened).toBeCloseTo(100, 6);
  expect(busy.pause).toBeCloseTo(pause + (100 * 5 * 0.008) / 32, 6);
  expect(costOfMove({ ...move, together: 5 }).seconds).toBeGreaterThan(2 * 40);
});

test('the mover copies and compares with as many transactions as the model says', { tags: ['slow'] }, async () => {
  const { open, requests } = createAccounts(['first', 'second']);
  const [alone, storage] = [open(1), open()];
  await storageTables.provision(alone, RESOURCES);
  const keys = Array.from({ length: 60 }, (_, index) => `p${index}`);
  const actions = Array.from({ length: 40 }, (_, index) => ({
    kind: 'upsert' as const,
    row: `${index}`,
    properties: { EntityType: 'thing' },
  }));
  for (const partition of keys) await storageRows.submit(alone, { table: TABLE, partition, actions });
  await storageTables.provision(storage, RESOURCES);
  await storageRows.scanTable(storage, { table: TABLE, limit: 1 });
  requests.length = 0;
  const moved = [...new Set(keys.slice(0, 20).map(storageSlots.slotOf))];
  const timing = {
    ...operationsMove.MOVE_TIMING,
    leaseMs: 50,
    lateMs: 50,
    holdMs: 5_000,
    keepMs: 0,
  };
  await operationsMove.moveSlots(storage, [{ slots: moved, to: 'second' }], { timing, resources: RESOURCES });
  const slots = new Set(keys.map(storageSlots.slotOf)).size;
  const { transactions } = costOfMove({
    rows: 2_400,
    rowsOfTarget: 0,
    rowsOfPartition: 40,
    slots: moved.length,
    ownedSlots: slots,
    together: slots,
    writes: 0,
    delay: 0.005,
    pageDelay: 0.05,
  });
  const sent = (account: string, method: string, url: RegExp) =>
    requests.filter((each) => each.account === account && each.method === method && url.test(each.url)).length;
  expect(sent('second', 'POST', /\$batch/)).toBe(transactions.copy);
  const queries = sent('first', 'GET', /\/things\(\)/) + sent('second', 'GET', /\/things\(\)/);
  // An empty table takes a query as well.
  expect(queries - transactions.compare).toBeGreaterThanOrEqual(0);
  expect(queries - transactions.compare).toBeLessThanOrEqual(1);
});

test('the model has the throughput of the bench within a fifth', { tags: ['slow'] }, async () => {
  const compared = compareWithBench(readBench(await read('docs/internals/benchmarks.md')), createRandom(3));
  expect(compared).toHaveLength(9);
  for (const { measured, perSecond } of compared) {
    expect(perSecond / measured.product.perSecond, `${measured.work}, ${measured.callers}`).toBeGreaterThan(0.8);
    expect(perSecond / measured.product.perSecond, `${measured.work}, ${measured.callers}`).toBeLessThan(1.2);
  }
});

test.runIf(IS_EVERY_POINT)(
  'docs/internals/scale.md and its charts are those of a run: npm run scale',
  async ({ skip }) => {
    if (!deployedApp.model.list.some(({ name }) => name === 'employees')) skip('The example pack directory is needed.');
    const page = await read(SCALE_PAGE);
    const { text, charts } = await updateScale(page);
    expect(text).toBe(page);
    for (const [file, svg] of charts) expect(await read(file), file).toBe(svg);
  },
);
