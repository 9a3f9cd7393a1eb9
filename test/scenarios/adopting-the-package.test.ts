import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { signToken, startIdentityProvider } from '../../local/instance/identity-provider.ts';
import { endChild, spawnScript } from '../../local/instance/spawn-child.ts';
import { checkTypes } from '../check-types.ts';
import { installPackage } from '../installed-package.ts';
import { storageAccounts } from '../kit/storage.ts';
import { PATIENCE_MS } from '../patience.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { SECOND_ACCOUNT, testStorage } from '../storage.ts';
import { rowsOf } from '../world.ts';

/** A Functions app in another folder with its own model and HTTP function: test/adopter. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const connectionString = testStorage(import.meta.url);
/** The account of a test file that opens none. */
const yardConnection = testStorage(SECOND_ACCOUNT);
const environment = {
  AzureWebJobsStorage: connectionString,
  YardStorage: yardConnection,
  TOKEN_ISSUER: 'http://127.0.0.1:1',
  TOKEN_AUDIENCE: 'api://fleet',
  TOKEN_JWKS_URI: 'http://127.0.0.1:1/keys',
};
const run = promisify(execFile);

let folder: string;
let installed: string;
let packed: readonly string[];
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, installed, packed, remove } = await installPackage());
});
afterAll(() => remove());

/** Runs the `bin` of the package. */
async function rowkeyCommand(parameters: readonly string[], env: Record<string, string> = {}) {
  const { bin } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  const options = { cwd: folder, env: { ...environment, PATH: process.env.PATH, ...env } };
  return run(process.execPath, [join(installed, bin.rowkey), ...parameters], options);
}

