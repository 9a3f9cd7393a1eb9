// @module-tag long

import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type LocalIdentityProvider,
  signToken,
  startIdentityProvider,
} from '../../../local/instance/identity-provider.ts';

let folder: string;
const providers: LocalIdentityProvider[] = [];

beforeEach(async () => {
  // A folder that does not exist yet, because the provider creates it.
  folder = join(await mkdtemp(join(tmpdir(), 'rowkey-identity-')), 'data');
});
afterEach(async () => {
  await Promise.all(providers.splice(0).map((provider) => provider.stop()));
  await rm(join(folder, '..'), { recursive: true, force: true });
});

async function start(port = 0): Promise<LocalIdentityProvider> {
  const provider = await startIdentityProvider({ folder, port });
  providers.push(provider);
  return provider;
}

const json = async (url: string) => (await (await fetch(url)).json()) as Record<string, unknown>;

test('publishes its metadata and public key, and keeps the private key in a file for its owner only', {
  tags: ['slow'],
}, async () => {
  const { issuer, jwksUri, audience } = await start();
  expect(audience).toBe('api://rowkey');
  expect(issuer).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(await json(`${issuer}/.well-known/openid-configuration`)).toMatchObject({ issuer, jwks_uri: jwksUri });
  const { keys } = await json(jwksUri);
  const text = { kty: 'RSA', alg: 'RS256', use: 'sig', kid: expect.any(String), n: expect.any(String) };
  expect(keys).toEqual([{ ...text, e: 'AQAB' }]);
  const file = join(folder, 'identity-key.json');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, 'utf8'))).toHaveProperty('d');
  for (const path of ['/', '/identity-key.json', '/.well-known/jwks.json/x', '/constructor'])
    expect((await fetch(issuer + path)).status).toBe(404);
});

test('signs a token with one role that is valid for eight hours', async () => {
  const { issuer, jwksUri, audience } = await start();
  const now = Date.parse('2026-11-20T10:00:00Z');
  const token = await signToken({ folder, issuer, audience, role: 'hr', email: 'ann@contoso.com', now });
  const keys = createRemoteJWKSet(new URL(jwksUri));
  const { payload } = await jwtVerify(token, keys, { issuer, audience, currentDate: new Date(now) });
  expect(payload).toMatchObject({
    sub: 'ann@contoso.com',
    roles: ['hr'],
    email: 'ann@contoso.com',
    email_verified: true,
    iat: now / 1000,
  });
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(8 * 3_600);
  const nobody = await jwtVerify(await signToken({ folder, issuer, audience, role: 'reader' }), keys);
  expect(nobody.payload).not.toHaveProperty('email');
});

test.each(['', '{"kty":"RSA","n":', 'null', '{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"1"}'])(
  'names a damaged key file and what to do (%s)',
  async (content) => {
    const file = join(folder, 'identity-key.json');
    await mkdir(folder);
    await writeFile(file, content);
    const reason = `${file} is not a signing key: delete it`;
    await expect(start()).rejects.toThrow(reason);
    await expect(signToken({ folder, issuer: 'i', audience: 'a', role: 'hr' })).rejects.toThrow(reason);
    expect(await readFile(file, 'utf8')).toBe(content);
  },
);

test('keeps its key over a restart', async () => {
  const first = await start();
  const published = await json(first.jwksUri);
  await first.stop();
  providers.pop();
  const second = await start();
  expect(await json(second.jwksUri)).toEqual(published);
});

test('reports a busy port in one sentence', async () => {
  const port = Number(new URL((await start()).issuer).port);
  await expect(start(port)).rejects.toThrow(
    `The identity provider cannot listen on port ${port}: another program uses it.`,
  );
});
