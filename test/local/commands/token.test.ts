import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalIdentityProvider, startIdentityProvider } from '../../../local/instance/identity-provider.ts';
import { removeInstance, writeInstance } from '../../../local/instance/instance.ts';
import { model } from '../../fixtures/model.ts';
import { accessChecks } from '../../kit/access.ts';

const SCRIPT = fileURLToPath(new URL('../../../local/commands/token.ts', import.meta.url));
const NOWHERE = 'http://127.0.0.1:1';
let folder: string;
let provider: LocalIdentityProvider;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-token-'));
  // The default data folder is .rowkey in the current folder.
  const data = join(folder, '.rowkey');
  provider = await startIdentityProvider({ folder: data, port: 0 });
  const { issuer, jwksUri, audience } = provider;
  const endpoints = { url: NOWHERE, tables: NOWHERE, queues: NOWHERE, blobs: NOWHERE, accounts: 1 };
  const served = { app: folder, roles: [...model.roles], pid: process.pid };
  await writeInstance(data, { issuer, jwksUri, audience, ...endpoints, ...served });
});
afterAll(async () => {
  await provider.stop();
  await rm(folder, { recursive: true, force: true });
});

function run(...args: string[]): Promise<{ code: number | undefined; stdout: string; stderr: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number | undefined; stdout: string; stderr: string }>();
  execFile(process.execPath, [SCRIPT, ...args], { cwd: folder }, (error, stdout, stderr) =>
    resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
  );
  return promise;
}

test('puts every role into the token', { tags: ['slow'] }, async () => {
  const authenticate = accessChecks.createAuthenticator(provider, model);
  for (const args of [
    ['--role', 'operator,hr'],
    ['--role', 'operator', '--role', 'hr'],
  ]) {
    const { stdout } = await run(...args);
    expect((await authenticate(`Bearer ${stdout.trim()}`)).roles).toEqual(['hr', 'operator']);
  }
});

test('makes a list of a claim that is given twice', { tags: ['slow'] }, async () => {
  const claims = ['sub=ann', 'departments=Sales', 'departments=HR'].flatMap((claim) => ['--claim', claim]);
  const { stdout } = await run('--role', 'hr', ...claims);
  expect(await accessChecks.createAuthenticator(provider, model)(`Bearer ${stdout.trim()}`)).toMatchObject({
    subject: 'ann',
    claims: { departments: ['Sales', 'HR'] },
  });
});

test('prints only a token of the running instance', { tags: ['slow'] }, async () => {
  const { code, stdout, stderr } = await run('--role', 'hr', '--email', 'Ann@contoso.com');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  const authenticate = accessChecks.createAuthenticator(provider, model);
  expect(await authenticate(`Bearer ${stdout.trim()}`)).toMatchObject({
    roles: ['hr'],
    claims: { email: 'Ann@contoso.com' },
  });
  const nobody = await run('--role', 'reader', '--data', '.rowkey');
  expect((await authenticate(`Bearer ${nobody.stdout.trim()}`)).claims).not.toHaveProperty('email');
});

test('prints an error as one sentence', { tags: ['slow'] }, async () => {
  const role = await run('--role', 'emperor');
  expect([role.code, role.stdout, role.stderr]).toEqual([1, '', expect.stringContaining('reader, hr, operator')]);
  const none = await run();
  expect([none.code, decodeJwt(none.stdout).roles]).toEqual([0, []]);
  await removeInstance(join(folder, '.rowkey'));
  expect(await run('--role', 'hr')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'No instance is running on the data folder .rowkey: run npm start first.\n',
  });
});
