import type { HttpClient } from '@azure/core-rest-pipeline';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { IS_EVERY_CALL, outcomeOf, SMALL, tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient, requestTo } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import { type ChangeRecord, type Engine, engineCore, engineRead, engineWrite } from '../../../kit/engine.ts';
import { PATIENCE_MS } from '../../../patience.ts';
import { expectIndexesToAgree, laterBy, openWorld, rowsOf } from '../../../world.ts';

/** The life of two small entities with rows of every kind, beside whatever else may happen, before each storage call. */

const declaredItems = defineEntity('items', {
  schema: z.object({
    box: z.string(),
    itemId: z.string(),
    label: z.string(),
    group: z.string(),
    code: z.string(),
    note: z.string().optional(),
  }),
  table: 'items',
  key: { partition: '{box}', row: 'item_{itemId}' },
  indexes: {
    label: intraPartitionIndex({ row: 'label_{label}' }),
    group: indexEntity({ row: 'group_{group}', holds: '{itemId}' }),
    code: interPartitionIndex({ table: 'itemsbycode', partition: 'c', row: '{code}', unique: true }),
  },
  access: { read: [], write: [] },
});
const { items } = deploy(
  declaredItems,
  defineEntity('boxes', {
    schema: z.object({ box: z.string(), itemCount: z.int32() }),
    table: 'items',
    key: { partition: '{box}', row: 'box' },
    counts: { itemCount: declaredItems },
    access: { read: [], write: [] },
  }),
) as unknown as { readonly items: Entity };
const { locks } = deploy(
  defineEntity('locks', {
    schema: z.object({ door: z.string(), code: z.string(), spare: z.string() }),
    table: 'locks',
    key: { partition: '{door}', row: 'lock' },
    indexes: {
      code: interPartitionIndex({ table: 'locksbycode', partition: 'c', row: '{code}', unique: true }),
      spare: interPartitionIndex({ table: 'locksbyspare', partition: 's', row: '{spare}', unique: true }),
    },
    access: { read: [], write: [] },
  }),
);
const world = await openWorld(import.meta.url, [items, locks]);
/** The claims of others are over at once, as those of processes that have died. */
const later = (of: Engine): Engine => laterBy(of, () => 2 * of.timing.claimForMs);
const other = later(world.engine);

let made = 0;
function newLife() {
  made += 1;
  const box = `box${made}`;
  const item = (itemId: string, label = itemId, group = 'g'): Values => {
    return { box, itemId, label, group, code: `${box} ${label}` };
  };
  const [x, y] = [item('x'), item('y')];
  const change = { label: 'new', group: 'h', code: `${box} new` };
  return { box, item, x, y, change };
}
type Life = ReturnType<typeof newLife>;
const keyOf = ({ box, itemId }: Values) => ({ box, itemId });

/** The rows that a process has written last, it remembers for the next write. */
async function live(engine: Engine, { x, y, change }: Life): Promise<string[]> {
  const writes = [
    () => engineWrite.createEntity(engine, items, x),
    () => engineWrite.createEntity(engine, items, y),
    () => engineWrite.patchEntity(engine, items, keyOf(x), change),
    () => engineWrite.deleteEntity(engine, items, keyOf(y)),
  ];
  const outcomes: string[] = [];
  for (const write of writes) outcomes.push(await outcomeOf(write()));
  return outcomes;
}
const DONE = ['done', 'done', 'done', 'done'];

/** All rows that the lives have left are those that follow from these entities. */
async function expectLeft(wanted: ReadonlyMap<Life, readonly Values[]>): Promise<void> {
  await world.settle();
  const found = Map.groupBy(await expectIndexesToAgree(world.storage, items), ({ box }) => box);
  const byId = (some: readonly Values[]) =>
    some.toSorted((one, two) => (String(one.itemId) < String(two.itemId) ? -1 : 1));
  for (const [{ box }, left] of wanted) expect(byId(found.get(box) ?? [])).toEqual(byId(left));
}

