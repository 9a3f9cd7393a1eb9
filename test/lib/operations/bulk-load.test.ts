import { setImmediate } from 'node:timers/promises';
import { RestError } from '@azure/core-rest-pipeline';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  RowkeyError,
  total,
  type Values,
} from '../../../lib/index.ts';
import { type BulkLoadOptions, bulkLoad, canBulkLoad } from '../../../lib/operations/bulk-load.ts';
import { type BackedUp, comparableRows, openBackedUp } from '../../backed-up.ts';
import { INPUTS } from '../../doors/inputs.ts';
import { model as doors } from '../../doors/model.ts';
import { IS_EVERY_CALL } from '../../fault-driver.ts';
import { customers, model as fixtures } from '../../fixtures/model.ts';
import { model as relations } from '../../fixtures/relations.ts';
import { SAMPLES } from '../../fixtures/samples.ts';
import { baseValues } from '../../kit/base.ts';
import { type Entity, modelParts } from '../../kit/define.ts';
import { type Engine, engineCore, engineRead, engineWrite } from '../../kit/engine.ts';
import { operationsBackup, operationsCheck, operationsModel, operationsMove } from '../../kit/operations.ts';
import { type Account, storageAccounts, storageRows, storageSlots, storageTables } from '../../kit/storage.ts';
import { PATIENCE_MS } from '../../patience.ts';
import { samplePoints, sampleRuns } from '../../points.ts';
import { SPELLED_NAMES } from '../../spelled-names.ts';
import { createAccounts, type Several } from '../storage/several-accounts.ts';
import { QUICK } from './storage-to-move.ts';

const { members, teams } = relations.entities as never as Record<'members' | 'teams', Entity>;

async function* each(rows: readonly Values[]) {
  yield* rows;
}

async function load(app: Pick<BackedUp, 'engine'>, entity: Entity, rows: readonly Values[], options?: BulkLoadOptions) {
  const rejections: { position: number; code: string }[] = [];
  const onRejected: BulkLoadOptions['onRejected'] = ({ position, error: { code } }) =>
    rejections.push({ position, code });
  return { ...(await bulkLoad(app.engine, entity, each(rows), { windowRows: 7, onRejected, ...options })), rejections };
}

/** Creates an entity from each row, as the store does. Returns the errors, by the position of their row. */
async function createEach({ engine }: Pick<BackedUp, 'engine'>, entity: Entity, rows: readonly Values[]) {
  const errors: [number, string][] = [];
  for (const [position, row] of rows.entries())
    await engineWrite.createEntity(engine, entity, row).catch((error: unknown) => {
      if (!(error instanceof RowkeyError)) throw error;
      errors.push([position, error.code]);
    });
  return errors;
}

const tablesOf = (app: Pick<BackedUp, 'storage'>) => comparableRows(app, fixtures);

async function readWhole(engine: BackedUp['engine'], entity: Entity, row: Values): Promise<Values> {
  const select = Object.keys(entity.columns);
  const { values } = await engineRead.readEntity(engine, entity, row, { select });
  return engineWrite.toPlain(engine, entity, values);
}

const codesOf = ({ rejections }: Awaited<ReturnType<typeof load>>) =>
  rejections.map(({ position, code }) => [position, code]).sort((one, other) => Number(one[0]) - Number(other[0]));

async function findingsIn({ engine }: Pick<BackedUp, 'engine'>, entities: readonly Entity[]) {
  const pages = entities
    .filter(operationsCheck.canVerify)
    .map((entity) => operationsCheck.verifyPage(engine, entity, { top: 1_000, repair: false, patience: 0 }));
  return (await Promise.all(pages)).flatMap(({ findings }) => findings);
}

