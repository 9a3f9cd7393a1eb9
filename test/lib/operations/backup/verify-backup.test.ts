// @module-tag long

import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { PNG } from '../../../../local/walk/png.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageBlobs } from '../../../kit/storage.ts';
import { model, openBackedUp } from './backup-app.ts';

const days = 7;
const person = { team: 'ops', email: 'a@x', town: 'Bern' };

async function openWithSnapshots() {
  const app = await openBackedUp();
  const { engine, store, source } = app;
  const take = () => operationsBackup.takeSnapshot(engine, model.list, { days });
  await store.people.create({ ...person, personId: '1' });
  await store.people.files.photo.put({ team: 'ops', personId: '1' }, PNG);
  await take();
  await store.people.create({ ...person, personId: '2', email: 'b@x' });
  await take();
  const container = source.backup.container('backup');
  const change = async (prefix: string, change: (bytes: Buffer) => Buffer) => {
    const [name = ''] = await storageBlobs.listBlobs(source.backup, { container: 'backup', prefix });
    const client = container.getBlockBlobClient(name);
    const bytes = change(await client.downloadToBuffer());
    await client.deleteIfExists();
    await client.upload(bytes, bytes.length);
    return name;
  };
  const verify = (known?: ReadonlySet<string>) => operationsBackup.verifyBackup(source.backup, { days, known });
  return { ...app, take, container, change, verify };
}

test('reads each part and each blob of the journal once', async () => {
  const { verify, store } = await openWithSnapshots();
  const first = await verify();
  // Each snapshot has a part of the people, of three and of six rows; the journal has a line for each create.
  expect(first).toMatchObject({
    snapshots: 2,
    parts: { all: 2, read: 2 },
    journal: { all: 1, read: 1 },
    problems: [],
  });
  expect(await verify(first.known)).toMatchObject({ parts: { all: 2, read: 0 }, journal: { read: 0 }, lines: 0 });
  await store.people.create({ ...person, personId: '3', email: 'c@x' });
  expect(await verify(first.known)).toMatchObject({ parts: { read: 0 }, journal: { all: 1, read: 1 }, problems: [] });
});

test('finds what is missing or has changed', async () => {
  const app = await openWithSnapshots();
  const first = await app.verify();
  const flip = (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.of((bytes.at(-1) ?? 0) ^ 1)]);
  const part = await app.change('parts/', flip);
  expect((await app.verify()).problems).toEqual([`${part}: its bytes are not those that were written.`]);
  // What was verified once is not read again, as nothing can change it.
  expect((await app.verify(first.known)).problems).toEqual([]);
  await app.change('parts/', (bytes) => bytes.subarray(1));
  expect((await app.verify(first.known)).problems).toEqual([expect.stringMatching(/: it has \d+ bytes, not \d+\.$/)]);
  await app.container.deleteBlob(part);
  expect((await app.verify(first.known)).problems).toEqual([`${part}: it is missing.`]);
});

test('finds lines of the journal that cannot be read, and copies that are gone', async () => {
  const app = await openWithSnapshots();
  const line = await app.change('journal/', (bytes) => bytes.subarray(0, -1));
  const [copy = ''] = await storageBlobs.listBlobs(app.source.backup, { container: 'backup', prefix: 'blobs/' });
  await app.container.deleteBlob(copy);
  expect((await app.verify()).problems).toEqual([
    `${line}: its last line is not whole.`,
    expect.stringMatching(/^blobs\/[\d-]+\/faces\/: it has 0 copies, not 1\.$/),
  ]);
});

test('counts the rows of a part, and compares the order of their keys', async () => {
  const app = await openWithSnapshots();
  const [name = ''] = await storageBlobs.listBlobs(app.source.backup, { container: 'backup', prefix: 'manifests/' });
  const bytes = gzipSync('{"partition":"b","row":"r","time":"t","properties":{}}\n'.repeat(2));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  await app.container.getBlockBlobClient('parts/made').upload(bytes, bytes.length);
  const made = (rows: number) => ({
    people: {
      rows,
      parts: [{ name: 'parts/made', at: '', rows, bytes: bytes.length, sha256, first: { partition: 'b', row: 'r' } }],
    },
  });
  const client = app.container.getBlockBlobClient(name);
  const manifest = JSON.parse((await client.downloadToBuffer()).toString());
  for (const [rows, problem] of [
    [3, 'parts/made: it has 2 rows, not 3.'],
    [2, 'parts/made: its rows are not in the order of their keys.'],
  ] as const) {
    const text = JSON.stringify({ ...manifest, tables: made(rows) });
    await client.upload(text, text.length);
    expect((await app.verify()).problems).toEqual([problem]);
  }
});
