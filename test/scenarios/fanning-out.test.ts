import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import pMap from 'p-map';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toProperties, toValues } from '../../lib/define/codec/entity-codec.ts';
import { defineEntity } from '../../lib/define/define-entity.ts';
import type { DeclaredEntity, Entity } from '../../lib/define/entity.ts';
import { interPartitionIndex, intraPartitionIndex } from '../../lib/define/indexes.ts';
import { addressOf } from '../../lib/define/keys/index-entries.ts';
import { pick, type Values } from '../../lib/define/values.ts';
import { consumeIntent, consumeTransfer } from '../../lib/engine/consume/consume.ts';
import type { Message } from '../../lib/engine/consume/poison.ts';
import type { Engine } from '../../lib/engine/engine.ts';
import { readEntity } from '../../lib/engine/read/retrieve.ts';
import { requestArchive, requestMove } from '../../lib/engine/transfer/transfer.ts';
import {
  createEntity,
  deleteEntity,
  patchEntity,
  putEntity,
  replaceEntity,
} from '../../lib/engine/write/entity-store.ts';
import { RowkeyError } from '../../lib/errors.ts';
import { guardModel, markBuilt } from '../../lib/operations/model-guard.ts';
import { verifyPage } from '../../lib/operations/verify.ts';
import { measureCost } from '../../lib/storage/cost.ts';
import { submit } from '../../lib/storage/rows.ts';
import { countHolds } from '../count-holds.ts';
import { type Fault, faultyHttpClient, interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { httpClient } from '../known-messages.ts';
import { countedMetrics } from '../metrics.ts';
import { IS_EVERY_POINT, samplePoints } from '../points.ts';
import { putAll } from '../put-all.ts';
import { countEach, countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, QUICK, rowsOf, type World } from '../world.ts';

const access = { read: ['hr'], write: ['hr'] };

const teamsDeclared = defineEntity('teams', {
  schema: z.object({
    team: z.string(),
    title: z.string().optional(),
    budgetCode: z.string().optional(),
    secret: z.string().optional(),
    note: z.string().optional(),
  }),
  table: 'squads',
  key: { partition: '{team}', row: 'team' },
  access: { read: ['hr'], write: ['hr'], restricted: { secret: ['hr'] } },
});

const clubsDeclared = defineEntity('clubs', {
  schema: z.object({ clubId: z.string(), clubName: z.string() }),
  table: 'clubs',
  key: { partition: '{clubId#}', row: '{clubId}' },
  access,
});

/** Each copies from the team in its partition, and from a club that an index leads from. */
const playersDeclared = defineEntity('players', {
  schema: z.object({
    team: z.string(),
    playerId: z.string(),
    clubId: z.string().optional(),
    note: z.string().optional(),
    teamTitle: z.string().optional(),
    teamBudget: z.string().optional(),
    teamSecret: z.string().optional(),
    clubName: z.string().optional(),
  }),
  table: 'squads',
  key: { partition: '{team}', row: 'player_{playerId}' },
  indexes: {
    title: intraPartitionIndex({ row: 'titled_{teamTitle}_{playerId}' }),
    club: interPartitionIndex({
      table: 'playersbyclub',
      partition: '{clubId}',
      row: '{team}_{playerId}',
      copies: 'keys',
    }),
    budget: interPartitionIndex({ table: 'playersbybudget', partition: '{teamBudget}', row: '{team}_{playerId}' }),
  },
  denormalized: [
    {
      source: teamsDeclared,
      reference: { field: 'team', keyField: 'team' },
      copies: {
        teamTitle: ({ title }) => title,
        teamBudget: ({ budgetCode }) => budgetCode,
        teamSecret: ({ secret }) => secret,
      },
      fanOut: true,
    },
    {
      source: clubsDeclared,
      reference: { field: 'clubId', keyField: 'clubId' },
      copies: { clubName: ({ clubName }) => clubName },
      fanOut: true,
    },
  ],
  movable: ['team'],
  archive: { table: 'formerplayers' },
  access,
});

/** Nothing but a row, so that a hundred of them fit into a transaction. */
const fansDeclared = defineEntity('fans', {
  schema: z.object({ clubId: z.string(), fanId: z.string(), clubName: z.string().optional() }),
  table: 'fans',
  key: { partition: '{clubId}', row: '{fanId}' },
  denormalized: [
    {
      source: clubsDeclared,
      reference: { field: 'clubId', keyField: 'clubId' },
      copies: { clubName: ({ clubName }) => clubName },
      fanOut: true,
    },
  ],
  access,
});

/** Each copies from its unit, which copies from one of them and counts them. */
const membersDeclared = defineEntity('members', {
  schema: z.object({
    unit: z.string(),
    memberId: z.string(),
    fullName: z.string(),
    unitName: z.string().optional(),
    budgetCode: z.string().optional(),
  }),
  table: 'units',
  key: { partition: '{unit}', row: 'member_{memberId}' },
  indexes: {
    fullName: intraPartitionIndex({ row: 'named_{fullName}_{memberId}' }),
    // Without the copied fields, so that a change of the unit does not change it.
    badge: interPartitionIndex({
      table: 'membersbyid',
      partition: '{memberId#}',
      row: '{memberId}',
      unique: true,
      copies: ['fullName'],
    }),
  },
  denormalized: [
    {
      source: (): DeclaredEntity => unitsDeclared,
      reference: { field: 'unit', keyField: 'unit' },
      copies: { unitName: ({ name }) => name, budgetCode: ({ budgetCode }) => budgetCode },
      fanOut: true,
    },
  ],
  references: { unit: { to: (): DeclaredEntity => unitsDeclared, onDelete: 'report' } },
  access,
});
const unitsDeclared = defineEntity('units', {
  schema: z.object({
    unit: z.string(),
    name: z.string(),
    budgetCode: z.string().optional(),
    leadId: z.string().optional(),
    leadName: z.string().optional(),
    memberCount: z.int32().optional(),
  }),
  table: 'units',
  key: { partition: '{unit}', row: 'unit' },
  denormalized: [
    {
      source: membersDeclared,
      reference: { field: 'leadId', keyField: 'memberId' },
      copies: { leadName: ({ fullName }) => fullName },
    },
  ],
  counts: { memberCount: membersDeclared },
  access,
});

const { teams, clubs, players, fans, units, members } = deploy(
  teamsDeclared,
  clubsDeclared,
  playersDeclared,
  fansDeclared,
  unitsDeclared,
  membersDeclared,
);
const ALL = [teams, clubs, players, fans, units, members];
const consumers = { entities: ALL, log: { warn: () => undefined, error: () => undefined } };

let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url, ALL);
});

