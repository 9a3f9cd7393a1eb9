import { execFile } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { odata } from '@azure/data-tables';
import { fillResidents, residentOf, TOWN } from './growth.ts';
import { type GrowthWorld, openGrowthWorld } from './growth-world.ts';
import { compare, repeat, type Side } from './measure.ts';
import { formatRatio } from './report.ts';

/**
 * What a team may use instead, on the same emulator. The packages are installed into a temporary folder, so that the project
 * does not depend on them.
 */

const PACKAGES = ['@nestjs/azure-database@3.0.0', 'electrodb@3.9.3', 'dynalite@4.0.0', '@aws-sdk/client-dynamodb@3'];
const PAGE = 'docs/internals/benchmarks/alternatives.md';
const ENTITIES = 2_000;
const EFFORT = { rounds: 5, milliseconds: 500, callers: 1 };

type Operation = () => Promise<unknown>;
const TASKS = ['get by key', 'find by e-mail address', 'create'] as const;
type Ways = Readonly<Record<(typeof TASKS)[number], Operation>>;

let created = 3_000_000;
const anyResident = () => residentOf(Math.floor(Math.random() * ENTITIES));

/** Installs, measures, and writes the page. */
export async function reportAlternatives(environment: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-alternatives-'));
  const world = await openGrowthWorld();
  try {
    await writeFile(join(folder, 'package.json'), '{}');
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES], {
      cwd: folder,
    });
    await fillResidents(world, ENTITIES);
    const load = createRequire(join(folder, 'package.json'));
    const dynamo = await openElectro(load);
    const ways: Record<string, Ways> = {
      product: productWays(world),
      'SDK samples': sampleWays(world),
      '@nestjs/azure-database': nestWays(world, load),
      'ElectroDB on dynalite': dynamo.ways,
    };
    const rows: string[] = [];
    for (const task of TASKS) {
      const requests: Record<string, number> = {};
      for (const [name, way] of Object.entries(ways)) requests[name] = await countRequests(way[task]);
      const { product, ...others } = Object.fromEntries(
        Object.entries(ways).map(([name, way]): [string, Side] => [name, repeat({ operation: way[task] })]),
      );
      if (!product) continue;
      const { rounds } = await compare(task, { ...others, plain: product }, EFFORT);
      for (const name of Object.keys(ways))
        rows.push(
          `| ${task} | ${name} | ${requests[name]} | ${name === 'product' ? '1' : formatRatio(rounds[name] ?? [], rounds.plain ?? [], 'p50')} |`,
        );
    }
    await dynamo.stop();
    await writeFile(PAGE, formatChapter(rows, environment));
  } finally {
    await world.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function productWays({ store }: GrowthWorld): Ways {
  return {
    'get by key'() {
      const { town, residentId } = anyResident();
      return store.residents.get({ town, residentId });
    },
    'find by e-mail address': () => store.residents.by.email({ email: anyResident().email }),
    create: () => store.residents.create(residentOf(created++)),
  };
}

/** As in the samples of @azure/data-tables: one table, and a filter for everything that is not the key. */
function sampleWays({ plainTable }: GrowthWorld): Ways {
  const table = plainTable('residents');
  return {
    'get by key': () => table.getEntity(TOWN, `id_${anyResident().residentId}`),
    'find by e-mail address': () =>
      Array.fromAsync(table.listEntities({ queryOptions: { filter: odata`email eq ${anyResident().email}` } })),
    create: () => {
      const resident = residentOf(created++);
      return table.createEntity({ partitionKey: 'Samples', rowKey: resident.residentId, ...resident });
    },
  };
}

/** Its repository reads by key, or the whole table. */
function nestWays({ plainTable, storage }: GrowthWorld, load: NodeJS.Require): Ways {
  const { AzureTableStorageRepository } = load('@nestjs/azure-database');
  const { Logger } = load('@nestjs/common');
  Logger.overrideLogger(false);
  const { TableClient } = load('@azure/data-tables');
  const { tableName } = plainTable('residents');
  const tableClientInstance = TableClient.fromConnectionString(storage.connectionString, tableName, {
    allowInsecureConnection: true,
  });
  const repository = new AzureTableStorageRepository({ tableClientInstance }, tableName, {});
  return {
    'get by key': () => repository.find(TOWN, `id_${anyResident().residentId}`),
    async 'find by e-mail address'() {
      const { email } = anyResident();
      const all: { readonly email: string }[] = await repository.findAll();
      return all.find((each) => each.email === email);
    },
    create: () => {
      const resident = residentOf(created++);
      return repository.create({ partitionKey: 'Nest', rowKey: resident.residentId, ...resident });
    },
  };
}

const MAX_BATCH = 25;

/** Another database: shows the number of requests, and not what DynamoDB costs or how fast it is. */
async function openElectro(load: NodeJS.Require): Promise<{ ways: Ways; stop: () => Promise<void> }> {
  const server = load('dynalite')({ createTableMs: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { DynamoDBClient, CreateTableCommand } = load('@aws-sdk/client-dynamodb');
  const { Entity } = load('electrodb');
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const endpoint = `http://127.0.0.1:${server.address().port}`;
  const client = new DynamoDBClient({ endpoint, region: 'local', credentials });
  const attribute = (AttributeName: string) => ({ AttributeName, AttributeType: 'S' });
  const keys = (hash: string, range: string) => [
    { AttributeName: hash, KeyType: 'HASH' },
    { AttributeName: range, KeyType: 'RANGE' },
  ];
  await client.send(
    new CreateTableCommand({
      TableName: 'residents',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: ['pk', 'sk', 'gsi1pk', 'gsi1sk'].map(attribute),
      KeySchema: keys('pk', 'sk'),
      GlobalSecondaryIndexes: [
        { IndexName: 'gsi1', KeySchema: keys('gsi1pk', 'gsi1sk'), Projection: { ProjectionType: 'ALL' } },
      ],
    }),
  );
  const text = { type: 'string', required: true };
  const residents = new Entity(
    {
      model: { entity: 'resident', version: '1', service: 'bench' },
      attributes: { town: text, residentId: text, name: text, email: text, street: text },
      indexes: {
        byKey: { pk: { field: 'pk', composite: ['town'] }, sk: { field: 'sk', composite: ['residentId'] } },
        byEmail: {
          index: 'gsi1',
          pk: { field: 'gsi1pk', composite: ['email'] },
          sk: { field: 'gsi1sk', composite: [] },
        },
      },
    },
    { client, table: 'residents' },
  );
  const all = Array.from({ length: ENTITIES }, (_, index) => residentOf(index));
  for (let at = 0; at < all.length; at += MAX_BATCH) await residents.put(all.slice(at, at + MAX_BATCH)).go();
  return {
    ways: {
      'get by key'() {
        const { town, residentId } = anyResident();
        return residents.get({ town, residentId }).go();
      },
      'find by e-mail address': () => residents.query.byEmail({ email: anyResident().email }).go(),
      create: () => residents.create(residentOf(created++)).go(),
    },
    async stop() {
      client.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Every HTTP request of this process, whichever package sends it. */
async function countRequests(operation: Operation): Promise<number> {
  await operation();
  let requests = 0;
  const count = () => {
    requests += 1;
  };
  subscribe('http.client.request.start', count);
  await operation();
  unsubscribe('http.client.request.start', count);
  return requests;
}

function formatChapter(rows: readonly string[], environment: string): string {
  return `# What a team may use instead

\`npm run bench -- --compare\` writes this page: it installs the packages into a temporary folder and measures them on one emulator.

${ENTITIES.toLocaleString('en')} entities, one caller, in one process. The last column is the ratio of the alternative to the product: **median** (least–most of the rounds; its median : that of the product). ${environment}.

| Work | With | Requests | Time, ms |
|---|---|---:|---|
${rows.join('\n')}

- **SDK samples**: the code of the samples of \`@azure/data-tables\`. A value that is not in the key is found with a filter, for which storage reads the whole table. The emulator does so in 1 request; the service returns a continuation token at a partition boundary and after 5 seconds. Nothing keeps an e-mail address unique.
- **The table input binding of Azure Functions** sends the same requests: by key, or a \`filter\` with \`take\`. The local host has no bindings for tables, so it has no row of its own.
- **@nestjs/azure-database** is the only package on npm found with a repository for Table storage; its last version is of December 2024. It reads by key or reads everything, has no index, no unique value and no transaction.
- **ElectroDB** models DynamoDB, which keeps the index itself, later than the write. It has no counterpart for Table storage. dynalite is an emulator in this process, so only its number of requests can be compared. A unique value would be a second item and a transaction.
- The create of the product claims the e-mail address, keeps the index and survives a crash at any point; the others write one row.
`;
}
