import { hash, randomBytes } from 'node:crypto';
import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { BlockBlobClient } from '@azure/storage-blob';
import { describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { collectAllOrphans } from '../collect-all-orphans.ts';
import { costOf } from '../cost-of.ts';
import { outcomeOf, tryFaults } from '../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../faulty-http-client.ts';
import { employees, model, reviews } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import { engineRead, engineTransfer, engineWrite, Transfer } from '../kit/engine.ts';
import { featureFiles } from '../kit/features.ts';
import { storageBlobs } from '../kit/storage.ts';
import { IS_EVERY_POINT, samplePoints } from '../points.ts';
import { countTried } from '../tried-faults.ts';
import { openWorld, QUICK, somebody } from '../world.ts';

/** Values that are too large for a row: texts that span several properties or a blob, and photos. */

const world = await openWorld(import.meta.url);

const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a46494600010100000100010000ffdb', 'hex'), randomBytes(4_000)]);

const hire = async (over: Values = {}) =>
  (await engineWrite.createEntity(world.engine, employees, somebody(over))).values;
const review = (one: Values, over: Values = {}) => ({
  department: one.department,
  employeeId: one.employeeId,
  year: 2025,
  rating: 3,
  ...over,
});
const commentsOf = async (key: Values, entity: Entity = reviews) =>
  (await engineWrite.toPlain(world.engine, entity, (await engineRead.readEntity(world.engine, entity, key)).values))
    .comments;
const photoOf = (key: Values, entity: Entity = employees) => ({ entity, key, field: 'photo' });
const blobsIn = async (container: string) =>
  (await Array.fromAsync(world.storage.blobs.getContainerClient(container).listBlobsFlat())).map(({ name }) => name);
/** Deletes the blob of a value, as if the container had been restored from an older backup. */
const lose = (container: string, value: unknown) =>
  world.storage.blobs.getContainerClient(container).deleteBlob((value as { blob: string }).blob);
const later = () => ({ ...world.engine, now: () => Date.now() + 2 * baseValues.DAY_MS });

/** Returns a text of this length; some characters take two code units, which must not be separated. */
const text = (length: number) =>
  'abc \u00e9\u4e16\u{1f600}'
    .repeat(Math.ceil(length / 8))
    .slice(0, length)
    .toWellFormed();

describe('a large text', () => {
  test.each([
    ['of 1 KB in the row', 1_024, 1, 'large', 0],
    ['of 200 KB over several properties', 204_800, 1, 'large', 0],
    ['of 5 MB in a blob', 5_242_880, 2, 'large', 1],
  ])('is read back unchanged: %s', async (_, length, reads, container, blobs) => {
    const one = await hire();
    const before = (await blobsIn(container)).length;
    const comments = text(length);
    await engineWrite.createEntity(world.engine, reviews, review(one, { comments }));
    expect(await costOf(() => commentsOf(review(one)))).toBe(reads);
    expect((await commentsOf(review(one))) === comments).toBe(true);
    expect((await blobsIn(container)).length - before).toBe(blobs);
    const { values } = await engineRead.readWithChildren(world.engine, employees, one, [reviews], {
      select: { reviews: ['comments'] },
    });
    const [found = {}] = values.reviews as Values[];
    expect((await engineWrite.toPlain(world.engine, reviews, found)).comments === comments).toBe(true);
    const { items } = await engineRead.readEntities(world.engine, reviews, one, {
      top: 1_000,
      select: ['comments'],
      where: [{ field: 'employeeId', operator: 'eq', values: [String(one.employeeId)] }],
    });
    expect((await engineWrite.toPlain(world.engine, reviews, items[0] ?? {})).comments === comments).toBe(true);
  });

  test('moves from the row to a blob and back as it grows and shrinks, and leaves no blob behind', {
    tags: ['slow'],
  }, async () => {
    const one = await hire();
    const before = await blobsIn('large');
    await engineWrite.createEntity(world.engine, reviews, review(one));
    for (const length of [10, 400_000, 400_001, 100_000, 300_000, 0]) {
      await engineWrite.patchEntity(world.engine, reviews, review(one), { comments: text(length) });
      expect((await commentsOf(review(one))) === text(length)).toBe(true);
    }
    expect(await blobsIn('large')).toEqual(before);
    await engineWrite.patchEntity(world.engine, reviews, review(one), { comments: text(400_000) });
    const [blob] = (await blobsIn('large')).filter((name) => !before.includes(name));
    await engineWrite.patchEntity(world.engine, reviews, review(one), { rating: 5 });
    await engineWrite.replaceEntity(
      world.engine,
      reviews,
      review(one),
      review(one, { rating: 4, comments: text(400_000) }),
    );
    expect((await blobsIn('large')).filter((name) => !before.includes(name))).toEqual([blob]);
    await engineWrite.patchEntity(world.engine, reviews, review(one), { comments: null });
    expect(await blobsIn('large')).toEqual(before);
  });

  test('is stored again when its blob is lost, even if the text is unchanged', async () => {
    const one = await hire();
    const comments = text(400_000);
    const { values } = await engineWrite.createEntity(world.engine, reviews, review(one, { comments }));
    await lose('large', values.comments);
    await engineWrite.replaceEntity(world.engine, reviews, review(one), review(one, { comments }));
    expect((await commentsOf(review(one))) === comments).toBe(true);
  });

  test('is moved and archived with its employee, and its blob is collected after a delete', {
    tags: ['slow'],
  }, async () => {
    const one = await hire({ department: 'From' });
    const comments = text(400_000);
    await engineWrite.createEntity(world.engine, reviews, review(one, { comments }));
    await engineTransfer.requestMove(world.engine, employees, one, { department: 'To' });
    await world.settle();
    const there = { ...one, department: 'To' };
    expect((await commentsOf(review(there))) === comments).toBe(true);
    await engineTransfer.requestArchive(world.engine, employees, there);
    await world.settle();
    const archive = employees.archive;
    if (!archive) throw new Error('Employees have an archive.');
    await collectAllOrphans(later(), model.list);
    const kinds = archive.children;
    const { values } = await engineRead.readWithChildren(world.engine, archive, there, kinds, {
      select: { reviews: ['comments'] },
    });
    const [found = {}] = values.reviews as Values[];
    expect((await engineWrite.toPlain(world.engine, reviews, found)).comments === comments).toBe(true);
    await engineWrite.deleteEntity(world.engine, archive, there);
    await world.settle();
    await collectAllOrphans(later(), model.list);
    await expect(engineWrite.toPlain(world.engine, reviews, found)).rejects.toThrow(engineRead.BlobGone);
  });
});

describe('a photo', () => {
  test('is written, replaced, read and deleted; the entity and the blob agree', async () => {
    const one = await hire();
    const before = await blobsIn('photos');
    const put = await featureFiles.putAttachment(world.engine, photoOf(one), PNG);
    expect(put.values.photo).toMatchObject({ type: 'image/png', bytes: PNG.length });
    await featureFiles.putAttachment(world.engine, photoOf(one), JPEG);
    const found = await featureFiles.describeAttachment(world.engine, photoOf(one));
    expect(found.type).toBe('image/jpeg');
    // A blob is written once.
    expect(put.values.photo).not.toMatchObject({ blob: found.blob });
    const { blobType } = await world.storage.container('photos').getBlobClient(found.blob).getProperties();
    expect(blobType).toBe('BlockBlob');
    expect(await featureFiles.readAttachment(world.engine, photoOf(one), found)).toEqual(JPEG);
    expect((await blobsIn('photos')).length).toBe(before.length + 1);
    await engineWrite.patchEntity(world.engine, employees, one, { phone: '5' });
    await engineWrite.replaceEntity(world.engine, employees, one, one);
    expect(await featureFiles.describeAttachment(world.engine, photoOf(one))).toEqual(found);
    await featureFiles.removeAttachment(world.engine, photoOf(one));
    expect(await blobsIn('photos')).toEqual(before);
    expect((await engineRead.readEntity(world.engine, employees, one)).values).toEqual(one);
  });

  test('can be written again when its blob is lost, even if the photo is unchanged', async () => {
    const one = await hire();
    const { values } = await featureFiles.putAttachment(world.engine, photoOf(one), PNG);
    await lose('photos', values.photo);
    await featureFiles.putAttachment(world.engine, photoOf(one), PNG);
    const found = await featureFiles.describeAttachment(world.engine, photoOf(one));
    expect(await featureFiles.readAttachment(world.engine, photoOf(one), found)).toEqual(PNG);
  });

  test('has the type of its bytes, and is rejected before anything is written', async () => {
    const one = await hire();
    const before = await blobsIn('photos');
    const gif = Buffer.from(`GIF89a${'0'.repeat(100)}`);
    const script = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>');
    for (const bytes of [gif, script, Buffer.alloc(0)])
      await expect(featureFiles.putAttachment(world.engine, photoOf(one), bytes)).rejects.toMatchObject({
        code: 'unsupported-media-type',
        field: 'photo',
      });
    const long = Buffer.concat([PNG, Buffer.alloc(5_000_000)]);
    await expect(featureFiles.putAttachment(world.engine, photoOf(one), long)).rejects.toMatchObject({
      code: 'too-large',
      field: 'photo',
    });
    const nobody = { ...one, employeeId: '999999' };
    await expect(featureFiles.putAttachment(world.engine, photoOf(nobody), PNG)).rejects.toMatchObject({
      code: 'not-found',
    });
    expect(await blobsIn('photos')).toEqual(before);
  });

  test('is moved and archived with its entity, and deleted with it', async () => {
    const one = await hire({ department: 'Here' });
    await featureFiles.putAttachment(world.engine, photoOf(one), JPEG);
    await engineTransfer.requestMove(world.engine, employees, one, { department: 'There' });
    await world.settle();
    const there = { ...one, department: 'There' };
    const moved = await featureFiles.describeAttachment(world.engine, photoOf(there));
    expect(await featureFiles.readAttachment(world.engine, photoOf(there), moved)).toEqual(JPEG);
    await engineTransfer.requestArchive(world.engine, employees, there);
    await world.settle();
    const archive = employees.archive;
    if (!archive) throw new Error('Employees have an archive.');
    await collectAllOrphans(later(), model.list);
    const archived = await featureFiles.describeAttachment(world.engine, photoOf(there, archive));
    expect(await featureFiles.readAttachment(world.engine, photoOf(there, archive), archived)).toEqual(JPEG);
    await expect(featureFiles.readAttachment(world.engine, photoOf(there), moved)).rejects.toThrow(engineRead.BlobGone);
    await engineWrite.deleteEntity(world.engine, archive, there);
    await expect(featureFiles.readAttachment(world.engine, photoOf(there, archive), archived)).rejects.toThrow(
      engineRead.BlobGone,
    );
  });

  test('agrees with its entity after any fault at any call, and leftovers are collected', {
    tags: ['slow'],
  }, async () => {
    const outcomes = await tryFaults(
      async ({ fault, client }) => {
        const one = await hire();
        await featureFiles.putAttachment(world.engine, photoOf(one), PNG);
        const put = featureFiles.putAttachment(world.engineThrough(client, fault && QUICK), photoOf(one), JPEG);
        return { one, isDone: (await outcomeOf(put)) === 'done' };
      },
      { moreCallsThan: 4, concurrency: 4 },
    );
    await world.settle();
    const { deleted } = await collectAllOrphans(later(), model.list);
    if (IS_EVERY_POINT) expect(deleted).toBeGreaterThan(0);
    const referred = new Set<string>();
    const what = 'Photo, each storage call: every fault';
    for (const { one, isDone } of outcomes)
      await countTried({ what }, async () => {
        const found = await featureFiles.describeAttachment(world.engine, photoOf(one));
        const bytes = await featureFiles.readAttachment(world.engine, photoOf(one), found);
        expect(bytes.equals(found.type === 'image/png' ? PNG : JPEG)).toBe(true);
        // Every acknowledged write is stored.
        if (isDone) expect(found.type).toBe('image/jpeg');
        referred.add(found.blob);
      });
    await countTried({ what, times: 0 }, async () =>
      expect((await collectAllOrphans(later(), model.list)).deleted).toBe(0),
    );
    expect([...referred].every((name) => name.split('/')[1] === 'employees')).toBe(true);
  });

  test('is whole when another writer replaced it before the reply to its writer arrived', async () => {
    const counting = faultyHttpClient();
    await featureFiles.putAttachment(world.engineThrough(counting), photoOf(await hire()), JPEG);
    for (const at of samplePoints(counting.calls)) {
      const one = await hire();
      const replace = () => featureFiles.putAttachment(world.engine, photoOf(one), PNG);
      const client = interruptedHttpClient(at + 1, replace, 'before', faultyHttpClient('reply lost', at));
      // The outcome is unknown if the lost reply was that of the write.
      await featureFiles
        .putAttachment(world.engineThrough(client), photoOf(one), JPEG)
        .catch((error) => expect(error).toMatchObject({ code: 'storage-unavailable' }));
      const found = await featureFiles.describeAttachment(world.engine, photoOf(one));
      const bytes = await featureFiles.readAttachment(world.engine, photoOf(one), found);
      expect(bytes.equals(found.type === 'image/png' ? PNG : JPEG)).toBe(true);
    }
    await collectAllOrphans(later(), model.list);
  });

  test('takes one blob write, one read and one write of its entity, and is not written twice', async () => {
    const one = await hire();
    const put = () => featureFiles.putAttachment(world.engine, photoOf(one), PNG);
    expect(await costOf(put)).toBe(8);
    expect(await costOf(put)).toBe(2);
  });

  test('is not collected while it is being written, nor are blobs of others', async () => {
    const one = await hire();
    await featureFiles.putAttachment(world.engine, photoOf(one), PNG);
    const container = world.storage.blobs.getContainerClient('photos');
    await container.getBlockBlobClient('of/somebody/else').upload('x', 1);
    const metadata = { table: 'employees', partition: '100%', row: 'x' };
    await container.getBlockBlobClient('with/metadata/of/theirs').upload('x', 1, { metadata });
    const before = await blobsIn('photos');
    expect((await collectAllOrphans(world.engine, model.list)).checked).toBe(0);
    await collectAllOrphans(later(), model.list);
    expect(await blobsIn('photos')).toEqual(before);
  });
});

describe('an upload directly to storage', () => {
  const times = () => ({
    permissions: storageBlobs.UPLOAD_PERMISSIONS,
    startsAt: new Date(Date.now() - 60_000),
    expiresAt: new Date(Date.now() + 60_000),
  });
  const upload = async (key: Values, bytes: Uint8Array, said = { type: 'image/jpeg', bytes: bytes.length }) => {
    const { uploadId, blob } = featureFiles.announceFile(employees, key, 'photo', said);
    const url = await storageBlobs.signBlobUrl(world.storage, blob, times());
    const headers = {
      'x-ms-blob-type': 'BlockBlob',
      'content-type': 'image/jpeg',
      'x-ms-blob-cache-control': 'public',
    };
    const put = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(bytes) });
    return { uploadId, url, put, headers };
  };

  /** Expects that the signature and the id of an upload are of no use any more, and that no byte of the file is left. */
  async function expectSpent({ uploadId, url, headers }: Awaited<ReturnType<typeof upload>>, one: Values) {
    expect((await fetch(url, { method: 'PUT', headers, body: new Uint8Array(JPEG) })).ok).toBe(false);
    await expect(featureFiles.acceptFile(world.engine, photoOf(one), uploadId)).rejects.toMatchObject({
      code: 'not-found',
    });
    for await (const { length } of storageBlobs.listContainer(world.storage, 'uploads')) expect(length).toBe(0);
    await collectAllOrphans(later(), model.list);
    expect(await blobsIn('uploads')).toEqual([]);
  }

  test('is accepted after its bytes are checked, once', async () => {
    const one = await hire();
    const uploaded = await upload(one, JPEG);
    expect(uploaded.put.status).toBe(201);
    const { values } = await featureFiles.acceptFile(world.engine, photoOf(one), uploaded.uploadId);
    expect(values.photo).toMatchObject({ type: 'image/jpeg', bytes: JPEG.length });
    await expectSpent(uploaded, one);
  });

  test('is spent when it is rejected', async () => {
    const one = await hire();
    const uploaded = await upload(one, PNG);
    await expect(featureFiles.acceptFile(world.engine, photoOf(one), uploaded.uploadId)).rejects.toMatchObject({
      code: 'unsupported-media-type',
    });
    await expectSpent(uploaded, one);
  });

  test('can be written once and not read, and its signature is valid for no other blob', async () => {
    const one = await hire();
    const { url, put, headers } = await upload(one, JPEG);
    expect(put.status).toBe(201);
    expect((await fetch(url)).status).toBe(403);
    expect((await fetch(url, { method: 'PUT', headers, body: 'other' })).ok).toBe(false);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
    const remote = new URL(url);
    remote.pathname += '0';
    expect((await fetch(remote, { method: 'PUT', headers, body: 'other' })).status).toBe(403);
  });

  test('is rejected when its type, size or owner is not the announced one', async () => {
    const one = await hire();
    const other = await hire();
    const wrong = [
      { ...(await upload(one, PNG)), code: 'unsupported-media-type' },
      { ...(await upload(one, Buffer.from('<script>alert(1)</script>'))), code: 'unsupported-media-type' },
      { ...(await upload(one, JPEG, { type: 'image/jpeg', bytes: 100 })), code: 'too-large' },
    ];
    for (const { uploadId, code } of wrong)
      await expect(featureFiles.acceptFile(world.engine, photoOf(one), uploadId)).rejects.toMatchObject({
        code,
        field: 'photo',
      });
    const { uploadId } = await upload(one, JPEG);
    for (const id of [uploadId, 'x', '../../photos', `${uploadId}/..`])
      await expect(featureFiles.acceptFile(world.engine, photoOf(other), id)).rejects.toMatchObject({
        code: 'not-found',
      });
    for (const said of [
      { type: 'image/gif', bytes: 5 },
      { type: 'image/png', bytes: 5_000_001 },
    ])
      expect(() => featureFiles.announceFile(employees, one, 'photo', said)).toThrow();
    expect((await engineRead.readEntity(world.engine, employees, one)).values).toEqual(one);
    await collectAllOrphans(later(), model.list);
    expect(await blobsIn('uploads')).toEqual([]);
  });

  test('is copied by storage: the app reads its first bytes, and replaces the headers that the client chose', async () => {
    const one = await hire();
    const long = Buffer.concat([JPEG, randomBytes(300_000)]);
    const { uploadId } = await upload(one, long);
    const { client, bytes } = countingBlobBytes();
    const { values } = await featureFiles.acceptFile(world.engineThrough(client), photoOf(one), uploadId);
    expect(values.photo).toMatchObject({ type: 'image/jpeg', bytes: long.length });
    expect(bytes()).toBe(65_536);
    const found = await featureFiles.describeAttachment(world.engine, photoOf(one));
    expect((await featureFiles.readAttachment(world.engine, photoOf(one), found)).equals(long)).toBe(true);
    const blob = world.storage.container('photos').getBlobClient(found.blob);
    const { contentType, contentDisposition, cacheControl, contentMD5 } = await blob.getProperties();
    expect({ contentType, contentDisposition, cacheControl }).toEqual({
      contentType: 'image/jpeg',
      contentDisposition: 'inline',
      cacheControl: 'private, no-cache',
    });
    expect(Buffer.from(contentMD5 ?? []).toString('base64url')).toBe(found.md5);
    expect(await costOf(() => featureFiles.putAttachment(world.engine, photoOf(one), long))).toBe(2);
    expect(await featureFiles.describeAttachment(world.engine, photoOf(one))).toEqual(found);
  });

  test('is attached or can be accepted again after any fault at any call', { tags: ['slow'] }, async () => {
    const tried = await tryFaults(
      async ({ fault, client }) => {
        const one = await hire();
        await featureFiles.putAttachment(world.engine, photoOf(one), PNG);
        const { uploadId } = await upload(one, JPEG);
        await featureFiles
          .acceptFile(world.engineThrough(client, fault && QUICK), photoOf(one), uploadId)
          .catch(() => undefined);
        return { one, uploadId };
      },
      { concurrency: 4 },
    );
    await world.settle();
    await collectAllOrphans(world.engine, model.list);
    const what = 'Accepted upload, each storage call: every fault';
    for (const { one, uploadId } of tried)
      await countTried({ what }, async () => {
        const isAccepted = (await featureFiles.describeAttachment(world.engine, photoOf(one))).type === 'image/jpeg';
        const again = featureFiles.acceptFile(world.engine, photoOf(one), uploadId);
        await (isAccepted ? again.catch(() => undefined) : again);
        const found = await featureFiles.describeAttachment(world.engine, photoOf(one));
        expect((await featureFiles.readAttachment(world.engine, photoOf(one), found)).equals(JPEG)).toBe(true);
      });
    await collectAllOrphans(later(), model.list);
    expect(await blobsIn('uploads')).toEqual([]);
  });

  // Storage in memory keeps a tier and returns every blob.
  test.skipIf(process.env.STORAGE === 'memory')(
    'is not found in the archive tier, which nothing can read',
    async () => {
      const one = await hire();
      const { uploadId, blob } = featureFiles.announceFile(employees, one, 'photo', {
        type: 'image/jpeg',
        bytes: JPEG.length,
      });
      const body = new Uint8Array(JPEG);
      const headers = { 'x-ms-blob-type': 'BlockBlob', 'x-ms-access-tier': 'Archive' };
      expect(
        (await fetch(await storageBlobs.signBlobUrl(world.storage, blob, times()), { method: 'PUT', headers, body }))
          .status,
      ).toBe(201);
      await expect(featureFiles.acceptFile(world.engine, photoOf(one), uploadId)).rejects.toMatchObject({
        code: 'not-found',
      });
      await collectAllOrphans(later(), model.list);
      expect(await blobsIn('uploads')).toEqual([]);
    },
  );

  test('is accepted in blocks if it was announced so, and its signature leaves nothing that cannot be deleted', async () => {
    const one = await hire();
    const said = { type: 'image/jpeg', bytes: JPEG.length, inBlocks: true };
    const { uploadId, blob } = featureFiles.announceFile(employees, one, 'photo', said);
    const granted = new BlockBlobClient(
      await storageBlobs.signBlobUrl(world.storage, blob, {
        ...times(),
        permissions: storageBlobs.BLOCK_UPLOAD_PERMISSIONS,
      }),
    );
    const halves = [JPEG.subarray(0, 2_000), JPEG.subarray(2_000)];
    const ids = ['AAAA', 'BBBB'];
    const send = async () => {
      for (const [index, half] of halves.entries()) await granted.stageBlock(ids[index] ?? '', half, half.length);
      await granted.commitBlockList(ids, { blobHTTPHeaders: { blobContentMD5: new Uint8Array(16) } });
    };
    await send();
    await expect(granted.download()).rejects.toMatchObject({ statusCode: 403 });
    const { values } = await featureFiles.acceptFile(world.engine, photoOf(one), uploadId);
    const photo = await featureFiles.describeAttachment(world.engine, photoOf(one));
    expect(values.photo).toEqual(photo);
    expect(photo).toMatchObject({ bytes: JPEG.length, sha256: hash('sha256', JPEG, 'base64url') });
    expect((await featureFiles.readAttachment(world.engine, photoOf(one), photo)).equals(JPEG)).toBe(true);
    expect(await costOf(() => featureFiles.putAttachment(world.engine, photoOf(one), JPEG))).toBe(2);
    await expect(featureFiles.acceptFile(world.engine, photoOf(one), uploadId)).rejects.toMatchObject({
      code: 'not-found',
    });
    for (const begun of [
      { ...said, bytes: 5 },
      { ...said, inBlocks: false },
    ])
      expect(() => featureFiles.announceFile(employees, one, 'photo', { ...begun, uploadId })).toThrow(
        'cannot be continued',
      );
    expect(featureFiles.announceFile(employees, one, 'photo', { ...said, uploadId })).toEqual({ uploadId, blob });
    await send();
    // Storage in memory has neither snapshots nor leases.
    if (process.env.STORAGE !== 'memory') {
      await granted.createSnapshot();
      await granted.getBlobLeaseClient().acquireLease(-1);
    }
    await collectAllOrphans(later(), model.list);
    expect(await blobsIn('uploads')).toEqual([]);
  });

  test('is rejected if it was uploaded in blocks, because storage then has no hash of it', async () => {
    const one = await hire();
    const { uploadId, blob } = featureFiles.announceFile(employees, one, 'photo', {
      type: 'image/jpeg',
      bytes: JPEG.length,
    });
    const client = world.storage.container(blob.container).getBlockBlobClient(blob.name);
    await client.stageBlock('AAAA', JPEG, JPEG.length);
    await client.commitBlockList(['AAAA']);
    await expect(featureFiles.acceptFile(world.engine, photoOf(one), uploadId)).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'photo',
    });
    await collectAllOrphans(later(), model.list);
    expect(await blobsIn('uploads')).toEqual([]);
  });
});

