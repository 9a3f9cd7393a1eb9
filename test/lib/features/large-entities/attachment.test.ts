import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define.ts';
import {
  acceptFile,
  announceFile,
  describeAttachment,
  etagOf,
  fileHeaders,
  putAttachment,
  readAttachment,
  removeAttachment,
} from '../../../../lib/features/large-entities/attachment.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { engineWrite } from '../../../kit/engine.ts';
import { operationsCheck } from '../../../kit/operations.ts';
import { storageBlobs, storageRows } from '../../../kit/storage.ts';
import { openWorld } from '../../../world.ts';

/** The first bytes of a file of each type. */
const FIRST_BYTES = {
  'application/vnd.tcpdump.pcap': 'd4c3b2a1',
  'image/vnd.adobe.photoshop': '38425053',
  'application/vnd.ms-cab-compressed': '4d534346',
  'application/epub+zip': Buffer.from(
    'PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\x14\0\0\0\x14\0\0\0\x08\0\0\0mimetypeapplication/epub+zip',
  ).toString('hex'),
  'video/MP1S': '000001ba21',
};

test('accepts an uploaded file of every type that a declaration can list', { tags: ['slow'] }, async () => {
  const { papers } = deploy(
    defineEntity('papers', {
      schema: z.object({ shelf: z.string(), paperId: z.string() }),
      table: 'papers',
      key: { partition: '{shelf}', row: '{paperId}' },
      attachments: { scan: { container: 'scans', maxBytes: 1_000, types: Object.keys(FIRST_BYTES) } },
      access: { read: ['hr'], write: ['hr'] },
    }),
  );
  const { engine, storage } = await openWorld(import.meta.url, [papers]);
  const key = { shelf: 'one', paperId: '1' };
  await engineWrite.createEntity(engine, papers, key);
  for (const [type, hex] of Object.entries(FIRST_BYTES)) {
    const bytes = Buffer.from(hex.padEnd(128, '0'), 'hex');
    const { uploadId, blob } = announceFile(papers, key, 'scan', { type, bytes: bytes.length });
    const times = {
      permissions: storageBlobs.UPLOAD_PERMISSIONS,
      startsAt: new Date(Date.now() - 60_000),
      expiresAt: new Date(Date.now() + 60_000),
    };
    const headers = { 'x-ms-blob-type': 'BlockBlob', 'content-type': type };
    const put = await fetch(await storageBlobs.signBlobUrl(storage, blob, times), {
      method: 'PUT',
      headers,
      body: bytes,
    });
    expect(put.status).toBe(201);
    const { values } = await acceptFile(engine, { entity: papers, key, field: 'scan' }, uploadId);
    expect(values.scan, type).toMatchObject({ type, bytes: bytes.length });
  }
});

test('names a description and a ciphertext that were changed outside the API', async () => {
  const { cards } = deploy(
    defineEntity('cards', {
      schema: z.object({ shelf: z.string(), cardId: z.string(), pin: z.string() }),
      table: 'cards',
      key: { partition: '{shelf}', row: '{cardId}' },
      attachments: { scan: { container: 'cardscans', maxBytes: 1_000, types: ['image/png'] } },
      encrypted: ['pin'],
      access: { read: ['hr'], write: ['hr'], restricted: { pin: ['hr'] } },
    }),
  );
  const { engine, storage } = await openWorld(import.meta.url, [cards]);
  const key = { shelf: 'one', cardId: '1' };
  await engineWrite.createEntity(engine, cards, { ...key, pin: '1234' });
  const verify = async () =>
    (await operationsCheck.verifyPage(engine, cards, { top: 10, repair: true, patience: 0 })).findings;
  expect(await verify()).toEqual([]);
  const properties = { scan: 'not json', pin: 'v1.garbage' };
  const address = { table: 'cards', partition: 'one', row: '1' };
  await storageRows.tryAction(storage, address, { kind: 'merge', row: '1', etag: '*', properties });
  const finding = { kind: 'unreadable', ...address, repaired: false };
  expect(await verify()).toEqual([
    { ...finding, of: 'pin' },
    { ...finding, of: 'scan' },
  ]);
  await expect(describeAttachment(engine, { entity: cards, key, field: 'scan' })).rejects.toMatchObject({
    code: 'needs-repair',
    field: 'scan',
  });
});

