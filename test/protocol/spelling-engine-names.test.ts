import pMap from 'p-map';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
} from '../../lib/define.ts';
import { compareStored } from '../../local/walk/compare-stored.ts';
import { PNG } from '../../local/walk/png.ts';
import { apiCalls } from '../kit/api.ts';
import { baseValues } from '../kit/base.ts';
import { defineKeys } from '../kit/define.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsCheck, operationsModel, operationsMove } from '../kit/operations.ts';
import { storageBlobs, storageRows, storageSlots, storageTables } from '../kit/storage.ts';
import { accountNamed, createAccounts, NAMES, type Several } from '../lib/storage/several-accounts.ts';
import { countTurns } from '../patient-clock.ts';
import { IS_EVERY_POINT, sampleItems } from '../points.ts';
import { SPELLED_NAMES } from '../spelled-names.ts';

countTurns();

const access = { read: ['hr'], write: ['hr'] } as const;
/** Entities may have names of row types of tables that they do not share: see `ROW_TYPES`. */
const model = defineModel({
  roles: ['hr', 'operator'],
  operatorRole: 'operator',
  entities: [
    // A separator of the row key completes what a value begins.
    defineEntity('claim', {
      schema: z.object({
        part: z.string(),
        head: z.string(),
        year: z.int32(),
        code: z.string(),
        tag: z.string(),
        at: z.string().optional(),
        notes: z.string().optional(),
      }),
      table: 'headed',
      key: { partition: '{part}', row: '{head}_{year:4}' },
      indexes: {
        code: interPartitionIndex({
          table: 'headedbycode',
          partition: '{code}',
          row: '{code}',
          unique: true,
          copies: 'keys',
        }),
        tag: interPartitionIndex({
          table: 'headedbytag',
          partition: '{tag}',
          row: '{head}_{part}_{year:4}',
          copies: 'keys',
        }),
        list: indexEntity({ table: 'headedlists', partition: '{tag}', row: '{code}', holds: '{part}_{head}_{year:4}' }),
      },
      totals: { perTag: total({ table: 'headedtotals', partition: '{part}', row: '{tag}', sum: ['year'] }) },
      large: ['notes'],
      attachments: { photo: { container: 'photos', maxBytes: 1_000, types: ['image/png'] } },
      access,
    }),
    // The value is the whole key, and begins those of further rows.
    defineEntity('total', {
      schema: z.object({ part: z.string(), word: z.string(), text: z.string(), at: z.string().optional() }),
      table: 'whole',
      key: { partition: '{part}', row: '{word}' },
      split: { wide: ['text'] },
      access,
    }),
    // An index in the partition, beside rows that begin with digits.
    defineEntity('slots', {
      schema: z.object({
        part: z.string(),
        year: z.string().regex(/^[0-9]{4}$/),
        label: z.string().regex(/^[!-.:-~][ -~]*$/),
        at: z.string().optional(),
      }),
      table: 'labelled',
      key: { partition: '{part}', row: '{year}' },
      indexes: { label: intraPartitionIndex({ row: '{label}_{year}', copies: 'everything' }) },
      access,
    }),
  ],
});
const entities = model.list;

const TIMING = { ...operationsMove.MOVE_TIMING, leaseMs: 100, lateMs: 50, holdMs: 15_000, keepMs: 0 };
const CONCURRENCY = 8;
const YEAR = 1999;
const PARTITION = defineKeys.compileTemplate('{value}');
const ofFences = SPELLED_NAMES.filter((name) => /^~o/.test(name));
const others = SPELLED_NAMES.filter((name) => !ofFences.includes(name));
const VALUES = IS_EVERY_POINT ? SPELLED_NAMES : [...ofFences, ...sampleItems(others, 'names of the engine', 24)];

const keysOf = (value: string) => ({
  headed: { part: value, head: value, year: YEAR },
  whole: { part: value, word: value },
  labelled: { part: value, year: String(YEAR) },
});

async function openAccounts() {
  const { open, openWith } = createAccounts([...NAMES]);
  const resources = operationsModel.resourcesOf(entities, Date.now());
  const storage = open() as Several;
  await storageTables.provision(storage, resources);
  /** Another process, which reads the map when it begins. */
  const openStore = () => {
    const engine = engineCore.createEngine(open());
    const source = { engine: async () => engine, record: <Result>(_: string, write: () => Promise<Result>) => write() };
    // biome-ignore lint/suspicious/noExplicitAny: the test needs no types of the store
    return apiCalls.createStore(entities, source) as any;
  };
  return { open: () => open() as Several, openWith, openStore, options: { resources, timing: TIMING }, storage };
}

