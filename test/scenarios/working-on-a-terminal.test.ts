import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { beforeEach, expect, inject, onTestFinished, test, vi } from 'vitest';
import { PATIENCE_MS } from '../patience.ts';
import { envFor, ROOT } from '../start-process.ts';

/** The commands on a terminal, which the program `script` of Linux provides, against an API that takes its time. */

const folder = await mkdtemp(join(inject('folder'), 'terminal-'));
beforeEach(({ skip }) => {
  if (process.platform !== 'linux') skip('The program "script" of Linux is needed.');
});

async function startApi(respond: (request: IncomingMessage) => Promise<{ body: unknown; headers?: object }>) {
  const server = createServer(async (request, response) => {
    const { body, headers = {} } = await respond(request);
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function runOnTerminal(command: string, words: readonly string[]) {
  const line = [process.execPath, join(ROOT, 'local', 'commands', `${command}.ts`), ...words].join(' ');
  const child = spawn('script', ['-qefc', line, '/dev/null'], { cwd: ROOT, env: { ...envFor(), ROWKEY_TOKEN: 'x' } });
  onTestFinished(() => void child.kill('SIGKILL'));
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shown += text;
  });
  return {
    shows: (text: RegExp) => vi.waitFor(() => expect(shown).toMatch(text), { timeout: PATIENCE_MS, interval: 20 }),
    pressCtrlC: () => child.stdin.write('\u0003'),
    async end() {
      const [code] = await once(child, 'close');
      // Even a process that is killed leaves a terminal that wraps lines and shows its cursor.
      for (const off of ['\u001b[?7l', '\u001b[?25l']) expect(shown).not.toContain(off);
      // What a line shows after it was drawn again from its beginning.
      const drawn = shown.split('\n').map((line) => line.split('\u001b[1G').map(stripVTControlCharacters));
      const lines = drawn.map((texts) => texts.findLast((text) => text.trim() !== '')?.trim() ?? '');
      return { code, lines: lines.filter((text) => text !== '') };
    },
  };
}

test('npm run import shows its rate and the time left, and Ctrl-C ends it with what is stored', {
  tags: ['slow'],
}, async () => {
  let stored = 0;
  const url = await startApi(async (request) => {
    const { actions } = (await json(request)) as { actions: unknown[] };
    await sleep(100);
    stored += actions.length;
    return { body: { results: actions.map(() => ({ status: 201 })) } };
  });
  const file = join(folder, 'many.csv');
  // Each department is a partition, so each row is a request.
  await writeFile(file, `department\nA~bad,\n${Array.from({ length: 2_000 }, (_, row) => `D${row}\n`).join('')}`);
  const terminal = runOnTerminal('import', ['departments', file, '--url', url]);
  await terminal.shows(/[█░]{20} \d+ % [1-9]\d* rows, \d+ rows\/s, about \d+ (s|min) left/);
  terminal.pressCtrlC();
  const { code, lines } = await terminal.end();
  expect(code).toBe(130);
  expect(lines).toEqual([
    'Line 2: the row is not CSV with the columns of the header',
    expect.stringMatching(/Stopping after the requests in progress; Ctrl-C again stops immediately\.$/),
    expect.stringMatching(
      new RegExp(`^Interrupted\\. \\d+ read: ${stored} created, 0 stored, 0 unchanged, 1 rejected, \\d+ not sent, in `),
    ),
  ]);
});

test('npm run verify counts the rows without a bar, and continues after Ctrl-C', { tags: ['slow'] }, async () => {
  const asked: string[] = [];
  const url = await startApi(async ({ url: path = '' }) => {
    asked.push(path);
    const findings = asked.length === 1 ? [{ kind: 'missing', of: 'x', table: 't', repaired: false }] : [];
    const next =
      asked.length < 4 ? { link: `</api/operations/verify/departments?after=${asked.length}>; rel="next"` } : {};
    return {
      body: { checked: 100, findings },
      headers: { ...next, 'server-timing': 'storage;desc="10 transactions"' },
    };
  });
  const data = join(folder, 'data');
  const options = ['departments', '--url', url, '--data', data];
  const terminal = runOnTerminal('verify', [...options, '--rate', '1']);
  await terminal.shows(/100 rows, 1 found, \d+ rows\/s/);
  terminal.pressCtrlC();
  const { code, lines } = await terminal.end();
  expect(code).toBe(130);
  expect(lines).toEqual([
    'missing: x of t/…/…',
    expect.stringMatching(/Stopping after the requests in progress/),
    expect.stringMatching(/^Interrupted after 100 rows: run the command again to continue\./),
  ]);
  const again = runOnTerminal('verify', options);
  const end = await again.end();
  expect(end.lines.join('\n')).not.toMatch(/[█░]/);
  expect([end.code, end.lines.at(-1)]).toEqual([
    1,
    '400 rows checked: 1 do not agree. The interrupted run before has 100 of the rows and 1 of the findings.',
  ]);
  expect(asked).toHaveLength(4);
});

test('npm run export leaves the former file if Ctrl-C ends it', { tags: ['slow'] }, async () => {
  const url = await startApi(async () => {
    await sleep(200);
    const items = [{ department: 'Sales' }];
    return { body: { items }, headers: { link: '</api/operations/scan/departments?after=1>; rel="next"' } };
  });
  const file = join(folder, 'former.ndjson');
  await writeFile(file, 'former');
  const terminal = runOnTerminal('export', ['departments', file, '--url', url]);
  await terminal.shows(/[1-9]\d* rows, \d+ rows\/s/);
  terminal.pressCtrlC();
  const { code, lines } = await terminal.end();
  expect([code, lines.at(-1)]).toEqual([
    130,
    expect.stringMatching(/^Interrupted after \d+ rows: the file \S+ is not written\.$/),
  ]);
  expect(await readFile(file, 'utf8')).toBe('former');
  expect((await readdir(folder)).filter((name) => name.startsWith('former'))).toEqual(['former.ndjson']);
});
