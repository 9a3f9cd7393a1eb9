import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineClaims,
  defineEntity,
  defineModel,
  interPartitionIndex,
  memberOf,
  oneOf,
  own,
  subject,
  type Values,
} from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { openAccessApp } from '../access-app.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { engineTransfer, engineWrite, type Transfer } from '../kit/engine.ts';
import { storageRows } from '../kit/storage.ts';
import { receiveMessage } from '../receive-message.ts';
import { log } from '../silent-log.ts';
import { rowsOf } from '../world.ts';

/** Archives, moves and large deletes under rules on rows: what the rows are when the operation runs decides. */

const digits = z.string().regex(/^\d+$/);
const regionOf = ({ site }: Values) => String(site).slice(0, 2);

const people = defineEntity('people', {
  schema: z.object({ personId: z.string(), subject: z.string(), office: z.string() }),
  table: 'people',
  key: { partition: '{personId}', row: 'person' },
  indexes: {
    subject: interPartitionIndex({ table: 'peoplebysubject', partition: '{subject}', row: 's', unique: true }),
  },
  access: { read: ['root'], write: ['root'], own: { claim: 'sub', index: 'subject' } },
});
const members = defineEntity('members', {
  schema: z.object({ team: z.string(), userId: z.string() }),
  table: 'members',
  key: { partition: '{userId}', row: '{team}' },
  access: { read: ['root'], write: ['root'] },
});
const rule = {
  user: { role: 'user', where: { owner: subject(), state: oneOf('open') } },
  member: { role: 'member', where: { team: memberOf(members, 'team') } },
  officer: { role: 'officer', where: { office: own(people, 'office') } },
  regional: { role: 'regional', where: { region: 'eu' } },
  claimant: { role: 'claimant', where: { team: defineClaims({ teams: { verifiedBy: {} } }).teams } },
} as const;
const anyRule = ['root', ...Object.values(rule)] as const;
const plants = defineEntity('plants', {
  schema: z.object({
    site: z.string(),
    plantId: digits,
    region: z.string().optional(),
    owner: z.string(),
    state: z.enum(['open', 'final']),
    team: z.string().optional(),
    office: z.string().optional(),
    note: z.string().optional(),
  }),
  table: 'plants',
  key: { partition: '{site}', row: 'p_{plantId}' },
  derived: { region: regionOf },
  movable: ['site'],
  archive: { table: 'oldplants' },
  indexes: {
    region: interPartitionIndex({ table: 'plantsbyregion', partition: '{region}', row: '{site}_{plantId}' }),
    note: interPartitionIndex({ table: 'plantsbynote', partition: '{note}', row: 'n', unique: true }),
  },
  access: { read: ['root', ...Object.values(rule).map((one) => ({ ...one, lists: 'none' }) as const)], write: anyRule },
});
const parts = defineEntity('parts', {
  schema: z.object({
    site: z.string(),
    plantId: digits,
    partId: digits,
    region: z.string().optional(),
    grade: z.int32(),
  }),
  table: 'plants',
  key: { partition: '{site}', row: 'p_{plantId}_{partId}' },
  derived: { region: regionOf },
  childOf: plants,
  access: {
    read: ['root', 'user', 'regional'],
    write: {
      create: ['root', 'member', 'officer', 'claimant', { role: 'user', where: { grade: 1 } }, rule.regional],
      update: ['root'],
      delete: ['root', 'user', 'member', 'officer', 'claimant', 'regional'],
    },
  },
});
const roles = ['user', 'member', 'officer', 'regional', 'claimant', 'root', 'operator'] as const;
const model = defineModel({ roles, operatorRole: 'operator', entities: [people, members, plants, parts] });
const root = { subject: 'root', roles: ['root'] };
const ann = { subject: 'ann', roles: ['user'] };

