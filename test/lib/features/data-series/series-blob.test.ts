import { expect, test } from 'vitest';
import { createBlobName, formerBlobPrefix } from '../../../../lib/engine/read/text-blobs.ts';
import { blobOf } from '../../../../lib/features/data-series/data-series.ts';

const address = { table: 'counts', partition: 'p', row: 'r' };
const rowNaming = (name: unknown) => ({ ...address, etag: '', properties: { CountsBlob: name } });

test('a row names only blobs of its own', () => {
  const name = createBlobName(address, 'counts');
  expect(name).toMatch(/^[\da-f]{3}\/counts\/[\w-]{22}\/counts\/[\w-]{8}\/[\da-f-]{36}$/);
  expect(blobOf(rowNaming(name))).toMatchObject({ name });
  const former = `${formerBlobPrefix(address, 'counts')}b7a1`;
  expect(blobOf(rowNaming(former))).toMatchObject({ name: former });
  for (const foreign of [
    createBlobName({ ...address, row: 'other' }, 'counts'),
    createBlobName({ ...address, table: 'reviews' }, 'counts'),
    createBlobName(address, 'comments'),
    '',
    7,
    undefined,
  ])
    expect(blobOf(rowNaming(foreign))).toBeUndefined();
});