describe('a file of an entity', async () => {
  const [PHOTO, FILM] = ['image/vnd.adobe.photoshop', 'video/MP1S'] as const;
  const { covers } = deploy(
    defineEntity('covers', {
      schema: z.object({ shelf: z.string(), coverId: z.string(), title: z.string().optional() }),
      table: 'covers',
      key: { partition: '{shelf}', row: '{coverId}' },
      attachments: { scan: { container: 'coverscans', maxBytes: 200, types: [PHOTO, FILM] } },
      access: { read: ['hr'], write: ['hr'] },
    }),
  );
  const { engine, storage } = await openWorld(import.meta.url, [covers]);
  let counter = 0;
  const enter = async () => {
    counter += 1;
    const key = { shelf: 'one', coverId: `${counter}` };
    await engineWrite.createEntity(engine, covers, { ...key, title: 'Spring' });
    return { entity: covers, key, field: 'scan' };
  };
  const bytesOf = (type: keyof typeof FIRST_BYTES, length = 128, last = 0) =>
    Buffer.concat([Buffer.from(FIRST_BYTES[type].padEnd(2 * length - 2, '0'), 'hex'), Buffer.from([last])]);
  const blobs = async (container: string) =>
    (await Array.fromAsync(storageBlobs.listContainer(storage, container))).filter(({ length }) => length > 0).length;
  type Announced = Parameters<typeof announceFile>[3];
  /** Uploads the bytes as a client does, whatever it has announced. */
  const upload = async (of: Awaited<ReturnType<typeof enter>>, announced: Announced, bytes: Buffer) => {
    const { uploadId, blob } = announceFile(of.entity, of.key, of.field, announced);
    await storageBlobs.writeBlob(storage, blob, bytes, { type: 'text/html' });
    return uploadId;
  };

  test('is replaced unless it is the same, under its own ETag, and removed', async () => {
    const of = await enter();
    const before = await blobs('coverscans');
    const first = bytesOf(PHOTO);
    await putAttachment(engine, of, first);
    const there = await describeAttachment(engine, of);
    expect(there).toMatchObject({ type: PHOTO, bytes: 128 });
    expect((await readAttachment(engine, of, there)).equals(first)).toBe(true);
    expect(await readAttachment(engine, of, there, { start: 1, count: 3 })).toEqual(first.subarray(1, 4));
    await putAttachment(engine, of, first);
    expect(await describeAttachment(engine, of)).toEqual(there);
    const other = bytesOf(PHOTO, 128, 1);
    await expect(putAttachment(engine, of, other, { ifMatch: '"old"' })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    await putAttachment(engine, of, other, { ifMatch: etagOf(there) });
    const next = await describeAttachment(engine, of);
    expect([next.blob === there.blob, etagOf(next) === etagOf(there)]).toEqual([false, false]);
    expect(await blobs('coverscans')).toBe(before + 1);
    await expect(removeAttachment(engine, of, { ifMatch: etagOf(there) })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    await removeAttachment(engine, of);
    await removeAttachment(engine, of);
    await expect(describeAttachment(engine, of)).rejects.toMatchObject({ code: 'not-found', field: 'scan' });
    expect(await blobs('coverscans')).toBe(before);
  });

  test('is rejected for its length and its type, whatever the client says', async () => {
    const of = await enter();
    const tooLarge = { code: 'too-large', field: 'scan', accepted: 'at most 200 bytes' };
    await expect(putAttachment(engine, of, bytesOf(PHOTO, 201))).rejects.toMatchObject(tooLarge);
    await putAttachment(engine, of, bytesOf(PHOTO, 200));
    const wrong = { code: 'unsupported-media-type', field: 'scan', accepted: `${PHOTO}, ${FILM}` };
    await expect(putAttachment(engine, of, Buffer.from('text'))).rejects.toMatchObject(wrong);
    await expect(putAttachment(engine, of, bytesOf('application/vnd.tcpdump.pcap'))).rejects.toMatchObject(wrong);
    const announce = (announced: Announced) => () => announceFile(of.entity, of.key, of.field, announced);
    expect(announce({ type: PHOTO, bytes: 201 })).toThrow(expect.objectContaining(tooLarge));
    expect(announce({ type: PHOTO, bytes: 200 })).not.toThrow();
    expect(announce({ type: 'text/html', bytes: 1 })).toThrow(expect.objectContaining(wrong));
  });

  test('is accepted once from an upload, which is then gone', async () => {
    const of = await enter();
    const bytes = bytesOf(FILM);
    const uploadId = await upload(of, { type: FILM, bytes: 128 }, bytes);
    await acceptFile(engine, of, uploadId);
    const there = await describeAttachment(engine, of);
    expect(there).toMatchObject({ type: FILM, bytes: 128 });
    expect((await readAttachment(engine, of, there)).equals(bytes)).toBe(true);
    expect(await blobs('uploads')).toBe(0);
    await expect(acceptFile(engine, of, uploadId)).rejects.toMatchObject({ code: 'not-found' });
    const again = await upload(of, { type: FILM, bytes: 128 }, bytes);
    await acceptFile(engine, of, again);
    expect((await describeAttachment(engine, of)).blob).toBe(there.blob);
    for (const id of ['x', uploadId.replace('128', '129'), uploadId.replace('MP1S', 'MP2S')])
      await expect(acceptFile(engine, of, id)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('is rejected from an upload that is longer or of another type than it was announced, and the upload is gone', async () => {
    const of = await enter();
    const long = await upload(of, { type: FILM, bytes: 127 }, bytesOf(FILM));
    await expect(acceptFile(engine, of, long)).rejects.toMatchObject({
      code: 'too-large',
      accepted: 'at most 127 bytes',
    });
    const other = await upload(of, { type: FILM, bytes: 128 }, bytesOf(PHOTO));
    await expect(acceptFile(engine, of, other)).rejects.toMatchObject({
      code: 'unsupported-media-type',
      accepted: FILM,
    });
    expect(await blobs('uploads')).toBe(0);
    await expect(describeAttachment(engine, of)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('is accepted from blocks, whose upload can be continued as it was announced, and is deleted', async () => {
    const of = await enter();
    const announced = { type: FILM, bytes: 128, inBlocks: true };
    const uploadId = await upload(of, announced, bytesOf(FILM));
    const announce = (more: Announced) => () => announceFile(of.entity, of.key, of.field, { ...more, uploadId });
    expect(announce(announced)().uploadId).toBe(uploadId);
    for (const more of [{ bytes: 127 }, { type: PHOTO }, { inBlocks: false }])
      expect(announce({ ...announced, ...more })).toThrow(
        expect.objectContaining({ code: 'invalid-input', field: 'uploadId' }),
      );
    await acceptFile(engine, of, uploadId);
    const there = await describeAttachment(engine, of);
    expect(there).toMatchObject({ type: FILM, bytes: 128, sha256: expect.any(String) });
    await expect(acceptFile(engine, of, uploadId)).rejects.toMatchObject({ code: 'not-found' });
    const whole = await upload(of, { type: FILM, bytes: 128 }, bytesOf(FILM));
    expect(() => announceFile(of.entity, of.key, of.field, { ...announced, uploadId: whole })).toThrow();
    const same = await upload(of, announced, bytesOf(FILM));
    await acceptFile(engine, of, same);
    expect((await describeAttachment(engine, of)).blob).toBe(there.blob);
  });
});

test('a browser shows images, sounds and videos, and saves other files', () => {
  const headers = (type: string, isPublic: boolean) =>
    fileHeaders({ container: 'scans', maxBytes: 1, types: [type], public: isPublic } as never, type);
  for (const type of ['image/png', 'audio/mpeg', 'video/mp4'])
    expect(headers(type, false)).toEqual({ type, disposition: 'inline', cacheControl: 'private, no-cache' });
  expect(headers('application/pdf', true)).toEqual({
    type: 'application/pdf',
    disposition: 'attachment',
    cacheControl: 'public, max-age=31536000, immutable',
  });
  expect(headers('text/image/', false).disposition).toBe('attachment');
});
