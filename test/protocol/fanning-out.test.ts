import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { allPages } from '../all-pages.ts';
import { costOf } from '../cost-of.ts';
import {
  clubs,
  consume,
  create,
  expectCopies,
  fans,
  fansDeclared,
  found,
  intentOf,
  lastPassOf,
  openFanOutWorld,
  patch,
  playerOf,
  players,
  storeFans,
  teams,
  world,
} from '../fan-out.ts';
import { outcomeOf } from '../fault-driver.ts';
import { deploy } from '../fixtures/deploy.ts';
import type { Entity, Finding } from '../kit/define.ts';
import { engineRead, engineReconcile, engineTransfer, engineWrite } from '../kit/engine.ts';
import { operationsCheck, operationsModel, type VerifyPosition } from '../kit/operations.ts';
import { countedMetrics } from '../metrics.ts';
import { putAll } from '../put-all.ts';
import { rowsOf } from '../world.ts';

openFanOutWorld(import.meta.url);

describe('an entity with copies of fields of another one', () => {
  test('has the current values when it is created, for one read of each source', async () => {
    const { team, club, player } = await found();
    const fan = { clubId: club.clubId, fanId: '1' };
    expect(await costOf(() => create(fans, fan))).toBe(2);
    expect((await engineRead.readEntity(world.engine, fans, fan)).values).toEqual({ ...fan, clubName: 'Club' });
    await create(players, player('1', { clubId: club.clubId }));
    const copies = { teamTitle: 'First', teamBudget: team.budgetCode, clubName: 'Club' };
    expect(await playerOf(player())).toEqual({ ...player(), clubId: club.clubId, ...copies });
    // One read for all entities of a batch with the same source.
    const batch = Array.from({ length: 10 }, (_, index) => ({ clubId: club.clubId, fanId: `2${index}` }));
    expect(await costOf(() => putAll(world.engine, fans, batch))).toBe(10 + 1 + 1);
    await expectCopies();
  });

  test('reads the source again only if it refers to another one', async () => {
    const { club } = await found();
    const other = { clubId: `o${club.clubId}`, clubName: 'Other' };
    await create(clubs, other);
    const key = { team: 'none', playerId: club.clubId };
    await create(players, { ...key, clubId: club.clubId });
    expect(await costOf(() => patch(players, key, { note: 'x' }))).toBe(2);
    await patch(players, key, { clubId: other.clubId });
    expect((await playerOf(key)).clubName).toBe('Other');
    await patch(players, key, { clubId: null });
    expect(await playerOf(key)).toEqual({ ...key, note: 'x' });
  });

  test('keeps the copies in a replace, and rejects other values of them', async () => {
    const { player } = await found();
    await create(players, player());
    const whole = await playerOf(player());
    await engineWrite.replaceEntity(world.engine, players, player(), { ...whole, note: 'new' });
    expect(await playerOf(player())).toEqual({ ...whole, note: 'new' });
    expect(await outcomeOf(patch(players, player(), { teamTitle: 'Mine' }))).toBe('invalid-input');
    expect(await outcomeOf(create(players, { ...player('2'), teamTitle: 'Mine' }))).toBe('invalid-input');
  });

  test('has no copies without a source, and gets them when the source is created', { tags: ['slow'] }, async () => {
    const id = randomUUID();
    await create(players, { team: id, playerId: '1', clubId: id });
    expect(await playerOf({ team: id, playerId: '1' })).toEqual({ team: id, playerId: '1', clubId: id });
    await create(teams, { team: id, title: 'Late' });
    await create(clubs, { clubId: id, clubName: 'Late too' });
    await world.settle();
    expect(await playerOf({ team: id, playerId: '1' })).toMatchObject({ teamTitle: 'Late', clubName: 'Late too' });
    await engineWrite.deleteEntity(world.engine, teams, { team: id });
    await engineWrite.deleteEntity(world.engine, clubs, { clubId: id });
    await world.settle();
    expect(await playerOf({ team: id, playerId: '1' })).toEqual({ team: id, playerId: '1', clubId: id });
    await expectCopies();
  });

  test('takes the values of its new source when it is moved, and keeps them in the archive', async () => {
    const { player } = await found();
    const { team: other } = await found();
    await create(players, player());
    await patch(teams, other, { title: 'Elsewhere' });
    await engineTransfer.requestMove(world.engine, players, player(), { team: other.team });
    await world.settle();
    const moved = player('1', { team: other.team });
    expect(await playerOf(moved)).toEqual({ ...moved, teamTitle: 'Elsewhere', teamBudget: other.budgetCode });
    await engineTransfer.requestArchive(world.engine, players, moved);
    await world.settle();
    await patch(teams, other, { title: 'Later' });
    await world.settle();
    const [archived] = await rowsOf(world.storage, 'formerplayers');
    expect(archived).toMatchObject({ teamTitle: 'Elsewhere' });
    await expectCopies();
  });

  test('never has a restricted field of its source in a field that others may read', async () => {
    const { team, player } = await found();
    await create(players, player());
    await patch(teams, team, { secret: 'S3cret' });
    await world.settle();
    await create(players, player('2'));
    expect(JSON.stringify([await playerOf(player()), await playerOf(player('2'))])).not.toContain('S3cret');
  });
});

