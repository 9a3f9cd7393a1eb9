import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { openStorage } from '../../lib/storage/storage.ts';
import { startProduct } from '../../local/product.ts';
import { PATIENCE_MS } from '../patience.ts';
import { testStorage } from '../storage.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const usable = {
  PATH: process.env.PATH,
  AzureWebJobsStorage: 'UseDevelopmentStorage=true',
  TOKEN_ISSUER: 'http://127.0.0.1:1',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'http://127.0.0.1:1/keys',
};

test.each([
  ['TOKEN_ISSUER', { ...usable, TOKEN_ISSUER: 's3cret' }],
  ['AzureWebJobsStorage', { ...usable, AzureWebJobsStorage: 's3cret' }],
  ['KEY_ENCRYPTION_KEY_URI', usable],
  ['KEY_ENCRYPTION_KEY_FILE', { ...usable, KEY_ENCRYPTION_KEY_FILE: join(inject('folder'), 'there-is-none.json') }],
])('the app does not start with a %s that it cannot use, and says so', async (setting, env) => {
  const started = run(process.execPath, [join(root, 'local/host/main.ts'), '--app', root, '--port', '0'], {
    env,
    timeout: PATIENCE_MS,
  });
  const { code, stderr } = await started.catch((error) => error);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(setting) });
  expect(stderr).not.toContain('s3cret');
});

test('a declaration that would strand what is stored is found at the start, until it is agreed to', async () => {
  const connectionString = testStorage(import.meta.url);
  const data = await mkdtemp(join(tmpdir(), 'rowkey-refused-'));
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(data, { recursive: true, force: true });
  });
  const logged: string[] = [];
  const start = () =>
    startProduct({ port: 0, data, func: false, storage: { connectionString }, log: (line) => logged.push(line) });
  await (await start()).stop();

  const system = openStorage({ connectionString }).table('system');
  const row = { partitionKey: 'model', rowKey: 'employees' };
  const { Shape } = await system.getEntity<{ Shape: string }>(row.partitionKey, row.rowKey);
  const former = Shape.replace('empid_{employeeId}', 'former_{employeeId}');
  expect(former).not.toBe(Shape);
  await system.updateEntity({ ...row, Shape: former }, 'Merge');
  await expect(start()).rejects.toThrow('The functions host serves nothing');
  const [, word] = /its row was former_.* set AGREED_MODEL_CHANGES to ([0-9a-f]{12})/.exec(logged.join('')) ?? [];
  expect(word).toBeDefined();

  vi.stubEnv('AGREED_MODEL_CHANGES', word);
  await (await start()).stop();
  vi.unstubAllEnvs();
  await (await start()).stop();
}, 60_000);
