// @module-tag long

import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, memberOf, total } from '../../lib/index.ts';
import { type BackedUp, dump, openBackedUp, PLAIN_KEYS } from '../backed-up.ts';
import { model as directory, people, reservations } from '../fixtures/model.ts';
import { accessChecks } from '../kit/access.ts';
import { apiCalls } from '../kit/api.ts';
import { baseValues } from '../kit/base.ts';
import { engineCore, engineRead, engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import { operationsBackup, operationsCheck, operationsModel, operationsMove } from '../kit/operations.ts';
import { storageKeys, storageRows, storageTables } from '../kit/storage.ts';

/** What a restore does to each thing that is no value of an entity: the table in docs/internals/consistency.md. */

const declaredNotes = defineEntity('notes', {
  schema: z.object({
    ownerId: z.string(),
    noteId: z.string(),
    title: z.string(),
    pin: z.string().optional(),
    until: z.iso.datetime().optional(),
  }),
  table: 'notes',
  key: { partition: '{ownerId}', row: '{noteId}' },
  indexes: { title: interPartitionIndex({ table: 'notesbytitle', partition: 't', row: '{title}', unique: true }) },
  totals: { count: total({ table: 'notecounts', partition: 'all', row: '{ownerId}' }) },
  encrypted: ['pin'],
  expiry: { at: 'until' },
  ofUser: { ownerId: 'delete' },
  access: { read: ['user'], write: ['user'], restricted: { pin: ['user'] } },
});
const declaredStickers = defineEntity('stickers', {
  schema: z.object({ ownerId: z.string(), stickerId: z.string(), by: z.string() }),
  table: 'stickers',
  key: { partition: '{ownerId}', row: '{stickerId}' },
  indexes: { by: interPartitionIndex({ table: 'stickersby', partition: '{by}', row: '{ownerId}_{stickerId}' }) },
  ofUser: { by: 'delete' },
  access: { read: ['user'], write: ['user'] },
});
const roles = ['user', 'operator'] as const;
const model = defineModel({ roles, operatorRole: 'operator', entities: [declaredNotes, declaredStickers] });
const [notes, stickers] = model.list as [(typeof model.list)[number], (typeof model.list)[number]];

const SYSTEM = 'system';

async function partitionsIn({ storage }: Pick<BackedUp, 'storage'>): Promise<string[]> {
  const { rows } = await storageRows.scanTable(storage, { table: SYSTEM, limit: 1_000 });
  return [...new Set(rows.map(({ partition }) => partition))].sort();
}

const putSystem = ({ storage }: Pick<BackedUp, 'storage'>, partition: string, row: string, EntityType: string) =>
  storageRows.submit(storage, {
    table: SYSTEM,
    partition,
    actions: [{ kind: 'upsert', row, properties: { EntityType, Subject: row } }],
  });

const note = (over: object = {}) => ({ ownerId: 'ann', noteId: randomUUID(), title: randomUUID(), ...over });

async function openNotes(...all: object[]) {
  const app = await openBackedUp(model);
  for (const one of all) await engineWrite.createEntity(app.engine, notes, one);
  await app.settle();
  await app.snapshot();
  return app;
}

describe('claims and intents in queues', () => {
  test('are not restored: a value is claimed by the entity that has it, and by nobody whose write was not done', async () => {
    const app = await openNotes();
    const [done, lost] = [note({ title: 'done' }), note({ title: 'lost' })];
    // Its index rows wait for the message.
    const queued = { ...app.engine, settleInline: 0 };
    await engineWrite.createEntity(queued, notes, done);
    // Only its claim is stored.
    app.memory.intercept = (request, send) => {
      if (String(request.body).includes('"lost"') && !request.url.includes('notesbytitle')) throw new Error('Lost.');
      return send();
    };
    await expect(engineWrite.createEntity(queued, notes, lost)).rejects.toThrow();
    app.memory.intercept = undefined;
    const rows = Object.entries(await dump(app.storage)).filter(([key]) => key.startsWith('notesbytitle'));
    expect(rows.map(([, text]) => JSON.parse(text).EntityType)).toEqual(['claim', 'claim']);
    const target = await app.openTarget();
    const { findings } = await app.restore(target, app.cut());
    expect(findings).toEqual([]);
    const restored = Object.entries(await dump(target.storage)).filter(([key]) => key.startsWith('notesbytitle'));
    expect(restored.map(([key, text]) => [key, JSON.parse(text).Confirmed])).toEqual([['notesbytitle t done', true]]);
    await engineWrite.createEntity(target.engine, notes, lost);
    await expect(engineWrite.createEntity(target.engine, notes, note({ title: 'done' }))).rejects.toThrow('title');
    expect(await storageRows.scanTable(target.storage, { table: 'poison', limit: 1 })).toMatchObject({ rows: [] });
  });
});

test('grants of the former place open nothing of the new one', async () => {
  const app = await openNotes(note());
  const target = await app.openTarget();
  await app.restore(target, app.cut());
  const grant = accessChecks.grantFor(notes, { table: 'notes', partition: 'ann' }, { now: app.now() });
  const sign = async (storage: BackedUp['storage']) =>
    (await storageKeys.tableSasSigner(storage)).sign({ ...grant, table: storage.table(grant.table).tableName });
  const [former, now] = [await sign(app.storage), await sign(target.storage)];
  expect(former).toContain('notes');
  // The signature is over the name of the table.
  expect(new URLSearchParams(now).get('sig')).not.toBe(new URLSearchParams(former).get('sig'));
});

test('of the state of the engine, only users who are blocked are restored', async () => {
  const app = await openNotes(note());
  const partitions = [
    'revoked-grants',
    'requests-a',
    'secrets',
    'visitors',
    'verify',
    'index-reads',
    'orphans',
    'health',
  ];
  for (const partition of partitions) await putSystem(app, partition, 'r', 'of the engine');
  await putSystem(app, 'blocked', 'eve', 'blocked');
  await app.snapshot();
  const target = await app.openTarget();
  await app.restore(target, app.cut());
  expect((await partitionsIn(app)).length).toBeGreaterThan(partitions.length);
  expect(await partitionsIn(target)).toEqual(['blocked', 'model', 'restore']);
});

test('users are blocked as they are now, and never as they were', async () => {
  const app = await openNotes(note());
  await putSystem(app, 'blocked', 'before', 'blocked');
  await putSystem(app, 'blocked', 'freed', 'blocked');
  const at = app.cut();
  await putSystem(app, 'blocked', 'later', 'blocked');
  await storageRows.submit(app.storage, {
    table: SYSTEM,
    partition: 'blocked',
    actions: [{ kind: 'delete', row: 'freed' }],
  });
  app.cut();
  const target = await app.openTarget();
  expect((await app.restore(target, at)).blocked).toBe(2);
  const { rows } = await storageRows.readRange(target.storage, { table: SYSTEM, partition: 'blocked', from: '' });
  expect(rows.map(({ row }) => row)).toEqual(['before', 'later']);
});

test('slots, fences and layers are those of the new place', { tags: ['slow'] }, async () => {
  const app = await openBackedUp(directory, { accounts: 3 });
  for (const office of ['Porto', 'Faro', 'Braga'])
    await engineWrite.createEntity(app.engine, reservations, { office, reservationId: 'R1', kind: 'desk', storey: 2 });
  await app.settle();
  await app.snapshot();
  const before = await dump(app.storage);
  // The fence of a move that is under way.
  await storageRows.submit({ ...app.storage, journal: undefined } as never, {
    table: 'reservations',
    partition: 'Porto',
    actions: [{ kind: 'insert', row: '~own_!mabc', properties: {} }],
  });
  await app.snapshot();
  const target = await app.openTarget({ accounts: 2, prefix: '' });
  const { findings } = await app.restore(target, app.cut());
  expect(findings).toEqual([]);
  expect(await dump(target.storage)).toEqual(before);
  const placements = await operationsMove.readPlacement(operationsMove.severalAccounts(target.storage));
  expect(placements.map(({ account }) => account.name)).toEqual(['first', 'second']);
  expect(operationsMove.layersIn(placements)).toEqual([]);
});

const OLD = { partition: '{place}', row: 'old_{id}' } as const;
const NEW = { partition: '{place}', row: 'thing_{id}' } as const;
const things = (key: object) =>
  defineModel({
    roles,
    operatorRole: 'operator',
    entities: [
      defineEntity('things', {
        schema: z.object({ place: z.string(), id: z.string(), code: z.string() }),
        table: 'things',
        key: key as typeof OLD,
        indexes: { code: interPartitionIndex({ table: 'thingsbycode', partition: 'c', row: '{code}', unique: true }) },
        archive: { table: 'oldthings' },
        access: { read: ['user'], write: ['user'] },
      }),
    ],
  });

test('entities get the key of the model, whatever key they had', { tags: ['slow'] }, async () => {
  const [former, rekeyed] = [things(OLD), things({ ...NEW, former: OLD })];
  const app = await openBackedUp(former);
  const [before] = former.list;
  const [after] = rekeyed.list;
  if (!before || !after) return expect.fail();
  const keys = ['1', '2', '3'].map((id) => ({ place: 'p', id, code: `c${id}` }));
  await operationsModel.guardModel(app.engine, former.list, undefined);
  for (const one of keys) await engineWrite.createEntity(app.engine, before, one);
  await app.snapshot();
  const cuts = [app.cut()];
  // The command that moves them, with a cut after each change of a row.
  app.memory.intercept = async (request, send) => {
    if (request.method !== 'GET' && request.url.includes('/$batch')) cuts.push(app.cut());
    return send();
  };
  const engine = { ...app.engine, rekey: operationsModel.createRekey(rekeyed.list) };
  await operationsModel.guardModel(engine, rekeyed.list, undefined);
  await operationsModel.startRekey(engine, after);
  await operationsModel.startMoves(engine, after);
  let position: Parameters<typeof operationsModel.rekeyPage>[2]['position'];
  do position = (await operationsModel.rekeyPage(engine, after, { position, top: 100 })).next;
  while (position);
  app.memory.intercept = undefined;
  cuts.push(app.cut());
  // A process that does not know the clock of storage yet lets a delete count from the version on that it deleted.
  for (const { time: _, ...line } of await Array.fromAsync(
    operationsBackup.readJournal(app, { from: cuts[0] ?? '', to: cuts.at(-1) ?? '' }),
  )) {
    const [row] = 'rows' in line ? line.rows : [];
    if (line.table !== 'things' || !row || !('deleted' in row)) continue;
    await app.storage.journal?.append({ ...line, time: row.time });
    cuts.splice(-1, 0, row.time);
  }
  const moved: number[] = [];
  for (const at of cuts) {
    const target = await app.openTarget({ model: rekeyed });
    const report = await app.restore(target, at, { model: rekeyed });
    expect([at, report.findings, report.settled.left]).toEqual([at, [], []]);
    moved.push(report.settled.rekeyed);
    const found = Object.keys(await dump(target.storage)).filter((key) => key.startsWith('things '));
    expect(found).toEqual(keys.map(({ id }) => `things p thing_${id}`));
    expect(await operationsModel.readRekey(target.engine, after)).toBeUndefined();
    expect((await engineRead.readEntity(target.engine, after, { place: 'p', id: '2' })).values.code).toBe('c2');
  }
  expect([moved[0], moved.at(-1)]).toEqual([3, 0]);
});

test('a request that is repeated after a restore is recognized as far as the cut has it', async () => {
  const app = await openNotes();
  const [one, other] = [note(), note()];
  const created = await engineWrite.createOnce(app.engine, notes, one, 'request-1');
  const at = app.cut();
  await engineWrite.createOnce(app.engine, notes, other, 'request-2');
  const target = await app.openTarget();
  await app.restore(target, at);
  const again = await engineWrite.createOnce(target.engine, notes, one, 'request-1');
  expect(again.values).toEqual(created.values);
  await engineWrite.createOnce(target.engine, notes, other, 'request-2');
  const rows = Object.keys(await dump(target.storage)).filter((key) => key.startsWith('notes '));
  expect(rows).toHaveLength(2);
});

test('an entity that has expired by now is absent, and the timer deletes it', async () => {
  const lasting = note();
  const app = await openNotes(lasting);
  const until = new Date(app.now() + baseValues.DAY_MS).toISOString();
  const expiring = note({ until });
  await engineWrite.createEntity(app.engine, notes, expiring);
  const at = app.cut();
  app.advance(2 * baseValues.DAY_MS);
  const target = await app.openTarget();
  const report = await app.restore(target, at);
  expect(report.findings).toEqual([]);
  await expect(engineRead.readEntity(target.engine, notes, expiring)).rejects.toThrow('not found');
  const expired = await featureUpkeep.expireEntities(target.engine, notes, { until: Number.POSITIVE_INFINITY });
  expect(expired.deleted).toBe(1);
  expect((await engineRead.readEntity(target.engine, notes, lasting)).values.title).toBe(lasting.title);
});

test('rows of an earlier version are restored as they were, and upgraded when they are read', async () => {
  const app = await openBackedUp(directory);
  const properties = { EntityType: 'people', EntityVersion: 1, WriteId: 'w', Incarnation: 'i', kind: 'customer' };
  const actions = [
    {
      kind: 'insert',
      row: 'p0',
      properties: { ...properties, name: 'Old Name', companyName: 'O', country: 'PT', personId: 'p0' },
    },
  ] as const;
  await storageRows.submit(app.storage, { table: 'people', partition: 'PT', actions });
  await app.snapshot();
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  expect((await app.restore(target, app.cut())).findings).toEqual([]);
  expect(await dump(target.storage)).toEqual(await dump(app.storage));
  const found = await engineRead.readEntity(target.engine, people, { country: 'PT', personId: 'p0' });
  expect(found.values).toMatchObject({ firstName: 'Old', lastName: 'Name' });
});

test('a table that the model no longer has is restored and named, and a model of an earlier version is refused', async () => {
  const app = await openNotes(note());
  await engineWrite.createEntity(app.engine, stickers, { ownerId: 'ann', stickerId: '1', by: 'ann' });
  const at = app.cut();
  const smaller = defineModel({ roles, operatorRole: 'operator', entities: [declaredNotes] });
  const target = await app.openTarget({ model: smaller });
  const report = await app.restore(target, at, { model: smaller });
  expect(report.undeclared).toEqual(['stickers']);
  expect(Object.keys(await dump(target.storage))).toContain('stickers ann 1');
  const app2 = await openBackedUp(directory);
  await app2.snapshot();
  const older = { ...directory, list: directory.list.map((entity) => ({ ...entity, version: 1 })) };
  await expect(app2.restore(await app2.openTarget(), app2.cut(), { model: older })).rejects.toThrow(
    'The backup has version 2 of people, and the model version 1.',
  );
});

test('a value whose key was deleted is restored as ciphertext, and stays unreadable', async () => {
  const one = note({ pin: 'secret' });
  const app = await openNotes(one);
  const unwrap = async () => {
    throw new storageKeys.UnwrapFailed('The key was deleted.');
  };
  const target = await app.openTarget({ accounts: 1, prefix: '', keys: { ...PLAIN_KEYS, unwrap } });
  const report = await app.restore(target, app.cut());
  expect(report.findings).toEqual([]);
  expect(await dump(target.storage)).toEqual(await dump(app.storage));
  const { values } = await engineRead.readEntity(target.engine, notes, one);
  expect(values.title).toBe(one.title);
  await expect(engineWrite.toPlain(target.engine, notes, values)).rejects.toThrow('cannot be unwrapped');
});

describe('a person who was erased after the cut', () => {
  async function openErased() {
    const app = await openNotes(note(), note(), note({ ownerId: 'ben' }), note({ ownerId: 'cleo' }));
    const audit = operationsCheck.createAuditLog(app.engine);
    const erase = (subject: string) =>
      engineCore.collectChanges(
        'operator',
        () => apiCalls.eraseAll(app.engine, model, subject),
        (changes) => audit.append(changes),
      );
    await erase('cleo');
    app.advance(baseValues.DAY_MS);
    // A person may come back.
    await engineWrite.createEntity(app.engine, notes, note({ ownerId: 'cleo' }));
    // Found by an index, which is in no backup.
    await engineWrite.createEntity(app.engine, stickers, { ownerId: 'ben', stickerId: '1', by: 'ann' });
    const at = app.cut();
    await erase('ann');
    await app.settle();
    return { app, at };
  }
  const owners = async ({ storage }: Pick<BackedUp, 'storage'>) =>
    Object.keys(await dump(storage))
      .filter((key) => /^note(s|counts) /.test(key))
      .map((key) =>
        key
          .split(' ')
          .slice(0, key.startsWith('notes ') ? 2 : 3)
          .join(' '),
      );

  test('is erased again, as the audit log of the app says', async () => {
    const { app, at } = await openErased();
    const target = await app.openTarget();
    const { erased, findings } = await app.restore(target, at);
    expect([erased, findings]).toEqual([{ subjects: 1, deleted: 3, changed: 0, failed: [], isLogRead: true }, []]);
    const left = await owners(target);
    expect(left.filter((key) => key.startsWith('notes '))).toEqual(['notes ben', 'notes cleo']);
    expect(left.some((key) => key.includes('ann') && !key.includes('t_'))).toBe(false);
  });

  test('is erased again, as the copies of the log say if the app is gone', async () => {
    const { app, at } = await openErased();
    await app.copyBlobs();
    const target = await app.openTarget({ accounts: 1, prefix: '' });
    const { erased } = await app.restore(target, at, { source: { backup: app.backup } });
    expect(erased).toEqual({ subjects: 1, deleted: 3, changed: 0, failed: [], isLogRead: false });
    expect((await owners(target)).filter((key) => key.startsWith('notes '))).toEqual(['notes ben', 'notes cleo']);
  });
});

test('a process that has asked for a membership before the restore finds it after the restore', async () => {
  const club = defineEntity('club', {
    schema: z.object({ clubId: z.string(), userId: z.string() }),
    table: 'club',
    key: { partition: '{clubId}', row: '{userId}' },
    indexes: { user: interPartitionIndex({ table: 'clubbyuser', partition: '{userId}', row: '{clubId}' }) },
    access: { read: ['user'], write: ['operator'] },
  });
  const posts = defineEntity('posts', {
    schema: z.object({ clubId: z.string(), postId: z.string() }),
    table: 'posts',
    key: { partition: '{clubId}', row: '{postId}' },
    access: { read: [{ role: 'user', where: { clubId: memberOf(() => club, 'clubId') } }], write: ['operator'] },
  });
  const clubs = defineModel({ roles, operatorRole: 'operator', entities: [club, posts], rulesMaxAge: 60 });
  const app = await openBackedUp(clubs);
  const [members, texts] = clubs.list as [(typeof clubs.list)[number], (typeof clubs.list)[number]];
  await engineWrite.createEntity(app.engine, members, { clubId: 'c', userId: 'ann' });
  await engineWrite.createEntity(app.engine, texts, { clubId: 'c', postId: '1' });
  await app.snapshot();
  const at = app.cut();
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  const storeOf = (engine: BackedUp['engine']) =>
    apiCalls
      .createStore<typeof clubs.entities>(clubs.list, { engine: async () => engine, record: (_, write) => write() })
      .as({ subject: 'ann', roles: ['user'], claims: {} });
  const readIn = (engine: BackedUp['engine']) =>
    storeOf(engine)
      .posts.get({ clubId: 'c', postId: '1' })
      .then((found) => found !== undefined);
  await storageTables.provision(target.storage, operationsModel.resourcesOf(clubs.list, app.now(), clubs));
  const early = { ...target.engine };
  expect(await readIn(early)).toBe(false);
  await app.restore(target, at);
  expect(await readIn(early)).toBe(true);
});

test('an app without a prefix is restored beside another one in the same account', async () => {
  const shop = { ...model, prefix: 'shop' };
  const app = await openBackedUp(shop);
  const one = note();
  await engineWrite.createEntity(app.engine, notes, one);
  await app.snapshot();
  const at = app.cut();
  const before = await dump(app.storage);
  const target = await app.openTarget({ prefix: '', model });
  expect((await app.restore(target, at, { model })).findings).toEqual([]);
  expect(await dump(app.storage)).toEqual(before);
  expect((await engineRead.readEntity(target.engine, notes, one)).values.title).toBe(one.title);
});