test('packs JavaScript and declarations without the examples, the app and its tools', () => {
  expect(packed).toEqual(
    expect.arrayContaining([
      ...['package.json', 'README.md', 'LICENSE', 'host.json', 'lib/index.js', 'lib/index.d.ts'],
      ...[
        'lib/client/index.js',
        'lib/client/index.d.ts',
        'lib/client/sign-in.d.ts',
        'lib/testing/index.js',
        'lib/console/index.html.br',
      ],
    ]),
  );
  expect(
    packed.filter(
      (path) =>
        !/^lib\/console\/|^infra\/.*\.(bicep|bicepparam|json|kql|yaml|yml)$|^lib\/.*\.(js|d\.ts)$|^local\/.*\.js$|^docs\/([a-z]+\/)?[\w-]+\.md$|^(package\.json|README\.md|LICENSE|host\.json)$/.test(
          path,
        ),
    ),
  ).toEqual([]);
  expect(packed.filter((path) => /^(lib\/)?(model|examples)\//.test(path))).toEqual([]);
});

test('packs pages whose links and pictures are packed, and whose commands work without a clone', async () => {
  const pages = packed.filter((path) => path.endsWith('.md'));
  expect(pages.length).toBeGreaterThan(15);
  const dead: string[] = [];
  const foreign: string[] = [];
  let links = 0;
  for (const page of pages) {
    const text = await readFile(join(installed, page), 'utf8');
    for (const [, link = ''] of text.matchAll(/\]\(([^)#\s:]+)(?:#[^)\s]*)?\)/g)) {
      links += 1;
      if (!packed.includes(posix.join(dirname(page), link))) dead.push(`${page}: ${link}`);
    }
    if (/!\w[\w ]*:/.test(text)) dead.push(`${page}: a picture`);
    const says = text.split('\n', 4).join(' ').includes('are those of a clone of Rowkey');
    // The README is of the package alone, and begins with an app that has such scripts.
    for (const [command] of page === 'README.md' ? [] : text.matchAll(/npm (run|start|ci|cit|test)\b[^`\n]*/g))
      if (!says || / (import|export|verify|reindex|purge|replay|infra|token|package)\b/.test(command))
        foreign.push(`${page}: ${command}`);
  }
  expect(links).toBeGreaterThan(100);
  expect([dead, foreign]).toEqual([[], []]);
  const { stdout } = await rowkeyCommand(['--help']);
  const commands = [...stdout.matchAll(/^ {2}([a-z-]+) .*/gm)].map(([, name]) => name);
  const readme = await readFile(join(installed, 'README.md'), 'utf8');
  expect([...readme.matchAll(/^\| `npx rowkey ([a-z-]+)/gm)].map(([, name]) => name)).toEqual(
    commands.filter((name) => name !== 'help'),
  );
});

test('names its own commands in messages', async () => {
  const { commandLine } = await import(join(installed, 'lib', 'command-line.js'));
  expect(commandLine('reindex', 'vehicles plate', 'yard')).toBe('npx rowkey reindex vehicles plate --path yard');
  expect(commandLine('infra')).toBe('npx rowkey infra');
});

test('requires a Node that every dependency supports, as its README and the apps that npm creates do', async () => {
  const readManifest = async (path: string) => JSON.parse(await readFile(path, 'utf8'));
  const { engines, dependencies } = await readManifest(join(installed, 'package.json'));
  /** The newest of the versions from which a range begins, as a number to compare. */
  const oldestIn = (range = '') =>
    Math.max(
      0,
      ...[...range.matchAll(/>= ?(\d+)(?:\.(\d+))?/g)].map(
        ([, major, minor = 0]) => Number(major) * 1_000 + Number(minor),
      ),
    );
  const oldest = await Promise.all(
    Object.keys(dependencies).map(async (name) => {
      const manifest = await readManifest(join(ROOT, 'node_modules', name, 'package.json'));
      return oldestIn(manifest.engines?.node);
    }),
  );
  expect(oldestIn(engines.node)).toBeGreaterThanOrEqual(Math.max(...oldest));
  expect(await readFile(join(installed, 'README.md'), 'utf8')).toContain(`Node ${engines.node.slice(2)} or newer`);
  const template = await readManifest(join(ROOT, 'local', 'create', 'template', 'app', 'package.json'));
  expect(template.engines).toEqual(engines);
});

test('prints the resources of the model', async () => {
  const { stdout, stderr } = await rowkeyCommand(['infra-model', 'app.ts']);
  expect(stderr).toBe('');
  const { tables, queues } = JSON.parse(stdout);
  expect(tables).toEqual(expect.arrayContaining(['vehicles', 'vehiclesbyplate', 'poison']));
  expect(queues).toContain('index-changes');
  expect((await rowkeyCommand(['infra-model'])).stdout).toBe(stdout);
  // The command of docs/use-as-a-package.md, in an app without this folder.
  await rowkeyCommand(['infra-model', '--out', 'infra/model.json']);
  expect(await readFile(join(folder, 'infra', 'model.json'), 'utf8')).toBe(stdout);
  await expect(rowkeyCommand(['infra-model', 'misspelt.json'])).rejects.toMatchObject({ code: 1 });
  await expect(rowkeyCommand(['verify', 'vehicles', '--url', 'http://127.0.0.1:1'])).rejects.toMatchObject({
    stderr: 'No token for http://127.0.0.1:1: set ROWKEY_TOKEN.\n',
  });
});

test('type-checks under strict, with every declaration of the package, and rejects misspelt names', async () => {
  expect(await checkTypes(folder)).toBe('');
});

test('type-checks in a project whose page has the types of the DOM', async () => {
  const lib = ['es2024', 'esnext.array', 'dom', 'dom.iterable'];
  const project = join(folder, 'tsconfig.page.json');
  await writeFile(project, JSON.stringify({ extends: './tsconfig.json', compilerOptions: { lib } }));
  expect(await checkTypes(project)).toBe('');
});

test('runs the test of the adopter on a store in memory, without settings and servers', async () => {
  const options = { cwd: folder, env: { PATH: process.env.PATH } };
  const { stdout } = await run(process.execPath, ['--test', '--test-reporter', 'tap', 'test-vehicles.ts'], options);
  expect(stdout).toMatch(/^# pass 3$/m);
});

/** The commands of the package on a running app with both models. */
async function expectCommandsToWork(url: string, token: (role: string | readonly string[]) => Promise<string>) {
  const operator = { ROWKEY_TOKEN: await token('operator') };
  expect((await rowkeyCommand(['reindex', 'vehicles', 'plate', '--url', url], operator)).stdout).toContain(
    '0 of 0 missing rows added to the index plate.',
  );
  const editor = { ROWKEY_TOKEN: await token('editor') };
  const yardOptions = ['--url', url, '--path', 'yard'];
  expect((await rowkeyCommand(['verify', 'depots', ...yardOptions], editor)).stdout).toMatch(
    /^\d+ rows checked: 0 do not agree\.$/m,
  );
  expect((await rowkeyCommand(['reindex', 'depots', 'places', ...yardOptions], editor)).stdout).toContain(
    'missing rows added to the index places.',
  );

  // In the folder of the app, whose package.json names its files.
  await writeFile(
    join(folder, 'vehicles.csv'),
    'depot,vehicleId,plate,model\nnorth,7,EF 12345,Van\nnorth,8,AB 12345,Van\n',
  );
  const both = { ROWKEY_TOKEN: await token(['editor', 'operator', 'reader']) };
  const imported = rowkeyCommand(['import', 'vehicles', 'vehicles.csv', '--url', url], both);
  await expect(imported).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Line 3: "plate" is taken/),
    stdout: expect.stringMatching(/^2 read: 1 created, 0 stored, 0 unchanged, 1 rejected/),
  });
  expect((await rowkeyCommand(['export', 'vehicles', 'out.ndjson', '--url', url], both)).stdout).toMatch(
    /^Exported \d+ vehicles to out\.ndjson\.\n$/,
  );
  expect(await readFile(join(folder, 'out.ndjson'), 'utf8')).toContain('"vehicleId":"7","plate":"EF 12345"');
  await writeFile(join(folder, 'depots.csv'), 'region,depot,places\nno,south,5\n');
  expect((await rowkeyCommand(['import', 'depots', 'depots.csv', ...yardOptions], both)).stdout).toMatch(
    /^1 read: 1 created/,
  );
  await expect(rowkeyCommand(['import', 'depots', 'depots.csv', '--url', url], both)).rejects.toMatchObject({
    stderr: 'Entity "depots" not found; accepted are vehicles.\n',
  });
}

test('serves two models in one app, and the function of the adopter under the host', async () => {
  const env = { ...environment, PATH: process.env.PATH };
  const { stdout } = await run(process.execPath, [join(folder, 'second.ts')], { env, cwd: folder });
  expect(stdout.trim().split('\n').slice(-2)).toEqual([
    'AB 12345 none',
    JSON.stringify({ region: 'no', depot: 'north', places: 3 }),
  ]);

  const provider = await startIdentityProvider({ folder });
  onTestFinished(() => provider.stop());
  const { issuer, audience, jwksUri } = provider;
  const token = (role: string | readonly string[]) => signToken({ folder, issuer, audience, role });
  const script = join(ROOT, 'local', 'host', 'main.ts');
  const identity = { TOKEN_ISSUER: issuer, TOKEN_AUDIENCE: audience, TOKEN_JWKS_URI: jwksUri };
  const settings = { ...environment, ...identity, CONSOLE_CLIENT_ID: 'console' };
  const host = spawnScript(script, ['--app', folder, '--port', '0'], { cwd: folder, env: settings });
  onTestFinished(() => endChild(host));
  let output = '';
  host.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const port = await vi.waitFor(() => Number(/"port":(\d+)/.exec(output)?.[1] ?? expect.fail(output)), {
    timeout: PATIENCE_MS,
  });
  const send = async (path: string, method: string, role?: string) => {
    const headers: Record<string, string> = role ? { authorization: `Bearer ${await token(role)}` } : {};
    const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, { method, headers });
    return { status: response.status, type: response.headers.get('content-type'), body: await response.json() };
  };
  expect(await send('check-in/AB%2012345', 'POST', 'editor')).toMatchObject({ status: 200, body: { vehicleId: '1' } });
  const created = await send('check-in/CD%2012345', 'POST', 'editor');
  expect(created).toMatchObject({ status: 201, body: { depot: 'north', plate: 'CD 12345' } });
  expect(await send('check-in/CD%2012345', 'POST', 'editor')).toMatchObject({ status: 200, body: created.body });
  const type = 'application/problem+json';
  expect(await send('check-in/x', 'POST')).toMatchObject({ status: 401, type, body: { code: 'unauthenticated' } });
  expect(await send('check-in/x', 'POST', 'reader')).toMatchObject({ status: 403, type, body: { accepted: 'editor' } });
  expect(await send(`check-in/${'x'.repeat(1_100)}`, 'POST', 'editor')).toMatchObject({
    status: 400,
    type,
    body: { code: 'invalid-input', field: 'plate', type: '/api/problems#invalid-input' },
  });
  expect(await send('vehicles/north/1', 'GET')).toMatchObject({ status: 401 });
  await expect.poll(() => send('health', 'GET')).toMatchObject({ status: 200 });

  const url = `http://127.0.0.1:${port}`;
  const operator = { ROWKEY_TOKEN: await token('operator') };
  expect((await rowkeyCommand(['verify', 'vehicles', '--url', url], operator)).stdout).toMatch(
    /^\d+ rows checked: 0 do not agree\.$/m,
  );
  if (IS_EVERY_POINT) await expectCommandsToWork(url, token);

  const client = { ...env, API: `${url}/api`, TOKEN: await token(['editor', 'reader']) };
  const called = await run(process.execPath, [join(folder, 'client.ts')], { env: client, cwd: folder });
  expect(called.stdout).toBe('1 4 no\n');

  const page = await fetch(`http://127.0.0.1:${port}/console`);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const [, asset = ''] = /src="([^"]+\.js)"/.exec(await page.text()) ?? [];
  expect((await fetch(`http://127.0.0.1:${port}${asset}`)).headers.get('content-type')).toMatch(/^text\/javascript/);

  await expect.poll(() => send('yard/health', 'GET')).toMatchObject({ status: 200 });
  const paths = Object.keys(Object((await send('yard/openapi.json', 'GET')).body).paths);
  expect(paths).toContain('/api/yard/depots/{region}/{depot}');
  expect(paths.filter((path) => !path.startsWith('/api/yard/'))).toEqual([]);
  expect(await send('yard/depots/no/north', 'GET')).toMatchObject({ status: 401 });
  expect(await send('yard/none', 'GET')).toMatchObject({
    status: 404,
    body: { type: '/api/yard/problems#not-found', accepted: 'the paths in /api/yard/openapi.json' },
  });
  const yard = storageAccounts.openStorage({ connectionString: yardConnection }, 'yard');
  await yard.queue('transfers').sendMessage('nonsense');
  await vi.waitFor(async () => expect(await rowsOf(yard, 'poison')).toMatchObject([{ Queue: 'transfers' }]), {
    timeout: PATIENCE_MS,
  });
});

