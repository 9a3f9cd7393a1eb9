import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { readSecrets } from '../../local/instance/secrets.ts';
import { storageAccounts } from '../kit/storage.ts';
import { PATIENCE_MS } from '../patience.ts';
import { IS_EVERY_POINT, sampleItems } from '../points.ts';
import { envFor, ROOT, runCommand, shell, startCommand, useStartProcess } from '../start-process.ts';
import { UNDER_FUNC } from '../under-func.ts';

const STOP_AT_FILE = new URL('../fixtures/stop-at-file.mjs', import.meta.url).href;
/** The key that every emulator uses by default. */
const PUBLISHED_KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

const ORIGIN = 'http://localhost:5173';
const started = useStartProcess({}, ['--cors', `https://app.contoso.com,${ORIGIN}`]);

/** What the API, the tables and the blobs of the instance return to a page that asks whether its origin is allowed. */
async function allowedOrigins(): Promise<(string | null)[]> {
  const { tables, blobs } = JSON.parse(await readFile(join(started.folder, 'instance.json'), 'utf8'));
  const headers = { origin: ORIGIN, 'access-control-request-method': 'GET' };
  const urls = [`${started.process.url}/api/health`, `${tables}/employees`, `${blobs}/photos`];
  const answers = await Promise.all(urls.map((url) => fetch(url, { method: 'OPTIONS', headers })));
  return answers.map((answer) => answer.headers.get('access-control-allow-origin'));
}

/** Returns the processes with this folder among their arguments. */
const processesOn = async (data: string) =>
  (await promisify(execFile)('ps', ['-A', '-o', 'args'])).stdout.split('\n').filter((line) => line.includes(data));

/** The ends of an instance that cost another start each. */
const ENDS = ['npm is terminated', 'stopped while it starts', 'its folder is deleted'] as const;
const sampledEnds = sampleItems(ENDS, 'end');
const ends = (end: (typeof ENDS)[number]) => sampledEnds.includes(end);

