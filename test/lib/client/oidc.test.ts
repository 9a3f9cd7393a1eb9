import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { apiCalls } from '../../kit/api.ts';

/** A page that returns from its provider, without a browser: what of the address and of the storage of a tab counts as a sign-in. */

const issuer = 'https://login.example';
const provider = { issuer, clientId: 'page' };
let stored: Map<string, string>;
let replaced: string[];
let sent: { readonly url: string; readonly body: string }[];

beforeEach(() => {
  stored = new Map();
  replaced = [];
  sent = [];
  vi.stubGlobal('sessionStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  vi.stubGlobal('history', { replaceState: (_: null, __: '', url: string) => replaced.push(url) });
  vi.stubGlobal('fetch', async (url: URL | string, { body = '' }: { body?: unknown } = {}) => {
    sent.push({ url: String(url), body: String(body) });
    const { origin } = new URL(url);
    const metadata = { issuer: origin, authorization_endpoint: `${origin}/auth`, token_endpoint: `${origin}/token` };
    const token = { access_token: 'access', refresh_token: 'refresh', token_type: 'Bearer', expires_in: 1 };
    return Response.json(/openid-configuration$/.test(String(url)) ? metadata : token);
  });
});
afterEach(() => vi.unstubAllGlobals());

/** Opens the page at an address, and returns the address to which it leaves for the sign-in. */
function visit(address: string) {
  const { href, origin, pathname, hash } = new URL(address);
  const assigned: string[] = [];
  vi.stubGlobal('location', { href, origin, pathname, hash, assign: (url: URL) => assigned.push(String(url)) });
  return assigned;
}

/** Leaves the page at this address for the provider, which returns. */
async function signIn(address: string): Promise<void> {
  const assigned = visit(address);
  await (await apiCalls.openSession(provider)).signIn();
  const state = new URL(assigned[0] ?? '').searchParams.get('state') ?? '';
  visit(`https://app.example/page?code=c&state=${state}`);
}

test('a page returns from the provider to its hash, with the tokens in the tab', async () => {
  await signIn('https://app.example/page#group');
  expect((await apiCalls.openSession(provider)).isSignedIn).toBe(true);
  expect(replaced).toEqual(['/page#group']);
  expect(sent.at(-1)?.body).toMatch(/code_verifier=.+/);
});

test('a code of the page itself is no return from the provider', async () => {
  visit('https://app.example/page?code=invitation');
  expect((await apiCalls.openSession(provider)).isSignedIn).toBe(false);
  expect([replaced, sent]).toEqual([[], []]);
});

test('rejects a code with another state than that of the sign-in', async () => {
  await signIn('https://app.example/page');
  visit('https://app.example/page?code=c&state=s');
  await expect(apiCalls.openSession(provider)).rejects.toThrow(/state/);
  expect([...stored.keys()]).toEqual([]);
});

test.each([
  ['issuer', { ...provider, issuer: 'https://other.example' }],
  ['client', { ...provider, clientId: 'other' }],
  ['scope', { ...provider, scope: 'openid api://other/access' }],
])('a page with another %s gets no token of the tab, and sends its provider none', async (_, other) => {
  await signIn('https://app.example/page');
  expect((await apiCalls.openSession(provider)).isSignedIn).toBe(true);
  visit('https://app.example/other');
  sent = [];
  const session = await apiCalls.openSession(other);
  expect(session.isSignedIn).toBe(false);
  await expect(session.token({ forceRefresh: false })).rejects.toThrow('Sign in again.');
  expect(sent).toEqual([]);
});
