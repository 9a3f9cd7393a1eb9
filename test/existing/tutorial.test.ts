import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { TableClient } from '@azure/data-tables';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { localConnections } from '../../local/cli/open-accounts.ts';
import { openApp } from '../open-app.ts';
import { PATIENCE_MS } from '../patience.ts';
import { ROOT, removeProgress, startCommand } from '../start-process.ts';
import { testStorage } from '../storage.ts';
import { type ExistingTable, existingRows, loadRows, openTable, readRows } from './tables.ts';

/** docs/tutorial-existing-tables.md: its files are those of an app, and its commands are run in their order, beside writes as .NET makes them. */

const tags = ['slow'];
const page = await readFile(join(ROOT, 'docs', 'tutorial-existing-tables.md'), 'utf8');
const blocksOf = (language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(([, text = '']) => text);
const [declared = '', indexed = '', copied = ''] = blocksOf('ts');
/** The commands of each step. */
const steps = blocksOf('sh').map((text) => text.trim().split('\n'));
const [inspect = [], check = [], read = [], index = [], write = [], copy = [], switchOver = [], back = []] = steps;

const FUNCTIONS = `
import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, registerFunctions } from 'rowkey';
import { model } from './model.ts';
export const rowkey = createRowkey({ model, ...fromEnvironment(process.env) });
registerFunctions(app, rowkey, { routePrefix: '' });
`;
/** The model with the index of the page. */
const followed = declared
  .replace(/^ {2}existing: \{ properties: \{ orderNo.*\n/m, indexed)
  .replace('defineModel }', 'defineModel, interPartitionIndex }');
const written = followed.replace('follow: 60, readOnly: true', 'follow: 60');
const orders = `import { defineEntity, defineModel } from 'rowkey';
import { z } from 'zod';
${copied}
export const model = defineModel({ roles: ['reader', 'editor'], operatorRole: 'editor', entities: [orders] });
`;

let folder: string;
let own: Awaited<ReturnType<typeof startCommand>>;
let connection: string;
const clients = {} as Record<ExistingTable, TableClient>;
const appFolder = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-existing-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  for (const name of ['shop', 'new']) {
    await mkdir(appFolder(name));
    await cp(join(ROOT, 'host.json'), join(appFolder(name), 'host.json'));
    await writeFile(join(appFolder(name), 'package.json'), '{ "type": "module", "main": "functions.ts" }');
    await save(name, 'functions.ts', FUNCTIONS);
  }
  await save('shop', 'model.ts', declared);
  own = await startCommand(join(appFolder('shop'), '.rowkey'), ['--app', appFolder('shop')], { deployed: true });
  const found = await localConnections(join(appFolder('shop'), '.rowkey'));
  connection = found?.strings[0] ?? '';
  await load('ShopData', /"PartitionKey":"C-0000[0-4]\d"/);
  await load('RequestLog', /./);
  await load('Identity', /"PartitionKey":"user_0000[01]\d"/);
});
afterAll(async () => {
  await own?.end();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function save(name: string, file: string, text: string): Promise<void> {
  const library = pathToFileURL(join(ROOT, 'lib', 'index.ts')).href;
  await writeFile(join(appFolder(name), file), text.replaceAll("'rowkey'", `'${library}'`));
}

async function load(table: ExistingTable, isWanted: RegExp): Promise<void> {
  clients[table] = openTable(connection, table);
  await loadRows(
    clients[table],
    existingRows(table).filter((row) => isWanted.test(row)),
  );
}

/** Runs a command of the page in the folder of an app. Returns what it prints. */
async function run(line: string, { name = 'shop', env = {} }: { name?: string; env?: Record<string, string> } = {}) {
  const rowkey = `"${process.execPath}" "${join(ROOT, 'local', 'commands', 'rowkey.ts')}"`;
  const command = line.replace('npx rowkey', rowkey).replace(/^curl/, 'curl -sS --fail-with-body');
  const given = { ...process.env, NO_COLOR: '1', ...env };
  const ended = promisify(execFile)('sh', ['-c', command], { cwd: appFolder(name), env: given });
  const { stdout, stderr, code } = await ended.then(
    (printed) => ({ ...printed, code: 0 }),
    (error) => error,
  );
  return { code, said: removeProgress(`${stdout}${stderr}`), stdout: String(stdout) };
}

/** Runs the requests of a step. Returns the bodies of their responses. */
async function ask(lines: readonly string[]) {
  const { stdout } = await run('npx rowkey token --role editor,reader');
  const env = { TOKEN: stdout.trim(), API: `${own.url}/api` };
  const bodies = [];
  for (const line of lines) {
    const { code, said, stdout: body } = await run(line, { env });
    expect(code, said).toBe(0);
    bodies.push(JSON.parse(body));
  }
  return bodies;
}

test('the page has 900 words at most, and its steps are these', { tags }, () => {
  expect(page.split(/\s+/).length).toBeLessThanOrEqual(900);
  expect(steps.map((lines) => lines.length)).toEqual([1, 1, 4, 3, 1, 3, 3, 1]);
});

test('from the tables of another program to an app with tables of its own, and back', { tags }, async () => {
  // 1. The proposal is a model, and says what the page shows.
  const [proposing = ''] = inspect;
  const env = { INSPECT_CONNECTION: connection };
  expect((await run(proposing.replace(/^\S+ /, ''), { env })).code).toBe(0);
  const proposal = await readFile(join(appFolder('shop'), 'proposed.ts'), 'utf8');
  for (const line of blocksOf('text').join('').trim().split('\n')) expect(proposal).toContain(line);

  // 2. and 3. Nothing is written, and all is read.
  const before = await readRows(clients.ShopData);
  expect((await run(check[0] ?? '')).said).toContain('Nothing is wrong: 4 entities');
  const [customer, ofCustomer, lastRequests, user] = await ask(read);
  expect(customer).toMatchObject({ customerId: 17, tier: expect.any(String), loyaltyPoints: expect.any(String) });
  expect(ofCustomer.items.length).toBeGreaterThan(0);
  const times = lastRequests.items.map(({ loggedOn }: { loggedOn: string }) => loggedOn);
  expect(times).toEqual(times.toSorted().toReversed());
  expect(times).toHaveLength(5);
  expect(user).toMatchObject({ userId: '000017', userName: expect.any(String) });
  expect(await readRows(clients.ShopData)).toEqual(before);

  // 4. The index, built beside the other program.
  await save('shop', 'model.ts', followed);
  const [reindex = '', verify = '', byNumber = ''] = index;
  const built = await vi.waitFor(
    async () => {
      const { code, said } = await run(reindex);
      expect(code, said).toBe(0);
      return said;
    },
    { timeout: PATIENCE_MS, interval: 1_000 },
  );
  expect(built).toMatch(/rows checked: \d+ of \d+ missing rows added to the index byNumber/);
  expect((await run(verify)).said).toContain('0 do not agree');
  const [found] = await ask([byNumber]);
  expect(found).toMatchObject({ customerId: 1, orderNo: 4284 });
  await clients.ShopData.updateEntity({ partitionKey: 'C-000001', rowKey: 'order-00004284', Status: 'Paid' }, 'Merge');
  await clients.ShopData.deleteEntity('C-000017', 'customer');

  // 5. A write keeps what is not declared.
  await save('shop', 'model.ts', written);
  const [patched] = await vi.waitFor(() => ask(write), { timeout: PATIENCE_MS, interval: 1_000 });
  expect(patched).toMatchObject({ note: 'By phone', status: 'Paid' });
  const isOrder = (row: string) => row.includes('"RowKey":"order-00004284"');
  const order = (await readRows(clients.ShopData)).find(isOrder) ?? '';
  expect(order).toContain('"TotalCents@odata.type":"Edm.Int64"');
  expect(order).toContain('"Note":"By phone"');

  // 6. The copy, with changes between its runs.
  await save('new', 'model.ts', orders);
  await save('new', 'source.ts', written);
  const { model } = await import(pathToFileURL(join(appFolder('new'), 'model.ts')).href);
  const target = openApp(import.meta.url, model);
  await target.provision();
  const common = { name: 'new', env: { COPY_FROM: connection, AzureWebJobsStorage: testStorage(import.meta.url) } };
  const isOld = /"RowKey":"order-/;
  const count = before.filter((row) => isOld.test(row)).length.toLocaleString('en-US');
  const [dryRun = '', first = '', next = ''] = copy;
  expect((await run(dryRun, common)).said).toContain(`orders: ${count} rows, ${count} to write`);
  expect((await run(first, common)).said).toContain(`orders: ${count} rows, ${count} created`);
  await clients.ShopData.updateEntity(
    { partitionKey: 'C-000001', rowKey: 'order-00004284', Status: 'Shipped' },
    'Merge',
  );
  expect((await run(next, common)).said).toContain('1 changed');

  // 7. The last changes, and no difference.
  const gone = before.find((row) => isOld.test(row) && !isOrder(row)) ?? '';
  const { PartitionKey, RowKey } = JSON.parse(gone);
  await clients.ShopData.deleteEntity(PartitionKey, RowKey);
  const ended = [];
  for (const line of switchOver) ended.push(await run(line, common));
  expect(ended[0]?.code).toBe(0);
  expect(ended[1]?.said).toContain('1 extra entities deleted.');
  expect(ended[2]?.said).toContain('0 differences.');

  // 8. The old program gets what the new app has written.
  const store = target.store as unknown as { orders: { update(key: object, values: object): Promise<unknown> } };
  await store.orders.update({ customerId: 1, orderNo: 4284 }, { note: 'By post' });
  const returned = await run(back[0] ?? '', common);
  expect(returned.code, returned.said).toBe(0);
  const after = (await readRows(clients.ShopData)).find(isOrder) ?? '';
  const withoutOwn = (row: string) =>
    Object.entries(JSON.parse(row)).filter(([name]) => !/^Rowkey|^(Note|Status)$/.test(name));
  expect(withoutOwn(after)).toEqual(withoutOwn(order));
  expect(JSON.parse(after)).toMatchObject({ Note: 'By post', Status: 'Shipped' });
});
