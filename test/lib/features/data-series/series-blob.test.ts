import { expect, test } from 'vitest';
import { engineRead } from '../../../kit/engine.ts';
import { featureSeries } from '../../../kit/features.ts';

const address = { table: 'counts', partition: 'p', row: 'r' };
const rowNaming = (name: unknown) => ({ ...address, etag: '', properties: { CountsBlob: name } });

test('a row names only blobs of its own', () => {
  const name = engineRead.createBlobName(address, 'counts');
  expect(name).toMatch(/^[\da-f]{3}\/counts\/[\w-]{22}\/counts\/[\w-]{8}\/[\da-f-]{36}$/);
  expect(featureSeries.blobOf(rowNaming(name))).toMatchObject({ name });
  const former = `${engineRead.formerBlobPrefix(address, 'counts')}b7a1`;
  expect(featureSeries.blobOf(rowNaming(former))).toMatchObject({ name: former });
  for (const foreign of [
    engineRead.createBlobName({ ...address, row: 'other' }, 'counts'),
    engineRead.createBlobName({ ...address, table: 'reviews' }, 'counts'),
    engineRead.createBlobName(address, 'comments'),
    '',
    7,
    undefined,
  ])
    expect(featureSeries.blobOf(rowNaming(foreign))).toBeUndefined();
});
