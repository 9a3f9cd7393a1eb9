import { spawn } from 'node:child_process';
import { once as eventOf } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pMap from 'p-map';
import { createRowkey } from '../../lib/index.ts';
import { employees, model } from '../fixtures/model.ts';
import { accessChecks } from '../kit/access.ts';
import { engineReconcile } from '../kit/engine.ts';
import { storageAccounts, storageKeys } from '../kit/storage.ts';
import { leaveToQueue } from './leave-to-queue.ts';
import { type Comparison, measureWork, repeat, SAME_WORK, type Side, toWork, waitUntil } from './measure.ts';
import { createPlainCode, PLAIN_QUEUE, plainSigner } from './plain.ts';
import { isEmpty, type Measured, type Servers } from './servers.ts';

/** Work that is not one request: grants, an import, and the queue function that makes indexes agree. */

const FILLING_CONCURRENCY = 16;

/** Signing, in process and on one core. */
export function grantComparison({ product }: Servers): Comparison {
  const signer = storageKeys.tableSasSigner(storageAccounts.openStorage({ connectionString: product.storage }));
  const sign = plainSigner(product.storage);
  const granted = { table: 'employees', partition: 'Sales', row: 'empid_000123' };
  return {
    name: 'Grant, signed in process',
    callers: [1],
    prepare: async () => ({
      plain: repeat({ operation: async () => sign(granted) }),
      product: repeat({ operation: () => signer.sign(accessChecks.grantFor(employees, granted, { now: Date.now() })) }),
    }),
  };
}

const ROWS_PER_PARTITION = 100;
/** An import of so few is the start of a script. */
const FIRST_ROWS = 1_000;
/** Makes the commands serve the fixtures' model. */
const FIXTURES = new URL('../fixtures/serve-fixtures.mjs', import.meta.url).href;

/**
 * `npm run import` of an entity without remote indexes, and a script that sends the same rows in transactions. With the same work,
 * the script also writes the product's properties and a record of each row. A round takes the time of an import without that of a
 * thousand rows, and so without the start of the script.
 */
export function importComparison({ folder, product, plain }: Servers, rows: number): Comparison {
  let files = 0;
  const importWith = (script: string, server: Measured, options: readonly string[] = []): Side => {
    const timeOf = async (count: number) => {
      const file = join(folder, `doorevents${files++}.csv`);
      await writeFile(file, doorEvents(count, files));
      const args = ['doorevents', file, '--url', server.url.replace(/\/api$/, ''), ...options];
      return runScript(script, args, { ROWKEY_TOKEN: server.token ?? '', BENCH_STORAGE: server.storage });
    };
    return {
      async round() {
        const start = await timeOf(FIRST_ROWS);
        return toWork((await timeOf(rows)) - start, rows - FIRST_ROWS);
      },
    };
  };
  return {
    name: 'Import',
    callers: [1],
    maxRounds: 3,
    prepare: async () => ({
      plain: importWith('plain-import.ts', plain),
      [SAME_WORK]: importWith('plain-import.ts', plain, ['--same-work']),
      product: importWith('../../local/commands/import.ts', product),
    }),
  };
}

function doorEvents(rows: number, run: number): string {
  const lines = Array.from({ length: rows }, (_, index) => {
    const employeeId = String(Math.floor(index / ROWS_PER_PARTITION)).padStart(6, '0');
    const eventId = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
    return `Run${run},${employeeId},2026110${1 + (index % 9)}12,${eventId},Main entrance`;
  });
  return ['department,employeeId,hour,eventId,door', ...lines, ''].join('\n');
}

/** Runs a script of the fixtures' app. Returns its milliseconds. */
async function runScript(script: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const since = performance.now();
  const child = spawn(process.execPath, ['--import', FIXTURES, file, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await eventOf(child, 'close');
  if (code !== 0) throw new Error(`${script} exited with code ${code}.`);
  return performance.now() - since;
}

/** The orders of the sides that settle index entries through the queue. */
export const CUSTOMER = 'BENCH';
const ORDER_DATE = '2026-11-20';

/**
 * The queue function. The host is suspended while the queue is filled; a round lasts from its continuation until the queue
 * is empty. The plain function reads the entity and writes its index entry, under the same host, which receives and
 * deletes the messages. With the same work, it does every storage call of the product one after the other.
 */
export function reconcileComparison({ queued, plainFunction }: Servers, messages: number): Comparison {
  const drain = (server: Measured, queue: string, fill: () => Promise<unknown>): Side => ({
    async round() {
      process.kill(server.process, 'SIGSTOP');
      try {
        await pMap(Array.from({ length: messages }), fill, { concurrency: FILLING_CONCURRENCY });
      } finally {
        process.kill(server.process, 'SIGCONT');
      }
      return measureWork([server.process], async () => {
        await waitUntil(() => isEmpty(server, queue), `the queue ${queue}`);
        return messages;
      });
    },
  });
  return {
    name: 'Reconcile from the queue',
    callers: [1],
    maxRounds: 3,
    prepare: async () => ({
      plain: drain(plainFunction, PLAIN_QUEUE, plainFill(plainFunction, { isReminded: false })),
      [SAME_WORK]: drain(plainFunction, PLAIN_QUEUE, plainFill(plainFunction, { isReminded: true })),
      product: drain(queued, engineReconcile.INDEX_CHANGES_QUEUE, await productFill(queued)),
    }),
  };
}

let productOrders = 0;

/** Creates an order, which has one index entry. Returns its number. */
export async function productFill({ storage: connectionString }: Measured): Promise<() => Promise<number>> {
  const auth = { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' };
  const { store } = leaveToQueue(createRowkey({ model, storage: { connectionString }, auth }));
  await store.customers.put({ city: 'Bench', customerId: CUSTOMER }, { companyName: 'Bench' });
  return async () => {
    const orderId = ++productOrders;
    await store.orders.create({ customerId: CUSTOMER, orderId, orderDate: ORDER_DATE });
    return orderId;
  };
}

let plainOrders = 0;

export function plainFill({ storage }: Measured, options: { readonly isReminded: boolean }): () => Promise<number> {
  const code = createPlainCode(storage);
  return async () => {
    const orderId = ++plainOrders;
    const row = toRow(orderId);
    await code.writeRow('plainrows', { partitionKey: CUSTOMER, rowKey: row, orderDate: ORDER_DATE, orderId });
    const source = { table: 'plainrows', partition: CUSTOMER, row };
    const entry = { table: 'plainentries', partition: `${ORDER_DATE}_${orderId % 8}`, row: `${row}_${CUSTOMER}` };
    await code.announce({ source, entry }, options);
    return orderId;
  };
}

export function toRow(orderId: number): string {
  return String(orderId).padStart(8, '0');
}
