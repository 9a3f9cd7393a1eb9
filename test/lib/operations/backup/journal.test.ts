// @module-tag long

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openBackedUp as openStill } from '../../../backed-up.ts';
import { apiCalls } from '../../../kit/api.ts';
import { engineWrite } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageJournal } from '../../../kit/storage.ts';
import {
  type BackedUp,
  entityNamed,
  laterThanNow,
  model,
  openBackedUp,
  passTime,
  restoredRows,
  storedRows,
  useStillClocks,
  writeEmptySnapshot,
} from './backup-app.ts';

useStillClocks();

const caller = { subject: 'ann', roles: ['clerk'], claims: {} };

const id = fc.constantFrom('1', '2', '3');
const pad = fc.constantFrom('p', 'q');
const text = fc.constantFrom('x', 'y', 'z');
/** The functions of a walk must not throw for what storage refuses, such as a second create. */
const step = fc.oneof(
  fc.record({ do: fc.constant('create' as const), pad, id, text }),
  fc.record({ do: fc.constant('put' as const), pad, id, text }),
  fc.record({ do: fc.constant('patch' as const), pad, id, text }),
  fc.record({ do: fc.constant('delete' as const), pad, id }),
  fc.record({ do: fc.constant('batch' as const), pad, text }),
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

async function write({ store }: BackedUp, { do: action, ...step }: Step): Promise<void> {
  const key = { pad: step.pad, noteId: 'id' in step ? step.id : '' };
  const person = { team: step.pad, personId: 'id' in step ? step.id : '' };
  const given = 'text' in step ? step.text : 'x';
  const values = { email: `${given}${person.team}${person.personId}`, town: given, story: given.repeat(70_000) };
  const calls = {
    create: () => [
      store.notes.create({ ...key, text: given, weight: 5 }),
      store.people.create({ ...person, ...values }),
    ],
    put: () => [store.notes.put(key, { text: given }), store.people.put(person, values)],
    patch: () => [store.notes.update(key, { text: given }), store.people.update(person, { town: given })],
    delete: () => [store.notes.delete(key), store.people.delete(person)],
    batch: () => [
      store.notes.batch([
        { delete: { pad: step.pad, noteId: '1' } },
        { put: { pad: step.pad, noteId: '2', text: given } },
        { delete: { pad: step.pad, noteId: '3' } },
      ]),
    ],
  } as const;
  await Promise.allSettled(calls[action]());
}

describe('the journal of a backup', () => {
  test('has every row as it is stored after any walk of writes, and as it was before', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14 }), async (steps) => {
        const app = await openBackedUp();
        await writeEmptySnapshot(app);
        const cuts: { readonly at: string; readonly stored: Awaited<ReturnType<typeof storedRows>> }[] = [];
        for (const one of steps) {
          await write(app, one);
          cuts.push({ at: laterThanNow(), stored: await storedRows(app) });
          passTime();
        }
        for (const { at, stored } of cuts) expect(await restoredRows(app, at)).toEqual(stored);
      }),
      { numRuns: 12 },
    );
  });

  test('has writes that are concurrent, each once', async () => {
    const app = await openBackedUp();
    await writeEmptySnapshot(app);
    const keys = Array.from({ length: 40 }, (_, index) => ({ pad: `p${index % 3}`, noteId: String(index % 7) }));
    await Promise.allSettled(
      keys.flatMap((key, index) => [
        app.store.notes.put(key, { text: String(index) }),
        app.store.notes.delete(key),
        app.store.notes.update(key, { text: 'patched' }),
      ]),
    );
    expect(await restoredRows(app, laterThanNow())).toEqual(await storedRows(app));
    const lines = await Array.fromAsync(
      operationsBackup.readJournal(app.source, {
        from: storageJournal.toTime(Date.now() - 60_000) ?? '',
        to: laterThanNow(),
      }),
    );
    expect(new Set(lines.map((line) => line.id)).size).toBe(lines.length);
  });

  test('deletes in a batch only what it has read, so that no version of another writer comes after the delete', async () => {
    const app = await openBackedUp();
    await writeEmptySnapshot(app);
    const keys = ['a', 'b'].map((noteId) => ({ pad: 'p', noteId }));
    for (const key of keys) await app.store.notes.put(key, { text: 'first' });
    let isChanged = false;
    app.memory.intercept = async (request, send) => {
      if (!isChanged && String(request.body).includes('DELETE http')) {
        isChanged = true;
        await app.store.notes.update({ pad: 'p', noteId: 'a' }, { text: 'later' });
      }
      return send();
    };
    await app.store.notes.batch(keys.map((key) => ({ delete: key })));
    app.memory.intercept = undefined;
    expect(isChanged).toBe(true);
    expect(await storedRows(app)).toEqual([]);
    expect(await restoredRows(app, laterThanNow())).toEqual([]);
  });

  test('places a delete after the version that it deletes, and at the time of the other rows of its transaction', async () => {
    const entries: Internal['JournalEntry'][] = [];
    const journal: Internal['RowJournal'] = {
      hasTable: () => true,
      append: async (entry) => void entries.push(entry),
      catchUp: async () => undefined,
    };
    const etagAt = (time: string) => `W/"datetime'${encodeURIComponent(time)}'"`;
    const where = { table: 'notes', partition: 'p' };
    const etag = etagAt('2026-11-29T12:00:00.1239999Z');
    await storageJournal.journalRows(
      journal,
      { ...where, actions: [{ kind: 'delete', row: 'a', etag }] },
      { etags: new Map() },
    );
    const both = [
      { kind: 'delete', row: 'a', etag },
      { kind: 'insert', row: 'b', properties: { text: 'x', big: 2n ** 60n, half: 0.5 } },
    ];
    // The service leaves out zeros at the end.
    const etags = new Map([['b', etagAt('2026-11-29T12:00:07.5Z')]]);
    await storageJournal.journalRows(journal, { ...where, actions: both }, { etags });
    expect(entries).toEqual([
      {
        ...where,
        time: '2026-11-29T12:00:00.1240000Z',
        rows: [{ row: 'a', time: '2026-11-29T12:00:00.1240000Z', deleted: true }],
      },
      {
        ...where,
        time: '2026-11-29T12:00:07.5000000Z',
        rows: [
          { row: 'a', time: '2026-11-29T12:00:07.5000000Z', deleted: true },
          {
            row: 'b',
            time: '2026-11-29T12:00:07.5000000Z',
            properties: {
              text: 'x',
              big: { type: 'Int64', value: '1152921504606846976' },
              half: { type: 'Double', value: '0.5' },
            },
          },
        ],
      },
    ]);
  });

  test('counts a delete from the second of its response on, however long its request took', async () => {
    const entries: Internal['JournalEntry'][] = [];
    const journal: Internal['RowJournal'] = {
      hasTable: () => true,
      append: async (entry) => void entries.push(entry),
      catchUp: async () => undefined,
    };
    const date = 'Sun, 29 Nov 2026 12:00:25 GMT';
    const attempt = { account: 'http://first', sentAt: 0, receivedAt: 9_040, date, latestMs: Date.parse(date) };
    const etag = `W/"datetime'2026-11-29T12%3A00%3A00.5Z'"`;
    const actions = [{ kind: 'delete', row: 'a', etag }];
    await storageJournal.journalRows(
      journal,
      { table: 'notes', partition: 'p', actions },
      { etags: new Map(), attempt },
    );
    const [line] = entries;
    // A cut from before has the row, which others could read until then.
    expect(line?.time).toBe('2026-11-29T12:00:25.0000000Z');
    expect(line).toMatchObject({ rows: [{ row: 'a', time: '2026-11-29T12:00:00.5000001Z' }] });
  });

  test('dates a row that was absent before the read, also if a second begins until its response', async () => {
    const entries: unknown[] = [];
    const journal = {
      hasTable: () => true,
      append: async (entry: unknown) => void entries.push(entry),
      catchUp: async () => undefined,
    };
    const date = 'Sun, 29 Nov 2026 12:00:05 GMT';
    const attempt = { account: 'http://first', sentAt: 0, receivedAt: 40, date, latestMs: Date.parse(date) };
    await storageJournal.journalFound(journal, { table: 'notes', partition: 'p' }, [{ row: 'a', attempt }]);
    // The row may have been created 20 ms before the second, after the read.
    const time = '2026-11-29T12:00:04.9600000Z';
    expect(entries).toEqual([{ table: 'notes', partition: 'p', time, rows: [{ row: 'a', time, deleted: true }] }]);
  });

  test('gets a transaction whole from the queue if its process died before the append', async () => {
    const app = await openStill(model);
    await app.snapshot();
    const from = app.cut();
    const dying = {
      ...app.engine,
      storage: {
        ...app.storage,
        journal: { ...app.storage.journal, append: () => Promise.reject(new Error('Dead.')) },
      },
    } as typeof app.engine;
    const creates = ['1', '2'].map((personId) => ({
      create: { team: 'p', personId, email: `${personId}@x`, town: 'Bern' },
    }));
    await expect(engineWrite.writeBatch(dying, entityNamed('people'), creates)).rejects.toThrow('Dead.');
    await app.settle();
    const source = { backup: app.backup, storage: app.storage };
    const span = { from, to: app.cut() };
    const [line, ...more] = await Array.fromAsync(operationsBackup.readJournal(source, span));
    if (!line || !('rows' in line)) return expect.fail();
    const times = line.rows.map(({ time }) => time);
    expect([more, new Set(times).size, line.time]).toEqual([[], 2, times.toSorted().at(-1)]);
    for (const [at, rows] of [
      [times.toSorted()[0] ?? '', 0],
      [line.time, 2],
    ] as const)
      expect(
        await Array.fromAsync((await operationsBackup.readState(source, at, { table: 'people' })).rows),
      ).toHaveLength(rows);
  });

  test('acknowledges no change before the backup has it', async () => {
    const app = await openBackedUp();
    app.backupMemory.intercept = async () => {
      throw Object.assign(new Error('connect ECONNREFUSED'), { name: 'RestError', code: 'ECONNREFUSED' });
    };
    app.memory.intercept = async (request, send) => {
      if (new URL(request.url).pathname.includes('/backup/')) throw new Error('The account is away.');
      return send();
    };
    const key = { pad: 'p', noteId: 'a' };
    await expect(app.store.notes.put(key, { text: 'x' })).rejects.toThrow();
    app.backupMemory.intercept = undefined;
    app.memory.intercept = undefined;
    await writeEmptySnapshot(app);
    await app.store.notes.put({ pad: 'p', noteId: 'b' }, { text: 'y' });
    expect(await restoredRows(app, laterThanNow())).toEqual(await storedRows(app));
  });
});