const app = await openAccessApp(import.meta.url, model, { httpClient });
const { engine, storage } = app;
const worker = createQueueWorker({ engine, entities: model.list, log }, { lastLogged: () => '' });
const linked = model.list.find(({ name }) => name === 'plants') as Entity;

let made = 0;
let plantId = '0';
beforeEach(() => {
  made += 1;
  plantId = String(made);
});
const path = (site = 'eu-1') => `plants/${site}/${plantId}`;

/** Creates a plant, with parts, as the app itself. */
async function begin(over: Values = {}, grades: readonly number[] = []): Promise<void> {
  const values = { site: 'eu-1', plantId, owner: 'ann', state: 'open', ...over };
  expect((await app.ask(root, 'POST', 'plants', values)).status).toBe(201);
  for (let at = 0; at < grades.length; at += 50) {
    const some = grades.slice(at, at + 50).map((grade, index) => {
      return { create: { site: values.site, plantId, partId: String(at + index), grade } };
    });
    expect((await app.ask(root, 'POST', 'parts/batch', { actions: some })).status).toBe(200);
  }
}

type Kind = 'move' | 'archive' | 'delete';
const request = (kind: Kind, caller: Parameters<typeof app.ask>[0] = ann, to = 'eu-2') =>
  kind === 'delete'
    ? app.ask(caller, 'DELETE', path())
    : app.ask(caller, 'POST', `${path()}/${kind}`, kind === 'move' ? { site: to } : undefined);

/** Requests the operation, lets something happen, and runs it. Returns its status. */
async function run(kind: Kind, meanwhile: () => Promise<unknown>, caller: Parameters<typeof app.ask>[0] = ann) {
  const { status, text, body } = await request(kind, caller);
  expect(status, text).toBe(202);
  await meanwhile();
  await worker.settle();
  return (await app.ask(root, 'GET', `${path()}/${kind}/${body.operationId}`)).body;
}

const patch = (values: Values) => app.ask(root, 'PATCH', path(), values);
const MANY = Array.from({ length: 110 }, () => 1);
const partsFor = (kind: Kind) => (kind === 'delete' ? MANY : [1, 1]);

/** The rows of all tables, without what tells when they were written. */
async function stored(): Promise<Values> {
  const tables = ['plants', 'oldplants', 'plantsbyregion', 'plantsbynote'];
  const rows = await Promise.all(tables.map((table) => rowsOf(storage, table)));
  const kept = rows.map((some) => some.map(({ etag: _, timestamp: _at, WriteId: _id, TouchedBy: _by, ...row }) => row));
  return Object.fromEntries(tables.map((table, at) => [table, kept[at]]));
}

