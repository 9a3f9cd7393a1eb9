import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { planOf } from './plan.ts';

test('a seed determines the plan of a world', () => {
  const { model: _, ...plan } = planOf(7);
  const { model: __, ...again } = planOf(7);
  expect(again).toEqual(plan);
  expect(isDeepStrictEqual(planOf(8).events, plan.events)).toBe(false);
});

test('seeds differ in their models, processes, accounts and faults', () => {
  const plans = Array.from({ length: 24 }, (_, seed) => planOf(seed + 1));
  const kinds = (of: (plan: (typeof plans)[number]) => unknown) =>
    new Set(plans.map((plan) => JSON.stringify(of(plan))));
  expect(kinds(({ modelName }) => modelName).size).toBeGreaterThan(1);
  expect(kinds(({ processes }) => processes).size).toBe(3);
  expect(kinds(({ accounts }) => accounts).size).toBe(3);
  expect(kinds(({ faults }) => faults).size).toBeGreaterThan(12);
  const done = new Set(plans.flatMap(({ events }) => events.map(({ event }) => event.do)));
  expect([...done].sort()).toEqual(['away', 'grow', 'kill', 'operate', 'pause', 'read', 'verify', 'write']);
});