describe('the past', () => {
  const read = <Input, Output>(
    app: BackedUp,
    operation: Parameters<typeof apiCalls.perform<never, Input, Output, Input>>[0],
    input: Input,
  ) =>
    apiCalls.perform(
      operation,
      { engine: app.engine, caller, record: (write: () => Promise<unknown>) => write() } as never,
      () => input,
    );

  test('is read by key and by range, with texts of blobs, under the rules of now', async () => {
    const app = await openBackedUp();
    await writeEmptySnapshot(app);
    const story = 's'.repeat(100_000);
    const person = { team: 'p', personId: '1', email: 'a@x', town: 'x', story };
    await app.store.people.create(person);
    await app.store.people.create({ ...person, personId: '2', email: 'b@x' });
    passTime();
    const at = new Date().toISOString();
    passTime();
    await app.store.people.delete({ team: 'p', personId: '1' });
    await app.store.people.update({ team: 'p', personId: '2' }, { town: 'y' });
    const entity = entityNamed('people');
    const key = { team: 'p', personId: '1' };
    const { output } = await read(app, apiCalls.getEntity(entity), { key, at });
    expect(output.values).toEqual(person);
    const list = await read(app, apiCalls.listRange(entity), { partition: { team: 'p' }, top: 10, at });
    expect(list.output.items.map(({ personId, town }) => [personId, town])).toEqual([
      ['1', 'x'],
      ['2', 'x'],
    ]);
    await expect(read(app, apiCalls.getEntity(entity), { key })).rejects.toThrow('not found');
    const before = new Date(Date.now() - 3_600_000).toISOString();
    await expect(read(app, apiCalls.getEntity(entity), { key, at: before })).rejects.toThrow(
      'The backup has nothing of',
    );
    const later = new Date(Date.now() + 3_600_000).toISOString();
    await expect(read(app, apiCalls.getEntity(entity), { key, at: later })).rejects.toThrow('"at" is in the future.');
  });
});