/** Lives once for each storage call, while something happens. Returns the pairs of outcomes that were seen. */
async function during(
  happen: (life: Life) => Promise<unknown>,
  leftAfter: (life: Life, outcomes: readonly string[], outcome: string) => readonly Values[],
): Promise<Set<string>> {
  const left = new Map<Life, readonly Values[]>();
  const seen = new Set<string>();
  const set = async () => {
    const life = newLife();
    let outcomes: string[] = [];
    let outcome = '';
    return {
      act: async (through: Engine) => {
        outcomes = await live(later(through), life);
      },
      interrupt: async () => {
        outcome = await outcomeOf(happen(life));
      },
      check: async () => {
        seen.add([...outcomes, outcome].join(' '));
        left.set(life, leftAfter(life, outcomes, outcome));
      },
    };
  };
  await tryInterruptions(world, set, { sides: ['before'], ...SMALL });
  await expectLeft(left);
  return seen;
}

test.each<[string, (life: Life) => Promise<unknown>, Parameters<typeof during>[1], string[]]>([
  [
    'another entity joins their list and their count',
    ({ item }) => engineWrite.createEntity(other, items, item('z')),
    ({ x, item, change }) => [{ ...x, ...change }, item('z')],
    ['done done done done done'],
  ],
  [
    'another field changes',
    ({ x }) => engineWrite.patchEntity(other, items, keyOf(x), { note: 'changed' }),
    ({ x, change }, _, outcome) => [{ ...x, ...change, ...(outcome === 'done' ? { note: 'changed' } : {}) }],
    ['done done done done done', 'done done done done not-found'],
  ],
  [
    'another entity takes the values of the change',
    ({ item }) => engineWrite.createEntity(other, items, item('z', 'new')),
    ({ x, item, change }, [, , changed], outcome) => [
      { ...x, ...(changed === 'done' ? change : {}) },
      ...(outcome === 'done' ? [item('z', 'new')] : []),
    ],
    ['done done done done duplicate-value', 'done done duplicate-value done done'],
  ],
  [
    'the entity is deleted before it changes',
    ({ x }) => engineWrite.deleteEntity(other, items, keyOf(x)),
    ({ x, change }, _, outcome) => (outcome === 'done' ? [] : [{ ...x, ...change }]),
    ['done done done done done', 'done done done done not-found', 'done done not-found done done'],
  ],
  [
    'another process deletes what is to be deleted',
    ({ y }) => engineWrite.deleteEntity(other, items, keyOf(y)),
    ({ x, change }) => [{ ...x, ...change }],
    ['done done done done not-found', 'done done done not-found done'],
  ],
  [
    'another process creates an entity with the same key',
    ({ y }) => engineWrite.createEntity(other, items, { ...y, note: 'other' }),
    ({ x, y, change }, [, created], outcome) => {
      const isLast = created === 'done' && outcome === 'done';
      return [{ ...x, ...change }, ...(isLast ? [{ ...y, note: 'other' }] : [])];
    },
    [
      'done done done done done',
      'done done done done busy',
      'done done done done duplicate-key',
      'done duplicate-key done done done',
    ],
  ],
])('two entities live consistently while %s', async (_, happen, leftAfter, pairs) => {
  const seen = await during(happen, leftAfter);
  if (IS_EVERY_CALL) expect(seen).toEqual(new Set(pairs));
});

/** What must be noted of each write, and the entities that are left after it. */
const noted = ({ x, y, change }: Life) => [
  { operation: 'create', fields: Object.keys(x), left: [x] },
  { operation: 'create', fields: Object.keys(y), left: [x, y] },
  { operation: 'replace', fields: Object.keys(change), left: [{ ...x, ...change }, y] },
  { operation: 'delete', fields: Object.keys(y), left: [{ ...x, ...change }] },
];

