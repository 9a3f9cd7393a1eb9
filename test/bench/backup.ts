import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import pMap from 'p-map';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, intraPartitionIndex } from '../../lib/define.ts';
import { createRowkey } from '../../lib/index.ts';
import { startAzurite } from '../../local/instance/azurite.ts';
import { apiCalls } from '../kit/api.ts';
import { engineCore } from '../kit/engine.ts';
import { operationsBackup, operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageBlobs, storageJournal, storageTables } from '../kit/storage.ts';
import { log } from '../silent-log.ts';
import { compare, type Effort, measureWork, type Result, repeat, type Side, waitUntil } from './measure.ts';
import { formatEnvironment, formatLine, formatTable } from './report.ts';

/** What a backup takes: writes with it and without it, and snapshots and a restore beside a plain export and import of the same rows. */

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
const ROWS = 10_000;
const PARTITION = 100;
const WRITERS = 16;
const TEXT = 'x'.repeat(400);
const ROUNDS = 3;
/** One in a hundred partitions changes before an increment. */
const CHANGED = ROWS / PARTITION / 100;
const WITH = 'with a backup';
/** Each in a storage account of its own. */
const NAMES = ['app', 'plain', 'backup', 'other'] as const;

/** Counts the requests of everything that has the client. */
function countRequests() {
  const inner = createDefaultHttpClient();
  let requests = 0;
  const httpClient: HttpClient = {
    sendRequest(request) {
      requests += 1;
      return inner.sendRequest(request);
    },
  };
  const count = async (work: () => Promise<unknown>) => {
    const before = requests;
    await work();
    return requests - before;
  };
  return { httpClient, count };
}

const partitions = Array.from({ length: ROWS / PARTITION }, (_, index) => `pad${index}`);
const ids = Array.from({ length: PARTITION }, (_, index) => String(index));

async function openWorld() {
  const [first, ...further] = NAMES.map((name) => ({ name, key: randomBytes(64).toString('base64') }));
  if (!first) throw new Error('No account is named.');
  const azurite = await startAzurite({ folder: undefined, accounts: [first, ...further] });
  const { httpClient, count } = countRequests();
  const at = (name: (typeof NAMES)[number]) => ({ connectionString: azurite.connectionString(name), httpClient });
  const plain = createRowkey({ model: plainModel, storage: at('plain'), auth });
  const app = createRowkey({ model, storage: at('app'), backup: at('backup'), auth });
  await Promise.all([plain.provision(), app.provision()]);
  await plain.runtime.readyEngine(log);
  const engine = await app.runtime.readyEngine(log);
  const fill = (pads: readonly string[], text: string) =>
    pMap(pads, (pad) => app.store.notes.batch(ids.map((noteId) => ({ put: { pad, noteId, text } }))), {
      concurrency: WRITERS,
    });
  return { azurite, at, plain, app, engine, count, fill };
}

type World = Awaited<ReturnType<typeof openWorld>>;
type Transactions = readonly [what: string, plain: number | string, backedUp: number | string];

/** Measures, and writes the chapter. */
export async function reportBackup({ milliseconds, rounds }: Pick<Effort, 'milliseconds' | 'rounds'>): Promise<string> {
  const environment = formatEnvironment();
  const world = await openWorld();
  try {
    const counted = await countWrites(world);
    await world.fill(partitions, TEXT);
    const work = await compareWork(world);
    // Last, because a restore builds the indexes of everything that they create.
    const written = await compareWrites(world, { milliseconds, rounds });
    return formatChapter({ environment, counted: [...counted, ...work.counted], written, worked: work.results });
  } finally {
    await world.azurite.stop();
  }
}

/** The transactions of each kind of write, without another one beside it, and of an update with 15 others beside it. */
async function countWrites({ plain, app, count }: World): Promise<Transactions[]> {
  const key = { pad: 'p', noteId: '1' };
  const person = { team: 't', personId: '1', email: 'a@x', town: 'Bern' };
  const update = ({ store }: typeof app | typeof plain, index: number) =>
    store.notes.put({ pad: 'many', noteId: String(index) }, { text: 'y' });
  const kinds = {
    'Put of a row alone': ({ store }) => store.notes.put(key, { text: 'x' }),
    'Update of a row alone': ({ store }) => store.notes.update(key, { text: 'y' }),
    'Delete of a row alone': ({ store }) => store.notes.delete(key),
    'Create with indexes': ({ store }) => store.people.create(person),
    'Delete with indexes': ({ store }) => store.people.delete({ team: 't', personId: '1' }),
  } satisfies Record<string, (side: typeof app | typeof plain) => Promise<unknown>>;
  const found: Transactions[] = [];
  for (const side of [plain, app]) await side.store.notes.put({ pad: 'warm', noteId: '1' }, { text: '' });
  for (const [name, work] of Object.entries(kinds))
    found.push([name, await count(() => work(plain)), await count(() => work(app))]);
  const many = Array.from({ length: 400 }, (_, index) => index);
  const each = async (side: typeof app | typeof plain) => {
    const all = await count(() => pMap(many, (index) => update(side, index), { concurrency: WRITERS }));
    return (all / many.length).toFixed(2);
  };
  return [...found, [`Put of a row alone, of each of ${WRITERS} writers`, await each(plain), await each(app)]];
}

