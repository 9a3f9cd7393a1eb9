import { randomBytes } from 'node:crypto';
import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { InvalidArgumentError } from 'commander';
import pMap from 'p-map';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex } from '../../lib/define.ts';
import { createRowkey } from '../../lib/index.ts';
import { createCommand, run } from '../../local/cli/command.ts';
import { startAzurite } from '../../local/instance/azurite.ts';
import { apiCalls } from '../kit/api.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsBackup, operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageJournal, storageTables } from '../kit/storage.ts';
import { log } from '../silent-log.ts';

/** What a backup takes: transactions of writes with it and without it, a snapshot, an increment and a restore, on an emulator in memory. */

const access = { read: ['clerk'], write: ['clerk'] } as const;
const notes = defineEntity('notes', {
  schema: z.object({ pad: z.string(), noteId: z.string(), text: z.string() }),
  table: 'notes',
  key: { partition: '{pad}', row: '{noteId}' },
  access,
});
const people = defineEntity('people', {
  schema: z.object({ team: z.string(), personId: z.string(), email: z.string(), town: z.string() }),
  table: 'people',
  key: { partition: '{team}', row: 'id_{personId}' },
  indexes: {
    email: interPartitionIndex({ table: 'peoplebyemail', partition: '{email#}', row: '{email}', unique: true }),
    town: intraPartitionIndex({ row: 'town_{town}_{personId}' }),
  },
  access,
});
const common = { roles: ['clerk'], operatorRole: 'clerk', entities: [notes, people] } as const;
const plainModel = defineModel(common);
const model = defineModel({ ...common, backup: { days: 35 } });
const auth = { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' };
/** https://azure.microsoft.com/pricing/details/storage: 10,000 transactions of tables, and writes of blobs, LRS, West Europe. */
const DOLLARS = { table: 0.00036 / 10_000, blob: 0.054 / 10_000 };
const PARTITION = 100;
const WRITERS = 16;
const TEXT = 'x'.repeat(400);

interface Counts {
  table: number;
  queue: number;
  blob: number;
}

function countRequests(counts: Counts): HttpClient {
  const inner = createDefaultHttpClient();
  return {
    sendRequest(request) {
      const { port } = new URL(request.url);
      counts[services.get(port) ?? 'blob'] += 1;
      return inner.sendRequest(request);
    },
  };
}

const services = new Map<string, keyof Counts>();

await run(
  createCommand('Measures what a backup takes.')
    .option('--rows <number>', 'the rows of the app', toCount, 100_000)
    .action(({ rows }: { readonly rows: number }) => measure(rows)),
);

function toCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= PARTITION) return count;
  throw new InvalidArgumentError(`must be a whole number of at least ${PARTITION}`);
}

