import type { HttpClient } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { claim } from '../../../../lib/engine/reconcile/unique-claim.ts';
import { engineCore } from '../../../kit/engine.ts';
import { storageAccounts } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

test('a writer does not look for its claim after its time limit', async () => {
  const writer = new AbortController();
  const methods: string[] = [];
  const httpClient: HttpClient = {
    async sendRequest({ method }) {
      methods.push(method);
      writer.abort();
      throw Object.assign(new Error('Given up.'), { name: 'AbortError' });
    },
  };
  const engine = engineCore.createEngine(
    storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient }),
  );
  const indexEntry = { index: 'email', table: 'byemail', partition: 'one', row: 'one' };
  const owner = { table: 'people', partition: 'one', row: '1' };
  const claiming = claim(engine, indexEntry, owner, { intent: 'one', signal: writer.signal });
  await expect(claiming).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(methods).toEqual(['POST']);
});
