import { setTimeout as sleep } from 'node:timers/promises';
import { TableClient } from '@azure/data-tables';
import { engineReconcile } from '../kit/engine.ts';
import { send } from './http.ts';
import { type Comparison, repeat, SAME_WORK, type Side, toRound, waitUntil } from './measure.ts';
import { PLAIN_QUEUE } from './plain.ts';
import { isEmpty, type Measured, type Servers } from './servers.ts';
import { CUSTOMER, plainFill, productFill, toRow } from './work.ts';

/** How far index entries that the queue settles are behind their entities, and what settling them does to other requests. */

const RATES = [1, 10, 100];
const WRITES = 6;
const MAX_SECONDS = 6;
const MIN_SECONDS = 3;
const BESIDE_PER_SECOND = 20;
/** After a write, the emulator saves all its data every five seconds and serves nothing meanwhile. A round as long has one save. */
const BESIDE_MS = 5_000;

interface Settled {
  readonly server: Measured;
  readonly queue: string;
  /** The table of the entities, and that of the index. */
  readonly tables: readonly [string, string];
  /** Writes an entity and returns its number. */
  readonly fill: () => Promise<number>;
  readonly read: string;
}

/** The callers of a result are its writes a second. */
export function lagComparison(servers: Servers): Comparison {
  return {
    name: 'Index entry behind its write, by writes a second',
    callers: RATES,
    maxRounds: 2,
    async prepare() {
      const { plain, product } = await toSettled(servers);
      return { plain: lag(plain), product: lag(product) };
    },
  };
}

/** GET by key, while the same host settles the index entries of other writes. */
export function besideComparison(servers: Servers): Comparison {
  return {
    name: `GET by key beside ${BESIDE_PER_SECOND} settled writes a second`,
    callers: [1],
    maxRounds: 3,
    async prepare() {
      const { plain, product } = await toSettled(servers);
      // The emulator is as busy for these reads of the plain code as for those of the product.
      return { plain: beside(plain), [SAME_WORK]: beside(plain, product), product: beside(product) };
    },
  };
}

async function toSettled({ queued, plainFunction }: Servers): Promise<Record<'plain' | 'product', Settled>> {
  const fill = { plain: plainFill(plainFunction, { isReminded: false }), product: await productFill(queued) };
  const row = toRow(await fill.plain());
  const query = new URLSearchParams({ table: 'plainrows', partition: CUSTOMER, row });
  return {
    plain: {
      server: plainFunction,
      queue: PLAIN_QUEUE,
      tables: ['plainrows', 'plainentries'],
      fill: fill.plain,
      read: `/row?${query}`,
    },
    product: {
      server: queued,
      queue: engineReconcile.INDEX_CHANGES_QUEUE,
      tables: ['orders', 'ordersbydate'],
      fill: fill.product,
      read: `/orders/${CUSTOMER}/${await fill.product()}`,
    },
  };
}

/** The time between the two rows is that of their timestamps, which storage sets, so no poll adds to the load. */
function lag(settled: Settled): Side {
  return {
    async round({ callers: perSecond }) {
      const seconds = Math.min(MAX_SECONDS, Math.max(MIN_SECONDS, WRITES / perSecond));
      const since = performance.now();
      const written = await writeAt(settled, perSecond, () => performance.now() - since < seconds * 1_000);
      await untilSettled(settled);
      const took = performance.now() - since;
      const [entities, entries] = await Promise.all(settled.tables.map((table) => timestampsOf(settled, table)));
      const lags = written.map((id) => Number(entries?.get(id)) - Number(entities?.get(id)));
      return toRound(lags, { took, cpu: undefined });
    },
  };
}

/** Reads, while another server, or the same one, settles the index entries of writes. */
function beside(reads: Settled, settled = reads): Side {
  const { server, read } = reads;
  const side = repeat({ operation: () => send(server, { method: 'GET', path: read }) });
  return {
    async round(load) {
      let isOver = false;
      const writing = writeAt(settled, BESIDE_PER_SECOND, () => !isOver);
      const round = await side.round({ ...load, milliseconds: BESIDE_MS });
      isOver = true;
      await writing;
      await untilSettled(settled);
      return round;
    },
  };
}

function untilSettled({ server, queue }: Settled): Promise<void> {
  return waitUntil(() => isEmpty(server, queue), `the queue ${queue}`);
}

/** Starts each write on time, whether or not earlier ones are done. */
async function writeAt({ fill }: Settled, perSecond: number, isGoingOn: () => boolean): Promise<number[]> {
  const since = performance.now();
  const writes: Promise<number>[] = [];
  while (isGoingOn()) {
    writes.push(fill());
    await sleep(Math.max(0, since + (writes.length * 1_000) / perSecond - performance.now()));
  }
  return Promise.all(writes);
}

/** Milliseconds at which each order, or its index entry, was written. */
async function timestampsOf({ server }: Settled, table: string): Promise<Map<number, number>> {
  const client = TableClient.fromConnectionString(server.storage, table, { allowInsecureConnection: true });
  const rows = await Array.fromAsync(client.listEntities({ queryOptions: { select: ['RowKey', 'Timestamp'] } }));
  return new Map(rows.map(({ rowKey = '', timestamp = '' }) => [Number.parseInt(rowKey, 10), Date.parse(timestamp)]));
}