const create = (entity: Entity, values: Values, engine = world.engine) => createEntity(engine, entity, values);
const patch = (entity: Entity, key: Values, change: Values, engine = world.engine) =>
  patchEntity(engine, entity, key, change);
const consume = (message: Message, engine = world.engine) => consumeIntent({ ...consumers, engine }, message);
const intentOf = (text: string) => world.take('index-changes', text);

/** The message of the last pass, which is hidden for a minute after the first. */
function lastPassOf(message: Message): Message {
  const body = message.body as { fanOut: { sources: unknown[] } };
  const fanOut = { sources: body.fanOut.sources, isLastPass: true };
  return { ...message, id: randomUUID(), body: { ...body, fanOut, reminder: undefined } };
}

/** A team and a club that no other test uses. */
async function found() {
  const id = randomUUID();
  const team = { team: `t${id}`, title: 'First', budgetCode: `b${id}` };
  const club = { clubId: `c${id}`, clubName: 'Club' };
  const player = (playerId = '1', more: Values = {}) => ({ team: team.team, playerId, ...more });
  // Past the engine, so that the queue has no messages of them.
  await store(teams, [team]);
  await store(clubs, [club]);
  return { team, club, player };
}

const playerOf = async (key: Values) => (await readEntity(world.engine, players, key)).values;