describe('the tables after a load are those after creates', () => {
  const id = fc.constantFrom('0', '1', '2', '3', '4', '5');
  const member = fc.record(
    {
      team: fc.constantFrom('0', '1', '2'),
      memberId: id,
      email: id.map((name) => `${name}@b.de`),
      mentor: id,
      level: fc.integer({ min: 0, max: 4 }),
    },
    { requiredKeys: ['team', 'memberId'] },
  );
  const team = fc.record(
    { team: fc.constantFrom('0', '1', '2'), title: fc.constantFrom('a', 'b') },
    { requiredKeys: ['team'] },
  );
  test('with references, copies of fields, counts, lists, totals, unique values, and rows that are not valid', {
    tags: ['slow'],
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(team, { maxLength: 4 }), fc.array(member, { maxLength: 20 }), async (first, all) => {
        // A row with the key or the value of an earlier one is written after the others, so that it may refer to later rows.
        const isUnique = (['memberId', 'email'] as const).every((field) => {
          const values = all.flatMap((one) => one[field] ?? []);
          return new Set(values).size === values.length;
        });
        const second = isUnique ? all : all.map(({ mentor: _, ...one }) => one);
        const [created, loaded] = [await openBackedUp(relations), await openBackedUp(relations)];
        for (const [entity, rows] of [
          [teams, first],
          [members, second],
        ] as const) {
          const errors = await createEach(created, entity, rows);
          await created.settle();
          const report = await load(loaded, entity, rows);
          expect(codesOf(report)).toEqual(errors);
          expect(report).toMatchObject({ read: rows.length, created: rows.length - errors.length, existing: 0 });
          await loaded.settle();
        }
        expect(await tablesOf(loaded)).toEqual(await tablesOf(created));
        expect(await findingsIn(loaded, [teams, members])).toEqual([]);
      }),
      sampleRuns(200),
    );
  });

  test('also if a row refers to one that has the key of a row which is rejected', async () => {
    const rows = [
      { team: '0', memberId: '3', mentor: '0' },
      { team: '0', memberId: '3' },
      { team: '0', memberId: '0', mentor: '3' },
    ];
    const [created, loaded] = [await openBackedUp(relations), await openBackedUp(relations)];
    const errors = await createEach(created, members, rows);
    expect(errors).toEqual([[0, 'invalid-input']]);
    expect(codesOf(await load(loaded, members, rows))).toEqual(errors);
    for (const app of [created, loaded]) await app.settle();
    expect(await tablesOf(loaded)).toEqual(await tablesOf(created));
  });

  /** Prerequisites of the samples, in the order of creation. */
  const partsOf = ({ childOf, references }: Entity) => [
    ...(childOf ? [childOf] : []),
    ...Object.values(references).flatMap(({ to }) => (to.name === customers.name ? [to] : [])),
  ];
  const ROWS = 3;
  const loadable = fixtures.list.filter((entity) => canBulkLoad(entity) && SAMPLES[entity.name]);

  test.each(loadable.map(({ name }) => name))('for %s with a value in each field', { tags: ['slow'] }, async (name) => {
    const entity = fixtures.list.find((one) => one.name === name) as Entity;
    const apps = [await openBackedUp(fixtures), await openBackedUp(fixtures)] as const;
    const rows = Array.from({ length: ROWS }, (_, n) =>
      baseValues.omit(SAMPLES[name]?.(n + 1) ?? {}, entity.decidedFields),
    );
    for (const app of apps)
      for (const other of partsOf(entity))
        for (const [n, row] of rows.entries())
          await createEach(app, other, [{ ...SAMPLES[other.name]?.(n + 1), ...baseValues.pick(row, other.keyFields) }]);
    const [created, loaded] = apps;
    expect(await createEach(created, entity, rows)).toEqual([]);
    loaded.memory.intercept = async (request, send) => {
      for (const field of entity.encrypted)
        for (const row of rows) expect(String(request.body)).not.toContain(row[field]);
      return send();
    };
    expect(await load(loaded, entity, rows)).toMatchObject({ created: ROWS, rejections: [] });
    for (const app of apps) await app.settle();
    expect(await tablesOf(loaded)).toEqual(await tablesOf(created));
    expect(await findingsIn(loaded, [entity])).toEqual([]);
    const hasKeys = rows.every((row) => entity.keyFields.every((field) => row[field] !== undefined));
    // A sample lacks a key that follows from its other fields.
    for (const row of hasKeys ? rows : []) {
      const read = await Promise.all(apps.map(({ engine }) => readWhole(engine, entity, row)));
      expect(read[1]).toEqual(read[0]);
    }
  });
});

