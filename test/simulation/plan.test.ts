import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { planOf } from './plan.ts';
import { TRAP_ENDS, TRAP_REQUESTS } from './world/network.ts';

test('a seed determines the plan of a world', { tags: ['slow'] }, () => {
  const { model: _, ...plan } = planOf(7);
  const { model: __, ...again } = planOf(7);
  expect(again).toEqual(plan);
  expect(isDeepStrictEqual(planOf(8).events, plan.events)).toBe(false);
});

test('seeds differ in their models, processes, accounts and faults', { tags: ['slow'] }, () => {
  const plans = Array.from({ length: 24 }, (_, seed) => planOf(seed + 1));
  const kinds = (of: (plan: (typeof plans)[number]) => unknown) =>
    new Set(plans.map((plan) => JSON.stringify(of(plan))));
  expect(kinds(({ modelName }) => modelName).size).toBeGreaterThan(1);
  expect(kinds(({ processes }) => processes).size).toBe(3);
  expect(kinds(({ accounts }) => accounts).size).toBe(3);
  expect(kinds(({ faults }) => faults).size).toBeGreaterThan(12);
  const done = new Set(plans.flatMap(({ events }) => events.map(({ event }) => event.do)));
  const kindsDone = [
    'away',
    'carry',
    'deploy',
    'grow',
    'import',
    'kill',
    'list',
    'operate',
    'pause',
    'read',
    'replay',
    'rotate',
    'snapshot',
    'spoil',
    'upkeep',
    'verify',
    'write',
  ];
  expect([...done].sort()).toEqual(kindsDone);
});

test('scenes stop at each kind of request, in each way, and others go on after that', { tags: ['slow'] }, () => {
  const plans = Array.from({ length: 24 }, (_, seed) => planOf(seed + 1));
  const writes = plans
    .filter(({ isDrilled }) => !isDrilled)
    .flatMap(({ events }) => events.map(({ event }) => event))
    .filter((event) => event.do === 'write');
  // Those of drills of the backup have the lowest numbers.
  const traps = writes.flatMap(({ traps = [] }) => traps).filter(({ scene }) => scene > -100);
  expect(new Set(traps.map(({ request }) => request))).toEqual(new Set(TRAP_REQUESTS));
  expect(new Set(traps.map(({ end }) => end))).toEqual(new Set(TRAP_ENDS));
  // What the protocol leaves for a pause between the look at the clock and a request.
  expect(Math.max(...traps.filter(({ end }) => end === 'pauses before').map(({ forMs }) => forMs))).toBeLessThan(
    20_000,
  );
  const scenes = new Set(writes.flatMap(({ after }) => after?.scene ?? []));
  expect(scenes.size).toBeGreaterThan(5);
});

test('drills stop an operation again where a rule matters', { tags: ['slow'] }, () => {
  const plans = Array.from({ length: 60 }, (_, seed) => planOf(seed + 1)).filter(({ isDrilled }) => isDrilled);
  expect(plans.length).toBeGreaterThan(3);
  const stopped = plans
    .flatMap(({ events }) => events.map(({ event }) => event))
    .flatMap((event) => ('traps' in event && event.traps ? [{ ...event, traps: event.traps }] : []));
  const chains = stopped.map(({ traps: [first] }) => {
    const chain = [];
    for (let trap = first; trap; trap = trap.then) chain.push(`${trap.end} at ${trap.request}`);
    return chain;
  });
  expect(new Set(chains.map(({ length }) => length))).toEqual(new Set([1, 2, 3, 4]));
  expect(chains).toContainEqual(['late at change other', 'dies before at change other']);
  expect(chains).toContainEqual(['pauses after at write entity', 'dies after at insert other']);
  expect(chains).toContainEqual(['pauses after at send message', 'dies after at write entity']);
  expect(new Set(stopped.map((event) => event.do))).toEqual(new Set(['write', 'verify', 'read', 'grant']));
  // A write that arrives after its partition was handed over.
  expect(stopped.some((event) => event.do === 'write' && event.afterOperatorMs !== undefined)).toBe(true);
});

test('few entities are written and read beside the copies of a move', { tags: ['slow'] }, () => {
  const plans = Array.from({ length: 24 }, (_, seed) => planOf(seed + 1));
  const beside = plans.flatMap(({ events }) =>
    events.flatMap(({ event }) => ('afterOperatorMs' in event ? [event] : [])),
  );
  expect(new Set(beside.map((event) => event.do))).toEqual(new Set(['write', 'read']));
  expect(beside.some((event) => event.do === 'write' && event.traps?.at(0)?.end === 'held')).toBe(true);
});
