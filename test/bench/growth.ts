import { odata, type TableEntity, type TransactionAction } from '@azure/data-tables';
import pMap from 'p-map';
import { accessChecks } from '../kit/access.ts';
import { defineKeys } from '../kit/define.ts';
import { storageAccounts, storageKeys } from '../kit/storage.ts';
import { residents, toEntity } from './growth-model.ts';
import { type GrowthWorld, withoutSystemProperties } from './growth-world.ts';
import { compare, type Result, repeat } from './measure.ts';
import { plainSigner } from './plain.ts';

/** One partition that grows: each operation must take the same transactions, and the time of plain code, at every size. */

const entity = toEntity(residents.name);
export const TOWN = 'Town';
const MAX_ACTIONS = 100;
const FILLING_CONCURRENCY = 8;
const PAGE = 100;
/** Names are spread evenly over the index. */
const NAMES = 9_973;
/** A marker of seven digits that occurs in the rows of the template only. */
const TEMPLATE = '9876543';
const EFFORT = { rounds: 5, milliseconds: 250, callers: 1 };

export interface Grown {
  readonly operation: string;
  readonly entities: number;
  readonly transactions: number;
  readonly result: Result;
}

/** Fills an empty partition with residents, whose rows are as the product stores them. */
export async function fillResidents(world: GrowthWorld, entities: number): Promise<void> {
  await fill(world, await readTemplate(world), { from: 0, to: entities });
}

/** Fills the partition to each size, and compares the product with plain code there. */
export async function measureGrowth(world: GrowthWorld, sizes: readonly number[]): Promise<Grown[]> {
  const template = await readTemplate(world);
  const grown: Grown[] = [];
  let filled = 0;
  for (const entities of sizes) {
    await fill(world, template, { from: filled, to: entities });
    filled = entities;
    for (const [operation, { product, plain }] of Object.entries(operationsOn(world, template, entities))) {
      const { transactions } = await storageAccounts.measureCost(async (cost) => {
        await product();
        return cost;
      });
      const sides = { plain: repeat({ operation: plain }), product: repeat({ operation: product }) };
      grown.push({ operation, entities, transactions, result: await compare(operation, sides, EFFORT) });
    }
  }
  return grown;
}

interface Operation {
  product(): Promise<unknown>;
  plain(): Promise<unknown>;
}

/** Above every id that is read. Both sides count on, so that no id is written twice. */
let created = 5_000_000;

function operationsOn(
  { store, storage, plainTable, plainCode }: GrowthWorld,
  template: Template,
  entities: number,
): Record<string, Operation> {
  const any = () => Math.floor(Math.random() * entities);
  const table = plainTable('residents');
  const byEmail = plainTable('residentsbyemail');
  const readPage = async (from: string, end: string) => {
    const filter = odata`PartitionKey eq ${TOWN} and RowKey ge ${from} and RowKey lt ${end}`;
    for await (const page of table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: PAGE }))
      return page;
    return undefined;
  };
  const signer = storageKeys.tableSasSigner(storage);
  const signPlain = plainSigner(storage.connectionString);
  const granted = (id: number) => ({ table: 'residents', partition: TOWN, row: `id_${idOf(id)}` });
  return {
    'get by key': {
      product: () => store.residents.get(keyOf(any())),
      plain: () => table.getEntity(TOWN, `id_${idOf(any())}`),
    },
    'get by index': {
      product: () => store.residents.by.email({ email: emailOf(any()) }),
      plain() {
        const id = any();
        return byEmail.getEntity(partitionOfEmail(id), emailOf(id));
      },
    },
    'page of 100 of an index': {
      product: () => store.residents.by.name.range({ town: TOWN }, { from: nameOf(any()) }).page({ top: PAGE }),
      plain: () => readPage(`name_${nameOf(any())}`, 'name`'),
    },
    'page of 100 of the partition': {
      product: () => store.residents.range({ town: TOWN }, { from: idOf(any()) }).page({ top: PAGE }),
      plain: () => readPage(`id_${idOf(any())}`, 'id`'),
    },
    create: {
      product: () => store.residents.create(residentOf(created++)),
      plain() {
        const id = created++;
        const entry = { ...rowFor(template.byEmail, id), partitionKey: partitionOfEmail(id) };
        return plainCode.create({
          message: 'm'.repeat(400),
          claims: [{ table: byEmail.tableName, entity: entry }],
          rows: { table: table.tableName, entities: template.own.map((row) => rowFor(row, id)) },
        });
      },
    },
    grant: {
      product: () => signer.sign(accessChecks.grantFor(entity, granted(any()), { now: Date.now() })),
      plain: async () => signPlain(granted(any())),
    },
  };
}

