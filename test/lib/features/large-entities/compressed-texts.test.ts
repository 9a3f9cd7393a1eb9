import { randomBytes } from 'node:crypto';
import { brotliCompressSync, constants } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define.ts';
import { PNG } from '../../../../local/walk/png.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { featureFiles } from '../../../kit/features.ts';
import type { Internal } from '../../../kit/internal.ts';
import { openWorld } from '../../../world.ts';

/** The highest quality, which is the default, takes seconds. */
const QUICK = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

const { notes } = deploy(
  defineEntity('notes', {
    schema: z.object({ shelf: z.string(), noteId: z.string(), text: z.string(), plain: z.string().optional() }),
    table: 'notes',
    key: { partition: '{shelf}', row: '{noteId}' },
    large: ['text', 'plain'],
    compressed: ['text'],
    movable: ['shelf'],
    attachments: { scan: { container: 'scans', maxBytes: 1_000, types: ['image/png'], tier: 'cool' } },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const world = await openWorld(import.meta.url, [notes]);
const { engine, storage } = world;
const LONG = 'Excellent work, \u00e9\u4e16\u{1f600}! '.repeat(20_000);

let last = 0;
async function write(values: { readonly text: string; readonly plain?: string }) {
  last += 1;
  const key = { shelf: 'one', noteId: String(last) };
  await engineWrite.createEntity(engine, notes, { ...key, ...values });
  const read = async (at: object = key) => (await engineRead.readEntity(engine, notes, { ...key, ...at })).values;
  const stored = await read();
  const blobOf = ({ blob }: Internal['InBlob']) => storage.container('large').getBlockBlobClient(blob);
  return { key, read, stored: stored.text as Internal['InBlob'], plain: stored.plain as Internal['InBlob'], blobOf };
}

describe('a compressed text', () => {
  test('is a blob with Content-Encoding, is read back unchanged, and stays so when its entity is moved', async () => {
    const { key, read, stored, plain, blobOf } = await write({ text: LONG, plain: LONG });
    expect(stored).toMatchObject({ encoding: 'br', length: LONG.length });
    const { contentEncoding, contentLength = 0 } = await blobOf(stored).getProperties();
    expect(contentEncoding).toBe('br');
    expect(contentLength).toBeLessThan(Buffer.byteLength(LONG) / 100);
    expect(plain).not.toHaveProperty('encoding');
    expect((await blobOf(plain).getProperties()).contentLength).toBe(Buffer.byteLength(LONG));
    const expected = { text: LONG, plain: LONG };
    expect(await engineWrite.toPlain(engine, notes, await read())).toEqual({ ...key, ...expected });
    await engineTransfer.requestMove(engine, notes, key, { shelf: 'two' });
    await world.settle();
    const there = await read({ shelf: 'two' });
    expect(await engineWrite.toPlain(engine, notes, there)).toMatchObject(expected);
    expect((await blobOf(there.text as Internal['InBlob']).getProperties()).contentEncoding).toBe('br');
  });

  test('is stored as it is if it would not become shorter', async () => {
    const text = randomBytes(300_000).toString('latin1');
    const { key, read, stored, blobOf } = await write({ text });
    expect(stored.length).toBe(text.length);
    const isCompressed = stored.encoding === 'br';
    expect((await blobOf(stored).getProperties()).contentEncoding).toBe(isCompressed ? 'br' : undefined);
    expect(await engineWrite.toPlain(engine, notes, await read())).toEqual({ ...key, text });
  });

  test('is inflated no further than its row says', async () => {
    const { read, stored, blobOf } = await write({ text: LONG });
    const overwrite = async (bytes: Buffer) => blobOf(stored).upload(bytes, bytes.byteLength);
    const values = await read();
    for (const bytes of [
      brotliCompressSync(Buffer.alloc(100_000_000), QUICK),
      brotliCompressSync(Buffer.from(LONG.slice(1)), QUICK),
      Buffer.from('not compressed'),
      Buffer.alloc(0),
    ]) {
      await overwrite(bytes);
      const before = process.memoryUsage().rss;
      await expect(engineWrite.toPlain(engine, notes, values)).rejects.toMatchObject({ name: 'ReferenceBroken' });
      expect(process.memoryUsage().rss - before).toBeLessThan(80_000_000);
    }
  });
});

test('a file is stored in the declared tier, whichever way it came, and stays there when its entity is moved', async () => {
  const { key, read } = await write({ text: 'short' });
  const tierOf = async (at: object = {}) => {
    const { blob } = (await read(at)).scan as { blob: string };
    return (await storage.container('scans').getBlobClient(blob).getProperties()).accessTier;
  };
  const attachment = { entity: notes, key, field: 'scan' };
  await featureFiles.putAttachment(engine, attachment, PNG);
  expect(await tierOf()).toBe('Cool');
  const other = Buffer.concat([PNG, PNG]);
  const { uploadId, blob } = featureFiles.announceFile(notes, key, 'scan', { type: 'image/png', bytes: other.length });
  await storage.container(blob.container).getBlockBlobClient(blob.name).upload(other, other.length);
  await featureFiles.acceptFile(engine, attachment, uploadId);
  expect(await tierOf()).toBe('Cool');
  await engineTransfer.requestMove(engine, notes, key, { shelf: 'two' });
  await world.settle();
  expect(await tierOf({ shelf: 'two' })).toBe('Cool');
});

test('an empty text is stored and read back', async () => {
  const { read } = await write({ text: '', plain: '' });
  expect(await read()).toMatchObject({ text: '', plain: '' });
});
