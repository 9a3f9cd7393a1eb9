import { expect, test } from 'vitest';
import type { RequestContext } from '../../../../lib/http/route.ts';
import { healthRoute } from '../../../../lib/http/routes/health-route.ts';
import { openStorage, type Storage } from '../../../../lib/storage/storage.ts';
import { createMemoryStorage } from '../../../../lib/testing/memory-storage.ts';
import { createAccounts } from '../../storage/several-accounts.ts';

const check = (storage: Storage) => {
  const app = { engine: { storage }, ready: async () => undefined, findMissing: async () => [] };
  return healthRoute.handle({ app, log: { error: () => undefined } } as unknown as RequestContext);
};

test('names the storage account that is away, while the others respond', async () => {
  const { open, stopped } = createAccounts();
  const accounts = (second: 'ok' | 'unavailable') => [
    { name: 'first', storage: 'ok' },
    { name: 'second', storage: second },
    { name: 'third', storage: 'ok' },
  ];
  expect(await check(open())).toMatchObject({ status: 200, body: { status: 'ok', accounts: accounts('ok') } });
  stopped.add('second');
  expect(await check(open())).toMatchObject({
    status: 503,
    body: { status: 'degraded', storage: 'unavailable', accounts: accounts('unavailable') },
  });
});

test('names no account if there is only one', async () => {
  const { status, body } = await check(openStorage(createMemoryStorage()));
  expect(status).toBe(200);
  expect(Object.keys(body as object)).toEqual(['status', 'storage', 'declaration', 'settings', 'resources']);
});