describe('a change of the source', () => {
  test('reaches all receivers, in its partition and through an index, and their index entries', async () => {
    const { team, club, player } = await found();
    await putAll(
      world.engine,
      players,
      Array.from({ length: 60 }, (_, index) => player(String(index), index % 2 ? { clubId: club.clubId } : {})),
    );
    await world.settle();
    const counted = countedMetrics();
    await patch(teams, team, { title: 'Second', budgetCode: `x${team.budgetCode}` });
    await patch(clubs, club, { clubName: 'New Club' });
    await world.settle();
    expect(await counted('rowkey.fanout.updated')).toEqual([{ by: { entity: 'players' }, much: 60 + 30 }]);
    expect(await playerOf(player('59'))).toMatchObject({ teamTitle: 'Second', clubName: 'New Club' });
    expect(await expectCopies()).toBeGreaterThanOrEqual(60);
    await engineWrite.deleteEntity(world.engine, teams, team);
    await world.settle();
    expect(await playerOf(player('58'))).toEqual(player('58'));
    await expectCopies();
  });

  test('is read again in a last pass, which waits until no earlier write can commit', async () => {
    const { team, player } = await found();
    await create(players, player());
    await world.settle();
    const waiting = async () => {
      const counts = engineReconcile.listParts(world.engine).map((queue) => world.storage.queue(queue).getProperties());
      return (await Promise.all(counts)).reduce(
        (sum, { approximateMessagesCount = 0 }) => sum + approximateMessagesCount,
        0,
      );
    };
    await patch(teams, team, { title: 'Waited for' });
    while ((await world.handleVisible()) > 0);
    expect(await playerOf(player())).toMatchObject({ teamTitle: 'Waited for' });
    expect(await waiting()).toBeGreaterThan(0);
    await world.settle();
    expect(await waiting()).toBe(0);
  });

  test('costs its writer two messages, and none if no copied field changes', async () => {
    const { club, team } = await found();
    const costs = {
      copied: await costOf(() => patch(clubs, club, { clubName: 'Costly' })),
      same: await costOf(() => patch(clubs, club, { clubName: 'Costly' })),
      another: await costOf(() => patch(teams, team, { note: 'x' })),
    };
    // Read, intent, transaction, message.
    expect(costs).toEqual({ copied: 4, same: 1, another: 2 });
    await world.settle();
  });

  test('costs four transactions for a hundred entities, and two for each hundred in the last pass', {
    tags: ['slow'],
  }, async () => {
    const { club } = await found();
    await storeFans(club.clubId, 300);
    await patch(clubs, club, { clubName: 'Measured' });
    const first = await intentOf(club.clubId);
    const firstCost = await costOf(() => consume(first));
    const lastCost = await costOf(() => consume(lastPassOf(first)));
    // Page, source; source, transaction. Besides: no players, the reminder (2), and 2 messages for the last pass.
    expect({ firstCost, lastCost }).toEqual({ firstCost: 3 * 4 + 5, lastCost: 3 * 2 + 3 });
    await world.settle();
    await expectCopies();
  });

  test('continues in further messages, and skips what is done', { tags: ['slow'] }, async () => {
    const { club } = await found();
    await storeFans(club.clubId, 1_150);
    await patch(clubs, club, { clubName: 'Continued' });
    await consume(await intentOf(club.clubId));
    const fanRows = async () =>
      (await rowsOf(world.storage, 'fans')).filter(({ partitionKey }) => partitionKey === club.clubId);
    // Ten pages, one of which looked for players.
    expect((await fanRows()).filter(({ clubName }) => clubName === 'Continued')).toHaveLength(900);
    await world.settle();
    await expectCopies();
  });

  test('is not held up by an entity that cannot be written', async () => {
    const { club } = await found();
    await storeFans(club.clubId, 3);
    // The entity of a later release may have a property that this one cannot write.
    const keys = { partitionKey: club.clubId, rowKey: '00001' };
    await world.storage.table('fans').updateEntity({ ...keys, MovingFrom: 'x' }, 'Merge');
    await patch(clubs, club, { clubName: 'Held' });
    const message = await intentOf(club.clubId);
    await consume(message);
    const others = (await rowsOf(world.storage, 'fans')).filter(({ partitionKey }) => partitionKey === club.clubId);
    expect(others.map(({ clubName }) => clubName)).toEqual(['Held', 'stale', 'Held']);
    await world.storage.table('fans').updateEntity({ ...keys, MovingFrom: '' }, 'Merge');
    await world.settle();
    await expectCopies();
  });

  test('reaches an entity that was busy during the last pass', async () => {
    const { club } = await found();
    await storeFans(club.clubId, 1);
    const keys = { partitionKey: club.clubId, rowKey: '00000' };
    await world.storage.table('fans').updateEntity({ ...keys, MovingFrom: 'x' }, 'Merge');
    await patch(clubs, club, { clubName: 'Late' });
    // Without the first pass, which would send this one again.
    await consume(lastPassOf(await intentOf(club.clubId)));
    await world.storage.table('fans').updateEntity({ ...keys, MovingFrom: '' }, 'Merge');
    await world.settle();
    await expectCopies();
  });
});