/** So long a run that was killed keeps others from beginning, and a little more. */
const HELD_MS = 61_000;

test('stores and rejects the same values as creates, whatever they spell', { tags: ['slow'] }, async () => {
  const [things] = doors.list as unknown as [Entity];
  const spelled = (['room', 'id', 'handle', 'label'] as const).flatMap((field) =>
    SPELLED_NAMES.map((value) => ({ field, value })),
  );
  const given = INPUTS.flatMap(({ field, text = '' }) => {
    // A file has no such line.
    if (text === '' || /^\[{1000}/.test(text)) return [];
    return { field, value: JSON.parse(text) };
  });
  const rows = [...given, ...spelled].map(({ field, value }, at) => ({
    ...{ room: `r${at % 7}`, id: `i${at}`, handle: `h${at}`, label: `l${at % 5}` },
    [field]: value,
  }));
  const [created, loaded] = [await openBackedUp(doors), await openBackedUp(doors)];
  const errors = await createEach(created, things, rows);
  expect(codesOf(await load(loaded, things, rows, { windowRows: 100 }))).toEqual(errors);
  for (const app of [created, loaded]) await app.settle();
  expect(await comparableRows(loaded, doors)).toEqual(await comparableRows(created, doors));
  expect(await findingsIn(loaded, [things])).toEqual([]);
});

describe('a load that dies', () => {
  const rows = ['0', '1', '2', '3', '4'].map((memberId) => ({
    team: String(Number(memberId) % 2),
    memberId,
    email: `${memberId === '4' ? '0' : memberId}@b.de`,
    level: 2,
  }));

  async function openTeams() {
    const app = await openBackedUp(relations);
    await createEach(app, teams, [{ team: '0', title: 'a' }]);
    await app.settle();
    return app;
  }

  test.each(['before', 'after'] as const)(
    'right %s any call is completed by a second one',
    { tags: ['slow'] },
    async (side) => {
      const reference = await openTeams();
      let calls = 0;
      reference.memory.intercept = (_, send) => {
        calls += 1;
        return send();
      };
      const report = await load(reference, members, rows, { windowRows: 3 });
      expect(codesOf(report)).toEqual([[4, 'duplicate-value']]);
      reference.memory.intercept = undefined;
      await reference.settle();
      const wanted = await tablesOf(reference);
      expect(calls).toBeGreaterThan(10);
      for (const at of samplePoints(calls, IS_EVERY_CALL ? calls : 10)) {
        const app = await openTeams();
        let call = 0;
        app.memory.intercept = async (_, send) => {
          call += 1;
          if (call > at || (call === at && side === 'before')) throw new Error('This process is dead.');
          const response = await send();
          if (call === at) throw new Error('This process is dead.');
          return response;
        };
        await expect(load(app, members, rows, { windowRows: 3 }), `call ${at}`).rejects.toThrow();
        app.memory.intercept = undefined;
        app.advance(HELD_MS);
        const again = load(app, members, rows, { windowRows: 3 });
        // Only its last call says that a load is done.
        if (at === calls && side === 'after') await expect(again).rejects.toThrow('has rows of members');
        else {
          const { created, existing, ...report } = await again;
          expect(report, `call ${at}`).toMatchObject({ rejections: [{ position: 4, code: 'duplicate-value' }] });
          expect(created + existing, `call ${at}`).toBe(4);
        }
        await app.settle();
        expect(await tablesOf(app), `call ${at}`).toEqual(wanted);
        expect(await findingsIn(app, [teams, members]), `call ${at}`).toEqual([]);
      }
    },
  );
});

test('accepts references to later rows only if it leaves references to the consistency check', async () => {
  const rows = [
    { team: '0', memberId: '1', mentor: '2' },
    { team: '0', memberId: '2', mentor: '3' },
    // It has the key of another row, so it is created by itself.
    { team: '0', memberId: '2', mentor: '4' },
    { team: '1', memberId: '2', mentor: '5' },
  ];
  const [checking, leaving] = [await openBackedUp(relations), await openBackedUp(relations)];
  expect(codesOf(await load(checking, members, rows))).toEqual(rows.map((_, position) => [position, 'invalid-input']));
  const report = await load(leaving, members, rows, { leavesReferences: true });
  expect(codesOf(report)).toEqual([
    [2, 'duplicate-key'],
    [3, 'duplicate-value'],
  ]);
  await leaving.settle();
  expect(await findingsIn(leaving, [members])).toMatchObject([{ kind: 'dangling', of: 'mentor', row: 'member_2' }]);
});

test('refuses an entity that has rows, also those of a load that is done', async () => {
  const app = await openBackedUp(relations);
  await load(app, teams, [{ team: '0' }]);
  await expect(load(app, teams, [{ team: '1' }])).rejects.toThrow('has rows of teams');
  await load(app, members, []);
});

test('refuses series, archives, and what is in tables of periods or of another program', async () => {
  const refused = modelParts.withArchives(fixtures.list).filter((entity) => !canBulkLoad(entity));
  expect(refused.some(({ period }) => period)).toBe(true);
  expect(refused.some(({ series }) => series)).toBe(true);
  expect(refused.some(({ isArchive }) => isArchive)).toBe(true);
  const foreign = { ...teams, existing: {} } as Entity;
  await expect(load(await openBackedUp(relations), foreign, [])).rejects.toThrow('of another program');
});

const declaredShops = defineEntity('shops', {
  schema: z.object({ city: z.string(), id: z.string() }),
  table: 'shops',
  key: { partition: '{city}', row: '{id}' },
  indexes: {
    id: interPartitionIndex({ table: 'shopsbyid', partition: 'all', row: '{id}', unique: true }),
    queued: interPartitionIndex({ table: 'shopsqueued', partition: 'all', row: '{id}_{city}', settle: 'queue' }),
    list: indexEntity({ table: 'shoplists', partition: 'all', row: 'shops', holds: '{city}/{id}' }),
  },
  totals: { count: total({ table: 'shopcounts', partition: 'all', row: '{city}' }) },
  access: { read: ['reader'], write: ['reader'] },
});
const shopModel = defineModel({ roles: ['reader'], operatorRole: 'reader', entities: [declaredShops] });
const [shops] = shopModel.list as unknown as [Entity];
const MANY = 300;
const shopRows = Array.from({ length: MANY }, (_, index) => ({ city: `city ${index % 3}`, id: String(index) }));

/** The requests of an account from now on. */
function countRequests(
  { memory }: Pick<BackedUp, 'memory'>,
  isCounted = (_: { readonly url: string }) => true,
): () => number {
  let count = 0;
  memory.intercept = (request, send) => {
    if (isCounted(request)) count += 1;
    return send();
  };
  return () => count;
}

test('sends no message and writes transactions of many rows', { tags: ['slow'] }, async () => {
  const app = await openBackedUp(shopModel);
  const messages = countRequests(app, ({ url }) => url.includes('/messages'));
  const { transactions, created } = await bulkLoad(app.engine, shops, each(shopRows));
  expect(created).toBe(MANY);
  expect(messages()).toBe(0);
  expect(transactions).toBeLessThan(MANY / 5);
  expect(await findingsIn(app, [shops])).toEqual([]);
});

test('a restore writes the entries of many entities in transactions of many rows', { tags: ['slow'] }, async () => {
  const app = await openBackedUp(shopModel);
  await bulkLoad(app.engine, shops, each(shopRows));
  await app.snapshot();
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  const [memory] = target.memories;
  let isBuilding = false;
  let requests = 0;
  if (memory)
    memory.intercept = (_, send) => {
      if (isBuilding) requests += 1;
      return send();
    };
  const { findings } = await app.restore(target, app.cut(), {
    // The page of all entities ends the building.
    onProgress: ({ doing }) => {
      isBuilding = doing === 'settling';
    },
  });
  expect(findings).toEqual([]);
  expect(await tablesOf(target)).toEqual(await tablesOf(app));
  expect(requests).toBeLessThan(MANY / 5);
  expect(requests).toBeGreaterThan(0);
});

test('leaves the rows of another program in a table of an index', async () => {
  const app = await openBackedUp(shopModel);
  const [table, partition] = ['shopsqueued', 'all'];
  const rows = ['1_city 1', 'of another'].map((row) => ({ row, properties: { Name: 'of another program' } }));
  await storageRows.submit(app.storage, {
    table,
    partition,
    actions: rows.map((row) => ({ kind: 'insert', ...row }) as const),
  });
  expect(await load(app, shops, shopRows.slice(0, 3))).toMatchObject({ created: 3, rejections: [] });
  const { rows: stored } = await storageRows.readRange(app.storage, { table, partition, from: '' });
  expect(stored.filter(({ properties }) => properties.Name).map(({ row }) => row)).toEqual(['1_city 1', 'of another']);
  expect((await findingsIn(app, [shops])).map(({ kind, row }) => [kind, row])).toEqual([['conflict', '1_city 1']]);
});

const few = shopRows.slice(0, 6);
const isOfShops = ({ url, body }: { readonly url: string; readonly body?: unknown }) =>
  url.includes('$batch') && /\/shops(\(|\s)/.test(String(body));
const MARK = { table: storageSlots.SYSTEM_TABLE, partition: 'bulk-load', row: 'shops' };

/** The engine of another process, whose journal has nothing to append yet. */
function restarted({ engine, storage, backup }: BackedUp): Engine {
  const journal = operationsBackup.createJournal({ backup, storage }, shopModel.list);
  return { ...engine, storage: { ...storage, journal } };
}

/** Runs `act` right before the first transaction on entities of the load. */
function inTheMiddle({ memory }: Pick<BackedUp, 'memory'>, act: () => Promise<unknown>): void {
  let isPast = false;
  memory.intercept = async (request, send) => {
    if (!isPast && isOfShops(request)) {
      isPast = true;
      await act();
    }
    return send();
  };
}

const codeOf = (loading: Promise<unknown>) =>
  loading.then(
    () => 'done',
    (error: unknown) => (error instanceof RowkeyError ? error.code : String(error)),
  );

describe('a second run', () => {
  test('is refused while the first one works, and until a minute after it was killed', async () => {
    const app = await openBackedUp(shopModel);
    const said: string[] = [];
    inTheMiddle(app, async () => {
      app.advance(HELD_MS - 2_000);
      said.push(await codeOf(load(app, shops, few)));
      throw new Error('This process is dead.');
    });
    await expect(load(app, shops, few)).rejects.toThrow('dead');
    // A process that has died cannot say so.
    await storageRows.tryAction(app.storage, MARK, {
      ...{ kind: 'merge', row: MARK.row, properties: { Run: 'of the dead process' } },
      etag: storageRows.ANY_ETAG,
    });
    said.push(await codeOf(load(app, shops, few)));
    app.advance(HELD_MS);
    expect(await load(app, shops, few)).toMatchObject({ rejections: [] });
    expect(said).toEqual(['busy', 'busy']);
    expect(await findingsIn(app, [shops])).toEqual([]);
    expect(await storageRows.readRow(app.storage, MARK)).toBeUndefined();
  });

  test('begins at once after one that has ended with an error', async () => {
    const app = await openBackedUp(shopModel);
    async function* broken() {
      yield* few;
      throw new Error('The file cannot be read.');
    }
    await expect(bulkLoad(app.engine, shops, broken(), { windowRows: 3 })).rejects.toThrow('cannot be read');
    expect(await load(app, shops, few)).toMatchObject({ created: 0, existing: 6, rejections: [] });
  });

  test('is refused however long the first one works', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const app = await openBackedUp(shopModel);
    const etagNow = async () => (await storageRows.readRow(app.storage, MARK))?.etag;
    let said = '';
    inTheMiddle(app, async () => {
      for (let minutes = 0; minutes < 3; minutes += 1) {
        const before = await etagNow();
        app.advance(HELD_MS - 2_000);
        vi.advanceTimersByTime(HELD_MS);
        await vi.waitFor(async () => expect(await etagNow()).not.toBe(before), PATIENCE_MS);
      }
      said = await codeOf(load(app, shops, few));
    });
    expect(await load(app, shops, few)).toMatchObject({ created: 6 });
    expect(said).toBe('busy');
  });

  test('ends the first one, which stood still, when that one looks again', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const app = await openBackedUp(shopModel);
    const said: string[] = [];
    async function* slow() {
      yield few[0];
      app.advance(2 * HELD_MS);
      await new Promise<void>((resolve) => {
        inTheMiddle(app, async () => {
          resolve();
          await vi.waitUntil(() => said.length === 1, PATIENCE_MS);
        });
        void load(app, shops, few).then(() => said.push('done'));
      });
      vi.advanceTimersByTime(HELD_MS);
      // Rows that are not valid send no request, and let the other ones pass.
      for (let turn = 0; turn < 10_000; turn += 1) {
        await setImmediate();
        yield {};
      }
    }
    said.push(await codeOf(bulkLoad(app.engine, shops, slow(), { windowRows: 1 })));
    await vi.waitUntil(() => said.length === 2, PATIENCE_MS);
    expect(said).toEqual(['busy', 'done']);
    expect(await findingsIn(app, [shops])).toEqual([]);
    expect(await storageRows.readRow(app.storage, MARK)).toBeUndefined();
  });

  test('can be run again although the first one, which stood still, has ended since', async () => {
    const app = await openBackedUp(shopModel);
    async function* broken() {
      yield* few.slice(0, 3);
      throw new Error('The file cannot be read.');
    }
    inTheMiddle(app, async () => {
      app.advance(HELD_MS);
      await expect(bulkLoad(app.engine, shops, broken(), { windowRows: 3 })).rejects.toThrow('cannot be read');
    });
    await load(app, shops, few);
    expect(await load(app, shops, few)).toMatchObject({ created: 0, existing: 6 });
    expect(await findingsIn(app, [shops])).toEqual([]);
  });

  test('adds the entries of a row that a late request of the first one has stored meanwhile', async () => {
    const app = await openBackedUp(shopModel);
    const late: (() => Promise<unknown>)[] = [];
    app.memory.intercept = async (request, send) => {
      if (!isOfShops(request)) return send();
      const { abortSignal: _, ...kept } = request;
      late.push(() => app.memory.httpClient.sendRequest(kept));
      throw new Error('This process is dead.');
    };
    await expect(load(app, shops, few)).rejects.toThrow('dead');
    app.memory.intercept = undefined;
    app.advance(HELD_MS);
    inTheMiddle(app, () => Promise.all(late.map((arrive) => arrive())));
    expect(late.length).toBeGreaterThan(0);
    expect(await load(app, shops, few)).toMatchObject({ created: 0, existing: 6, rejections: [] });
    expect(await findingsIn(app, [shops])).toEqual([]);
  });

  test('adds to the journal what the first one had stored when it was killed', async () => {
    const app = await openBackedUp(shopModel);
    await app.snapshot();
    let isDead = false;
    for (const memory of [app.memory, app.backupMemory])
      memory.intercept = async (request, send) => {
        if (isDead) throw new Error('This process is dead.');
        const response = await send();
        isDead ||= isOfShops(request);
        return response;
      };
    await expect(load({ engine: restarted(app) }, shops, few)).rejects.toThrow();
    for (const memory of [app.memory, app.backupMemory]) memory.intercept = undefined;
    app.advance(HELD_MS);
    const { created, existing } = await load({ engine: restarted(app) }, shops, few);
    expect(existing).toBeGreaterThan(0);
    expect(created + existing).toBe(6);
    const target = await app.openTarget({ accounts: 1, prefix: '' });
    const { findings } = await app.restore(target, app.cut());
    expect(findings).toEqual([]);
    expect(await tablesOf(target)).toEqual(await tablesOf(app));
  });
});