/** Compares every copy with its source, and every index with its entity. Returns how many entities there are. */
async function expectCopies(): Promise<number> {
  const typed = async (entity: Entity, table = entity.table) =>
    (await rowsOf(world.storage, table))
      .filter(({ EntityType, SourceRow }) => EntityType === entity.name && SourceRow === undefined)
      .map((row) => toValues(entity, row));
  const [allTeams, allClubs] = [await typed(teams), await typed(clubs)];
  const nameOf = ({ clubId }: Values) => allClubs.find((club) => club.clubId === clubId)?.clubName;
  const differences: unknown[] = [];
  const receivers = [...(await typed(players)), ...(await typed(fans))];
  for (const one of receivers) {
    const team = allTeams.find((each) => each.team === one.team);
    const expected = { teamTitle: team?.title, teamBudget: team?.budgetCode, clubName: nameOf(one) };
    const copies = pick(one, Object.keys(expected));
    if (JSON.stringify(copies) !== JSON.stringify(expected)) differences.push([one, expected]);
  }
  expect(differences).toEqual([]);
  await expectIndexesToAgree(world.storage, players);
  return receivers.length;
}

async function costOf(work: () => Promise<unknown>): Promise<number> {
  return measureCost(async (cost) => {
    await work();
    return cost.transactions;
  });
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (error: unknown) => (error instanceof RowkeyError ? error.code : 'dead'),
  );
}

/** Stores entities of one partition past the engine. */
async function store(entity: Entity, all: readonly Values[]): Promise<void> {
  const system = { WriteId: 'w', Incarnation: 'i' };
  for (let at = 0; at < all.length; at += 100) {
    const some = all.slice(at, at + 100).map((values) => ({ values, ...addressOf(entity, values) }));
    const actions = some.map(({ values, row }) => {
      return { kind: 'insert', row, properties: toProperties(entity, values, system) } as const;
    });
    await submit(world.storage, { table: entity.table, partition: some[0]?.partition ?? '', actions });
  }
}

/** Stores receivers with stale copies. */
const storeFans = (clubId: string, count: number) =>
  store(
    fans,
    Array.from({ length: count }, (_, index) => ({
      clubId,
      fanId: String(index).padStart(5, '0'),
      clubName: 'stale',
    })),
  );