describe('a message that is late, repeated or forged', () => {
  test('never writes former values', async () => {
    const { club } = await found();
    const fan = { clubId: club.clubId, fanId: '1' };
    await create(fans, fan);
    await patch(clubs, club, { clubName: 'Two' });
    const second = await intentOf(club.clubId);
    await patch(clubs, club, { clubName: 'Three' });
    const third = await intentOf(club.clubId);
    await consume(third);
    await Promise.all([consume(second), consume({ ...second, id: randomUUID() })]);
    expect((await engineRead.readEntity(world.engine, fans, fan)).values.clubName).toBe('Three');
    await world.settle();
    await expectCopies();
  });

  test('changes nothing if it names no possible source', async () => {
    const { club } = await found();
    await create(fans, { clubId: club.clubId, fanId: '1' });
    await world.settle();
    const before = await rowsOf(world.storage, 'fans');
    const body = {
      version: 1,
      intent: randomUUID(),
      entity: 'clubs',
      table: 'clubs',
      items: [],
      fanOut: {
        sources: [
          { partition: 'zz', row: club.clubId },
          { partition: 'x', row: '' },
        ],
        position: { source: 0, relation: 'fans.fanId', after: '' },
      },
    };
    await consume({ queue: 'index-changes', id: randomUUID(), attempts: 1, insertedAt: Date.now(), body });
    await world.settle();
    expect(await rowsOf(world.storage, 'fans')).toEqual(before);
  });
});

