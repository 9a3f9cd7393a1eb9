import { expect, test } from 'vitest';
import { healthRoute } from '../../../../lib/http/routes/health-route.ts';
import { createMemoryStorage } from '../../../../lib/testing/index.ts';
import type { RequestContext } from '../../../kit/http.ts';
import { type Storage, storageAccounts } from '../../../kit/storage.ts';
import { createAccounts, NAMES } from '../../storage/several-accounts.ts';

const check = (storage: Storage) => {
  const app = { engine: { storage }, ready: async () => undefined, findMissing: async () => [] };
  return healthRoute.handle({ app, log: { error: () => undefined } } as unknown as RequestContext);
};

test('names the storage account that is away, while the others respond', async () => {
  const { open, stopped } = createAccounts();
  const accountsWithout = (...away: string[]) =>
    NAMES.map((name) => ({ name, storage: away.includes(name) ? 'unavailable' : 'ok' }));
  expect(await check(open())).toMatchObject({ status: 200, body: { status: 'ok', accounts: accountsWithout() } });
  for (const name of NAMES) {
    stopped.add(name);
    expect(await check(open())).toMatchObject({
      status: 200,
      body: { status: 'degraded', storage: 'unavailable', accounts: accountsWithout(name) },
    });
    stopped.clear();
  }
  for (const name of NAMES) stopped.add(name);
  expect(await check(open())).toMatchObject({ status: 503, body: { accounts: accountsWithout(...NAMES) } });
});

test('names no account if there is only one', async () => {
  const memory = createMemoryStorage();
  const { status, body } = await check(storageAccounts.openStorage(memory));
  expect(status).toBe(200);
  expect(Object.keys(body as object)).toEqual(['status', 'storage', 'declaration', 'settings', 'resources']);
  memory.intercept = () => {
    throw new Error('The account is away.');
  };
  expect(await check(storageAccounts.openStorage(memory))).toMatchObject({ status: 503, body: { status: 'degraded' } });
});
