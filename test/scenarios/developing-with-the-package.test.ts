import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { findCompiler } from '../infra/compiler.ts';
import { type InstalledPackage, installPackage } from '../installed-package.ts';
import { PATIENCE_MS } from '../patience.ts';

/** What the package gives an app that has no clone beside it: `npx rowkey dev`, `check`, `infra` and `package`. */

const tags = ['slow'];
const run = promisify(execFile);
const SETTINGS = {
  AzureWebJobsStorage: 'UseDevelopmentStorage=true',
  TOKEN_ISSUER: 'http://127.0.0.1:1',
  TOKEN_AUDIENCE: 'api://fleet',
  TOKEN_JWKS_URI: 'http://127.0.0.1:1/keys',
};

let app: InstalledPackage;
let source: string;
beforeAll(async () => {
  app = await installPackage(['azurite', 'rolldown']);
  source = await readFile(join(app.folder, 'app.ts'), 'utf8');
  await writeApp();
  await writeFile(join(app.folder, 'package.json'), JSON.stringify({ name: 'fleet', type: 'module', main: 'app.ts' }));
});
afterAll(() => app.remove());

/** Writes the app, with changes of its text. */
async function writeApp(...changes: readonly (readonly [from: string, to: string])[]): Promise<void> {
  let text = source;
  for (const [from, to] of changes) {
    expect(text).toContain(from);
    text = text.replace(from, to);
  }
  await writeFile(join(app.folder, 'app.ts'), text);
}

const options = () => ({
  cwd: app.folder,
  env: { PATH: `${join(process.execPath, '..')}:${process.env.PATH}`, HOME: app.folder },
});
/** Runs a line in a shell in the folder of the app, as its developer does. */
async function shell(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const [program, words] = ['sh', ['-c', line]] as const;
  return run(program, words, options()).then(
    (said) => ({ code: 0, ...said }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

const PAINTED: readonly (readonly [string, string])[] = [
  ["read: ['reader'], write: ['editor']", "read: ['reader', 'painter'], write: ['editor', 'painter']"],
  ["'editor', 'operator']", "'editor', 'operator', 'painter']"],
  ['model: z.string().optional()', 'model: z.string().optional(), colour: z.string().optional()'],
];
const NO_FIELD: readonly [string, string] = ["row: '{vehicleId}'", "row: '{vehicle}'"];

test('check says what is wrong, in which file and line, without a setting', { tags }, async () => {
  onTestFinished(() => writeApp());
  expect(await shell('npx rowkey check')).toEqual({
    code: 0,
    stdout: 'Nothing is wrong: 1 entity, 12 functions.\n',
    stderr: '',
  });
  await writeApp(NO_FIELD);
  expect(await shell('npx rowkey check')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^app\.ts could not be loaded: Entity "vehicles": the row key has the field "vehicle"/,
    ),
  });
  await writeApp(["defineModel({ roles: ['reader'", "defineModel({; roles: ['reader'"]);
  expect(await shell('npx rowkey check')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/app\.ts:\d+\n(.*\n)*SyntaxError/),
  });
  await writeApp(["route: 'api/check-in/{plate}'", "route: 'admin/check-in'"]);
  expect(await shell('npx rowkey check')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('reserved route admin/check-in'),
  });
  await writeApp();
  const host = await readFile(join(app.folder, 'host.json'), 'utf8');
  onTestFinished(() => writeFile(join(app.folder, 'host.json'), host));
  await writeFile(join(app.folder, 'host.json'), host.replace('"batchSize": 16', '"batchSize": 99'));
  expect(await shell('npx rowkey check')).toMatchObject({ code: 1, stderr: expect.stringContaining('batchSize') });
});

test('names a tool that is not installed, with the command that installs it', { tags }, async () => {
  expect(await shell('npx rowkey walk')).toMatchObject({
    code: 1,
    stderr:
      'The package fast-check is not installed, which this command needs: run npm install --save-dev fast-check.\n',
  });
});