async function check(clubId: string, repair: boolean, only?: string) {
  const position = { table: 0, after: { partition: clubId, row: '' }, left: 0 };
  const { findings } = await operationsCheck.verifyPage(world.engine, fans, {
    position,
    top: 2,
    repair,
    only,
    patience: 10,
  });
  return findings.map(({ kind, of, row, repaired }) => ({ kind, of, row, repaired }));
}

test('copies into entities that were stored before are built like an index, which the model guard asks for', async () => {
  const { club } = await found();
  await storeFans(club.clubId, 2);
  const { fans: before } = deploy({ ...fansDeclared, denormalized: {} });
  const guard = (entity: Entity) => operationsModel.guardModel(world.engine, [clubs, entity], undefined);
  expect(await guard(before)).toEqual([]);
  expect(await guard(fans)).toEqual([
    'The index copies-clubId of fans is not built: npm run reindex -- fans copies-clubId',
  ]);
  expect(await check(club.clubId, true, 'copies-other')).toEqual([]);
  expect(await check(club.clubId, true, 'copies-clubId')).toHaveLength(2);
  await operationsModel.markBuilt(world.engine, fans, 'copies-clubId');
  expect(await guard(fans)).toEqual([]);
  // They leave no rows behind.
  expect(await guard(before)).toEqual([]);
  await expectCopies();
});

test('the consistency check finds and repairs a stale copy', async () => {
  const { club } = await found();
  await storeFans(club.clubId, 2);
  const expected = ['00000', '00001'].map((row) => ({ kind: 'stale-copy', of: 'clubId', row }));
  expect(await check(club.clubId, false)).toEqual(expected.map((finding) => ({ ...finding, repaired: false })));
  expect(await check(club.clubId, true)).toEqual(expected.map((finding) => ({ ...finding, repaired: true })));
  expect(await check(club.clubId, false)).toEqual([]);
});

test('the consistency check finds a stale index entry also of an entity with a stale copy', {
  tags: ['slow'],
}, async () => {
  const { club, player, team } = await found();
  for (const id of ['1', '2']) await create(players, player(id, { clubId: club.clubId, note: 'right' }));
  await world.settle();
  const write = (table: string, partitionKey: string, rowKey: string, properties: object) =>
    world.storage.table(table).updateEntity({ partitionKey, rowKey, ...properties }, 'Merge');
  for (const id of ['1', '2']) await write('squads', team.team, `player_${id}`, { clubName: 'stale' });
  await write('playersbybudget', team.budgetCode, `${team.team}_2`, { note: 'stale' });
  const checkAll = async (repair: boolean) => {
    const options = { top: 1_000, repair, patience: 10 };
    const pages = await allPages((position: VerifyPosition | undefined) =>
      operationsCheck.verifyPage(world.engine, players, { ...options, position }),
    );
    const findings = pages.flatMap((page) => page.findings);
    return findings.filter(({ partition }) => [team.team, team.budgetCode].includes(partition));
  };
  const expected = [
    ['stale-copy', 'clubId', 'player_1'],
    ['stale-copy', 'clubId', 'player_2'],
    ['stale', 'budget', `${team.team}_2`],
  ];
  const listOf = (findings: readonly Finding[]) => findings.map(({ kind, of, row }) => [kind, of, row]);
  expect(listOf(await checkAll(false))).toEqual(expected);
  const repaired = await checkAll(true);
  expect(repaired.every((finding) => finding.repaired)).toBe(true);
  expect(listOf(repaired)).toEqual(expect.arrayContaining(expected));
  expect(await checkAll(false)).toEqual([]);
  await expectCopies();
});
