import type { HttpClient } from '@azure/core-rest-pipeline';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { expireEntities } from '../../../../lib/features/expiry/expiry.ts';
import {
  defineEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { costOf } from '../../../cost-of.ts';
import { tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineConsume, engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { operationsCheck, operationsModel } from '../../../kit/operations.ts';
import { storageAccounts, storageKeys } from '../../../kit/storage.ts';
import { putAll } from '../../../put-all.ts';
import { log } from '../../../silent-log.ts';
import { openWorld, QUICK, rowsOf } from '../../../world.ts';
import { testRejections } from '../../define/validate/declarations.ts';

const DAY_MS = 24 * 60 * 60_000;
const text = z.string().min(1);

const declared = defineEntity('notes', {
  schema: z.object({ board: text, noteId: text, slug: text, tag: text, changedOn: z.iso.date() }),
  table: 'notes',
  key: { partition: '{board}', row: 'note_{noteId}' },
  indexes: {
    slug: interPartitionIndex({ table: 'notesbyslug', partition: '{slug#}', row: '{slug}', unique: true }),
    tag: intraPartitionIndex({ row: 'tag_{tag}_{noteId}' }),
    board: indexEntity({ table: 'notesbytag', partition: '{tag}', row: 'notes', holds: '{board}/{noteId}' }),
  },
  archive: { table: 'oldnotes' },
  movable: ['board'],
  expiry: { days: 2, clock: 'changedOn' },
  access: { read: [], write: [] },
});
const declaredChild = defineEntity('remarks', {
  schema: z.object({ board: text, noteId: text, number: z.int32().min(0).max(99), words: text }),
  table: 'notes',
  key: { partition: '{board}', row: 'note_{noteId}_{number:2}' },
  childOf: declared,
  access: { read: [], write: [] },
});
/** Has copies of fields of a leader, a count of players and a secret, all of which the engine keeps up. */
const declaredLeader = defineEntity('leaders', {
  schema: z.object({ club: text, leaderId: text, name: text }),
  table: 'clubs',
  key: { partition: '{club}', row: 'leader_{leaderId}' },
  access: { read: [], write: [] },
});
const declaredPlayer = defineEntity('players', {
  schema: z.object({ club: text, playerId: text }),
  table: 'clubs',
  key: { partition: '{club}', row: 'player_{playerId}' },
  access: { read: [], write: [] },
});
const declaredClub = defineEntity('clubs', {
  schema: z.object({
    club: text,
    leaderId: text,
    leaderName: text.optional(),
    players: z.int32().min(0).optional(),
    secret: text,
    changedOn: z.iso.date(),
  }),
  table: 'clubs',
  key: { partition: '{club}', row: 'club' },
  denormalized: {
    leaderId: {
      source: declaredLeader,
      copies: { leaderName: ({ name }) => name },
    },
  },
  counts: { players: declaredPlayer },
  encrypted: ['secret'],
  expiry: { days: 2, clock: 'changedOn' },
  access: { read: ['staff'], write: ['staff'], restricted: { secret: ['staff'] } },
});
/** Nothing but its row. */
const declaredMemo = defineEntity('memos', {
  schema: z.object({ team: text, memoId: text, words: text.optional(), changedOn: z.iso.date() }),
  table: 'memos',
  key: { partition: '{team}', row: '{memoId}' },
  expiry: { days: 2, clock: 'changedOn' },
  access: { read: [], write: [] },
});
/** Of several rows. */
const declaredReport = defineEntity('reports', {
  schema: z.object({ team: text, reportId: text, body: text, changedOn: z.iso.date() }),
  table: 'reports',
  key: { partition: '{team}', row: '{reportId}' },
  split: { text: ['body'] },
  expiry: { days: 2, clock: 'changedOn' },
  access: { read: [], write: [] },
});
const { notes, remarks, leaders, players, clubs, memos, reports } = deploy(
  declared,
  declaredChild,
  declaredLeader,
  declaredPlayer,
  declaredClub,
  declaredMemo,
  declaredReport,
);

const world = await openWorld(import.meta.url, [notes, remarks, leaders, players, clubs, memos, reports]);

/** An engine whose clock is this many days behind. */
const daysAgo = (days: number): Engine => ({ ...world.engine, now: () => Date.now() - days * DAY_MS });
const dayOf = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
const expire = (engine = world.engine) => expireEntities(engine, notes, { until: Number.POSITIVE_INFINITY });

let count = 0;
function note(board: string): { board: string; noteId: string; slug: string; tag: string } {
  count += 1;
  return { board, noteId: `n${count}`, slug: `${board}-${count}`, tag: `of ${board}` };
}

async function expectNothingLeft(one: Values): Promise<void> {
  await world.settle();
  for (const table of ['notes', 'notesbyslug', 'notesbytag', 'notesexpiry'])
    expect(JSON.stringify(await rowsOf(world.storage, table))).not.toContain(String(one.noteId));
}

async function entriesOf(one: Values): Promise<string[]> {
  const rows = await rowsOf(world.storage, 'notesexpiry');
  return rows
    .filter(({ rowKey }) => String(rowKey).endsWith(`note_${one.noteId}`))
    .map(({ partitionKey }) => String(partitionKey).slice(0, 10));
}

async function entryOf(one: Values) {
  const rows = await rowsOf(world.storage, 'notesexpiry');
  const found = rows.find(({ rowKey }) => String(rowKey).endsWith(`note_${one.noteId}`));
  return { ...found, partitionKey: String(found?.partitionKey), rowKey: String(found?.rowKey) };
}

describe('an entity with expiry', () => {
  test('is deleted after its days with its index entries and children, and its unique value becomes free', async () => {
    const one = note('Gone');
    const stored = await engineWrite.createEntity(daysAgo(3), notes, one);
    expect(stored.values.changedOn).toBe(dayOf(3));
    await engineWrite.createEntity(daysAgo(3), remarks, {
      board: one.board,
      noteId: one.noteId,
      number: 1,
      words: 'w',
    });
    expect(await entriesOf(one)).toEqual([dayOf(3)]);
    expect(await expire()).toMatchObject({ deleted: 1, failed: 0 });
    await expect(engineRead.readEntity(world.engine, notes, one)).rejects.toMatchObject({ code: 'not-found' });
    await expectNothingLeft(one);
    const next = { ...note('Gone'), slug: one.slug };
    await engineWrite.createEntity(world.engine, notes, next);
  });

  test('is counted as failed while it cannot be deleted, and deleted by a later run', async () => {
    const one = note('Held');
    await engineWrite.createEntity(daysAgo(5), notes, one);
    const row = { partitionKey: one.board, rowKey: `note_${one.noteId}` };
    await world.storage.table('notes').updateEntity({ ...row, Leaving: 'operation' }, 'Merge');
    expect(await expire()).toMatchObject({ deleted: 0, failed: 1 });
    await world.storage.table('notes').updateEntity({ ...row, Leaving: '' }, 'Merge');
    expect(await expire()).toMatchObject({ deleted: 1, failed: 0 });
  });

  test('stays for its full days after a change', async () => {
    const one = note('Stays');
    await engineWrite.createEntity(daysAgo(2), notes, one);
    expect(await expire()).toMatchObject({ deleted: 0, failed: 0 });
    await engineRead.readEntity(world.engine, notes, one);
  });

  test('stays after a change, and does not stay longer after a write that changes nothing', async () => {
    const [changed, unchanged] = [note('Changed'), note('Changed')];
    for (const one of [changed, unchanged]) await engineWrite.createEntity(daysAgo(5), notes, one);
    await engineWrite.patchEntity(daysAgo(1), notes, changed, { tag: 'another' });
    await engineWrite.replaceEntity(daysAgo(1), notes, unchanged, unchanged);
    expect(await entriesOf(changed)).toEqual([dayOf(1)]);
    expect(await entriesOf(unchanged)).toEqual([dayOf(5)]);
    expect(await expire()).toMatchObject({ deleted: 1, failed: 0 });
    await expectNothingLeft(unchanged);
    expect((await engineRead.readEntity(world.engine, notes, changed)).values.changedOn).toBe(dayOf(1));
  });

  test('rejects a clock set by a caller and accepts the stored one', async () => {
    const one = note('Clock');
    const created = engineWrite.createEntity(world.engine, notes, { ...one, changedOn: '2099-01-01' });
    await expect(created).rejects.toMatchObject({ code: 'invalid-input', field: 'changedOn' });
    const { values } = await engineWrite.createEntity(world.engine, notes, one);
    await engineWrite.replaceEntity(world.engine, notes, one, { ...values, tag: 'new' });
    const replaced = engineWrite.replaceEntity(world.engine, notes, one, { ...values, changedOn: '2099-01-01' });
    await expect(replaced).rejects.toMatchObject({ code: 'invalid-input' });
  });

  test('gets a clock and an entry from a batch, and a batch without changes changes neither', async () => {
    const one = note('Batch');
    expect(await putAll(daysAgo(1), notes, [one])).toEqual(['created']);
    expect(await putAll(world.engine, notes, [one])).toEqual(['unchanged']);
    expect(await entriesOf(one)).toEqual([dayOf(1)]);
  });

  test('stays if it changes while a run deletes it', async () => {
    const set = async () => {
      const one = note('Race');
      await engineWrite.createEntity(daysAgo(3), notes, one);
      let isChanged = false;
      return {
        act: (through: Engine) => expire({ ...through, timing: QUICK }),
        interrupt: async () => {
          const changed = engineWrite.patchEntity(world.engine, notes, one, { tag: 'during' });
          isChanged = await changed.then(() => true).catch(() => false);
        },
        check: async (label: string) => {
          await world.settle();
          if (!isChanged) return expectNothingLeft(one);
          const { values } = await engineRead.readEntity(world.engine, notes, one);
          expect(values, label).toMatchObject({ tag: 'during', changedOn: dayOf(0) });
          return expect(await entriesOf(one)).toEqual([dayOf(0)]);
        },
      };
    };
    await tryInterruptions(world, set, { sides: ['before'], moreCallsThan: 5 });
  });

  test.each(['refused', 'reply lost', 'crash before', 'crash after'] as const)(
    'is deleted by the next run after any fault: %s',
    async (fault) => {
      const one = note(fault.replaceAll(' ', ''));
      await tryFaults(
        async ({ client }) => {
          await engineWrite.createEntity(daysAgo(3), notes, one);
          await expire(world.engineThrough(client, QUICK)).catch(() => undefined);
          await world.settle();
          expect((await expire()).failed).toBe(0);
          await expectNothingLeft(one);
        },
        { faults: [fault] },
      );
    },
  );
});

describe('a run', () => {
  test('takes one storage transaction if nothing is due, for any number of entities', async () => {
    await expire();
    for (let index = 0; index < 5; index += 1) await engineWrite.createEntity(world.engine, notes, note('Cheap'));
    const transactions = await costOf(() => expire());
    expect(transactions).toBe(1);
  });

  test('stops at its time limit, and the next run continues', async () => {
    // The limit is checked before each partition.
    const all = Array.from({ length: 3 }, (_, index) => note(`Slow${index}`));
    for (const one of all) await engineWrite.createEntity(daysAgo(4), notes, one);
    expect(await expireEntities(world.engine, notes, { until: 0 })).toMatchObject({ deleted: 0, failed: 0 });
    let calls = 0;
    // Each entity reads the clock once, so that the limit passes after some of them.
    const hurried = { ...world.engine, now: () => Date.now() + (calls++ < 4 ? 0 : DAY_MS / 100) };
    const first = await expireEntities(hurried, notes, { until: Date.now() + DAY_MS / 200 });
    expect(first.deleted).toBeLessThan(3);
    expect(first.deleted + (await expire()).deleted).toBe(3);
    for (const one of all) await expectNothingLeft(one);
  });

  test('two concurrent runs delete each entity once', { tags: ['slow'] }, async () => {
    const all = Array.from({ length: 6 }, () => note('Twice'));
    for (const one of all) await engineWrite.createEntity(daysAgo(3), notes, one);
    const runs = await Promise.all([expire(), expire()]);
    for (const one of all) await expectNothingLeft(one);
    expect(runs.reduce((sum, { deleted }) => sum + deleted, 0)).toBe(6);
  });

  test('deletes the entities of a partition together, unless they changed since', async () => {
    const all = Array.from({ length: 20 }, (_, index) => ({ team: 'T', memoId: `m${index}` }));
    for (const one of all) await engineWrite.createEntity(daysAgo(3), memos, one);
    const run = (engine = world.engine) => expireEntities(engine, memos, { until: Number.POSITIVE_INFINITY });
    const [changed = {}] = all;
    // After the entities have been read.
    const client = interruptedHttpClient(
      1 + all.length,
      () => engineWrite.patchEntity(world.engine, memos, changed, { words: 'w' }),
      'after',
    );
    expect(await run(world.engineThrough(client))).toMatchObject({ deleted: all.length - 1, failed: 0 });
    await world.settle();
    expect((await engineRead.readEntity(world.engine, memos, changed)).values).toMatchObject({
      words: 'w',
      changedOn: dayOf(0),
    });
    for (const one of all) await engineWrite.putEntity(daysAgo(3), memos, one, one);
    // The entries of a day are spread over several partitions.
    const partitions = new Set((await rowsOf(world.storage, 'memosexpiry')).map(({ partitionKey }) => partitionKey));
    const costs = await storageAccounts.measureCost(async (cost) => {
      expect(await run()).toMatchObject({ deleted: all.length, failed: 0 });
      const timer = cost.transactions;
      const message = await world.take('index-changes', 'memos');
      const before = cost.transactions;
      await engineConsume.consumeIntent({ engine: world.engine, entities: [memos], log }, message);
      return { timer, queue: cost.transactions - before };
    });
    // The timer: entries, entities; intent, transaction, message. The queue reads each tombstone and entry, deletes the entries of each
    // partition in a transaction, and the tombstones in one.
    expect(costs).toEqual({ timer: 1 + all.length + 3, queue: 2 * all.length + partitions.size + 1 + 2 });
    await world.settle();
    await engineWrite.createEntity(daysAgo(3), memos, { team: 'Alone', memoId: 'm' });
    // Entries, entity; intent, transaction; the entry and the tombstone; intent.
    expect(await costOf(run)).toBe(9);
    for (const table of ['memos', 'memosexpiry']) expect(await rowsOf(world.storage, table)).toEqual([]);
  });

  describe('whose entries and tombstones a message deletes together', () => {
    let counter = 0;
    /** Twelve memos, of which several have their entries in one partition, and the message of their delete. */
    const begin = async () => {
      counter += 1;
      const team = `team${counter}`;
      const all = Array.from({ length: 12 }, (_, index) => ({ team, memoId: `m${index}` }));
      await putAll(daysAgo(3), memos, all);
      await expireEntities(world.queued, memos, { until: Number.POSITIVE_INFINITY });
      const message = await world.take('index-changes', team);
      const consume = (engine: Engine) => engineConsume.consumeIntent({ engine, entities: [memos], log }, message);
      return { team, all, consume };
    };
    const rowsOfTeam = async (table: string, team: string) =>
      (await rowsOf(world.storage, table)).filter(
        (row) => JSON.stringify(row).includes(`${team}_`) || row.partitionKey === team,
      );

    test('leaves nothing behind after any fault', { tags: ['slow'] }, async () => {
      await tryFaults(
        async ({ client, timing, label }) => {
          const { team, consume } = await begin();
          await consume(world.engineThrough(client, timing)).catch(() => undefined);
          await consume(world.engine);
          await world.settle();
          for (const table of ['memos', 'memosexpiry']) expect(await rowsOfTeam(table, team), label).toEqual([]);
        },
        { what: 'entries and tombstones that are deleted together', moreCallsThan: 20 },
      );
    });

    test('keeps a memo that is created again at any call, and its entry', { tags: ['slow'] }, async () => {
      await tryInterruptions(
        world,
        async () => {
          const { team, all, consume } = await begin();
          const again = all.slice(0, 2);
          let at = 0;
          return {
            act: consume,
            interrupt: async () => {
              const one = again[at++];
              if (one) await engineWrite.createEntity(world.queued, memos, one);
            },
            async check(label) {
              await world.settle();
              const kept = again.slice(0, at).map(({ memoId }) => memoId);
              expect(
                (await rowsOfTeam('memos', team)).map(({ rowKey }) => rowKey),
                label,
              ).toEqual(kept);
              expect((await rowsOfTeam('memosexpiry', team)).map(({ SourceRow }) => SourceRow).sort(), label).toEqual(
                kept,
              );
            },
          };
        },
        { what: 'entries and tombstones that are deleted together, interrupted', size: 3 },
      );
    });
  });

  test('reads few entities of several rows before it deletes them, because they may be long', {
    tags: ['slow'],
  }, async () => {
    const all = Array.from({ length: 20 }, (_, index) => ({ team: 'T', reportId: `r${index}`, body: 'b' }));
    for (const one of all) await engineWrite.createEntity(daysAgo(3), reports, one);
    let held = 0;
    let most = 0;
    const { sendRequest } = faultyHttpClient();
    const client: HttpClient = {
      sendRequest(request) {
        if (request.url.includes('$batch')) held = 0;
        else if (request.method === 'GET' && request.url.includes('/reports()')) most = Math.max(most, ++held);
        return sendRequest(request);
      },
    };
    const until = Number.POSITIVE_INFINITY;
    const engine = world.engineThrough(client);
    expect(await expireEntities(engine, reports, { until })).toMatchObject({ deleted: all.length, failed: 0 });
    expect(most).toBe(8);
    await world.settle();
    for (const table of ['reports', 'reportsexpiry']) expect(await rowsOf(world.storage, table)).toEqual([]);
  });

  test('removes a stale entry and leaves the entity', async () => {
    const one = note('Stale');
    await engineWrite.createEntity(daysAgo(1), notes, one);
    const entry = await entryOf(one);
    const stale = { ...entry, partitionKey: `2020-01-01${entry.partitionKey.slice(10)}` };
    await world.storage.table('notesexpiry').createEntity(stale);
    expect(await expire()).toMatchObject({ deleted: 0, failed: 0 });
    expect(await entriesOf(one)).toEqual([dayOf(1)]);
  });
});

describe('the clock of an entity that only the engine changes', () => {
  const verify = { position: undefined, top: 1_000, patience: 0, repair: true } as const;
  const upkeep: Record<string, { act: (club: string) => Promise<unknown>; shows: Values }> = {
    'when the source of its copies changes': {
      act: (club) => engineWrite.patchEntity(world.engine, leaders, { club, leaderId: 'l' }, { name: 'Bea' }),
      shows: { leaderName: 'Bea' },
    },
    'when the source of its copies is deleted': {
      act: (club) => engineWrite.deleteEntity(world.engine, leaders, { club, leaderId: 'l' }),
      shows: { leaderName: undefined },
    },
    'when its count changes': {
      act: (club) => engineWrite.createEntity(world.engine, players, { club, playerId: '2' }),
      shows: { players: 2 },
    },
    'when its copies are repaired': {
      act: async (club) => {
        const row = { partitionKey: club, rowKey: 'leader_l', name: 'Cid' };
        await world.storage.table('clubs').updateEntity(row, 'Merge');
        await operationsCheck.verifyPage(world.engine, clubs, verify);
      },
      shows: { leaderName: 'Cid' },
    },
    'when its keys are wrapped anew': {
      act: async () => {
        await storageKeys.rotateLocalKey(world.keyFile);
        expect((await operationsModel.rewrapEntities(world.engine, clubs, { top: 1_000 })).rewrapped).toBeGreaterThan(
          0,
        );
      },
      shows: { leaderName: 'Ann' },
    },
  };
  test.each(Object.entries(upkeep))('is kept with its entry %s', async (name, { act, shows }) => {
    const club = `Kept ${name}`;
    const engine = daysAgo(2);
    await engineWrite.createEntity(engine, leaders, { club, leaderId: 'l', name: 'Ann' });
    // The count has a placeholder before its entity exists, and a placeholder has no clock.
    await engineWrite.createEntity(engine, players, { club, playerId: '1' });
    await engineWrite.createEntity(engine, clubs, { club, leaderId: 'l', secret: 's' });
    await act(club);
    const { values } = await engineRead.readEntity(world.engine, clubs, { club });
    expect({ leaderName: undefined, ...values }).toMatchObject({ ...shows, changedOn: dayOf(2) });
    const rows = await rowsOf(world.storage, 'clubsexpiry');
    const entries = rows.filter(({ rowKey }) => String(rowKey).startsWith(`${club}_`));
    expect(entries.map(({ partitionKey }) => String(partitionKey).slice(0, 10))).toEqual([dayOf(2)]);
    const tomorrow = daysAgo(-1);
    await expireEntities(tomorrow, clubs, { until: Number.POSITIVE_INFINITY });
    await expect(engineRead.readEntity(world.engine, clubs, { club })).rejects.toMatchObject({ code: 'not-found' });
  });

  test('is set by a repair if the row has none, so that the entity expires', async () => {
    const club = 'Without';
    await engineWrite.createEntity(world.engine, leaders, { club, leaderId: 'l', name: 'Ann' });
    await engineWrite.createEntity(world.engine, clubs, { club, leaderId: 'l', secret: 's' });
    const table = world.storage.table('clubs');
    const { changedOn: _, ...row } = await table.getEntity<Record<string, unknown>>(club, 'club');
    await table.updateEntity({ ...row, leaderName: 'Old', partitionKey: club, rowKey: 'club' }, 'Replace');
    await operationsCheck.verifyPage(world.engine, clubs, verify);
    const { values } = await engineRead.readEntity(world.engine, clubs, { club });
    expect(values).toMatchObject({ leaderName: 'Ann', changedOn: dayOf(0) });
  });
});

describe('expiry with other patterns', () => {
  test('an archived entity does not expire, and a moved one has one entry', async () => {
    const [archived, moved] = [note('Here'), note('Here')];
    for (const one of [archived, moved]) await engineWrite.createEntity(daysAgo(3), notes, one);
    await engineTransfer.requestArchive(world.engine, notes, archived);
    await engineTransfer.requestMove(world.engine, notes, moved, { board: 'There' });
    await world.settle();
    expect(await expire()).toMatchObject({ deleted: 0, failed: 0 });
    expect((await engineRead.readEntity(world.engine, notes.archive as Entity, archived)).values.noteId).toBe(
      archived.noteId,
    );
    expect(await entriesOf(archived)).toEqual([]);
    expect(await entriesOf(moved)).toEqual([dayOf(0)]);
  });

  test('the consistency check finds and restores a missing entry', async () => {
    const one = note('Lost');
    await engineWrite.createEntity(world.engine, notes, one);
    const { partitionKey, rowKey } = await entryOf(one);
    await world.storage.table('notesexpiry').deleteEntity(partitionKey, rowKey);
    const options = { position: undefined, top: 1_000, patience: 0 };
    const found = await operationsCheck.verifyPage(world.engine, notes, { ...options, repair: true });
    expect(found.findings).toContainEqual(expect.objectContaining({ kind: 'missing', of: 'expiry', repaired: true }));
    expect(await entriesOf(one)).toEqual([dayOf(0)]);
    expect((await operationsCheck.verifyPage(world.engine, notes, { ...options, repair: false })).findings).toEqual([]);
  });

  test('keeps an entry that only the queue settles', async () => {
    const one = note('Queued');
    const queued = { ...world.queued, now: () => Date.now() - 3 * DAY_MS };
    await engineWrite.createEntity(queued, notes, one);
    await world.settle();
    expect(await entriesOf(one)).toEqual([dayOf(3)]);
    await expireEntities(world.queued, notes, { until: Number.POSITIVE_INFINITY });
    await expectNothingLeft(one);
  });
});

testRejections(
  (
    [
      ['a fraction of a day', { days: 0.5, clock: 'day' }, /expiry\.days is 0\.5/],
      ['zero days', { days: 0, clock: 'day' }, /expiry\.days is 0/],
      ['a clock that is not a date', { days: 1, clock: 'name' }, /is not a date/],
      ['a clock in the key', { days: 1, clock: 'id' }, /is set by the engine \(expiry\)/, 2],
      [
        'more than a hundred years',
        { days: 36_501, clock: 'day' },
        /expiry\.days is 36501\. Use a whole number of days from 1/,
      ],
    ] as const
  ).map(([title, expiry, sentence, errors]) => [`an expiry with ${title}`, { expiry }, sentence, errors]),
);