async function measure(rows: number): Promise<void> {
  const names = ['app', 'plain', 'backup', 'other'] as const;
  const [first, ...further] = names.map((name) => ({ name, key: randomBytes(64).toString('base64') }));
  if (!first) return;
  const azurite = await startAzurite({ folder: undefined, accounts: [first, ...further] });
  for (const service of ['table', 'queue', 'blob'] as const)
    services.set(new URL(azurite.endpoints[service]).port, service);
  const counts: Counts = { table: 0, queue: 0, blob: 0 };
  const httpClient = countRequests(counts);
  const at = (name: (typeof names)[number]) => ({ connectionString: azurite.connectionString(name), httpClient });
  const counted = async (work: () => Promise<unknown>) => {
    const [before, since] = [{ ...counts }, performance.now()];
    await work();
    const [table, queue, blob] = (['table', 'queue', 'blob'] as const).map((name) => counts[name] - before[name]);
    return { seconds: (performance.now() - since) / 1_000, table: table ?? 0, queue: queue ?? 0, blob: blob ?? 0 };
  };
  const say = (what: string, { seconds, table, queue, blob }: Awaited<ReturnType<typeof counted>>) => {
    const dollars = table * DOLLARS.table + blob * DOLLARS.blob;
    console.log(
      `${what}: ${seconds.toFixed(1)} s; requests to tables ${table}, queues ${queue}, blobs ${blob}; $${dollars.toFixed(5)} in Azure`,
    );
  };
  try {
    const plain = createRowkey({ model: plainModel, storage: at('plain'), auth });
    const app = createRowkey({ model, storage: at('app'), backup: at('backup'), auth });
    await Promise.all([plain.provision(), app.provision()]);
    const engine = await app.runtime.readyEngine(log);
    await plain.runtime.readyEngine(log);
    const warm = { pad: 'warm', noteId: 'a' };
    for (const { store } of [plain, app]) await store.notes.put(warm, { text: '' });
    for (const [what, { store }] of [
      ['without', plain],
      ['with', app],
    ] as const) {
      const key = { pad: 'p', noteId: '1' };
      const person = { team: 't', personId: '1', email: 'a@x', town: 'Bern' };
      say(`put ${what}`, await counted(() => store.notes.put(key, { text: 'x' })));
      say(`update ${what}`, await counted(() => store.notes.update(key, { text: 'y' })));
      say(`delete ${what}`, await counted(() => store.notes.delete(key)));
      say(`create with an index ${what}`, await counted(() => store.people.create(person)));
      say(`delete with an index ${what}`, await counted(() => store.people.delete({ team: 't', personId: '1' })));
    }
    const partitions = Array.from({ length: Math.floor(rows / PARTITION) }, (_, index) => `pad${index}`);
    const write = async (pad: string, text: string) => {
      const ids = Array.from({ length: PARTITION }, (_, index) => String(index));
      await app.store.notes.batch(ids.map((noteId) => ({ put: { pad, noteId, text } })));
    };
    say(
      `write ${rows} rows`,
      await counted(() => pMap(partitions, (pad) => write(pad, TEXT), { concurrency: WRITERS })),
    );
    const appends: number[] = [];
    const { journal } = engine.storage;
    if (!journal) return;
    const { append } = journal;
    journal.append = async (entry) => {
      const since = performance.now();
      await append(entry);
      appends.push(performance.now() - since);
    };
    const load = Array.from({ length: 4_000 }, (_, index) => index);
    const underLoad = (index: number) =>
      app.store.notes.update({ pad: `pad${index % partitions.length}`, noteId: String(index % 100) }, { text: 'z' });
    say('4000 updates by 16 writers', await counted(() => pMap(load, underLoad, { concurrency: WRITERS })));
    const sorted = appends.toSorted((one, other) => one - other);
    const quantile = (part: number) => sorted[Math.floor(sorted.length * part)]?.toFixed(1);
    console.log(`a change is in the backup after it was stored: p50 ${quantile(0.5)} ms, p99 ${quantile(0.99)} ms`);
    const snapshot = () => operationsBackup.takeSnapshot(engine, model.list, { days: 35 });
    let report = await snapshot().then((one) => one);
    say('again, unchanged', await counted(async () => (report = await snapshot())));
    console.log(
      `parts: ${report.parts.written} written, ${report.parts.reused} used again, ${report.bytes.total} bytes`,
    );
    await pMap(partitions.slice(0, 10), (pad) => write(pad, 'changed'), { concurrency: WRITERS });
    say('after 1000 rows changed', await counted(async () => (report = await snapshot())));
    console.log(`parts: ${report.parts.written} written, ${report.parts.reused} used again`);
    const target = storageAccounts.openStorage(at('other'), 'again');
    const { backup } = engine.storage;
    if (!backup) return;
    await storageTables.provision(target, operationsModel.resourcesOf(model.list, Date.now(), {}));
    const restored = engineCore.createEngine(target);
    const cut = storageJournal.toTime(Date.now()) ?? '';
    say(
      'restore to another account',
      await counted(() =>
        operationsBackup.restoreBackup(restored, model, {
          source: { backup, storage: engine.storage },
          at: cut,
          erase: (of, subject) => apiCalls.eraseAll(of, model, subject),
        }),
      ),
    );
  } finally {
    await azurite.stop();
  }
}