describe.each(['move', 'archive', 'delete'] as const)('the %s of a caller whom rules limit', (kind) => {
  test('takes nothing that an admin has made final, and changes nothing', async () => {
    await begin({ note: `n${made}` }, partsFor(kind));
    let before: Values = {};
    const found = await run(kind, async () => {
      expect((await patch({ state: 'final' })).status).toBe(200);
      before = await stored();
    });
    expect(found).toMatchObject({ status: 'failed', reason: engineWrite.RULED_OUT });
    expect(await stored()).toEqual(before);
    // The entity is open to writers, and its unique value is its own.
    expect((await patch({ note: `m${made}` })).status).toBe(200);
  });

  test('takes a row that was written meanwhile, as long as the rules hold', async () => {
    await begin({}, partsFor(kind));
    expect(await run(kind, () => patch({ note: `changed${made}` }))).toMatchObject({ status: 'succeeded' });
  });

  test('is refused again when its message is repeated', async () => {
    await begin({}, partsFor(kind));
    const { body } = await request(kind);
    await patch({ state: 'final' });
    const { message } = await receiveMessage(storage, 'transfers');
    const transfer = message.body as Transfer;
    expect(transfer.operationId).toBe(body.operationId);
    for (const _ of [1, 2]) {
      await engineTransfer.runTransfer(engine, linked, transfer);
      const recorded = await engineWrite.findOperation(engine, {
        operation: kind,
        operationId: body.operationId,
        entity: 'plants',
      });
      expect(recorded).toMatchObject({ status: 'failed', rules: { before: expect.any(Array) } });
    }
    expect((await app.ask(root, 'GET', path())).body).toMatchObject({ state: 'final' });
  });

  test('says the same of a row that is gone as of one out of reach', async () => {
    if (kind === 'delete') return;
    await begin();
    const found = await run(kind, () => app.ask(root, 'DELETE', path()));
    expect(found).toMatchObject({ status: 'failed', reason: engineWrite.RULED_OUT });
    // Without rules, nothing is hidden.
    await begin();
    const { reason } = await run(kind, () => app.ask(root, 'DELETE', path()), root);
    expect(reason).toMatch(/^The entity was deleted, or its key changed/);
  });

  test('takes no other entity under the same key', async () => {
    await begin({}, partsFor(kind));
    const found = await run(kind, async () => {
      if (kind === 'delete') await worker.settle();
      else expect((await app.ask(root, 'DELETE', path())).status).toBe(204);
      await begin({ note: `other${made}` });
    });
    expect(found.status).toBe(kind === 'delete' ? 'succeeded' : 'failed');
    expect((await app.ask(root, 'GET', path())).body).toMatchObject({ note: `other${made}` });
  });

  test('has its rules in the record until it is done, and neither in the message nor in the status', async () => {
    await begin({}, partsFor(kind));
    const { body } = await request(kind);
    const of = { operation: kind, operationId: body.operationId, entity: 'plants' } as const;
    expect((await engineWrite.findOperation(engine, of))?.rules).toBeDefined();
    expect((await app.ask(root, 'GET', `${path()}/${kind}/${body.operationId}`)).body).not.toHaveProperty('rules');
    const { message } = await receiveMessage(storage, 'transfers');
    expect(JSON.stringify(message.body)).not.toContain('owner');
    await engineTransfer.runTransfer(engine, linked, message.body as Transfer);
    expect(await engineWrite.findOperation(engine, of)).toMatchObject({ status: 'succeeded' });
    expect((await engineWrite.findOperation(engine, of))?.rules).toBeUndefined();
    await worker.settle();
  });

  test('runs as before if an earlier release has recorded it without rules', async () => {
    await begin({}, partsFor(kind));
    const found = await run(kind, async () => {
      await patch({ state: 'final' });
      const [recorded] = (
        await rowsOf(storage, `operations${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`)
      )
        .filter(({ status, key }) => status === 'running' && String(key).includes(`"${plantId}"`))
        .map(({ partitionKey }) => String(partitionKey));
      const { table, partition, row } = definePlaces.addressOf(engineWrite.operations, { operationId: recorded });
      const properties = (await storageRows.readRow(storage, { table, partition, row }))?.properties ?? {};
      const { rules: _, ...former } = properties;
      await storageRows.submit(storage, { table, partition, actions: [{ kind: 'upsert', row, properties: former }] });
    });
    expect(found.status).toBe('succeeded');
  });
});

test.each(['move', 'archive', 'delete'] as const)(
  'the %s of a caller without limits goes on, whatever is written meanwhile',
  async (kind) => {
    await begin({}, partsFor(kind));
    expect(await run(kind, () => patch({ state: 'final' }), root)).toMatchObject({ status: 'succeeded' });
  },
);

test('memberships and the own entity are those of the request', async () => {
  const ben = { subject: 'ben', roles: ['member'] };
  await app.ask(root, 'POST', 'members', { team: 'red', userId: 'ben' });
  await begin({ team: 'red' });
  const leave = () => app.ask(root, 'DELETE', 'members/ben/red');
  expect((await run('move', leave, ben)).status).toBe('succeeded');
  const cid = { subject: 'cid', roles: ['officer'], claims: { sub: 'cid' } };
  await app.ask(root, 'POST', 'people', { personId: '1', subject: 'cid', office: 'a' });
  for (const [office, status] of [
    ['b', 'failed'],
    ['a', 'succeeded'],
  ] as const) {
    plantId = `${made}${office === 'a' ? 1 : 2}`;
    await begin({ office: 'a' });
    expect((await run('archive', () => patch({ office }), cid)).status).toBe(status);
  }
});