test('says that a port is in use before it reads the app', { tags }, async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const { port } = server.address() as { port: number };
  await writeApp(NO_FIELD);
  onTestFinished(() => writeApp());
  expect(await shell(`npx rowkey dev --port ${port}`)).toMatchObject({
    code: 1,
    stderr: `Port ${port} is in use: stop what listens there, or choose another with --port.\n`,
  });
});

test('runs the printed requests, and loads a changed app without losing data', { tags }, async () => {
  const child = spawn('npx', ['rowkey', 'dev', '--port', '0'], { ...options(), detached: true });
  onTestFinished(async () => {
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    await vi.waitFor(() => expect(output).toContain('Stopped.'), { timeout: PATIENCE_MS });
    await writeApp();
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  const says = (text: string) => vi.waitFor(() => expect(output).toContain(text), { timeout: PATIENCE_MS });
  await says('Ctrl-C stops');
  const lines = output.split('\n').filter((line) => line.startsWith('curl'));
  expect(lines.length).toBe(4);
  for (const line of lines) {
    expect(line).toContain('$(npx rowkey token --role editor,reader)');
    const { stdout } = await shell(line);
    expect([line, stdout]).toEqual([line, expect.stringContaining('"vehicleId":"example"')]);
  }

  await writeApp(...PAINTED);
  await says('The changed app is loaded.');
  const url = /API {8}(\S+)\/api/.exec(output)?.[1];
  const create = async (role: string, body: object) => {
    const token = (await shell(`npx rowkey token --role ${role}`)).stdout.trim();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    return fetch(`${url}/api/vehicles`, { method: 'POST', headers, body: JSON.stringify(body) });
  };
  const red = await create('painter', { depot: 'north', vehicleId: '7', plate: 'EF 1', colour: 'red' });
  expect([red.status, await red.json()]).toMatchObject([201, { colour: 'red' }]);

  await writeApp(NO_FIELD);
  await says(
    'The former app continues, because the changed one is rejected:\napp.ts could not be loaded: Entity "vehicles"',
  );
  expect((await create('painter', { depot: 'north', vehicleId: '8', plate: 'EF 2', colour: 'blue' })).status).toBe(201);
  expect((await shell('npx rowkey verify vehicles')).stdout).toMatch(/^6 rows checked: 0 do not agree\.$/m);

  const otherKey = ["row: '{vehicleId}'", "row: 'vehicle_{vehicleId}'"] as const;
  await writeApp(...PAINTED, otherKey);
  const reason =
    /The model changed in a way .*: vehicles: the row changed from \{vehicleId\} to vehicle_\{vehicleId\}, and the table vehicles has rows .* npx rowkey purge vehicles\. To begin without the stored data, stop the instance and delete \.rowkey\./;
  await vi.waitFor(() => expect(output).toMatch(reason), { timeout: PATIENCE_MS });
  expect((await create('editor', { depot: 'north', vehicleId: '9', plate: 'EF 3' })).status).toBe(201);
  expect(await shell('npx rowkey check')).toMatchObject({ code: 1, stderr: expect.stringMatching(reason) });
  // The former app deletes the rows that are in the way.
  expect((await shell('npx rowkey purge vehicles --yes')).stdout).toBe('4 of 4 vehicles deleted.\n');
  expect((await shell('npx rowkey check')).stdout).toBe('Nothing is wrong: 1 entity, 12 functions.\n');
  const former = output.length;
  await writeApp(...PAINTED, otherKey);
  await vi.waitFor(() => expect(output.slice(former)).toContain('The changed app is loaded.'), {
    timeout: PATIENCE_MS,
  });
});

test('check says that it knows no stored data while no instance runs', { tags }, async () => {
  const data = join(app.folder, '.rowkey');
  await mkdir(data, { recursive: true });
  expect((await shell('npx rowkey check')).stdout).toBe(
    'Nothing is wrong: 1 entity, 12 functions.\nThe stored data was not compared, because no instance runs on .rowkey.\n',
  );
});

test('writes the template of the model once, and again what is not the app’s own', { tags }, async () => {
  onTestFinished(() => writeApp());
  const { stdout } = await shell('npx rowkey infra');
  expect(stdout).toContain('infra/main.bicep written.');
  expect(stdout).toContain('.github/workflows/deploy.yml written.');
  expect((await shell('npx rowkey infra')).stdout).toBe('infra is up to date.\n');
  const at = (path: string) => join(app.folder, path);
  expect(JSON.parse(await readFile(at('infra/model.json'), 'utf8')).tables).toContain('vehiclesbyplate');
  expect(await readFile(at('azure.yaml'), 'utf8')).toMatch(/^name: fleet$/m);
  for (const path of ['azure.yaml', '.github/workflows/deploy.yml', 'infra/main.bicep'])
    expect(await readFile(at(path), 'utf8')).not.toMatch(/npm run infra|(?<!rowkey\/)docs\/\w+\.md|# (begin|end) page/);
  expect(await readFile(at('azure.yaml'), 'utf8')).not.toContain('staticwebapp');

  const own = (await readFile(at('infra/dev.bicepparam'), 'utf8')).replace('budgetAmount = 20', 'budgetAmount = 50');
  await writeFile(at('infra/dev.bicepparam'), own);
  await writeApp(["table: 'vehiclesbyplate'", "table: 'byplate'"]);
  expect(await shell('npx rowkey infra --check')).toMatchObject({
    code: 1,
    stderr: 'Not up to date: infra/model.json. Run npx rowkey infra.\n',
  });
  expect((await shell('npx rowkey infra')).stdout).toBe('infra/model.json written.\n');
  expect(await readFile(at('infra/dev.bicepparam'), 'utf8')).toBe(own);
});

test('writes a template with a page that the compiler accepts', { tags }, async ({ skip }) => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-infra-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const path of ['app.ts', 'package.json', 'host.json']) await cp(join(app.folder, path), join(folder, path));
  await mkdir(join(folder, 'page'));
  await writeFile(join(folder, 'page', 'index.html'), '<!doctype html>');
  await cp(join(app.folder, 'node_modules'), join(folder, 'node_modules'), { recursive: true, verbatimSymlinks: true });
  expect((await shell(`npx rowkey infra ${folder}`)).code).toBe(0);
  const parameters = await readFile(join(folder, 'infra', 'dev.bicepparam'), 'utf8');
  expect(parameters).toContain('param hasPage = true');
  expect(parameters).toContain("readEnvironmentVariable('PAGE_ORIGIN', '')");
  expect(await readFile(join(folder, 'azure.yaml'), 'utf8')).toContain('host: staticwebapp');
  const compiler = findCompiler() ?? skip('The Bicep compiler is needed: set BICEP, or install the .NET SDK.');
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...SETTINGS, PAGE_ORIGIN: 'https://page.example' };
  const compile = (file: string) =>
    run(compiler, ['build-params', join(folder, 'infra', file), '--stdout'], { env, maxBuffer: 10_000_000 });
  const { stdout, stderr } = await compile('dev.bicepparam');
  expect(stderr).toBe('');
  const { parameters: values } = JSON.parse(JSON.parse(stdout).parametersJson);
  expect([values.hasPage.value, values.allowedOrigins.value]).toEqual([true, ['', 'https://page.example']]);
});

test('packages an app that serves from an empty folder', { tags }, async () => {
  const { code, stdout, stderr } = await shell('npx rowkey package');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^out has \d+ files, \d+\.\d MB\.$/m);
  const empty = await mkdtemp(join(tmpdir(), 'rowkey-empty-'));
  onTestFinished(() => rm(empty, { recursive: true, force: true }));
  await cp(join(app.folder, 'out'), empty, { recursive: true });
  const host = join(app.installed, 'local', 'host', 'main.js');
  const child = spawn(process.execPath, [host, '--app', empty, '--port', '0'], { cwd: empty, env: SETTINGS });
  onTestFinished(() => void child.kill());
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const port = await vi.waitFor(() => Number(/"port":(\d+)/.exec(output)?.[1] ?? expect.fail(output)), {
    timeout: PATIENCE_MS,
  });
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}/${path}`)).status;
  expect(await get('api/vehicles/north/1')).toBe(401);
  expect(await get('api/openapi.json')).toBe(200);
});