test.runIf(IS_EVERY_POINT)(
  'runs under npm start of a clone, which makes tokens of its roles and creates its tables',
  async () => {
    const data = join(folder, '.rowkey');
    const command = (name: string) => join(ROOT, 'local', 'commands', `${name}.ts`);
    const clone = spawnScript(command('start'), ['--app', folder, '--port', '0'], {
      cwd: ROOT,
      env: { YardStorage: yardConnection },
    });
    onTestFinished(() => endChild(clone));
    let output = '';
    for (const stream of [clone.stdout, clone.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    await vi.waitFor(() => expect(output).toContain('Ctrl-C stops'), { timeout: PATIENCE_MS });
    expect(output).not.toContain('test mode');
    const createToken = (role: string) => run(process.execPath, [command('token'), '--data', data, '--role', role]);
    await expect(createToken('hr')).rejects.toMatchObject({
      stderr: 'Allowed roles are reader, editor, operator; separate several with commas.\n',
    });
    const { stdout } = await createToken('editor');
    const response = await fetch(`${/http:\S+\/api/.exec(output)?.[0]}/check-in/KA1234`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stdout.trim()}` },
    });
    expect([response.status, await response.json()]).toMatchObject([201, { depot: 'north', plate: 'KA1234' }]);

    // The commands of the app's log, in its folder, and those of the clone, on its data folder.
    expect((await rowkeyCommand(['verify', 'vehicles'])).stdout).toMatch(/^\d+ rows checked: 0 do not agree\.$/m);
    expect((await rowkeyCommand(['reindex', 'vehicles', 'plate'])).stdout).toMatch(/^\d+ rows checked: 0 of 0 missing/);
    const cars = join(folder, 'cars.csv');
    await writeFile(cars, 'depot,vehicleId,plate\nwest,1,WE 1\n');
    const inClone = (...words: string[]) =>
      run(process.execPath, [command(words[0] ?? ''), ...words.slice(1), '--data', data]);
    expect((await inClone('import', 'vehicles', cars)).stdout).toMatch(/^1 read: 1 created/);
    expect((await rowkeyCommand(['import', 'vehicles', cars])).stdout).toBe(
      'Nothing to do: all 1 rows are already stored.\n',
    );
    expect((await inClone('export', 'vehicles', join(folder, 'all.ndjson'))).stdout).toMatch(
      /^Exported [2-9] vehicles/,
    );
  },
);