test('refuses an entity that gets another key, before it writes anything', async () => {
  const app = await openBackedUp(shopModel);
  const rekey = { has: () => true, phaseOf: async () => 'waiting' as const, find: async () => undefined };
  const engine = { ...app.engine, rekey };
  expect(await codeOf(load({ engine }, shops, few))).toBe('busy');
  expect(await storageRows.readRow(app.storage, MARK)).toBeUndefined();
});

test('a lost request or reply doubles no total, list or entry, and loses none', { tags: ['slow'] }, async () => {
  const reference = await openBackedUp(shopModel);
  const count = countRequests(reference);
  await load(reference, shops, few);
  const [calls, wanted] = [count(), await tablesOf(reference)];
  for (const fault of ['request', 'reply'] as const)
    for (const at of samplePoints(calls, IS_EVERY_CALL ? calls : 10)) {
      const app = await openBackedUp(shopModel);
      let call = 0;
      app.memory.intercept = async (request, send) => {
        call += 1;
        if (call !== at) return send();
        if (fault === 'reply') await send();
        throw new RestError(`The ${fault} is lost.`, { code: 'ECONNRESET', request });
      };
      // The outcome of what is sent once may be unknown.
      const outcome = await codeOf(load(app, shops, few));
      expect(['done', 'storage-unavailable'], `${fault} ${at}`).toContain(outcome);
      app.advance(HELD_MS);
      if (outcome !== 'done')
        expect(await load(app, shops, few), `${fault} ${at}`).toMatchObject({ read: 6, rejections: [] });
      expect(await tablesOf(app), `${fault} ${at}`).toEqual(wanted);
      expect(await findingsIn(app, [shops]), `${fault} ${at}`).toEqual([]);
    }
});