/** The rows of one entity as the product stores them. */
interface Template {
  readonly own: readonly TableEntity[];
  readonly byEmail: TableEntity;
}

async function readTemplate({ store, plainTable }: GrowthWorld): Promise<Template> {
  await store.residents.create(residentOf(Number(TEMPLATE)));
  const rowsOf = async (table: string) =>
    (await Array.fromAsync(plainTable(table).listEntities())).map((row) => withoutSystemProperties(row as TableEntity));
  const [own, [byEmail]] = await Promise.all([rowsOf('residents'), rowsOf('residentsbyemail')]);
  if (own.length !== 2 || !byEmail) throw new Error('The resident has other rows than expected.');
  return { own, byEmail };
}

/**
 * Adds entities by transactions of a hundred rows, in the order of their keys: the emulator keeps the keys of a table in sorted
 * arrays, and an insertion in the middle of a million moves all that follow.
 */
async function fill(
  { plainTable }: GrowthWorld,
  { own, byEmail }: Template,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const ids = Array.from({ length: to - from }, (_, index) => from + index);
  const insertAll = async (table: string, template: TableEntity, partitionOf: (id: number) => string) => {
    const keyed = ids.map((id) => ({ id, partition: partitionOf(id), row: textFor(template.rowKey, id) }));
    const sorted = keyed.sort((a, b) => compareText(a.partition, b.partition) || compareText(a.row, b.row));
    const transactions = [...Map.groupBy(sorted, ({ partition }) => partition).values()].flatMap((all) =>
      Array.from({ length: Math.ceil(all.length / MAX_ACTIONS) }, (_, at) =>
        all.slice(at * MAX_ACTIONS, (at + 1) * MAX_ACTIONS),
      ),
    );
    const submit = (some: typeof sorted) =>
      plainTable(table).submitTransaction(
        some.map(
          ({ id, partition }): TransactionAction => ['create', { ...rowFor(template, id), partitionKey: partition }],
        ),
      );
    await pMap(transactions, submit, { concurrency: FILLING_CONCURRENCY });
  };
  for (const template of own) await insertAll('residents', template, () => template.partitionKey);
  await insertAll('residentsbyemail', byEmail, partitionOfEmail);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function rowFor(row: TableEntity, id: number): TableEntity {
  return JSON.parse(textFor(JSON.stringify(row), id));
}

function textFor(text: string, id: number): string {
  return text.replaceAll(nameOf(Number(TEMPLATE)), nameOf(id)).replaceAll(TEMPLATE, idOf(id));
}

function partitionOfEmail(id: number): string {
  const index = entity.indexes.email;
  if (index?.kind !== 'inter-partition') throw new Error('The index of addresses is of another kind.');
  return defineKeys.buildKey(index.remote.partition, { email: emailOf(id) });
}

function idOf(index: number): string {
  return String(index).padStart(7, '0');
}

function keyOf(index: number) {
  return { town: TOWN, residentId: idOf(index) };
}

function nameOf(index: number): string {
  return `n${String((index * 7_919) % NAMES).padStart(4, '0')}`;
}

function emailOf(index: number): string {
  return `r${idOf(index)}@example.com`;
}

export function residentOf(index: number) {
  return { ...keyOf(index), name: nameOf(index), email: emailOf(index), street: `${idOf(index)} High Street` };
}
