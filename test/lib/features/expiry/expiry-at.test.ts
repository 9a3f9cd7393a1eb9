import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  type Index,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { costOf } from '../../../cost-of.ts';
import { CONSUMER_FAULTS, outcomeOf, tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { CopyIndex } from '../../../kit/define.ts';
import { type Engine, engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { featureUpkeep } from '../../../kit/features.ts';
import { operationsCheck } from '../../../kit/operations.ts';
import { openWorld, QUICK, rowsOf } from '../../../world.ts';
import { load, testRejections } from '../../define/validate/declarations.ts';

const HOUR = 3_600_000;
const text = z.string().min(1);
const access = { read: [], write: [] } as const;

const declared = defineEntity('invitations', {
  schema: z.object({
    groupId: text,
    email: text,
    code: text,
    by: text,
    note: text.optional(),
    expiresAt: z.iso.datetime({ offset: true }).optional(),
  }),
  table: 'invitations',
  key: { partition: '{groupId}', row: 'invitation_{email}' },
  indexes: {
    code: interPartitionIndex({ table: 'invitationsbycode', partition: '{code#}', row: '{code}', unique: true }),
    email: interPartitionIndex({ table: 'invitationsbyemail', partition: '{email}', row: '{groupId}', copies: 'keys' }),
    by: intraPartitionIndex({ row: 'by_{by}_{email}', copies: ['by', 'expiresAt'] }),
    byAnywhere: interPartitionIndex({ table: 'invitationsby', partition: '{by}', row: '{groupId}_{email}' }),
    list: indexEntity({ row: 'list_{by}', holds: '{email}' }),
  },
  archive: { table: 'oldinvitations' },
  movable: ['groupId'],
  expiry: { at: 'expiresAt' },
  access,
});
const declaredChild = defineEntity('remarks', {
  schema: z.object({ groupId: text, email: text, number: z.int32().min(0).max(99) }),
  table: 'invitations',
  key: { partition: '{groupId}', row: 'invitation_{email}_{number:2}' },
  childOf: declared,
  access,
});
const declaredReply = defineEntity('replies', {
  schema: z.object({ groupId: text, replyId: text, email: text.optional(), code: text.optional() }),
  table: 'invitations',
  key: { partition: '{groupId}', row: 'reply_{replyId}' },
  references: {
    email: { to: declared, onDelete: 'report' },
    code: { to: declared, by: 'code', onDelete: 'report' },
  },
  access,
});
/** No claim keeps one writer of it from another. */
const declaredSession = defineEntity('sessions', {
  schema: z.object({ groupId: text, email: text, note: text.optional(), expiresAt: z.iso.datetime() }),
  table: 'sessions',
  key: { partition: '{groupId}', row: '{email}' },
  expiry: { at: 'expiresAt' },
  access,
});
const { invitations, remarks, replies, sessions } = deploy(declared, declaredChild, declaredReply, declaredSession);

const world = await openWorld(import.meta.url, [invitations, remarks, replies, sessions]);

/** An engine whose clock is ahead. */
const later = (milliseconds: number, engine = world.engine): Engine => ({
  ...engine,
  now: () => Date.now() + milliseconds,
});
const inHours = (hours: number) => new Date(Date.now() + hours * HOUR).toISOString();
const expire = (engine: Engine, entity = invitations) =>
  featureUpkeep.expireEntities(engine, entity, { until: Number.POSITIVE_INFINITY });

let count = 0;
function invitation(groupId: string, hours = 1): Values & { groupId: string; email: string } {
  count += 1;
  return { groupId, email: `e${count}`, code: `c${count}`, by: `ann of ${groupId}`, expiresAt: inHours(hours) };
}

const index = (name: keyof typeof invitations.indexes): Index => invitations.indexes[name];
const copyIndex = (name: keyof typeof invitations.indexes) => index(name) as CopyIndex;
const found = (read: Promise<unknown>) =>
  read.then(
    () => 'found',
    (error: { code?: string }) => error.code,
  );
const listed = async (page: Promise<{ items: readonly Values[] }>) => (await page).items.length;

/** What each read returns of the invitation. */
async function readAll(engine: Engine, one: Values) {
  const page = { top: 10 };
  const list = index('list');
  if (list.kind !== 'index-entity') throw new Error('It lists.');
  return {
    key: await found(engineRead.readEntity(engine, invitations, one)),
    selected: await found(engineRead.readEntity(engine, invitations, one, { select: ['email'] })),
    children: await found(
      engineRead.readWithChildren(engine, invitations, one, [remarks], { select: { invitations: ['by'] } }),
    ),
    unique: await found(engineRead.readByCopy(engine, invitations, copyIndex('code'), { code: one.code })),
    uniqueSelected: await found(
      engineRead.readByCopy(engine, invitations, copyIndex('code'), { code: one.code }, ['by']),
    ),
    copyOfKeys: await found(
      engineRead.readByCopy(engine, invitations, copyIndex('email'), { email: one.email, groupId: one.groupId }, [
        'email',
      ]),
    ),
    reference: await found(engineRead.readByReference(engine, invitations, copyIndex('code'), { code: one.code })),
    range: await listed(engineRead.readEntities(engine, invitations, one, { ...page, select: ['email'] })),
    by: await listed(engineRead.readByCopies(engine, invitations, copyIndex('by'), one, page)),
    bySelected: await listed(
      engineRead.readByCopies(engine, invitations, copyIndex('by'), one, { ...page, select: ['by'] }),
    ),
    byAnywhere: await listed(
      engineRead.readByCopies(
        engine,
        invitations,
        copyIndex('byAnywhere'),
        { by: one.by },
        { ...page, select: ['email'] },
      ),
    ),
    email: await listed(engineRead.readByCopies(engine, invitations, copyIndex('email'), { email: one.email }, page)),
    list: await listed(
      engineRead.readByList(
        engine,
        invitations,
        list,
        { groupId: one.groupId, by: one.by },
        { ...page, select: ['email'] },
      ),
    ),
    scan: (await engineRead.scanEntities(engine, invitations, { top: 1_000, select: ['email'] })).items.filter(
      ({ email }) => email === one.email,
    ).length,
  };
}

describe('an entity whose instant has passed', () => {
  test('is absent from every read, and present until then', async () => {
    const one = invitation('Reads');
    await engineWrite.createEntity(world.engine, invitations, one);
    const present = await readAll(later(HOUR - 30_000), one);
    expect(new Set(Object.values(present))).toEqual(new Set(['found', 1]));
    const gone = await readAll(later(HOUR), one);
    expect(new Set(Object.values(gone))).toEqual(new Set(['not-found', 0]));
  });

  test('can be neither referred to nor a parent, and what refers to it already stays', async () => {
    const one = invitation('Referred');
    await engineWrite.createEntity(world.engine, invitations, one);
    const { groupId, email, code } = one;
    const reply = { groupId, replyId: 'before', email, code };
    await engineWrite.createEntity(later(HOUR - 30_000), replies, reply);
    const refused = [
      engineWrite.createEntity(later(HOUR), replies, { groupId, replyId: 'by key', email }),
      engineWrite.createEntity(later(HOUR), replies, { groupId, replyId: 'by value', code }),
      engineWrite.createEntity(later(HOUR), remarks, { groupId, email, number: 1 }),
    ];
    expect(await Promise.all(refused.map(found))).toEqual(['invalid-input', 'invalid-input', 'invalid-input']);
    await engineWrite.replaceEntity(later(HOUR), replies, reply, reply);
  });

  test('is absent to every change', async () => {
    const one = invitation('Writes');
    const { etag } = await engineWrite.createEntity(world.engine, invitations, one);
    const engine = later(HOUR);
    const changes = {
      patch: await found(engineWrite.patchEntity(engine, invitations, one, { note: 'n' })),
      longer: await found(engineWrite.patchEntity(engine, invitations, one, { expiresAt: inHours(9) })),
      merge: await found(engineWrite.mergeEntity(engine, invitations, one, { note: 'n' })),
      replace: await found(engineWrite.replaceEntity(engine, invitations, one, { ...one, note: 'n' })),
      delete: await found(engineWrite.deleteEntity(engine, invitations, one)),
      archive: await found(engineTransfer.requestArchive(engine, invitations, one)),
      move: await found(engineTransfer.requestMove(engine, invitations, one, { groupId: 'Other' })),
    };
    expect(new Set(Object.values(changes))).toEqual(new Set(['not-found']));
    expect(await found(engineWrite.putEntity(engine, invitations, one, one, { ifMatch: etag }))).toBe('etag-mismatch');
    const outcomes = await engineWrite.writeBatch(engine, invitations, [
      { patch: { ...one, note: 'n' } },
      { delete: one },
    ]);
    expect(outcomes.map((outcome) => 'code' in outcome && outcome.code)).toEqual(['not-found', 'not-found']);
    expect((await engineRead.readEntity(world.engine, invitations, one)).etag).toBe(etag);
    // The engine keeps it up until the timer deletes it.
    await engineWrite.changeEntity(engine, invitations, one, { isUpkeep: true }, async (values) => ({
      ...values,
      note: 'kept up',
    }));
    expect((await engineRead.readEntity(world.engine, invitations, one)).values.note).toBe('kept up');
  });

  test.each(['create', 'put', 'put if absent', 'batch', 'atomic batch'])(
    'makes room for a new one: %s',
    async (way) => {
      const one = invitation('Again');
      await engineWrite.createEntity(world.engine, invitations, { ...one, note: 'before' });
      const { groupId, email } = one;
      await engineWrite.createEntity(world.engine, remarks, { groupId, email, number: 1 });
      const engine = later(HOUR);
      const next = { ...one, code: `${one.code}-new`, expiresAt: inHours(3) };
      const beside = invitation('Again', 9);
      if (way === 'create') await engineWrite.createEntity(engine, invitations, next);
      if (way === 'put') expect((await engineWrite.putEntity(engine, invitations, one, next)).isCreated).toBe(true);
      if (way === 'put if absent') await engineWrite.putEntity(engine, invitations, one, next, { ifNoneMatch: '*' });
      if (way === 'batch')
        expect(await engineWrite.writeBatch(engine, invitations, [{ create: next }, { create: beside }])).toMatchObject(
          [{ outcome: 'created' }, { outcome: 'created' }],
        );
      if (way === 'atomic batch')
        await engineWrite.writeAtomically(engine, invitations, [{ put: next }, { create: beside }]);
      await world.settle();
      const { values } = await engineRead.readWithChildren(engine, invitations, one, [remarks]);
      expect(values).toEqual({ ...next, remarks: [] });
      expect(await found(engineRead.readByCopy(engine, invitations, copyIndex('code'), { code: one.code }))).toBe(
        'not-found',
      );
      expect(await found(engineWrite.createEntity(engine, invitations, next))).toBe('duplicate-key');
    },
  );

  test('makes room for one of several concurrent creates', async () => {
    const one = invitation('Concurrent');
    await engineWrite.createEntity(world.engine, invitations, one);
    const next = { ...one, expiresAt: inHours(9) };
    const creates = Array.from({ length: 4 }, (_, index) =>
      outcomeOf(engineWrite.createEntity(later(HOUR), invitations, { ...next, note: `n${index}` })),
    );
    const outcomes = await Promise.all(creates);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(1);
    await world.settle();
    expect(await engineRead.readEntity(later(HOUR), invitations, one)).toMatchObject({ values: next });
  });

  test.each(['invitations', 'sessions'])(
    'makes room for one create only, whenever another one comes between: %s',
    { tags: ['slow'] },
    async (name) => {
      const entity = name === 'sessions' ? sessions : invitations;
      const set = async () => {
        const { by, code, ...own } = invitation('Between');
        const one = name === 'sessions' ? own : { ...own, by, code };
        await engineWrite.createEntity(world.engine, entity, one);
        const outcomes: Record<string, string> = {};
        const create = async (engine: Engine, note: string) => {
          const next = { ...one, note, expiresAt: inHours(9) };
          outcomes[note] = await outcomeOf(engineWrite.createEntity(engine, entity, next));
        };
        return {
          act: (through: Engine) => create(later(HOUR, through), 'first'),
          interrupt: () => create(later(HOUR), 'second'),
          check: async (label: string) => {
            await world.settle();
            const done = Object.keys(outcomes).filter((note) => outcomes[note] === 'done');
            expect(done, `${label}: ${JSON.stringify(outcomes)}`).toHaveLength(1);
            expect((await engineRead.readEntity(later(HOUR), entity, one)).values.note, label).toBe(done[0]);
          },
        };
      };
      await tryInterruptions(world, set, { moreCallsThan: 5, size: 3 });
    },
  );

  test('costs a create under its key a rejected create and a delete besides', async () => {
    const one = invitation('Cost');
    const next = { ...one, expiresAt: inHours(9) };
    const first = await costOf(() => engineWrite.createEntity(world.engine, invitations, one));
    const again = await costOf(() => engineWrite.createEntity(later(HOUR), invitations, next));
    const removed = await costOf(() => engineWrite.deleteEntity(later(HOUR), invitations, next));
    await engineWrite.createEntity(world.engine, invitations, next);
    const rejected = await costOf(() => found(engineWrite.createEntity(world.engine, invitations, next)));
    expect(again).toBeLessThanOrEqual(rejected + removed + first);
    await world.settle();
  });

  test('gives its unique value to another one', async () => {
    const one = invitation('Unique');
    await engineWrite.createEntity(world.engine, invitations, one);
    const other = { ...invitation('Elsewhere', 9), code: one.code };
    expect(await found(engineWrite.createEntity(later(HOUR - 30_000), invitations, other))).toBe('duplicate-value');
    await engineWrite.createEntity(later(HOUR), invitations, other);
    expect(
      await engineRead.readByReference(world.engine, invitations, copyIndex('code'), { code: one.code }),
    ).toMatchObject({
      groupId: 'Elsewhere',
    });
    const third = invitation('Third', 9);
    await engineWrite.createEntity(world.engine, invitations, third);
    expect(await found(engineWrite.patchEntity(later(HOUR), invitations, third, { code: one.code }))).toBe(
      'duplicate-value',
    );
    await engineWrite.patchEntity(later(10 * HOUR), invitations, third, { code: one.code }).catch(() => undefined);
    await world.settle();
  });

  test.each(['created again', 'deleted by the timer'])(
    'is %s with any fault, and nothing is left over',
    { tags: ['slow'] },
    async (way) => {
      const group = `Faults ${way}`;
      await tryFaults(
        async ({ client, label }) => {
          const one = invitation(group);
          await engineWrite.createEntity(world.engine, invitations, one);
          const faulty = later(HOUR, world.engineThrough(client, QUICK));
          const next = { ...one, expiresAt: inHours(9) };
          if (way === 'created again') await outcomeOf(engineWrite.createEntity(faulty, invitations, next));
          else await expire(faulty).catch(() => undefined);
          await world.settle();
          if (way === 'created again') await outcomeOf(engineWrite.createEntity(later(HOUR), invitations, next));
          else await expire(later(HOUR));
          await world.settle();
          const rest = (await rowsOf(world.storage, 'invitationsexpiry')).filter(({ rowKey }) =>
            String(rowKey).endsWith(`invitation_${one.email}`),
          );
          expect(rest, label).toHaveLength(way === 'created again' ? 1 : 0);
          if (way === 'created again')
            expect(await engineRead.readEntity(later(HOUR), invitations, one)).toMatchObject({ values: next });
          else await engineWrite.createEntity(world.engine, invitations, one);
        },
        // Each trial empties the queues and runs the timer, so one follows another.
        { concurrency: 1, faults: CONSUMER_FAULTS },
      );
      const verify = { position: undefined, top: 1_000, patience: 0, repair: false } as const;
      expect((await operationsCheck.verifyPage(world.engine, invitations, verify)).findings).toEqual([]);
    },
  );
});

test('an entity of an earlier version can be referred to until the instant that its upgrade gives it', async () => {
  const schema = z.object({ groupId: text, id: text, granted: z.iso.datetime() });
  const at = { table: 'trials', key: { partition: '{groupId}', row: 'trial_{id}' }, access } as const;
  const { trials: before } = deploy(defineEntity('trials', { ...at, schema }));
  const target = defineEntity('trials', {
    ...at,
    schema: schema.extend({ until: z.iso.datetime() }),
    expiry: { at: 'until' },
    version: 2,
    upgrades: { 1: (values) => ({ ...values, until: values.granted }) },
  });
  const uses = defineEntity('uses', {
    schema: z.object({ groupId: text, useId: text, id: text }),
    table: 'uses',
    key: { partition: '{groupId}', row: 'use_{useId}' },
    references: { id: { to: target, onDelete: 'report' } },
    access,
  });
  const now = deploy(target, uses);
  const { engine } = await openWorld(import.meta.url, [before, now.trials, now.uses]);
  await engineWrite.createEntity(engine, before, { groupId: 'g', id: '1', granted: inHours(1) });
  const use = (useId: string, hours: number) =>
    found(engineWrite.createEntity(later(hours * HOUR, engine), now.uses, { groupId: 'g', useId, id: '1' }));
  expect([await use('soon', 0), await use('late', 2)]).toEqual(['found', 'invalid-input']);
});

test('an entity without an instant never expires, and one in another form expires at the same moment', async () => {
  const at = new Date(Date.now() + HOUR);
  const offset = new Date(at.getTime() + 2 * HOUR).toISOString().replace(/\.\d+Z$/, '+02:00');
  const forms = [undefined, offset].map((expiresAt) => ({ ...invitation('Forms'), expiresAt }));
  for (const one of forms) await engineWrite.createEntity(world.engine, invitations, one);
  const foundAt = (milliseconds: number) =>
    Promise.all(forms.map((one) => found(engineRead.readEntity(later(milliseconds), invitations, one))));
  // A busy machine takes seconds until the read.
  expect(await foundAt(HOUR - 60_000)).toEqual(['found', 'found']);
  expect(await foundAt(HOUR + 2_000)).toEqual(['found', 'not-found']);
  expect(await foundAt(1_000 * 24 * HOUR)).toEqual(['found', 'not-found']);
});

describe('the timer', () => {
  test('deletes what is due, whatever the day, and reads nothing that is due later', { tags: ['slow'] }, async () => {
    await expire(later(1_000 * 24 * HOUR));
    await world.settle();
    // In the form of the other side of the world, where it is tomorrow.
    const offset = new Date(Date.now() + 14.5 * HOUR).toISOString().replace('Z', '+14:00');
    const due = [
      ...[-50, -1, 0.5].map((hours) => invitation('Due', hours)),
      { ...invitation('Due'), expiresAt: offset },
    ];
    const open = [1.5, 30].map((hours) => invitation('Due', hours));
    for (const one of [...due, ...open]) await engineWrite.createEntity(world.engine, invitations, one);
    expect(await expire(later(HOUR))).toMatchObject({ deleted: 4, failed: 0 });
    await world.settle();
    for (const one of due)
      for (const table of ['invitations', 'invitationsbycode', 'invitationsby', 'invitationsexpiry'])
        expect(JSON.stringify(await rowsOf(world.storage, table))).not.toContain(`invitation_${one.email}"`);
    for (const one of open) await engineRead.readEntity(later(HOUR), invitations, one);
    // One query.
    expect(await costOf(() => expire(later(HOUR)))).toBe(1);
    await engineWrite.patchEntity(world.engine, invitations, open[0] as Values, { expiresAt: inHours(20) });
    expect(await expire(later(2 * HOUR))).toMatchObject({ deleted: 0, failed: 0 });
    expect(await expire(later(40 * HOUR))).toMatchObject({ deleted: 2, failed: 0 });
  });
});

test('entities of one table expire if each has a table of its own for what is due', async () => {
  const shared = { schema: z.object({ a: text, b: text, until: z.iso.datetime() }), table: 'shared', access } as const;
  const invites = defineEntity('invites', {
    ...shared,
    key: { partition: '{a}', row: 'invite_{b}' },
    expiry: { at: 'until' },
  });
  const key = { partition: '{a}', row: 'session_{b}' } as const;
  expect(() => load(invites, defineEntity('sessions', { ...shared, key, expiry: { at: 'until' } }))).toThrow(
    /"sessions": its table "sharedexpiry", of an index, an archive or a pattern, is used by "invites" too\. Give it a table of its own/,
  );
  const apart = defineEntity('sessions', { ...shared, key, expiry: { at: 'until', table: 'sessionexpiry' } });
  const { sessions, invites: deployed } = deploy(invites, apart);
  const { engine, settle } = await openWorld(import.meta.url, [sessions, deployed]);
  const one = { a: 'Shared', b: '1' };
  for (const entity of [sessions, deployed])
    await engineWrite.createEntity(engine, entity, { ...one, until: inHours(1) });
  await settle();
  const at = { ...engine, now: () => Date.now() + 2 * HOUR };
  expect(await featureUpkeep.expireEntities(at, sessions, { until: Number.POSITIVE_INFINITY })).toEqual({
    deleted: 1,
    failed: 0,
    reasons: [],
  });
  await engineRead.readEntity(engine, deployed, one);
  expect(await featureUpkeep.expireEntities(at, deployed, { until: Number.POSITIVE_INFINITY })).toEqual({
    deleted: 1,
    failed: 0,
    reasons: [],
  });
});

const base = {
  schema: z.object({ a: text, b: text, c: text, day: z.iso.date(), at: z.iso.datetime().optional() }),
  table: 'things',
  key: { partition: '{a}', row: '{b}' },
  access,
} as const;
testRejections([
  [
    'an expiry in a table whose name storage does not accept',
    () => load(defineEntity('things', { ...base, expiry: { at: 'at', table: 'What-is-due' } })),
    /the table name "What-is-due" is not accepted/,
  ],
  [
    'an expiry at a day',
    () => load(defineEntity('things', { ...base, expiry: { at: 'day' } })),
    /"day" is not an instant/,
  ],
  [
    'an index that does not tell what has expired',
    () =>
      load(
        defineEntity('things', {
          ...base,
          indexes: { c: intraPartitionIndex({ row: 'c_{c}_{b}', copies: ['c'] }) },
          expiry: { at: 'at' },
        }),
      ),
    /the index "c" copies no "at"/,
    2,
  ],
  [
    'an instant in a row of its own',
    () => load(defineEntity('things', { ...base, split: { apart: ['at'] }, expiry: { at: 'at' } })),
    /expiry.at "at" is encrypted, split/,
  ],
  [
    'a lookup table with instants',
    () =>
      load(
        defineEntity('things', {
          ...base,
          indexes: { all: interPartitionIndex({ table: 'all', partition: 'all', row: '{a}_{b}' }) },
          lookup: { index: 'all' },
          expiry: { at: 'at' },
        }),
      ),
    /a lookup table is kept in memory/,
  ],
  [
    'both forms of expiry',
    () => defineEntity('things', { ...base, expiry: { at: 'at', days: 2, clock: 'day' } as never }),
    /days and clock are accepted, or at alone/,
  ],
]);