describe('a transfer of an entity with blobs', () => {
  test('lets storage copy files and texts; no byte of them passes through the app', async () => {
    const one = await hire({ department: 'Copied' });
    await featureFiles.putAttachment(world.engine, photoOf(one), JPEG);
    const comments = text(400_000);
    const { values: written } = await engineWrite.createEntity(world.engine, reviews, review(one, { comments }));
    const operationId = await engineTransfer.requestMove(world.engine, employees, one, { department: 'Copies' });
    const { body } = await world.take('transfers', operationId);
    const { client, bytes } = countingBlobBytes();
    await engineTransfer.runTransfer(world.engineThrough(client), employees, Transfer.parse(body));
    await world.settle();
    expect(bytes()).toBe(0);
    const there = { ...one, department: 'Copies' };
    const moved = await featureFiles.describeAttachment(world.engine, photoOf(there));
    expect((await featureFiles.readAttachment(world.engine, photoOf(there), moved)).equals(JPEG)).toBe(true);
    expect((await commentsOf(review(there))) === comments).toBe(true);
    const blob = world.storage.container('photos').getBlobClient(moved.blob);
    expect((await blob.getProperties()).contentType).toBe('image/jpeg');
    await collectAllOrphans(later(), model.list);
    expect((await commentsOf(review(there))) === comments).toBe(true);
    const { blob: former } = written.comments as { blob: string };
    expect(await blobsIn('large')).not.toContain(former);
  });

  test('keeps a reference whose blob is lost, so that the consistency check finds it', async () => {
    const one = await hire({ department: 'Lost' });
    const { values } = await featureFiles.putAttachment(world.engine, photoOf(one), JPEG);
    await lose('photos', values.photo);
    await engineTransfer.requestMove(world.engine, employees, one, { department: 'Kept' });
    await world.settle();
    expect(await featureFiles.describeAttachment(world.engine, photoOf({ ...one, department: 'Kept' }))).toEqual(
      values.photo,
    );
  });
});

/** An HTTP client that counts the bytes of blobs in requests and responses. */
function countingBlobBytes() {
  let bytes = 0;
  const inner = createDefaultHttpClient();
  const client: HttpClient = {
    async sendRequest(request) {
      const isBlob =
        request.headers.has('x-ms-blob-type') ||
        (request.method === 'GET' && /\/(photos|large|uploads)\//.test(request.url));
      if (isBlob) bytes += Number(request.headers.get('content-length') ?? 0);
      const response = await inner.sendRequest(request);
      if (isBlob && response.status < 300) bytes += Number(response.headers.get('content-length') ?? 0);
      return response;
    },
  };
  return { client, bytes: () => bytes };
}
