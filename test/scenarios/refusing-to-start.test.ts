import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { PATIENCE_MS } from '../patience.ts';

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