describe('npm start', () => {
  test('prints a token and commands that work unchanged', async () => {
    const { process: running } = started;
    const answers = [];
    for (const command of running.commands()) answers.push(JSON.parse((await shell(command)).stdout));
    const [created, one, range, byIndex, grant] = answers;
    expect(answers).toHaveLength(5);
    expect(created).toMatchObject({ email: 'ann@example.com' });
    expect(one).toEqual(created);
    expect(range.items).toEqual([created]);
    expect(byIndex).toEqual(created);
    const token = running
      .said()
      .split('\n')
      .find((line) => line.startsWith('eyJ'));
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${running.url}/api/employees/${one.department}`, { headers })).status).toBe(200);
    const own = await fetch(`${grant.url}?${grant.token}`, {
      headers: { accept: 'application/json;odata=nometadata' },
    });
    expect(await own.json()).toMatchObject({ employeeId: one.employeeId });
  });

  test('prints the address of the console first', async () => {
    const { process: running } = started;
    const addresses = running.said().match(/http:\S+/g) ?? [];
    expect(addresses[0]).toBe(`${running.url}/console`);
    expect((await fetch(addresses[0] ?? '')).headers.get('content-type')).toContain('text/html');
  });

  test('protects its folder, storage and timers from everybody but its owner', async () => {
    const { folder, process: running } = started;
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect((await stat(join(folder, 'secrets.json'))).mode & 0o777).toBe(0o600);
    const [connection, key] = [await running.run('secret', 'storage'), await running.run('secret', 'host')];
    const own = storageAccounts.openStorage({ connectionString: connection.said.trim() });
    await expect(own.queue('index-changes').getProperties()).resolves.toBeDefined();
    // A value that any web page knows.
    const published = connection.said.trim().replace(/AccountKey=[^;]+/, `AccountKey=${PUBLISHED_KEY}`);
    const page = storageAccounts.openStorage({ connectionString: published }).queue('index-changes');
    await expect(page.sendMessage('{}')).rejects.toMatchObject({ statusCode: 403 });
    const runTimer = async (headers: Record<string, string>) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' };
      return (await fetch(`${running.url}/admin/functions/roll-periods`, init)).status;
    };
    // Core Tools require no key.
    if (!UNDER_FUNC) expect(await runTimer({})).toBe(401);
    expect(await runTimer({ 'x-functions-key': key.said.trim() })).toBe(202);
    const { storageKey, hostKey } = await readSecrets(folder);
    for (const secret of [storageKey, hostKey]) expect(running.said()).not.toContain(secret);
  });

  test('rejects a second instance on the same data, in one sentence', async () => {
    const { code, said } = await started.process.run('start', '--port', '0');
    expect(code).toBe(1);
    expect(said).toMatch(/^An instance runs on .* already, at http:\S+\.\n$/);
  });

  test.runIf(IS_EVERY_POINT)('makes one ready of two that start concurrently on the same data', async () => {
    const twice = join(started.folder, 'twice');
    const both = [1, 2].map(() => runCommand('start', ['--port', '0', '--empty', '--data', twice]));
    expect(await Promise.race(both)).toEqual({
      code: 1,
      said: expect.stringMatching(/^An instance runs on .* already, [^\n]*\.\n$/),
    });
    const { pid } = await vi.waitFor(async () => JSON.parse(await readFile(join(twice, 'instance.json'), 'utf8')), {
      timeout: PATIENCE_MS,
    });
    process.kill(pid, 'SIGTERM');
    expect((await Promise.all(both)).map(({ code }) => code).sort()).toEqual([0, 1]);
  });

  test('allows the given origins, in the API and in storage', async () => {
    expect(await allowedOrigins()).toEqual([ORIGIN, ORIGIN, ORIGIN]);
  });

  test('keeps every acknowledged write', async () => {
    const { process: running } = started;
    const ask = await running.as('hr');
    const acknowledged: string[] = [];
    const writing = Array.from({ length: 40 }, async (_, index) => {
      const employeeId = String(900_000 + index);
      const email = `late${index}@contoso.com`;
      const answer = await ask('POST', 'employees', {
        department: 'Late',
        employeeId,
        email,
        firstName: 'L',
        lastName: 'Late',
      }).catch(() => undefined);
      if (answer?.status === 201) acknowledged.push(employeeId);
    });
    await writing[0];
    // Ctrl-C twice during the start.
    running.child.kill('SIGINT');
    expect(await running.end('SIGINT')).toBe(0);
    expect(running.said()).toMatch(/\nStopped\. The data is kept in [^\n]+\.\n$/);
    await Promise.all(writing);
    expect(acknowledged.length).toBeGreaterThan(0);
    expect(await running.run('token', '--role', 'hr')).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^No instance is running on [^\n]*\n$/),
    });

    await started.startAgain();
    const askAgain = await started.process.as('hr');
    const late = await (await askAgain('GET', 'employees/Late')).json();
    const kept = (late as { items: { employeeId: string }[] }).items.map(({ employeeId }) => employeeId);
    expect(kept).toEqual(expect.arrayContaining(acknowledged));
  });

  test('allows no origin of an earlier start', async () => {
    expect(await allowedOrigins()).toEqual([null, null, null]);
  });

  test.runIf(ends('npm is terminated'))('shuts down in order when the npm that started it is terminated', async () => {
    const data = join(started.folder, 'by-npm');
    const line = `"${process.execPath}" local/commands/start.ts --port 0 --data "${data}"; true`;
    const npmShell = spawn('sh', ['-c', line], { cwd: ROOT, env: { ...envFor(), npm_lifecycle_event: 'start' } });
    const said = text(npmShell.stdout);
    const complained = text(npmShell.stderr);
    await vi.waitFor(() => access(join(data, 'instance.json')), { timeout: PATIENCE_MS });
    npmShell.kill('SIGTERM');
    // Both outputs end with the last process that holds them.
    await said;
    expect(await complained).toBe('');
    await expect(access(join(data, 'instance.json'))).rejects.toThrow('ENOENT');
    expect(await processesOn(data)).toEqual([]);
  });

  // In the order of their creation.
  test.runIf(ends('stopped while it starts')).each(sampleItems(['lock', 'azurite', 'identity-key.json'], 'stopped'))(
    'asked to stop while it starts, when %s is there, it does not become ready first',
    async (name) => {
      const data = join(started.folder, `stopped-at-${name}`);
      const child = spawn(process.execPath, ['local/commands/start.ts', '--port', '0', '--data', data], {
        cwd: ROOT,
        env: {
          ...envFor(),
          NODE_OPTIONS: `${envFor().NODE_OPTIONS} --import=${STOP_AT_FILE}`,
          STOP_AT: join(data, name),
        },
      });
      const ended = once(child, 'exit', { signal: AbortSignal.timeout(PATIENCE_MS) });
      const [said, complained] = [text(child.stdout), text(child.stderr)];
      expect(await ended).toEqual([0, null]);
      expect([await said, await complained]).toEqual(['', '']);
      expect(await processesOn(data)).toEqual([]);
    },
  );

  test.runIf(IS_EVERY_POINT)(
    'ends with exit code 1 after a refused change of the model, until AGREED_MODEL_CHANGES names it',
    async () => {
      const data = join(started.folder, 'changed');
      const running = await startCommand(data, ['--empty']);
      const connection = await running.run('secret', 'storage');
      const system = storageAccounts.openStorage({ connectionString: connection.said.trim() }).table('system');
      const { Shape } = await system.getEntity<{ Shape: string }>('model', 'employees');
      const former = Shape.replace('"archive":"formeremployees"', '"archive":"earlieremployees"');
      await system.updateEntity({ partitionKey: 'model', rowKey: 'employees', Shape: former }, 'Merge');
      await running.end();
      const { code, said } = await runCommand('start', ['--port', '0', '--data', data]);
      expect({ code, said }).toEqual({
        code: 1,
        said: expect.stringContaining('the archive changed from earlieremployees'),
      });
      const [, word = ''] = /set AGREED_MODEL_CHANGES to ([0-9a-f]{12})/.exec(said) ?? [];
      vi.stubEnv('AGREED_MODEL_CHANGES', word);
      onTestFinished(() => void vi.unstubAllEnvs());
      await (await startCommand(data, ['--empty'])).end();
    },
  );

  test.runIf(ends('its folder is deleted'))(
    'ends when its data folder is deleted, and reports that data may be lost',
    async () => {
      const data = join(started.folder, 'gone');
      const orphaned = await startCommand(data, ['--empty']);
      const ask = await orphaned.as('hr');
      // The emulator may write while it ends.
      await rm(data, { recursive: true, maxRetries: 10 });
      // The emulator may also have nothing to write. It keeps the row in memory; it cannot write the audit log, a blob.
      expect((await ask('POST', 'departments', { department: 'Lost' })).status).toBe(503);
      const ended = once(orphaned.child, 'close', { signal: AbortSignal.timeout(PATIENCE_MS) });
      orphaned.child.kill('SIGTERM');
      expect(await ended).toEqual([1, null]);
      expect(orphaned.said()).toMatch(/\nThe storage emulator could not write its data out: [^\n]*\n$/);
      expect(await processesOn(data)).toEqual([]);
    },
  );

  test('reports in one sentence what prevents the start', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
    const { port } = blocker.address() as { port: number };
    const file = join(started.folder, 'a-file');
    await writeFile(file, '');
    const fresh = join(started.folder, 'fresh');
    const origins = sampleItems(
      ['localhost:5173', 'http://localhost:5173/', 'http://localhost:5173,*', ''],
      'unusable origin',
    );
    const onFresh = ['--data', fresh];
    const reasons = [
      { words: ['--port', String(port), ...onFresh], said: /^Port \d+ is in use[^\n]*\n$/ },
      {
        words: ['--port', '0', '--data', join(file, 'below')],
        said: /^The folder [^\n]* cannot be written to[^\n]*\n$/,
      },
      { words: ['--port', '99999', ...onFresh], said: /from 0 to 65535/ },
      ...origins.map((text) => ({
        words: ['--port', '0', ...onFresh, '--cors', text],
        said: /An origin must look like http:\/\/localhost:5173/,
      })),
    ];
    // By the place in the list, because the words name ports and folders of the run.
    const tried = sampleItems(Object.keys(reasons), 'reason', 2).flatMap((place) => reasons[Number(place)] ?? []);
    const ends = await Promise.all(tried.map(({ words }) => runCommand('start', words)));
    blocker.close();
    for (const [index, { said }] of tried.entries())
      expect(ends[index]).toEqual({ code: 1, said: expect.stringMatching(said) });
  });

  // The last test, because it ends the instance of the file.
  test('leaves no process running when it is killed', async () => {
    const { folder, process: victim } = started;
    const { tables } = JSON.parse(await readFile(join(folder, 'instance.json'), 'utf8'));
    victim.child.kill('SIGKILL');
    const gone = (url: string) =>
      fetch(url).then(
        () => false,
        () => true,
      );
    await vi.waitFor(
      async () =>
        expect([await gone(victim.url), await gone(tables), await processesOn(folder)]).toEqual([true, true, []]),
      { timeout: PATIENCE_MS },
    );
  });
});
