import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { startFunctionsHost } from '../../local/instance/functions-host.ts';
import { deployedApp as testApp } from '../fixtures/deployed-app.ts';
import { storageAccounts } from '../kit/storage.ts';
import { PATIENCE_MS } from '../patience.ts';
import { sampleItems } from '../points.ts';
import { testStorage } from '../storage.ts';
import { UNDER_FUNC } from '../under-func.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const usable = {
  AzureWebJobsStorage: testStorage(import.meta.url),
  TOKEN_ISSUER: 'http://127.0.0.1:1',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'http://127.0.0.1:1/keys',
  TELEMETRY: 'console',
};

// The real host also logs the functions that it loads and each call, and the error of a call on lines of its own.
const FAILED_TIMER = UNDER_FUNC
  ? /executing function: Functions\.roll-periods[\s\S]*KEY_ENCRYPTION_KEY_URI/
  : /roll-periods.*KEY_ENCRYPTION_KEY_URI/;
const FAILED_QUEUE = UNDER_FUNC ? /index-changes.*Failed/ : /index-changes/;

/** Starts the app with these settings, and returns when it responds. */
async function startWith(settings: Readonly<Record<string, string>>) {
  const logged: string[] = [];
  const host = await startFunctionsHost({
    app: testApp.folder,
    port: 0,
    func: UNDER_FUNC,
    log: (line) => logged.push(line),
    settings,
  });
  onTestFinished(() => host.stop());
  await vi.waitFor(() => fetch(`${host.url}/api/health`), { timeout: PATIENCE_MS, interval: 50 });
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(`${host.url}/api/${path}`, { method });
    const text = await response.text();
    return { status: response.status, type: response.headers.get('content-type'), text };
  };
  return { host, logged, ask };
}

const WRONG = [
  ['TOKEN_ISSUER', { ...usable, TOKEN_ISSUER: 's3cret' }],
  ['TOKEN_AUDIENCE', { ...usable, TOKEN_AUDIENCE: '' }],
  ['KEY_ENCRYPTION_KEY_URI', usable],
  ['KEY_ENCRYPTION_KEY_FILE', { ...usable, KEY_ENCRYPTION_KEY_FILE: join(inject('folder'), 'there-is-none.json') }],
] as const;

test.each(sampleItems(WRONG, 'wrong setting'))(
  'reports a wrong %s, and rejects every request',
  async (setting, settings) => {
    const { logged, ask } = await startWith(settings);
    const health = await ask('health');
    expect(health).toMatchObject({ status: 500, type: 'application/json' });
    expect(JSON.parse(health.text)).toMatchObject({
      status: 'degraded',
      settings: 'refused',
      hint: expect.stringContaining('log'),
    });
    const refused = { status: 500, type: 'application/problem+json' };
    for (const [path, method] of [
      ['openapi.json', 'GET'],
      ['employees/Sales/000123', 'GET'],
      ['employees', 'POST'],
      ['operations/poison', 'GET'],
      ['no/such/path', 'DELETE'],
    ] as const) {
      const reply = await ask(path, method);
      expect(reply).toMatchObject(refused);
      expect(JSON.parse(reply.text).type).toBe('/api/problems#wrong-setting');
      expect(reply.text).not.toContain('s3cret');
    }
    expect((await ask('health', 'HEAD')).status).toBe(500);
    await expect.poll(() => logged).toContainEqual(expect.stringContaining(setting));
    // The console shows the telemetry that Application Insights receives in Azure.
    await expect.poll(() => logged).toContainEqual(expect.stringMatching(/ start \(.*wrong-setting\)$/));
    expect(logged.join('\n')).not.toContain('s3cret');
  },
);

test('fails timers and keeps messages in their queue while a setting is wrong', async () => {
  const { queue, queues } = storageAccounts.openStorage({ connectionString: usable.AzureWebJobsStorage });
  for (const name of ['index-changes', 'index-changes-poison']) await queues.createQueue(name);
  const { host, logged } = await startWith({ ...usable, ROWKEY_HOST_KEY: 'a key' });
  const headers = { 'content-type': 'application/json', 'x-functions-key': 'a key' };
  await fetch(`${host.url}/admin/functions/roll-periods`, { method: 'POST', headers, body: '{}' });
  await vi.waitFor(() => expect(logged.join('\n')).toMatch(FAILED_TIMER), {
    timeout: PATIENCE_MS,
  });
  await queue('index-changes').sendMessage('{}');
  const visible = async () => (await queue('index-changes').peekMessages()).peekedMessageItems;
  await vi.waitFor(async () => expect(await visible()).toEqual([]), { timeout: PATIENCE_MS });
  // A function that failed would be logged. After five of them, the message would be poison.
  await sleep(8_000);
  expect(logged.filter((line) => FAILED_QUEUE.test(line))).toEqual([]);
  const left = async (name: string) => (await queue(name).getProperties()).approximateMessagesCount;
  expect([await left('index-changes'), await left('index-changes-poison')]).toEqual([1, 0]);
  await queues.deleteQueue('index-changes');
});

test('does not start the host without the storage setting, and names it', async () => {
  const env = { ...usable, PATH: process.env.PATH, AzureWebJobsStorage: 's3cret' };
  const started = run(process.execPath, [join(root, 'local/host/main.ts'), '--app', testApp.folder, '--port', '0'], {
    env,
    timeout: PATIENCE_MS,
  });
  const { code, stderr } = await started.catch((error) => error);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('AzureWebJobsStorage') });
  expect(stderr).not.toContain('s3cret');
});