/** What each route answers, without ETags. */
async function answersOf(store: ReturnType<Awaited<ReturnType<typeof openAccounts>>['openStore']>) {
  const values = ({ etag: _, ...found }: Record<string, unknown>) => found;
  const list = async (items: AsyncIterable<Record<string, unknown>>) => (await Array.fromAsync(items)).map(values);
  const answers = await pMap(
    VALUES,
    async (value) => {
      const keys = keysOf(value);
      return [
        value,
        {
          get: values(await store.claim.get(keys.headed)),
          photo: (await store.claim.files.photo.get(keys.headed))?.length,
          range: await list(store.claim.range({ part: value }, { select: ['part', 'code'] })),
          code: values(await store.claim.by.code({ code: value })),
          tag: await list(store.claim.by.tag({ tag: value })),
          list: await list(store.claim.by.list({ tag: value, code: value })),
          totals: await store.claim.totals.perTag.get({ part: value, tag: value }),
          whole: values(await store.total.get(keys.whole)),
          wholes: await list(store.total.range({ part: value })),
          label: await list(store.slots.by.label.range({ part: value }, { select: ['label'] })),
          labelled: await list(store.slots.range({ part: value })),
        },
      ] as const;
    },
    { concurrency: CONCURRENCY },
  );
  return Object.fromEntries(answers);
}

/** All rows of the app, with the account that has each, and the blobs. */
async function storedIn(storage: Several) {
  const found: string[] = [];
  const tables = operationsModel.resourcesOf(entities).tables.filter((table) => table !== 'system');
  for (const { name } of storage.accounts.list) {
    const account = accountNamed(storage, name);
    for (const table of tables)
      for await (const { partitionKey, rowKey } of account.table(table).listEntities())
        found.push(JSON.stringify([name, table, partitionKey, rowKey]));
    for (const container of ['photos', 'large'])
      for await (const blob of storageBlobs.listContainer(account, container))
        found.push(JSON.stringify([name, container, blob.metadata.partition]));
  }
  return found.sort();
}

test('keeps what values spell that are names of the engine, in moves between three accounts, back and after the clean-up', {
  tags: ['slow'],
  timeout: 300_000,
}, async () => {
  const { open, openStore, options, storage } = await openAccounts();
  const store = openStore();
  await pMap(
    VALUES,
    async (value, index) => {
      const keys = keysOf(value);
      const notes = index % 20 === 0 ? 'note '.repeat(60_000) : value;
      await store.claim.create({ ...keys.headed, code: value, tag: value, notes });
      await store.claim.files.photo.put(keys.headed, PNG);
      await store.total.create({ ...keys.whole, text: value });
      await store.slots.create({ ...keys.labelled, label: value });
    },
    { concurrency: CONCURRENCY },
  );
  const created = await answersOf(openStore());
  expect(created[VALUES[0] ?? '']).toMatchObject({ range: [{}], tag: [{}], list: [{}], wholes: [{}], label: [{}] });

  // The partitions of the entities, indexes and totals have the same keys.
  const occupied = [...new Set(VALUES.map((value) => storageSlots.slotOf(defineKeys.buildKey(PARTITION, { value }))))];
  const interruption = new AbortController();
  const begun = operationsMove.moveSlots(open(), [{ slots: occupied, to: 'second' }], {
    ...options,
    signal: interruption.signal,
    onProgress: ({ what }) => what === 'wait' && interruption.abort(),
  });
  await expect(begun).rejects.toThrow();
  // Nothing of the mover is under way, so the next one need not wait.
  await storageRows.submit(accountNamed(storage, 'first'), {
    table: baseValues.SYSTEM_TABLE,
    partition: baseValues.SYSTEM_PARTITIONS.slots,
    actions: [{ kind: 'delete', row: baseValues.SYSTEM_ROWS.mover }],
  });
  // Writes in the first phase open the partitions.
  const writer = openStore();
  await pMap(
    VALUES,
    async (value) => {
      const keys = keysOf(value);
      await writer.claim.update(keys.headed, { at: value });
      await writer.total.update(keys.whole, { at: value });
      await writer.slots.update(keys.labelled, { at: value });
    },
    { concurrency: CONCURRENCY },
  );
  const before = await answersOf(openStore());
  expect(Object.keys(before)).toEqual(Object.keys(created));
  await operationsMove.resumeMoves(open(), options);
  expect(await answersOf(openStore())).toEqual(before);
  await operationsMove.moveBack(open(), undefined, options);
  expect(await answersOf(openStore())).toEqual(before);
  const again = await operationsMove.moveSlots(open(), [{ slots: occupied, to: 'third' }], options);
  expect(again).toMatchObject({ left: [] });
  expect(await answersOf(openStore())).toEqual(before);
  await operationsMove.cleanUp(open(), options);
  expect(await answersOf(openStore())).toEqual(before);

  const stored = await storedIn(open());
  expect(stored.map((text) => JSON.parse(text)[0])).toEqual(stored.map(() => 'third'));
  const rows = stored.map((text) => JSON.parse(text).slice(1));
  expect(rows.filter(([, , row]) => /^~(own|open)_!m/.test(row))).toEqual([]);
  const engine = engineCore.createEngine(open());
  for (const entity of entities) {
    const { values, differences } = await compareStored(engine.storage, entity);
    expect(differences).toEqual([]);
    expect(values).toHaveLength(VALUES.length);
    const { findings } = await operationsCheck.verifyPage(engine, entity, { top: 1_000, repair: false });
    expect(findings).toEqual([]);
  }
});
