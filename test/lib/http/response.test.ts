import { HttpResponse, type HttpResponseInit } from '@azure/functions';
import { expect, test } from 'vitest';
import { toTextResponse } from '../../../lib/http/response.ts';

/** All that a reader of a response gets, from a copy for each way to read it. */
async function readAll(create: () => HttpResponse) {
  const { status, headers, cookies, enableContentNegotiation } = create();
  return {
    ...{ status, headers: Object.fromEntries(headers), cookies, enableContentNegotiation },
    arrayBuffer: Buffer.from(await create().arrayBuffer()).toString(),
    blob: await (await create().blob()).text(),
    stream: await new Response(create().body as ReadableStream).text(),
    text: await create().text(),
    json: await create().json(),
    clone: await readClone(create()),
  };
}

async function readClone(response: HttpResponse) {
  response.headers.set('x-added', 'by a hook');
  const copy = response.clone();
  const { status, cookies, enableContentNegotiation } = copy;
  return {
    status,
    headers: Object.fromEntries(copy.headers),
    cookies,
    enableContentNegotiation,
    text: await copy.text(),
  };
}

test('is read as the response that the library creates', async () => {
  const init: HttpResponseInit = {
    status: 201,
    headers: { 'content-type': 'application/json', ETag: 'W/"1"' },
    cookies: [{ name: 'a', value: 'b' }],
    body: '{"name":"Ännchen 😀"}',
  };
  const ready = () => {
    const response = toTextResponse(init);
    return response instanceof HttpResponse ? response : expect.unreachable('The library would create a response.');
  };
  expect(await readAll(ready)).toEqual(await readAll(() => new HttpResponse(init)));
});

test.each([
  ['bytes', { status: 200, body: new Uint8Array([1]) }],
  ['no body', { status: 304, headers: { etag: 'W/"1"' } }],
])('leaves %s to the library', (_, init) => {
  expect(toTextResponse(init)).toBe(init);
});