test('rules that take more than a record holds are rejected by the request', async () => {
  const teams = Array.from({ length: 100 }, (_, at) => `${at}${'x'.repeat(400)}`);
  const caller = { subject: 'dan', roles: ['claimant'], claims: { teams } };
  await begin({ team: teams[0] });
  expect((await request('move', caller)).body).toMatchObject({
    status: 413,
    detail: expect.stringContaining('record'),
  });
  expect((await app.ask(root, 'GET', path())).status).toBe(200);
});

describe('a move', () => {
  const regional = { subject: 'eve', roles: ['regional'] };

  test('computes derived fields again, also those of children, and their index follows', async () => {
    await begin({}, [1, 2]);
    expect((await request('move', root, 'us-1')).status).toBe(202);
    await worker.settle();
    const { body } = await app.ask(root, 'GET', `${path('us-1')}?include=parts`);
    expect([body, ...body.parts].map(({ region }: Values) => region)).toEqual(['us', 'us', 'us']);
    const ids = async (region: string) =>
      (await app.ask(root, 'GET', `plants/by/region/${region}`)).body.items.map((one: Values) => one.plantId);
    expect(await ids('us')).toContain(plantId);
    expect(await ids('eu')).not.toContain(plantId);
  });

  test('follows a rule of a derived field, as a create there does', async () => {
    await begin();
    expect((await request('move', regional, 'us-1')).status).toBe(403);
    const there = { site: 'us-1', plantId, owner: 'ann', state: 'open' };
    expect((await app.ask(regional, 'POST', 'plants', there)).status).toBe(403);
    expect((await request('move', regional, 'eu-2')).status).toBe(202);
    await worker.settle();
  });

  test('tells a caller with rules, too, that its key is taken at the destination when it runs', async () => {
    await begin();
    const found = await run('move', () => begin({ site: 'eu-2' }));
    expect(found).toMatchObject({ status: 'failed', reason: 'Another entity has this key at the destination.' });
  });

  test('is refused by the request for a child that the caller may not create there', async () => {
    await begin({}, [1, 1, 2]);
    const before = await stored();
    const { status, body } = await request('move');
    expect({ status, detail: body.detail }).toEqual({ status: 403, detail: engineWrite.RULED_OUT });
    expect(await stored()).toEqual(before);
    expect((await app.ask(root, 'DELETE', `parts/eu-1/${plantId}/2`)).status).toBe(204);
    expect((await request('move')).status).toBe(202);
    await worker.settle();
    expect((await app.ask(root, 'GET', `${path('eu-2')}?include=parts`)).body.parts).toHaveLength(2);
  });

  test.each([3, 120])(
    'of %i children leaves all of them if one may not be created there when it runs',
    async (count) => {
      await begin(
        {},
        Array.from({ length: count }, () => 1),
      );
      let before: Values = {};
      const found = await run('move', async () => {
        expect((await app.ask(root, 'PATCH', `parts/eu-1/${plantId}/${count - 1}`, { grade: 2 })).status).toBe(200);
        before = await stored();
      });
      expect(found).toMatchObject({ status: 'failed', reason: engineWrite.RULED_OUT });
      expect(await stored()).toEqual(before);
      expect((await patch({ note: `open${made}` })).status).toBe(200);
    },
  );

  test.each(['..', 'a%2Fb', 'a\0b'])('to %j, which no path can contain, is rejected', async (site) => {
    await begin();
    expect((await request('move', root, site)).body).toMatchObject({ status: 400, field: 'site' });
  });
});
