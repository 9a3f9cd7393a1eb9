import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, defineModel, interPartitionIndex, type Model } from '../../../lib/index.ts';
import { compareAll } from '../../../local/walk/compare-answers.ts';
import { type Step, takeStep } from '../../../local/walk/steps.ts';
import { formatFailure, type Round, roundsOf, shrink, walk } from '../../../local/walk/walk.ts';
import { prepareWorlds } from '../../../local/walk/walk-world.ts';
import * as packs from '../../../model/entities.ts';
import { model as deployed } from '../../../model/model.ts';
import { model as fixtures } from '../../fixtures/model.ts';
import { model as relations } from '../../fixtures/relations.ts';
import { IS_EVERY_POINT } from '../../points.ts';
import { testStorage, WALK_ACCOUNTS } from '../../storage.ts';

const connectionString = testStorage(import.meta.url);
const folder = await mkdtemp(join(inject('folder'), 'walk-test-'));

const { roles, operatorRole } = deployed;
const ofPacks = Object.entries<DeclaredEntity | readonly DeclaredEntity[]>(packs).flatMap(([name, entities]) =>
  Array.isArray(entities) && entities.length > 0
    ? [{ name, model: defineModel({ roles, operatorRole, entities }) as Model }]
    : [],
);
const models = [
  ...(ofPacks.length > 0 || deployed.list.length === 0 ? ofPacks : [{ name: 'the model of the app', model: deployed }]),
  { name: 'the fixtures', model: fixtures },
  { name: 'relations in both directions', model: relations },
];

test.each(models)(
  'every answer agrees with the entities after random writes: $name',
  { tags: ['slow'] },
  async ({ model }) => {
    const writes = IS_EVERY_POINT ? 3_000 : 60;
    const { failure, outcomes } = await walk(model, { connectionString, folder, seed: Number(inject('seed')), writes });
    expect(failure && formatFailure(failure)).toBeUndefined();
    expect([...outcomes.keys()].some((outcome) => outcome.endsWith('ok'))).toBe(true);
  },
);

test.each(models)(
  'every answer agrees with the entities in three storage accounts: $name',
  { tags: ['slow'] },
  async ({ model }) => {
    const writes = IS_EVERY_POINT ? 1_000 : 20;
    const further = WALK_ACCOUNTS.map(testStorage);
    const { failure } = await walk(model, { connectionString, further, folder, seed: Number(inject('seed')), writes });
    expect(failure && formatFailure(failure)).toBeUndefined();
  },
);

test.each(['archive', 'delete'] as const)(
  'a field derived from a reference follows when the source is gone: %s',
  { tags: ['slow'] },
  async (leave) => {
    const world = await (await prepareWorlds(relations, { connectionString, folder }))();
    const key = { team: '8', memberId: '5' };
    const steps: Step[] = [
      { of: 'members', do: 'create', values: key },
      { of: 'teams', do: 'create', values: { team: '8', leadId: '5' } },
      { of: 'members', do: leave, key },
    ];
    for (const step of steps) expect(await takeStep(world, step)).toBe('ok');
    await world.worker.settle();
    expect((await world.store.teams.get({ team: '8' })).values).toEqual({ team: '8', hasLead: 'no', size: 0 });
    expect(await compareAll(world, relations.list)).toEqual([]);
  },
);

test('a walk of 10,000 steps writes each entity by one writer and by several', { tags: ['slow'] }, () => {
  const written = new Set<string>();
  for (const { writers, steps } of roundsOf(fixtures, { seed: Number(inject('seed')), writes: 10_000 }))
    for (const { of, do: write } of steps) if (write !== 'settle') written.add(`${of} by ${writers}`);
  const wanted = fixtures.list.flatMap(({ name }) => [`${name} by 1`, `${name} by 4`]);
  expect([...written].sort()).toEqual(wanted.sort());
});

test('a short walk has several rounds, and all its steps', { tags: ['slow'] }, () => {
  const rounds = [...roundsOf(fixtures, { seed: 1, writes: 31 })];
  expect(rounds.map(({ steps }) => steps.length)).toEqual([11, 11, 9]);
  expect([...roundsOf(fixtures, { seed: 1, writes: 31 })]).toEqual(rounds);
});

test('an index that does not follow its entities is found, and shown by the fewest writes', {
  tags: ['slow'],
}, async () => {
  let asked = 0;
  const things = defineEntity('things', {
    schema: z.object({ id: z.string(), group: z.string() }),
    table: 'things',
    key: { partition: '{id}', row: 'thing' },
    indexes: {
      group: interPartitionIndex({
        table: 'thingsbygroup',
        partition: '{group}',
        row: '{id}',
        when: () => {
          asked += 1;
          return asked % 2 === 0;
        },
      }),
    },
    access: { read: ['reader'], write: ['reader'] },
  });
  const model = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [things] });
  const { failure } = await walk(model, { connectionString, folder, seed: 1, writes: 30 });
  expect(failure?.round.steps.length).toBeLessThan(5);
  expect(failure && formatFailure(failure)).toMatch(
    /^After \d steps? by 1 writer \(round 10000\d\):\n1\. things \w+ .*thingsbygroup/s,
  );
});

test('a failure is shrunk to the steps, actions and values that it needs', async () => {
  const step = (write: Step['do'], values = {}): Step => ({ of: 'things', do: write, values });
  const [action, unneeded] = [{ delete: { id: '3' } }, { put: { id: '4' } }];
  const needed = [step('create', { id: '1' }), { ...step('batch'), actions: [action] }];
  const others = Array.from({ length: 20 }, (_, index) => step('put', { index }));
  const [first = step('put'), last = step('put')] = needed;
  const round: Round = {
    seed: 1,
    writers: 4,
    steps: [
      ...others,
      { ...first, values: { id: '1', more: true } },
      ...others,
      { ...last, actions: [unneeded, action, unneeded] },
      ...others,
    ],
  };
  const fails = ({ steps }: Round) => {
    const at = steps.findIndex((one) => one.do === 'create' && one.values?.id === '1');
    return at >= 0 && steps.slice(at).some(({ actions = [] }) => actions.some((one) => 'delete' in one));
  };
  const run = async (smaller: Round) => (fails(smaller) ? ['wrong'] : []);
  expect(await shrink({ round, differences: ['wrong'] }, run)).toEqual({
    round: { seed: 1, writers: 1, steps: needed },
    differences: ['wrong'],
  });
});
