import pMap from 'p-map';
import { z } from 'zod';
import { defineEntity } from '../../lib/define/define-entity.ts';
import { intraPartitionIndex } from '../../lib/define/indexes.ts';
import { defineModel } from '../../lib/define-model.ts';
import { createRowkey } from '../../lib/rowkey.ts';
import { measureCost } from '../../lib/storage/cost.ts';

/** One partition that grows: its reads and writes must cost the same at every size. */
const residents = defineEntity('residents', {
  schema: z.object({
    town: z.string().min(1).max(50),
    residentId: z.string().regex(/^\d{7}$/),
    name: z.string().min(1).max(50),
    street: z.string().max(100),
  }),
  table: 'benchresidents',
  key: { partition: '{town}', row: 'id_{residentId}' },
  indexes: { name: intraPartitionIndex({ row: 'name_{name}_{residentId}' }) },
  access: { read: ['reader'], write: ['reader'] },
});
const model = defineModel({ prefix: 'bench', roles: ['reader'], operatorRole: 'reader', entities: [residents] });

const TOWN = 'Town';
/** An entity and its copy are two rows, and a transaction has at most 100. */
const PER_BATCH = 50;
const BATCHES_CONCURRENCY = 4;
const SAMPLES = 40;
const PAGE = 100;
/** Names are spread evenly over the index. */
const NAMES = 9_973;

export interface Growth {
  readonly entities: number;
  /** By the name of the operation. */
  readonly figures: Readonly<Record<string, { readonly milliseconds: number; readonly transactions: number }>>;
}

/** Fills the partition to each size and measures there: the median time and the transactions of one operation. */
export async function measureGrowth(connectionString: string, sizes: readonly number[]): Promise<Growth[]> {
  // No token is verified in process.
  const auth = { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' };
  const { store, provision } = createRowkey({ model, storage: { connectionString }, auth });
  await provision();
  let filled = 0;
  const results: Growth[] = [];
  for (const size of sizes) {
    const starts = Array.from({ length: Math.ceil((size - filled) / PER_BATCH) }, (_, at) => filled + at * PER_BATCH);
    await pMap(
      starts,
      async (start) => {
        const length = Math.min(PER_BATCH, size - start);
        await store.residents.batch(Array.from({ length }, (_, index) => ({ create: resident(start + index) })));
      },
      { concurrency: BATCHES_CONCURRENCY },
    );
    filled = size;
    const any = () => Math.floor(Math.random() * size);
    const operations: Readonly<Record<string, () => Promise<unknown>>> = {
      'get by key': () => store.residents.get(keyOf(any())),
      'get by index': () => store.residents.by.name({ town: TOWN, name: nameOf(any()) }).page({ top: 1 }),
      'page of 100 from a range of the index': () =>
        store.residents.by.name.range({ town: TOWN }, { from: nameOf(any()) }).page({ top: PAGE }),
      'page of 100 of the partition': () =>
        store.residents.range({ town: TOWN }, { from: keyOf(any()).residentId }).page({ top: PAGE }),
      create: async () => {
        await store.residents.create(resident(filled));
        filled += 1;
      },
    };
    const figures: Record<string, { milliseconds: number; transactions: number }> = {};
    for (const [name, operation] of Object.entries(operations)) figures[name] = await sample(operation);
    results.push({ entities: size, figures });
  }
  return results;
}

async function sample(operation: () => Promise<unknown>) {
  const times: number[] = [];
  const costs = new Set<number>();
  for (let at = 0; at < SAMPLES; at += 1) {
    const since = performance.now();
    const { transactions } = await measureCost(async (cost) => {
      await operation();
      return cost;
    });
    times.push(performance.now() - since);
    costs.add(transactions);
  }
  const sorted = times.toSorted((one, other) => one - other);
  return { milliseconds: sorted[SAMPLES / 2] ?? 0, transactions: Math.max(...costs) };
}

function keyOf(index: number) {
  return { town: TOWN, residentId: String(index).padStart(7, '0') };
}

function nameOf(index: number): string {
  return `n${String((index * 7_919) % NAMES).padStart(4, '0')}`;
}

function resident(index: number) {
  return { ...keyOf(index), name: nameOf(index), street: `${index} High Street` };
}
