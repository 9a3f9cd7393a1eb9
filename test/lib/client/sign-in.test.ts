import { beforeEach, expect, test, vi } from 'vitest';
import { openSession } from '../../../lib/client/sign-in.ts';

/** Sessions without a browser. Signing in at a provider is tested with the console and with the page of the example app groups. */

const PROVIDER = { issuer: 'http://127.0.0.1:1', clientId: 'page' };
const location = {
  href: '',
  origin: 'https://page.example',
  pathname: '/',
  hash: '',
  assign: vi.fn(),
  reload: vi.fn(),
};
const history = { replaceState: vi.fn() };
const stored = new Map<string, string>();
const sessionStorage = {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => stored.set(key, value),
  removeItem: (key: string) => stored.delete(key),
};
const keep = (session: object) => stored.set('rowkey-session', JSON.stringify(session));

beforeEach(() => {
  stored.clear();
  location.href = 'https://page.example/';
  for (const [name, value] of Object.entries({ location, history, sessionStorage })) vi.stubGlobal(name, value);
  return () => vi.unstubAllGlobals();
});

test('a user without a session has no token', async () => {
  const session = await openSession(PROVIDER);
  expect(session.isSignedIn).toBe(false);
  await expect(session.token({ forceRefresh: false })).rejects.toThrow('The session has ended. Sign in again.');
});

test('a session has its token until it ends, or the user signs out', async () => {
  keep({ token: 'T', expiresAt: Date.now() + 3_600_000 });
  const session = await openSession(PROVIDER);
  expect([session.isSignedIn, await session.token({ forceRefresh: false })]).toEqual([true, 'T']);
  // The API has rejected it, and there is no refresh token.
  await expect(session.token({ forceRefresh: true })).rejects.toThrow('The session has ended.');
  expect(stored.size).toBe(0);
  keep({ token: 'T', expiresAt: Date.now() + 3_600_000 });
  session.signOut();
  expect([stored.size, location.reload.mock.calls.length]).toEqual([0, 1]);
});

test('a code that this tab did not ask for is rejected, and leaves the address', async () => {
  location.href = 'https://page.example/?code=stolen&state=s';
  await expect(openSession(PROVIDER)).rejects.toThrow('This tab has started no sign-in.');
  expect(history.replaceState).toHaveBeenCalledWith(null, '', '/');
  expect(stored.size).toBe(0);
});

test('an app without a console does not say where to sign in', async () => {
  vi.stubGlobal('fetch', async (url: URL) => {
    expect(url.href).toBe('https://api.example/console/config.json');
    return new Response('', { status: 404 });
  });
  const opening = openSession({ url: 'https://api.example/api' });
  await expect(opening).rejects.toThrow('The app does not say where to sign in: the status was 404.');
});
