import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { useProduct } from '../product.ts';

/** The documents that describe the API, as they are on the wire: fetch hides the encoding. */

const product = useProduct(import.meta.url);

async function ask(path: string, headers: Record<string, string> = {}) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(new URL(path, product.url), { headers }, resolve).on('error', reject);
  });
  return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
}

const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync };

test.each(['/api/openapi.json', '/api/openapi.json?tag=employees', '/api/model'])(
  'compresses %s for clients that accept it, under an ETag for each encoding',
  async (path) => {
    const plain = await ask(path);
    expect(plain.headers).toMatchObject({ vary: 'Accept-Encoding', 'content-type': 'application/json' });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    for (const [encoding, decode] of Object.entries(DECODERS)) {
      const accepting = { 'accept-encoding': encoding };
      const { headers, bytes } = await ask(path, accepting);
      expect(headers).toMatchObject({ 'content-encoding': encoding, vary: 'Accept-Encoding' });
      expect(decode(bytes)).toEqual(plain.bytes);
      expect(bytes.length).toBeLessThan(plain.bytes.length / 4);
      expect(headers.etag).not.toBe(plain.headers.etag);
      expect(await ask(path, { ...accepting, 'if-none-match': String(headers.etag) })).toMatchObject({ status: 304 });
      expect(await ask(path, { 'if-none-match': String(headers.etag) })).toMatchObject({ status: 200 });
    }
    const both = await ask(path, { 'accept-encoding': 'gzip, deflate, br' });
    expect(both.headers['content-encoding']).toBe('br');
    const refused = await ask(path, { 'accept-encoding': 'br;q=0, gzip;q=0' });
    expect(refused.bytes).toEqual(plain.bytes);
  },
);

test('compresses the files of the console', async () => {
  const { headers } = await ask('/docs/swagger-ui-bundle.js', { 'accept-encoding': 'gzip, br' });
  expect(headers).toMatchObject({ 'content-encoding': 'br', vary: 'Accept-Encoding' });
});

test('describes the operations of one tag', async () => {
  const operationsOf = async (path: string) => {
    const { paths } = JSON.parse(String((await ask(path)).bytes));
    return Object.values<Record<string, { tags?: string[] }>>(paths).flatMap((methods) => Object.values(methods));
  };
  const whole = await operationsOf('/api/openapi.json');
  const ofEmployees = whole.filter(({ tags }) => tags?.includes('employees'));
  expect(ofEmployees.length).toBeGreaterThan(10);
  const part = await operationsOf('/api/openapi.json?tag=employees');
  expect(part.filter(({ tags }) => tags)).toHaveLength(ofEmployees.length);
  const unknown = await product.as(undefined)('GET', '/api/openapi.json?tag=people,employees');
  expect(unknown).toMatchObject({
    status: 400,
    body: { field: 'tag', accepted: expect.stringMatching(/employees.*operations/) },
  });
});
