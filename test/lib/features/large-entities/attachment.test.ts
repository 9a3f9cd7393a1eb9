import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define.ts';
import { acceptFile, announceFile, describeAttachment } from '../../../../lib/features/large-entities/attachment.ts';
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