test('clients that create other entities meanwhile get no value of the load, and it gets none of theirs', {
  tags: ['slow'],
}, async () => {
  const reference = await openBackedUp(shopModel);
  const count = countRequests(reference);
  await load(reference, shops, few);
  const calls = count();
  for (const at of samplePoints(calls, IS_EVERY_CALL ? calls : 10)) {
    const app = await openBackedUp(shopModel);
    let call = 0;
    const outcomes: string[] = [];
    // A process of its own, which waits for no write of this one.
    const clients = engineCore.createEngine(storageAccounts.openStorage(app.memory), { now: app.now });
    app.memory.intercept = async (_, send) => {
      call += 1;
      if (call === at)
        for (const theirs of [
          { city: 'theirs', id: '0' },
          { city: 'city 1', id: '1' },
          { city: 'city 2', id: 'theirs' },
        ])
          outcomes.push(await codeOf(engineWrite.createEntity(clients, shops, theirs)));
      return send();
    };
    const report = await codeOf(load(app, shops, few));
    app.memory.intercept = undefined;
    await app.settle();
    // A client that comes first owns the table.
    expect(report === 'done' || at <= 3, `call ${at}: ${report}`).toBe(true);
    expect(
      outcomes.every((code) => ['done', 'duplicate-key', 'duplicate-value'].includes(code)),
      `${outcomes}`,
    ).toBe(true);
    const { items } = await engineRead.scanEntities(app.engine, shops, { top: 100 });
    const ids = items.map(({ id }) => id);
    expect(new Set(ids).size, `call ${at}`).toBe(ids.length);
    expect(ids.length, `call ${at}`).toBe(report === 'done' ? 7 : 3);
    expect(await findingsIn(app, [shops]), `call ${at}`).toEqual([]);
  }
});