describe('an entity with copies of fields of another one', () => {
  test('has the current values when it is created, for one read of each source', async () => {
    const { team, club, player } = await found();
    const fan = { clubId: club.clubId, fanId: '1' };
    expect(await costOf(() => create(fans, fan))).toBe(2);
    expect((await readEntity(world.engine, fans, fan)).values).toEqual({ ...fan, clubName: 'Club' });
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
    await replaceEntity(world.engine, players, player(), { ...whole, note: 'new' });
    expect(await playerOf(player())).toEqual({ ...whole, note: 'new' });
    expect(await codeOf(patch(players, player(), { teamTitle: 'Mine' }))).toBe('invalid-input');
    expect(await codeOf(create(players, { ...player('2'), teamTitle: 'Mine' }))).toBe('invalid-input');
  });

  test('has no copies without a source, and gets them when the source is created', async () => {
    const id = randomUUID();
    await create(players, { team: id, playerId: '1', clubId: id });
    expect(await playerOf({ team: id, playerId: '1' })).toEqual({ team: id, playerId: '1', clubId: id });
    await create(teams, { team: id, title: 'Late' });
    await create(clubs, { clubId: id, clubName: 'Late too' });
    await world.settle();
    expect(await playerOf({ team: id, playerId: '1' })).toMatchObject({ teamTitle: 'Late', clubName: 'Late too' });
    await deleteEntity(world.engine, teams, { team: id });
    await deleteEntity(world.engine, clubs, { clubId: id });
    await world.settle();
    expect(await playerOf({ team: id, playerId: '1' })).toEqual({ team: id, playerId: '1', clubId: id });
    await expectCopies();
  });

  test('takes the values of its new source when it is moved, and keeps them in the archive', async () => {
    const { player } = await found();
    const { team: other } = await found();
    await create(players, player());
    await patch(teams, other, { title: 'Elsewhere' });
    await requestMove(world.engine, players, player(), { team: other.team });
    await world.settle();
    const moved = player('1', { team: other.team });
    expect(await playerOf(moved)).toEqual({ ...moved, teamTitle: 'Elsewhere', teamBudget: other.budgetCode });
    await requestArchive(world.engine, players, moved);
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
    await deleteEntity(world.engine, teams, team);
    await world.settle();
    expect(await playerOf(player('58'))).toEqual(player('58'));
    await expectCopies();
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

  test('costs four transactions for a hundred entities, and two for each hundred in the last pass', async () => {
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

  test('continues in further messages, and skips what is done', async () => {
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
});

describe('two entities that copy from each other', () => {
  const MEMBERS = 250;
  const memberOf = (unit: string, at: number) => {
    const memberId = `${unit}${String(at).padStart(4, '0')}`;
    return { unit, memberId, fullName: `Member ${at}` };
  };

  /** A unit of 250 members, led by the first of them. */
  async function foundUnit(): Promise<string> {
    const unit = `u${randomUUID()}`;
    await create(units, { unit, name: 'First', budgetCode: 'B1' });
    await putAll(
      world.engine,
      members,
      Array.from({ length: MEMBERS }, (_, at) => memberOf(unit, at)),
    );
    await patch(units, { unit }, { leadId: memberOf(unit, 0).memberId });
    await world.settle();
    return unit;
  }

  /** Compares each member with its unit, and the unit with its lead. */
  async function expectUnit(unit: string, name: string): Promise<void> {
    const rows = (await rowsOf(world.storage, 'units')).filter(({ partitionKey }) => partitionKey === unit);
    const each = rows.filter(({ EntityType }) => EntityType === 'members');
    // Each has a copy of its index.
    expect(each).toHaveLength(2 * MEMBERS);
    expect(new Set(each.map(({ unitName, budgetCode }) => `${unitName} ${budgetCode}`))).toEqual(
      new Set([`${name} B1`]),
    );
    const { values } = await readEntity(world.engine, units, { unit });
    const lead = { leadId: memberOf(unit, 0).memberId, leadName: 'Member 0' };
    expect(values).toEqual({ unit, name, budgetCode: 'B1', ...lead, memberCount: MEMBERS });
    await expectIndexesToAgree(world.storage, members);
  }

  test('follow each other, for the transactions that the documentation names', async () => {
    const unit = await foundUnit();
    await expectUnit(unit, 'First');
    const writer = await costOf(() => patch(units, { unit }, { name: 'Renamed' }));
    const message = await intentOf(unit);
    const queue = await costOf(() => consume(message));
    const lastPass = await costOf(() => consume(lastPassOf(message)));
    // Read, intent, transaction, message. A member takes two rows of a transaction, so 50 fit into one, which reads the unit too.
    expect({ writer, queue, lastPass }).toEqual({ writer: 4, queue: 22, lastPass: 3 * 2 + 2 });
    await expectUnit(unit, 'Renamed');
    await patch(members, memberOf(unit, 0), { fullName: 'Member zero' });
    expect((await readEntity(world.engine, units, { unit })).values).toMatchObject({ leadName: 'Member zero' });
    await patch(members, memberOf(unit, 0), { fullName: 'Member 0' });
    // Intent, claim, transaction, confirmed claim, entity, intent: the row of the unit, which has the count, is known.
    const again = { ...memberOf(unit, MEMBERS), fullName: 'New' };
    expect(await costOf(() => create(members, again))).toBe(6);
    expect((await readEntity(world.engine, members, again)).values).toMatchObject({ unitName: 'Renamed' });
  });

  test('agree after a crash at any call of the fan-out', async () => {
    const unit = await foundUnit();
    let round = 0;
    const play = async (client: ReturnType<typeof faultyHttpClient>) => {
      round += 1;
      await patch(units, { unit }, { name: `Round ${round}` });
      const message = await intentOf(unit);
      await consume(message, world.engineThrough(client, QUICK)).catch(async () => {
        // The host delivers the message again.
        await world.storage.queue('index-changes').sendMessage(JSON.stringify(message.body));
      });
      const { calls } = client;
      await world.settle();
      await expectUnit(unit, `Round ${round}`);
      return calls;
    };
    const count = await play(faultyHttpClient());
    const points = (['crash before', 'crash after'] as const).flatMap((fault) =>
      samplePoints(count).map((at) => ({ fault, at })),
    );
    await countEach(points, ({ fault, at }) => play(faultyHttpClient(fault, at)), {
      what: 'Fan-out to 250 entities, each storage call: crash',
      concurrency: 1,
    });
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
    expect((await readEntity(world.engine, fans, fan)).values.clubName).toBe('Three');
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

describe('a fan-out that races', () => {
  /** Interrupts `act` right before and after a sample of its calls; afterwards every message is handled. */
  async function everywhere(
    what: string,
    set: () => Promise<{ act: (engine: Engine) => Promise<unknown>; interrupt: () => Promise<unknown> }>,
  ) {
    const play = async ({ at, when }: { at: number; when: 'before' | 'after' }) => {
      const { act, interrupt } = await set();
      const client = interruptedHttpClient(at, interrupt, when);
      await act(world.engineThrough(client)).catch(() => undefined);
      if (at === 0 || client.calls < at) await interrupt();
      return client.calls;
    };
    const count = await play({ at: 0, when: 'before' });
    const points = (['before', 'after'] as const).flatMap((when) => samplePoints(count).map((at) => ({ at, when })));
    await countEach(points, play, { what, concurrency: 4 });
    await world.settle();
    await expectCopies();
  }
  const WHAT = 'Fan-out or writer of a receiver overtaken by another, before and after each storage call';

  test('with the create of a receiver leaves no stale copy', async () => {
    await everywhere(WHAT, async () => {
      const { team, club, player } = await found();
      return {
        act: (engine) => create(players, player('1', { clubId: club.clubId }), engine),
        interrupt: async () => {
          await patch(teams, team, { title: 'Second' });
          await consume(await intentOf(team.team));
          await patch(clubs, club, { clubName: 'New' });
          await consume(await intentOf(club.clubId));
        },
      };
    });
  });

  test('with a change of a receiver keeps both', async () => {
    const all: Values[] = [];
    await everywhere(WHAT, async () => {
      const { team, player } = await found();
      await create(players, player());
      await patch(teams, team, { title: 'Second' });
      const message = await intentOf(team.team);
      all.push(player());
      return {
        act: (engine) => consume(message, engine),
        interrupt: () => patch(players, player(), { note: 'kept' }),
      };
    });
    for (const one of all) expect(await playerOf(one)).toMatchObject({ note: 'kept', teamTitle: 'Second' });
  });

  test('with a move of a receiver, which changes meanwhile, leaves the values of its new source', async () => {
    await everywhere(WHAT, async () => {
      const { player } = await found();
      const { team: other } = await found();
      await create(players, player());
      await requestMove(world.engine, players, player(), { team: other.team });
      const message = await world.take('transfers', other.team);
      return {
        act: (engine) => consumeTransfer({ ...consumers, engine }, message),
        interrupt: () => patch(players, player(), { note: 'changed' }).catch(() => undefined),
      };
    });
  });

  test('with a later change and its fan-out leaves the later values', async () => {
    await everywhere(WHAT, async () => {
      const { team, player } = await found();
      await putAll(world.engine, players, [player('1'), player('2'), player('3')]);
      await patch(teams, team, { title: 'Second' });
      const message = await intentOf(team.team);
      return {
        act: (engine) => consume(message, engine),
        interrupt: async () => {
          await patch(teams, team, { title: 'Third' });
          await consume(await intentOf(team.team));
        },
      };
    });
  });

  test('with a receiver whose index entry the queue writes after the last pass leaves no stale copy', async () => {
    const { club } = await found();
    const key = { team: 'none', playerId: club.clubId };
    // The source changes after the receiver has read it, and the entry of the receiver is left to the queue.
    const isSource = interruptedHttpClient(1, () => patch(clubs, club, { clubName: 'New' }), 'after');
    const slow = { ...world.engineThrough(isSource), settleInline: 0 };
    await create(players, { ...key, clubId: club.clubId }, slow);
    expect((await playerOf(key)).clubName).toBe('Club');
    const ofReceiver = await intentOf(`player_${club.clubId}`);
    const ofSource = await intentOf('"fanOut"');
    await consume(ofSource);
    await consume(lastPassOf(ofSource));
    expect((await playerOf(key)).clubName).toBe('Club');
    await consume(ofReceiver);
    expect((await playerOf(key)).clubName).toBe('New');
    await world.settle();
    await expectCopies();
  });
});

describe('any fault at any call', () => {
  const FAULTED: readonly Fault[] = ['crash before', 'crash after', 'reply lost'];

  test.each<[string, (engine: Engine, name: string) => Promise<unknown>]>([
    ['of a change of the source', (engine, clubId) => patch(clubs, { clubId }, { clubName: 'New' }, engine)],
    ['of a delete of the source', (engine, clubId) => deleteEntity(engine, clubs, { clubId })],
    [
      'of the fan-out',
      async (engine, clubId) => {
        await patch(clubs, { clubId }, { clubName: 'New' });
        const message = await intentOf(clubId);
        await consume(message, engine).catch(async (error) => {
          // The host delivers the message again.
          await world.storage.queue('index-changes').sendMessage(JSON.stringify(message.body));
          throw error;
        });
      },
    ],
    [
      'of the create of a receiver',
      async (engine, clubId) => create(players, { team: clubId, playerId: '9', clubId }, engine),
    ],
  ])('%s leaves no stale copy', async (what, act) => {
    const set = async () => {
      const { club } = await found();
      await create(fans, { clubId: club.clubId, fanId: '1' });
      await create(players, { team: 'none', playerId: club.clubId, clubId: club.clubId });
      return club.clubId;
    };
    const counting = faultyHttpClient();
    await act(world.engineThrough(counting), await set());
    const points = FAULTED.flatMap((fault) => samplePoints(counting.calls).map((at) => ({ fault, at })));
    await countEach(
      points,
      async ({ fault, at }) => {
        const clubId = await set();
        await codeOf(act(world.engineThrough(faultyHttpClient(fault, at), QUICK), clubId));
      },
      { what: () => `Fan-out, each storage call ${what}`, concurrency: 6 },
    );
    await world.settle();
    await countTried({ what: 'Fan-out: copies agree afterwards' }, expectCopies);
  });
});

describe('random schedules', () => {
  const ROUNDS = IS_EVERY_POINT ? 40 : 2;
  const id = fc.constantFrom('1', '2');
  const group = fc.constantFrom('A', 'B');
  const step = fc.oneof(
    fc.record({ does: fc.constant('rename' as const), group }),
    fc.record({ does: fc.constant('remove' as const), group }),
    fc.record({ does: fc.constant('join' as const), id, group }),
    fc.record({ does: fc.constant('switch' as const), id, group }),
    fc.record({ does: fc.constant('leave' as const), id }),
  );
  const schedule = fc.array(fc.array(step, { minLength: 2, maxLength: 4 }), { minLength: 2, maxLength: 3 });
  let run = 0;
  const holds = countHolds();

  test('of writers, with messages twice, late and out of order, end with exact copies', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(schedule, { minLength: 20, maxLength: 20 }), async (all) => {
        const engine = world.engineThrough(httpClient);
        const processes = [engine, { ...engine, settleInline: 0 }, { ...engine, settleInline: 0 }];
        const delivering = new AbortController();
        const delivery = deliver(delivering.signal);
        await pMap(all, (writers) => race(writers, run++, processes), { concurrency: 20 });
        delivering.abort();
        await delivery;
        await world.settle();
        await countTried(
          { what: 'Random schedule of sources, receivers and messages', times: all.length },
          expectCopies,
        );
      }),
      { numRuns: ROUNDS, endOnFailure: true },
    );
    expect(holds.counts.hidden).toBeGreaterThan(0);
    expect(holds.counts.immediate).toBeGreaterThan(0);
  });

  type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

  async function race(writers: readonly (readonly Step[])[], number: number, processes: readonly Engine[]) {
    await Promise.all(
      writers.map(async (steps, index) => {
        const engine = processes[index % processes.length] ?? world.engine;
        for (const [position, one] of steps.entries()) {
          const clubId = `${number}${'group' in one ? one.group : ''}`;
          const key = { team: `R${number}`, playerId: 'id' in one ? one.id : '' };
          const clubName = `N${index}-${position}`;
          const team = { team: key.team, title: clubName };
          const work =
            one.does === 'rename'
              ? Promise.all([
                  putEntity(engine, clubs, { clubId }, { clubId, clubName }),
                  putEntity(engine, teams, team, team),
                ])
              : one.does === 'remove'
                ? deleteEntity(engine, clubs, { clubId })
                : one.does === 'join'
                  ? create(players, { ...key, clubId }, engine)
                  : one.does === 'switch'
                    ? patch(players, key, { clubId }, engine)
                    : deleteEntity(engine, players, key);
          expect(['done', 'duplicate-key', 'not-found', 'busy', 'storage-unavailable']).toContain(await codeOf(work));
        }
      }),
    );
  }

  async function deliver(signal: AbortSignal): Promise<void> {
    const client = world.storage.queue('index-changes');
    const engine = world.engineThrough(holds.client);
    for (let turn = 0; !signal.aborted; turn += 1) {
      await sleep(5);
      const { receivedMessageItems } = await client.receiveMessages({ numberOfMessages: 16, visibilityTimeout: 1 });
      await Promise.all(
        receivedMessageItems.reverse().map(async ({ messageId, messageText, popReceipt, dequeueCount }, at) => {
          if ((turn + at) % 3 === 0) return;
          const body = JSON.parse(messageText);
          const message = { queue: 'index-changes', id: messageId, insertedAt: Date.now(), body };
          let attempts = dequeueCount - 1;
          const once = () =>
            holds
              .count(() => consume({ ...message, attempts: ++attempts }, engine))
              .then(
                () => true,
                () => false,
              );
          const done = (turn + at) % 3 === 1 ? await Promise.all([once(), once()]) : [await once()];
          if (done.every(Boolean)) await client.deleteMessage(messageId, popReceipt).catch(() => undefined);
        }),
      );
    }
  }
});

async function check(clubId: string, repair: boolean, only?: string) {
  const position = { table: 0, after: { partition: clubId, row: '' }, left: 0 };
  const { findings } = await verifyPage(world.engine, fans, { position, top: 2, repair, only, patience: 10 });
  return findings.map(({ kind, of, row, repaired }) => ({ kind, of, row, repaired }));
}

test('copies into entities that were stored before are built like an index, which the model guard asks for', async () => {
  const { club } = await found();
  await storeFans(club.clubId, 2);
  const { fans: before } = deploy({ ...fansDeclared, denormalized: [] });
  const guard = (entity: Entity) => guardModel(world.engine, [clubs, entity], undefined);
  expect(await guard(before)).toEqual([]);
  expect(await guard(fans)).toEqual([
    'The index copies-clubId of fans is not built: npm run reindex -- fans copies-clubId',
  ]);
  expect(await check(club.clubId, true, 'copies-other')).toEqual([]);
  expect(await check(club.clubId, true, 'copies-clubId')).toHaveLength(2);
  await markBuilt(world.engine, fans, 'copies-clubId');
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
