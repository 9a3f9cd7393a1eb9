import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalIdentityProvider, startIdentityProvider } from '../../../local/instance/identity-provider.ts';

let folder: string;
let provider: LocalIdentityProvider;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-login-'));
  provider = await startIdentityProvider({ folder, signers: () => ({ roles: ['reader', 'hr', 'a<b>"'] }) });
});
afterAll(async () => {
  await provider.stop();
  await rm(folder, { recursive: true, force: true });
});

const verifier = 'v'.repeat(64);
const valid = {
  client_id: 'console',
  redirect_uri: 'http://127.0.0.1:7071/console/',
  response_type: 'code',
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
  scope: 'openid',
  state: 's"1',
  nonce: 'n1',
};

const show = (over: Record<string, string> = {}) =>
  fetch(`${provider.issuer}/authorize?${new URLSearchParams({ ...valid, ...over })}`);
const choose = (over: Record<string, string> = {}, headers: Record<string, string> = {}) =>
  fetch(`${provider.issuer}/authorize`, {
    method: 'POST',
    redirect: 'manual',
    headers,
    body: new URLSearchParams({ ...valid, role: 'hr', email: 'ann@contoso.com', ...over }),
  });
async function signIn(over: Record<string, string> = {}): Promise<string> {
  const { searchParams } = new URL((await choose(over)).headers.get('location') ?? '');
  return searchParams.get('code') ?? '';
}
async function exchange(code: string, over: Record<string, string> = {}) {
  const { redirect_uri, client_id } = valid;
  const form = { grant_type: 'authorization_code', code, redirect_uri, client_id, code_verifier: verifier, ...over };
  const response = await fetch(`${provider.issuer}/token`, { method: 'POST', body: new URLSearchParams(form) });
  return { status: response.status, headers: response.headers, body: Object(await response.json()) };
}
const readKeys = async () => createLocalJWKSet(Object(await (await fetch(provider.jwksUri)).json()));

test('a person enters claims, of which one of several lines is a list, and finds them again', async () => {
  const claims = 'departments=Sales\r\ndepartments = HR\nplan=a=b\nnonsense\nroles=operator';
  const chosen = await choose({ claims });
  const code = new URL(chosen.headers.get('location') ?? '').searchParams.get('code') ?? '';
  const { body } = await exchange(code);
  const { payload } = await jwtVerify(body.access_token, await readKeys());
  expect(payload).toMatchObject({ departments: ['Sales', 'HR'], plan: 'a=b', roles: ['hr'], email: 'ann@contoso.com' });
  const cookie = chosen.headers.get('set-cookie')?.split(';')[0] ?? '';
  const again = await fetch(`${provider.issuer}/authorize?${new URLSearchParams(valid)}`, { headers: { cookie } });
  expect(await again.text()).toContain('departments=Sales');
});

test('a person chooses roles and an address, and gets a token of that identity', async () => {
  const page = await show();
  const html = await page.text();
  for (const role of ['reader', 'hr', 'a&#60;b&#62;&#34;']) expect(html).toContain(`name="role" value="${role}">`);
  expect(html).toContain('value="s&#34;1"');
  const policy = page.headers.get('content-security-policy');
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-/);
  expect(policy).not.toContain('unsafe');
  expect(html).not.toMatch(/<script|\sstyle=|\son\w+=/);

  const redirect = await choose();
  expect(redirect.status).toBe(303);
  const location = new URL(redirect.headers.get('location') ?? '');
  expect(location.origin + location.pathname).toBe(valid.redirect_uri);
  expect(location.searchParams.get('state')).toBe(valid.state);
  expect(location.searchParams.get('iss')).toBe(provider.issuer);
  const { status, body, headers } = await exchange(location.searchParams.get('code') ?? '');
  expect([status, body.token_type, headers.get('access-control-allow-origin')]).toEqual([200, 'Bearer', '*']);
  const keys = await readKeys();
  const { issuer, audience } = provider;
  const access = await jwtVerify(body.access_token, keys, { issuer, audience });
  expect(access.payload).toMatchObject({ sub: 'ann@contoso.com', email_verified: true, roles: ['hr'] });
  const id = await jwtVerify(body.id_token, keys, { issuer, audience: 'console' });
  expect(id.payload).toMatchObject({ sub: 'ann@contoso.com', nonce: 'n1' });
});

test('a person may have a subject and no address', async () => {
  const { body } = await exchange(await signIn({ email: '', subject: 'device-7' }));
  const { payload } = await jwtVerify(body.access_token, await readKeys(), { audience: provider.audience });
  expect(payload.sub).toBe('device-7');
  expect(payload).not.toHaveProperty('email');
});