test('a snapshot at any moment of a load, and the journal, have all of it', { tags: ['slow'] }, async () => {
  const reference = await openBackedUp(shopModel);
  const count = countRequests(reference);
  await load(reference, shops, few);
  for (const at of samplePoints(count(), 5)) {
    const app = await openBackedUp(shopModel);
    let call = 0;
    app.memory.intercept = async (_, send) => {
      call += 1;
      if (call === at) await app.snapshot();
      return send();
    };
    expect(await load(app, shops, few)).toMatchObject({ created: 6 });
    app.memory.intercept = undefined;
    const target = await app.openTarget({ accounts: 1, prefix: '' });
    const { findings } = await app.restore(target, app.cut());
    expect(findings, `call ${at}`).toEqual([]);
    expect(await tablesOf(target), `call ${at}`).toEqual(await tablesOf(app));
  }
});

describe('a load beside a move between accounts', () => {
  const NAMES = ['first', 'second'];

  async function openTwo() {
    const accounts = createAccounts(NAMES);
    await storageTables.provision(accounts.open(), operationsModel.resourcesOf(shopModel.list, Date.now(), shopModel));
    return accounts;
  }

  test('recognizes a row that it has stored, although the fence of its first request is gone', async () => {
    const { open, openWith } = await openTwo();
    const storage = open();
    const [row = {}] = few;
    const slot = storageSlots.slotOf('city 0');
    const owner = (await storageSlots.ownerOf(storage, 'city 0')) as Account;
    const move = '!m1';
    const to = NAMES.find((name) => name !== owner.name) ?? '';
    await storageSlots.changeSlots(owner, [slot], () => ({ phase: 'fencing', move, to }));
    let isPast = false;
    const { options } = openWith(undefined, 0);
    const losing = options.map((account) => ({
      ...account,
      httpClient: {
        async sendRequest(request: Parameters<typeof account.httpClient.sendRequest>[0]) {
          const response = await account.httpClient.sendRequest(request);
          const isStored = async () =>
            (await storageRows.readRow(owner, { table: 'shops', partition: 'city 0', row: '0' })) !== undefined;
          if (isPast || !isOfShops(request) || !(await isStored())) return response;
          isPast = true;
          // The move is aborted, and cleaned up.
          await storageSlots.changeSlots(owner, [slot], () => ({ phase: 'at rest' }));
          await owner.table('shops').deleteEntity('city 0', storageSlots.fenceOf(move));
          throw new RestError('The reply is lost.', { code: 'ECONNRESET', request });
        },
      },
    }));
    const engine = engineCore.createEngine(storageAccounts.openStorage({ accounts: losing }));
    expect(await load({ engine }, shops, [row])).toMatchObject({ created: 1, rejections: [] });
    expect(isPast).toBe(true);
    expect(await findingsIn({ engine: engineCore.createEngine(open()) }, [shops])).toEqual([]);
  });

  test('stores all rows with what follows from them, also if movers die', { tags: ['slow'] }, async () => {
    const given = { timing: QUICK, resources: operationsModel.resourcesOf(shopModel.list, Date.now(), shopModel) };
    for (const at of samplePoints(60, 3)) {
      const { open, openWith } = await openTwo();
      const first = (open() as Several).accounts.list[0];
      const slots = ['city 0', 'city 1', 'city 2', 'all'].map(storageSlots.slotOf);
      const isMoving = async () => {
        const { moves } = (await storageSlots.readOwned(first)) ?? {};
        return slots.some((slot) => moves?.has(storageSlots.slotIndex(slot)));
      };
      const moveTo = async (to: string, act: () => Promise<unknown>) => {
        let hasEnded = false;
        const moving = operationsMove
          .moveSlots(openWith('crash after', at).storage, [{ slots, to }], given)
          .catch(() => undefined)
          .finally(() => {
            hasEnded = true;
          });
        while (!hasEnded && !(await isMoving())) await setImmediate();
        // A process that begins now knows of the move.
        await Promise.all([act(), moving.then(resume)]);
      };
      const resume = (): Promise<unknown> =>
        operationsMove.resumeMoves(open(), given).catch((error: unknown) => {
          // A machine that is busy elsewhere may not renew the hold of a mover in time.
          if (!baseValues.hasCode(error, 'busy')) throw error;
          return resume();
        });
      await moveTo('first', async () => undefined);
      await moveTo('second', async () => {
        const report = await load({ engine: engineCore.createEngine(open()) }, shops, shopRows.slice(0, 60));
        expect(report, `${at}`).toMatchObject({ created: 60, rejections: [] });
      });
      const engine = engineCore.createEngine(open());
      expect(await findingsIn({ engine }, [shops]), `${at}`).toEqual([]);
      const { items } = await engineRead.scanEntities(engine, shops, { top: 100 });
      expect(items.length, `${at}`).toBe(60);
    }
  });
});