/** Lives with a fault. Each write that is done is noted once, and one whose outcome is unknown as such. */
async function liveWith(engine: Engine) {
  const life = newLife();
  const changes: ChangeRecord[] = [];
  let outcomes: string[] = [];
  await engineCore.collectChanges(
    'ann',
    async () => {
      outcomes = await live(engine, life);
    },
    async (some) => void changes.push(...some),
  );
  const known = changes.filter(({ outcome }) => outcome === undefined);
  const done = noted(life).filter((_, at) => outcomes[at] === 'done');
  expect(known.map(({ operation }) => operation)).toEqual(done.map(({ operation }) => operation));
  for (const [at, { fields }] of known.entries()) expect(fields.toSorted()).toEqual(done[at]?.fields.toSorted());
  for (const { etag } of known) expect(etag).toMatch(/^W/);
  return { life, outcomes, unknown: changes.length - known.length };
}

test('a process that dies at any call leaves what it has done, and rows that agree', async () => {
  const left = new Map<Life, readonly Values[]>();
  await tryFaults(
    async ({ client, timing, label }) => {
      const { life, outcomes } = await liveWith(later(world.engineThrough(client, timing)));
      const count = outcomes.filter((outcome) => outcome === 'done').length;
      const [before, after] = [noted(life)[count - 1]?.left ?? [], noted(life)[count]?.left ?? []];
      const found = await engineRead.readEntities(world.engine, items, { box: life.box }, { top: 10 });
      expect([before, after], label).toContainEqual(found.items);
      left.set(life, found.items as Values[]);
    },
    { faults: ['crash after'], ...SMALL },
  );
  await expectLeft(left);
});

test.each([
  ['a lost reply', 'reply lost', [DONE, DONE, DONE, DONE]],
  // A transaction of inserts alone is not sent again.
  ['an error', 'server error', [['storage-unavailable', 'done', 'not-found', 'done'], DONE, DONE, DONE]],
] as const)('%s of a transaction does it once, or is noted as an unknown outcome', async (_, fault, expected) => {
  const left = new Map<Life, readonly Values[]>();
  await Promise.all(
    expected.map(async (wanted, index) => {
      let seen = 0;
      const isPoint = ({ url }: { readonly url: string }) => url.includes('$batch') && seen++ === index;
      const { life, outcomes, unknown } = await liveWith(later(world.engineThrough(faultyHttpClient(fault, isPoint))));
      expect(outcomes).toEqual(wanted);
      expect(unknown).toBe(wanted === DONE ? 0 : 1);
      left.set(life, wanted[0] === 'done' ? [{ ...life.x, ...life.change }] : []);
    }),
  );
  await expectLeft(left);
});

test('two writers of one entity that have a claim each do not both fail', async () => {
  const door = { door: 'front' };
  await engineWrite.createEntity(world.engine, locks, { ...door, code: '1', spare: '1' });
  const values = { code: '2', spare: '2' };
  const patch = (by: Engine) => outcomeOf(engineWrite.patchEntity(by, locks, door, values));
  let second: Promise<string> | undefined;
  let hasSeen = false;
  const until = (isSo: () => boolean | Promise<boolean>) => vi.waitUntil(isSo, { interval: 5, timeout: PATIENCE_MS });
  const client = interruptedHttpClient(requestTo('locksbyspare', 'POST'), async () => {
    // It claims what the first one does not have yet, finds the other row claimed, and gives up once the first one has found its row claimed.
    const release = requestTo('locksbyspare', 'DELETE');
    second = patch(world.engineThrough(interruptedHttpClient(release, () => until(() => hasSeen))));
    await until(async () => (await rowsOf(world.storage, 'locksbyspare')).length > 1);
  });
  const isRead = requestTo('locksbyspare', 'GET');
  const first: HttpClient = {
    async sendRequest(request) {
      const response = await client.sendRequest(request);
      hasSeen ||= isRead(request);
      return response;
    },
  };
  const outcomes = [await patch(world.engineThrough(first)), await second];
  expect(outcomes).toContain('done');
  // Who finds both rows claimed by the other one is told so.
  expect(outcomes.every((outcome) => outcome === 'done' || outcome === 'busy')).toBe(true);
  await world.settle();
  expect(await expectIndexesToAgree(world.storage, locks)).toEqual([{ ...door, ...values }]);
});
