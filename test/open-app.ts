import { createRowkey, type Rowkey, type RowkeyOptions } from '../lib/index.ts';
import type { Internal } from './kit/internal.ts';
import { testStorage } from './storage.ts';

/** Creates an app of a model on the storage account of a test file. No issuer signs a token for it. */
export function openApp<All extends Internal['Entities']>(
  url: string,
  model: RowkeyOptions<All>['model'],
  over: Partial<RowkeyOptions<All>> = {},
): Rowkey<All> {
  return createRowkey({
    model,
    storage: { connectionString: testStorage(url) },
    auth: { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' },
    ...over,
  });
}
