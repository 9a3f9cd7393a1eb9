import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import type { HttpClient } from '@azure/core-rest-pipeline';
import { TableClient } from '@azure/data-tables';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, total, type Values } from '../../../lib/index.ts';
import { httpClient } from '../../../local/walk/known-messages.ts';
import { allPages } from '../../all-pages.ts';
import { lateHttpClient } from '../../faulty-http-client.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { defineCodec, definePlaces } from '../../kit/define.ts';
import { engineWrite } from '../../kit/engine.ts';
import { operationsCheck, type VerifyPosition } from '../../kit/operations.ts';
import { storageAccounts, storageRows } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';
import { openWorld } from '../../world.ts';

/** Builds of indexes over entities that are stored already. */

const INDEXES = ['code', 'ofOwner', 'names', 'perOwner'] as const;
const TABLES = { code: 'thingsbycode', ofOwner: 'thingsbyowner', names: 'thingnames', perOwner: 'thingtotals' };
const { things } = deploy(
  defineEntity('things', {
    schema: z.object({ id: z.string(), owner: z.string(), code: z.string() }),
    table: 'things',
    key: { partition: '{id}', row: 'thing' },
    indexes: {
      code: interPartitionIndex({ table: 'thingsbycode', partition: '{code}', row: 'thing', unique: true }),
      ofOwner: interPartitionIndex({ table: 'thingsbyowner', partition: '{owner}', row: '{id}' }),
      names: indexEntity({ table: 'thingnames', partition: '{owner}', row: 'things', holds: '{id}' }),
    },
    totals: { perOwner: total({ table: 'thingtotals', partition: 'all', row: '{owner}' }) },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const { bought } = deploy(
  defineEntity('bought', {
    schema: z.object({ id: z.string(), owner: z.string() }),
    table: 'Bought',
    key: { partition: '{id}', row: 'thing' },
    existing: { properties: { owner: 'Owner' } },
    indexes: { ofOwner: interPartitionIndex({ table: 'boughtbyowner', partition: '{owner}', row: '{id}' }) },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const world = await openWorld(import.meta.url, [things, bought]);
const { engine, storage } = world;

const thing = (id: string, more: Values = {}): Values => ({ id, owner: 'ann', code: `c${id}`, ...more });

/** Stores entities without what follows from them, as another program does. */
async function store(all: readonly Values[]): Promise<void> {
  for (const values of all) {
    const properties = defineCodec.toProperties(things, values, { WriteId: '1', Incarnation: '1' });
    const address = definePlaces.addressOf(things, values);
    await storageRows.tryAction(storage, address, { kind: 'insert', row: address.row, properties });
  }
}

/** A delay before the second look, which no test waits for. */
const TOO_LONG = 600_000;

function build(only: string, { by = engine, patience = TOO_LONG } = {}) {
  return storageAccounts.measureCost(async (spent) => {
    const pages = await allPages((position: VerifyPosition | undefined) =>
      operationsCheck.verifyPage(by, things, { position, top: 100, repair: true, only, patience }),
    );
    const found = pages.flatMap(({ findings }) => findings.map(({ kind, repaired }) => `${kind} ${repaired}`));
    return { found, transactions: spent.transactions };
  });
}

async function findingsNow(): Promise<string[]> {
  const pages = await allPages((position: VerifyPosition | undefined) =>
    operationsCheck.verifyPage(engine, things, { position, top: 100, repair: false, patience: 0 }),
  );
  return pages.flatMap(({ findings }) => findings.map(({ kind, of, row }) => `${kind} ${of} ${row}`));
}

test('a build reads each entry once, adds those that are missing together, and does not wait', {
  tags: ['slow'],
}, async () => {
  const COUNT = 150;
  await store(Array.from({ length: COUNT }, (_, at) => thing(`a${String(at).padStart(3, '0')}`)));
  const PAGES = 2;
  // A page is read twice.
  const most = {
    code: 2 * COUNT + 4 * PAGES,
    ofOwner: COUNT + 6 * PAGES,
    names: COUNT + 8 * PAGES,
    perOwner: Infinity,
  };
  for (const index of INDEXES) {
    const { found, transactions } = await build(index);
    expect(found, index).toEqual(Array.from({ length: COUNT }, () => 'missing true'));
    if (index !== 'perOwner') expect(transactions, index).toBeLessThanOrEqual(most[index]);
    else expect(transactions).toBeLessThan(3 * COUNT);
    expect((await build(index)).found, index).toEqual([]);
  }
  expect(await findingsNow()).toEqual([]);
});

test('of two entities with one unique value, the first gets it, and the other one is reported', async () => {
  await store([thing('b1', { code: 'same' }), thing('b2', { code: 'same' })]);
  expect((await build('code', { patience: 0 })).found).toEqual(['missing true', 'conflict false']);
  const entry = { table: 'thingsbycode', partition: 'same', row: 'thing' };
  expect((await storageRows.readRow(storage, entry))?.properties.SourcePartition).toBe('b1');
});

const MEANWHILE: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
  changed: (id) => engineWrite.patchEntity(engine, things, { id }, { owner: 'bob', code: `n${id}` }),
  deleted: (id) => engineWrite.deleteEntity(engine, things, { id }),
};

test('an entity that is changed or deleted before its entry is written leaves no wrong entry', {
  tags: ['slow'],
}, async () => {
  for (const [what, act] of Object.entries(MEANWHILE))
    for (const index of INDEXES) {
      const id = `${what}${index}`;
      await store([thing(id)]);
      let isPast = false;
      const client: HttpClient = {
        async sendRequest(request) {
          // A transaction names the table in its body.
          const isWrite = request.method !== 'GET' && `${request.url} ${request.body}`.includes(TABLES[index]);
          if (isWrite && !isPast) {
            isPast = true;
            await act(id);
          }
          return httpClient.sendRequest(request);
        },
      };
      await build(index, { by: world.engineThrough(client), patience: 0 });
      expect(isPast, id).toBe(true);
    }
  await world.settle();
  for (const index of INDEXES) await build(index, { patience: 0 });
  expect((await findingsNow()).filter((finding) => !finding.startsWith('conflict'))).toEqual([]);
});

test('a row of another program that cannot be read is reported, and leaves nothing to build', async () => {
  const table = TableClient.fromConnectionString(testStorage(import.meta.url), 'Bought', {
    allowInsecureConnection: true,
  });
  await table.createEntity({ partitionKey: 'd1', rowKey: 'thing', Owner: 7 });
  await table.createEntity({ partitionKey: 'd2', rowKey: 'thing', Owner: 'ann' });
  const options = { top: 100, repair: true, only: 'ofOwner', patience: 0 };
  const { findings, left } = await operationsCheck.verifyPage(engine, bought, options);
  expect(findings.map(({ kind, repaired }) => [kind, repaired]).toSorted()).toEqual([
    ['invalid', false],
    ['missing', true],
  ]);
  expect(left).toBe(0);
});

/** Lets each wait end at once. Returns their durations; `during` is called in each. */
function skipWaits(during: (milliseconds: unknown) => unknown = () => undefined): readonly unknown[] {
  const waits: unknown[] = [];
  const { setTimeout: wait } = timersPromises;
  const replaceWait = (value: unknown) => {
    Object.defineProperty(timersPromises, 'setTimeout', { value, configurable: true, writable: true });
    syncBuiltinESMExports();
  };
  replaceWait(async (milliseconds: unknown, value: unknown) => {
    waits.push(milliseconds);
    await during(milliseconds);
    return value;
  });
  onTestFinished(() => replaceWait(wait));
  return waits;
}

test('a build does not wait before it looks again at what it can repair, and waits before it reports the rest', async () => {
  await store([thing('e1', { owner: 'eve' }), thing('e2', { code: 'equal' }), thing('e3', { code: 'equal' })]);
  const stale = {
    EntityType: 'things',
    SourcePartition: 'e1',
    SourceRow: 'thing',
    id: 'e1',
    owner: 'eve',
    code: 'old',
  };
  const entry = { table: 'thingsbyowner', partition: 'eve', row: 'e1' };
  await storageRows.tryAction(storage, entry, { kind: 'insert', row: entry.row, properties: stale });
  const waits = skipWaits();
  expect((await build('ofOwner')).found).toContain('stale true');
  expect(waits).not.toContain(TOO_LONG);
  expect((await build('code')).found).toContain('conflict false');
  expect(waits).toContain(TOO_LONG);
});

test('an insert without a reply, which storage executes after the entity was deleted, leaves no entry', async () => {
  for (const index of INDEXES) {
    const id = `late${index}`;
    await store([thing(id)]);
    const isInsert = ({
      method,
      url,
      body,
    }: {
      readonly method: string;
      readonly url: string;
      readonly body?: unknown;
    }) => method !== 'GET' && `${url} ${body}`.includes(TABLES[index]);
    const client = lateHttpClient(isInsert);
    let isDeleted = false;
    const removeAndArrive = async () => {
      if (isDeleted) return;
      isDeleted = true;
      await engineWrite.deleteEntity(engine, things, { id });
      await client.arrive();
    };
    skipWaits(removeAndArrive);
    await build(index, { by: world.engineThrough(client), patience: 0 });
    await removeAndArrive();
  }
  await world.settle();
  expect((await findingsNow()).filter((finding) => finding.includes('orphaned'))).toEqual([]);
});

test('a build adds the entries of an entity whose operation has begun, and may be undone', async () => {
  await store([thing('f1', { owner: 'flo' })]);
  const close = async (Leaving: string) => {
    const etag = storageRows.ANY_ETAG;
    const merge = { kind: 'merge', row: 'thing', properties: { Leaving }, etag } as const;
    expect(await storageRows.tryAction(storage, { table: 'things', partition: 'f1' }, merge)).toBe(true);
  };
  await close('an operation');
  for (const index of INDEXES) expect((await build(index, { patience: 0 })).found).toContain('missing true');
  await close('');
  expect((await findingsNow()).filter((finding) => finding.includes('f1'))).toEqual([]);
});

test('a build is refused while the entities get another key', async () => {
  for (const phase of ['waiting', 'moving'] as const) {
    const rekey = { has: () => true, phaseOf: async () => phase, find: async () => undefined };
    await expect(build('ofOwner', { by: { ...engine, rekey } })).rejects.toMatchObject({ code: 'busy' });
  }
});