test('the page shows nobody on the first visit, and then the person who signed in last in this browser', async () => {
  const person = { role: 'a<b>"', email: 'Zoë; Path=/@contoso.com', subject: '"ann" <1>' };
  const cookie = (await choose(person)).headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(/^rowkey-person-\d+=[\w.*=&%+-]+; Path=\/authorize; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
  const [kept = ''] = cookie.split(';');
  const again = async (header: string) => {
    const response = await fetch(`${provider.issuer}/authorize?${new URLSearchParams(valid)}`, {
      headers: { cookie: header },
    });
    return response.text();
  };
  const html = await again(`other=1; ${kept}; more=2`);
  expect(html.match(/value="[^"]*" checked/g)).toEqual(['value="a&#60;b&#62;&#34;" checked']);
  expect(html).toContain('value="Zoë; Path=/@contoso.com"');
  expect(html).toContain('value="&#34;ann&#34; &#60;1&#62;"');
  // The cookie of another instance on this machine, whose port differs, and one of a model that had other roles.
  const first = await (await show()).text();
  expect(first).not.toContain(' checked');
  expect(await again(kept.replace(/-\d+=/, '-1='))).toBe(first);
  expect(await again(`${kept.split('=')[0]}=role=admin`)).toBe(first);
});

test('a person without a role of the model is asked again', async () => {
  for (const role of ['', 'admin']) {
    const response = await choose({ role });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('at least one role')]);
  }
});

test('a person without a role needs a name where the model has a role for all who sign in', async () => {
  const open = await startIdentityProvider({
    folder,
    signers: () => ({ roles: ['reader', 'user'], signedIn: 'user' }),
  });
  try {
    const choose = (person: Record<string, string>) =>
      fetch(`${open.issuer}/authorize`, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams({ ...valid, ...person }),
      });
    const page = await (await fetch(`${open.issuer}/authorize?${new URLSearchParams(valid)}`)).text();
    expect(page).toContain('<button>Create an account</button>');
    const known = await choose({ email: 'ann@contoso.com' });
    const cookie = known.headers.get('set-cookie')?.split(';')[0] ?? '';
    const again = await fetch(`${open.issuer}/authorize?${new URLSearchParams(valid)}`, { headers: { cookie } });
    expect(await again.text()).toMatch(/value="ann@contoso.com"><\/label>\n<button>Continue<\/button>/);
    const nobody = await choose({});
    expect([nobody.status, await nobody.text()]).toEqual([400, expect.stringContaining('or choose a role')]);
    expect((await choose({ role: 'reader' })).status).toBe(303);
    expect((await choose({ subject: 'ann' })).status).toBe(303);
    expect((await choose({ email: 'ann@contoso.com' })).status).toBe(303);
  } finally {
    await open.stop();
  }
});

describe('a code is given only', () => {
  test.each([
    ['to a page of this machine', { redirect_uri: 'https://evil.example/' }],
    ['to a host that is not like this machine', { redirect_uri: 'http://127.0.0.1.evil.example/' }],
    ['to no user of this machine', { redirect_uri: 'http://localhost:1@evil.example/' }],
    ['with a challenge', { code_challenge: '' }],
    ['with a hashed challenge', { code_challenge_method: 'plain' }],
    ['in the code flow', { response_type: 'token' }],
    ['to a client', { client_id: '' }],
  ])('%s', async (_, over) => {
    for (const response of [await show(over), await choose(over)]) {
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
      expect(await response.text()).not.toContain('<form');
    }
  });

  test('to a form of its own page, not of another origin', async () => {
    const own = await choose({}, { origin: provider.issuer });
    expect(own.status).toBe(303);
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1'])
      expect((await choose({}, { origin })).headers.get('location'), origin).toBeNull();
    for (const response of [await show(), own]) expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('under the name of this machine, so that no other name leads a page here', async () => {
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const headers = { host: `evil.example:${new URL(provider.issuer).port}` };
    request(`${provider.issuer}/authorize?${new URLSearchParams(valid)}`, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).end();
    expect(await promise).toBe(404);
  });
});

describe('a code gives a token', () => {
  test.each([
    ['only with the verifier of its challenge', { code_verifier: 'w'.repeat(64) }],
    ['only to its client', { client_id: 'other' }],
    ['only for its address', { redirect_uri: 'http://127.0.0.1:7071/other/' }],
  ])('%s, and never after a failure', async (_, over) => {
    const code = await signIn();
    expect(await exchange(code, over)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(await exchange(code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  });

  test('once', async () => {
    const code = await signIn();
    expect((await exchange(code)).status).toBe(200);
    expect((await exchange(code)).status).toBe(400);
  });

  test('by no other grant type', async () => {
    const over = { grant_type: 'password', username: 'ann', password: 'x' };
    expect(await exchange(await signIn(), over)).toMatchObject({ body: { error: 'unsupported_grant_type' } });
  });
});

test('signing out returns to a page of this machine only', async () => {
  const signOut = (to: string) =>
    fetch(`${provider.issuer}/logout?${new URLSearchParams({ post_logout_redirect_uri: to })}`, { redirect: 'manual' });
  expect((await signOut(valid.redirect_uri)).headers.get('location')).toBe(valid.redirect_uri);
  expect((await signOut('https://evil.example')).headers.get('location')).toBeNull();
});
