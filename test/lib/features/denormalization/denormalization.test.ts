import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { copiesOf } from '../../../../lib/features/denormalization/denormalization.ts';
import { defineEntity, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { engineRead, engineWrite } from '../../../kit/engine.ts';
import { operationsCheck } from '../../../kit/operations.ts';
import { expectIndexesToAgree, openWorld } from '../../../world.ts';

/** Copies of fields of an entity of the same partition, which change in the transaction that changes the entity. */

const access = { read: ['hr'], write: ['hr'] } as const;
const declaredPlayers = defineEntity('players', {
  schema: z.object({ club: z.string(), playerId: z.string(), name: z.string(), phone: z.string().optional() }),
  table: 'sport',
  key: { partition: '{club}', row: 'player_{playerId}' },
  access,
});
const declaredTeams = defineEntity('teams', {
  schema: z.object({
    club: z.string(),
    captainId: z.string().optional(),
    captain: z.string().optional(),
    phone: z.string().optional(),
    motto: z.string().optional(),
    title: z.string().optional(),
  }),
  table: 'sport',
  key: { partition: '{club}', row: 'team' },
  denormalized: {
    captainId: {
      source: declaredPlayers,
      by: 'playerId',
      copies: { captain: ({ name }) => name, phone: ({ phone }) => phone ?? null },
    },
  },
  derived: { title: ({ captainId, motto }) => `${motto ?? ''}${captainId === undefined ? '' : '!'}` },
  access,
});
const { players, teams } = deploy(declaredPlayers, declaredTeams);
const world = await openWorld(import.meta.url, [players, teams]);

const teamOf = async (club: string) => {
  const { values } = await engineRead.readEntity(world.engine, teams, { club });
  return Object.fromEntries(Object.entries(values).filter(([field]) => field !== 'club'));
};
async function found(club: string) {
  for (const [playerId, name] of [
    ['1', 'Ann'],
    ['2', 'Bea'],
  ])
    await engineWrite.createEntity(world.engine, players, { club, playerId, name });
  const patchPlayer = (playerId: string, values: Values) =>
    engineWrite.patchEntity(world.engine, players, { club, playerId }, values);
  const patchTeam = (values: Values) => engineWrite.patchEntity(world.engine, teams, { club }, values);
  return { patchPlayer, patchTeam };
}
const check = async (club: string, repair: boolean) => {
  const position = { table: 0, after: { partition: club, row: '' }, left: 0 };
  const { findings } = await operationsCheck.verifyPage(world.engine, teams, {
    position,
    top: 10,
    repair,
    patience: 0,
  });
  return findings
    .filter(({ partition }) => partition === club)
    .map(({ kind, of, row, repaired }) => ({ kind, of, row, repaired }));
};

describe('the copies of an entity', () => {
  test('follow it, the reference and the end of either', async () => {
    const { patchPlayer, patchTeam } = await found('A');
    await engineWrite.createEntity(world.engine, teams, { club: 'A', captainId: '1', motto: 'Go' });
    expect(await teamOf('A')).toEqual({ captainId: '1', captain: 'Ann', motto: 'Go', title: 'Go!' });
    await patchPlayer('1', { name: 'Anna', phone: '7' });
    expect(await teamOf('A')).toMatchObject({ captain: 'Anna', phone: '7', motto: 'Go' });
    await patchPlayer('1', { phone: null });
    expect(await teamOf('A')).not.toHaveProperty('phone');
    await patchPlayer('2', { name: 'Beate' });
    expect(await teamOf('A')).toMatchObject({ captainId: '1', captain: 'Anna' });
    await patchTeam({ captainId: '2' });
    expect(await teamOf('A')).toMatchObject({ captainId: '2', captain: 'Beate' });
    await patchPlayer('1', { name: 'Anita' });
    expect(await teamOf('A')).toMatchObject({ captainId: '2', captain: 'Beate' });
    await engineWrite.deleteEntity(world.engine, players, { club: 'A', playerId: '1' });
    expect(await teamOf('A')).toMatchObject({ captainId: '2', captain: 'Beate' });
    await engineWrite.deleteEntity(world.engine, players, { club: 'A', playerId: '2' });
    expect(await teamOf('A')).toEqual({ motto: 'Go', title: 'Go' });
    await expectIndexesToAgree(world.storage, teams);
  });

  test('end with the reference, and are no values of a caller', async () => {
    const { patchPlayer, patchTeam } = await found('B');
    await engineWrite.createEntity(world.engine, teams, { club: 'B', captainId: '1' });
    const refusal = { code: 'invalid-input', field: 'captainId' };
    await expect(patchTeam({ captainId: '3' })).rejects.toMatchObject(refusal);
    await expect(patchTeam({ captain: 'Eve' })).rejects.toMatchObject({ code: 'invalid-input', field: 'captain' });
    await patchTeam({ captainId: null });
    expect(await teamOf('B')).toEqual({ title: '' });
    await patchPlayer('1', { name: 'Anita' });
    expect(await teamOf('B')).toEqual({ title: '' });
    await engineWrite.deleteEntity(world.engine, teams, { club: 'B' });
    await patchPlayer('2', { name: 'Beate' });
    await expect(engineWrite.createEntity(world.engine, teams, { club: 'B', captainId: '9' })).rejects.toMatchObject(
      refusal,
    );
  });

  test.each<[string, string, Values]>([
    ['a copy that was changed', 'team', { captain: 'Eve' }],
    ['a copy of a field that the source lacks', 'team', { phone: '9' }],
    ['a source that does not lead to its copy', 'player_1', { DenormalizedTo: '' }],
    ['a source that leads elsewhere', 'player_1', { DenormalizedTo: 'player_2' }],
  ])('are found and repaired by the consistency check: %s', async (what, rowKey, damage) => {
    const club = `C ${what}`;
    const { patchPlayer } = await found(club);
    await engineWrite.createEntity(world.engine, teams, { club, captainId: '1' });
    const right = await teamOf(club);
    expect(await check(club, true)).toEqual([]);
    await world.storage.table('sport').updateEntity({ partitionKey: club, rowKey, ...damage }, 'Merge');
    const finding = { kind: 'stale-copy', of: 'captainId', row: 'team' };
    expect(await check(club, false)).toEqual([{ ...finding, repaired: false }]);
    expect(await check(club, true)).toEqual([{ ...finding, repaired: true }]);
    expect(await check(club, false)).toEqual([]);
    expect(await teamOf(club)).toEqual(right);
    await patchPlayer('1', { name: 'Later' });
    expect(await teamOf(club)).toMatchObject({ captain: 'Later' });
  });

  test('are removed by the repair if their source is gone', async () => {
    await found('D');
    await engineWrite.createEntity(world.engine, teams, { club: 'D', captainId: '1', motto: 'Go' });
    await world.storage.table('sport').deleteEntity('D', 'player_1');
    expect(await check('D', true)).toEqual([{ kind: 'stale-copy', of: 'captainId', row: 'team', repaired: true }]);
    expect(await teamOf('D')).toEqual({ motto: 'Go', title: 'Go' });
    expect(await check('D', false)).toEqual([]);
  });
});

test('a copy that is null or undefined is no value', () => {
  const link = teams.denormalized.captainId ?? expect.fail('The copies are declared.');
  expect(copiesOf(link, undefined)).toEqual({});
  expect(copiesOf(link, { club: 'A', playerId: '1' })).toEqual({});
  expect(copiesOf(link, { club: 'A', playerId: '1', name: '', phone: '1' })).toEqual({ captain: '', phone: '1' });
});