async function compareWrites({ plain, app }: World, effort: Pick<Effort, 'milliseconds' | 'rounds'>) {
  let number = 0;
  const put = ({ store }: typeof app | typeof plain) =>
    repeat({ operation: () => store.notes.put({ pad: `p${number % 100}`, noteId: String(number++) }, { text: 'x' }) });
  const create = ({ store }: typeof app | typeof plain) =>
    repeat({
      operation: () => {
        const personId = String(number++);
        return store.people.create({ team: `t${number % 100}`, personId, email: `${personId}@x`, town: 'Bern' });
      },
    });
  const results: Result[] = [];
  for (const [name, side] of [
    ['Put of a row alone', put],
    ['Create with indexes', create],
  ] as const)
    for (const callers of [1, WRITERS]) {
      const result = await compare(name, { plain: side(plain), [WITH]: side(app) }, { ...effort, callers });
      console.log(formatLine(result));
      results.push(result);
    }
  return results;
}

/** Snapshots and restores, each beside a plain export or import of the same rows. */
async function compareWork({ at, engine, count, fill }: World) {
  const { backup } = engine.storage;
  if (!backup) throw new Error('The app has no backup.');
  let number = 0;
  const counted: Transactions[] = [];
  /** A side whose preparation is not measured. */
  const side = <Input>(prepare: () => Promise<Input>, work: (input: Input) => Promise<unknown>): Side => ({
    async round() {
      const input = await prepare();
      return measureWork([process.pid], async () => {
        last = await count(() => work(input));
        return ROWS;
      });
    },
  });
  let last = 0;
  const nothing = async () => undefined;
  const notesOf = async (name: string) => {
    const table = storageAccounts.openStorage(at('other'), name).table('notes');
    await table.createTable();
    return table;
  };
  const rows = engine.storage.table('notes');
  const exported = side(nothing, async () => {
    const lines: string[] = [];
    for await (const page of rows.listEntities().byPage({ maxPageSize: 1_000 }))
      lines.push(...page.map((row) => JSON.stringify(row)));
    const address = { container: 'backup', name: `plain/${number++}.ndjson.gz` };
    await storageBlobs.writeBlob(backup, address, gzipSync(lines.join('\n')), { type: 'application/gzip' });
  });
  const imported = side(
    () => notesOf(`plain${number++}`),
    (table) =>
      pMap(
        partitions,
        (partitionKey) =>
          table.submitTransaction(
            ids.map((rowKey) => ['create', { partitionKey, rowKey, EntityType: 'notes', text: TEXT }]),
          ),
        { concurrency: WRITERS },
      ),
  );
  const snapshot = (to = backup) =>
    operationsBackup.takeSnapshot({ ...engine, storage: { ...engine.storage, backup: to } }, model.list, { days: 35 });
  const first = side(
    async () => {
      const storage = storageAccounts.openStorage(at('backup'), `first${number++}`);
      await storageTables.provision(storage, { tables: [], queues: [], containers: ['backup'] });
      return storage;
    },
    (to) => snapshot(to),
  );
  const increment = side(
    () => fill(partitions.slice(0, CHANGED), `changed ${number++}`),
    () => snapshot(),
  );
  const { finishedAt = '' } = await snapshot();
  await waitUntil(async () => Date.now() > Date.parse(finishedAt), 'the end of a snapshot');
  const restored = side(
    async () => {
      const target = storageAccounts.openStorage(at('other'), `restored${number++}`);
      await storageTables.provision(target, operationsModel.resourcesOf(model.list, Date.now(), {}));
      return engineCore.createEngine(target);
    },
    (target) =>
      operationsBackup.restoreBackup(target, model, {
        source: { backup, storage: engine.storage },
        at: storageJournal.toTime(Date.now()) ?? '',
        erase: (of, subject) => apiCalls.eraseAll(of, model, subject),
      }),
  );
  const results: Result[] = [];
  for (const [name, plain, work] of [
    ['First snapshot', exported, first],
    ['Snapshot after 1 % of the rows have changed', exported, increment],
    ['Restore', imported, restored],
  ] as const) {
    const result = await compare(name, { plain, [WITH]: work }, { callers: 1, milliseconds: 0, rounds: ROUNDS });
    console.log(formatLine(result));
    results.push(result);
    await plain.round({ callers: 1, milliseconds: 0 });
    const ofPlain = last;
    await work.round({ callers: 1, milliseconds: 0 });
    counted.push([name, ofPlain, last]);
  }
  return { results, counted };
}

interface Measured {
  readonly environment: string;
  readonly counted: readonly Transactions[];
  readonly written: readonly Result[];
  readonly worked: readonly Result[];
}

const count = (value: number | string) => (typeof value === 'number' ? value.toLocaleString('en-US') : value);

function formatChapter({ environment, counted, written, worked }: Measured): string {
  const sides = [WITH, 'plain'] as const;
  return `## Backup

The app [with a backup](../backup.md) to the same app without, both in one process. A put of a row alone takes the least, so the append to the journal weighs the most there. Concurrent changes share appends.
${environment}.

${formatTable(written, sides)}

Snapshots and a restore of ${count(ROWS)} rows in ${count(partitions.length)} partitions, to a plain export of the rows to one compressed blob and a plain import by ${WRITERS} loops of transactions of ${PARTITION} rows. The figures are those of a row. Besides the rows, a snapshot
reads those of other tables, and a restore reads back what it wrote, and builds and verifies indexes.

${formatTable(worked, sides)}

Storage transactions of all accounts. Without a backup, those of the last three rows are of the export and the import:

| | Without | With a backup |
|---|---:|---:|
${counted.map(([what, plain, backedUp]) => `| ${what} | ${count(plain)} | ${count(backedUp)} |`).join('\n')}
`;
}
