import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { testStorage } from '../../storage.ts';
import { FIXTURE, runHost, startHost } from './host-process.ts';

const env = { TEST_STORAGE: testStorage(import.meta.url) };

const LIBRARIES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
/** A copy of the fixture without its functions. It is outside of the repository, whose files other tests check. */
let bare: string;
beforeEach(async () => {
  bare = await mkdtemp(join(tmpdir(), 'rowkey-bare-'));
  await symlink(LIBRARIES, join(bare, 'node_modules'), 'junction');
  for (const file of ['package.json', 'host.json']) await cp(join(FIXTURE, file), join(bare, file));
});
afterEach(() => rm(bare, { recursive: true }));

async function runBare(source: string) {
  await cp(join(FIXTURE, 'functions', 'timer.js'), join(bare, 'functions', 'timer.js'));
  await writeFile(join(bare, 'functions', 'last.js'), `import { app } from '@azure/functions';\n${source}`);
  return runHost(['--app', bare, '--port', '0'], env);
}

test('SIGTERM waits for the running invocation, notifies the app and exits with 0', async () => {
  const host = await startHost(env);
  const slow = fetch(`${host.url}/api/slow`);
  await host.logged('slow has begun');
  const ended = once(host.child, 'close');
  host.child.kill('SIGTERM');
  const response = await slow;
  expect(await response.text()).toBe('done');
  expect(await ended).toEqual([0, null]);
  expect(host.lines).toContain('terminated after start: true');
  expect(host.lines.filter((line) => line.includes('still in progress'))).toEqual([]);
});

test('the host ends when nobody reads its log any more', async () => {
  const { child, url } = await startHost(env);
  const ended = once(child, 'exit');
  for (const output of [child.stdout, child.stderr]) output?.destroy();
  // Every invocation logs.
  await fetch(`${url}/api/slow`).catch(() => undefined);
  expect(await ended).toEqual([1, null]);
});

test('the host reports a busy port in one sentence', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const ended = await runHost(['--app', FIXTURE, '--port', String(port)], env);
  server.close();
  expect(ended).toEqual({
    code: 1,
    lines: [`Port ${port} is in use: stop what listens there, or choose another with --port.`],
  });
});

test('the host reports a missing build, an app without functions and missing arguments in one sentence', async () => {
  expect(await runHost(['--app', bare, '--port', '0'])).toEqual({
    code: 1,
    lines: [`No file matches functions/*.js in ${bare}: build the app first.`],
  });
  await mkdir(join(bare, 'functions'));
  await writeFile(join(bare, 'functions', 'empty.js'), '');
  expect(await runHost(['--app', bare, '--port', '0'])).toEqual({
    code: 1,
    lines: ['The app registered no function in functions/*.js.'],
  });
  expect(await runHost([])).toEqual({ code: 1, lines: ['Start the host with --app FOLDER --port NUMBER.'] });
});

test('the host reports an app that throws while it loads, with the name of its file', async () => {
  expect(await runBare("throw new Error('not today');")).toEqual({
    code: 1,
    lines: [
      'functions/last.js could not be loaded: not today',
      expect.stringMatching(/^ {4}at file:\S+functions\/last\.js:\d+:\d+$/),
    ],
  });
});

test.each([
  ["app.get('x', { route: 'Admin/x', handler() {} });", 'The function x has the reserved route Admin/x: '],
  ["app.get('x', { route: 'runtimes', handler() {} });", 'The function x has the reserved route runtimes: '],
  ["app.get('x', { route: 'a/{id:odd}', handler() {} });", 'The function x cannot be routed: the route api/a'],
  ["app.get('x', { route: 'a/{id?}', handler() {} });", 'The function x cannot be routed: the route api/a'],
  [
    "app.get('x', { route: 'a/{id}', handler() {} }); app.http('y', { route: '/A/{ID}/', handler() {} });",
    'The functions x and y have the route a/{id} and share a method.',
  ],
  ["app.timer('x', { schedule: '61 * * * *', handler() {} });", 'The function x has the invalid schedule 61 * * * *: '],
  ["app.get('OFTEN', { handler() {} });", 'functions/timer.js could not be loaded: Duplicate function name "often":'],
  ["app.storageBlob('x', { path: 'a', handler() {} });", 'The function x has the unsupported binding blobTrigger: '],
  [
    "app.timer('x', { schedule: '0 0 * * *', return: { type: 'queue', name: '$return' }, handler() {} });",
    'The function x has the unsupported binding queue: ',
  ],
  [
    "app.http('x', { authLevel: 'nobody', handler() {} });",
    'The function x has the unknown authLevel "nobody": anonymous, function, system and admin are accepted.',
  ],
  [
    "app.storageQueue('x', { queueName: 'que', connection: 'NONE', handler() {} });",
    'The function x needs the environment variable NONE: a storage connection string.',
  ],
])('rejects %s', async (source, sentence) => {
  const { code, lines } = await runBare(source);
  expect(code).toBe(1);
  // The place of a mistake follows, if the error has one.
  expect(lines[0]).toContain(sentence);
});
