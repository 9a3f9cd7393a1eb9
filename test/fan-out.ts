import { randomUUID } from 'node:crypto';
import { beforeAll, expect } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, intraPartitionIndex, type Values } from '../lib/index.ts';
import { deploy } from './fixtures/deploy.ts';
import { baseValues } from './kit/base.ts';
import { defineCodec, definePlaces, type Entity } from './kit/define.ts';
import { engineConsume, engineRead, engineWrite, type Message } from './kit/engine.ts';
import type { Internal } from './kit/internal.ts';
import { storageRows } from './kit/storage.ts';
import { log } from './silent-log.ts';
import { expectIndexesToAgree, openWorld, rowsOf, type World } from './world.ts';

/** Teams and clubs, whose fields are copied to players and fans. */

const access = { read: ['hr', 'reader'], write: ['hr'] };

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
  access: { ...access, restricted: { secret: ['hr'] } },
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
  denormalized: {
    team: {
      source: teamsDeclared,
      copies: {
        teamTitle: ({ title }) => title,
        teamBudget: ({ budgetCode }) => budgetCode,
        teamSecret: ({ secret }) => secret,
      },
      fanOut: true,
    },
    clubId: {
      source: clubsDeclared,
      copies: { clubName: ({ clubName }) => clubName },
      fanOut: true,
    },
  },
  movable: ['team'],
  archive: { table: 'formerplayers' },
  access,
});

/** Nothing but a row, so that a hundred of them fit into a transaction. */
export const fansDeclared = defineEntity('fans', {
  schema: z.object({ clubId: z.string(), fanId: z.string(), clubName: z.string().optional() }),
  table: 'fans',
  key: { partition: '{clubId}', row: '{fanId}' },
  denormalized: {
    clubId: {
      source: clubsDeclared,
      copies: { clubName: ({ clubName }) => clubName },
      fanOut: true,
    },
  },
  access,
});

export const { teams, clubs, players, fans } = deploy(teamsDeclared, clubsDeclared, playersDeclared, fansDeclared);

export let world: World;
export let consumers: Pick<Internal['Consumer'], 'entities' | 'log'>;
/** Opens the world of a test file before its tests. */
export function openFanOutWorld(url: string, entities: readonly Entity[] = [teams, clubs, players, fans]): void {
  beforeAll(async () => {
    consumers = { entities, log };
    world = await openWorld(url, entities);
  });
}

export const create = (entity: Entity, values: Values, engine = world.engine) =>
  engineWrite.createEntity(engine, entity, values);
export const patch = (entity: Entity, key: Values, change: Values, engine = world.engine) =>
  engineWrite.patchEntity(engine, entity, key, change);
export const consume = (message: Message, engine = world.engine) =>
  engineConsume.consumeIntent({ ...consumers, engine }, message);
export const intentOf = (text: string) => world.take('index-changes', text);

/** The message of the last pass, which is hidden for a minute after the first. */
export function lastPassOf(message: Message): Message {
  const body = message.body as { fanOut: { sources: unknown[] } };
  const fanOut = { sources: body.fanOut.sources, isLastPass: true };
  return { ...message, id: randomUUID(), body: { ...body, fanOut, reminder: undefined } };
}

/** A team and a club that no other test uses. */
export async function found() {
  const id = randomUUID();
  const team = { team: `t${id}`, title: 'First', budgetCode: `b${id}` };
  const club = { clubId: `c${id}`, clubName: 'Club' };
  const player = (playerId = '1', more: Values = {}) => ({ team: team.team, playerId, ...more });
  // Past the engine, so that the queue has no messages of them.
  await store(teams, [team]);
  await store(clubs, [club]);
  return { team, club, player };
}

export const playerOf = async (key: Values) => (await engineRead.readEntity(world.engine, players, key)).values;

/** Compares every copy with its source, and every index with its entity. Returns how many entities there are. */
export async function expectCopies(): Promise<number> {
  const typed = async (entity: Entity, table = entity.table) =>
    (await rowsOf(world.storage, table))
      .filter(({ EntityType, SourceRow }) => EntityType === entity.name && SourceRow === undefined)
      .map((row) => defineCodec.toValues(entity, row));
  const [allTeams, allClubs] = [await typed(teams), await typed(clubs)];
  const nameOf = ({ clubId }: Values) => allClubs.find((club) => club.clubId === clubId)?.clubName;
  const differences: unknown[] = [];
  const receivers = [...(await typed(players)), ...(await typed(fans))];
  for (const one of receivers) {
    const team = allTeams.find((each) => each.team === one.team);
    const expected = { teamTitle: team?.title, teamBudget: team?.budgetCode, clubName: nameOf(one) };
    const copies = baseValues.pick(one, Object.keys(expected));
    if (JSON.stringify(copies) !== JSON.stringify(expected)) differences.push([one, expected]);
  }
  expect(differences).toEqual([]);
  await expectIndexesToAgree(world.storage, players);
  return receivers.length;
}

/** Stores entities of one partition past the engine. */
async function store(entity: Entity, all: readonly Values[]): Promise<void> {
  const system = { WriteId: 'w', Incarnation: 'i' };
  for (let at = 0; at < all.length; at += 100) {
    const some = all.slice(at, at + 100).map((values) => ({ values, ...definePlaces.addressOf(entity, values) }));
    const actions = some.map(({ values, row }) => {
      return { kind: 'insert', row, properties: defineCodec.toProperties(entity, values, system) } as const;
    });
    await storageRows.submit(world.storage, { table: entity.table, partition: some[0]?.partition ?? '', actions });
  }
}

/** Stores receivers with stale copies. */
export const storeFans = (clubId: string, count: number) =>
  store(
    fans,
    Array.from({ length: count }, (_, index) => ({
      clubId,
      fanId: String(index).padStart(5, '0'),
      clubName: 'stale',
    })),
  );
