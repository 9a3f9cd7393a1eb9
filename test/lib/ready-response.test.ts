import { HttpResponse, type HttpResponseInit } from '@azure/functions';
import { expect, test } from 'vitest';
import { toReadyResponse } from '../../lib/ready-response.ts';

/** What the library reads, without an HTTP stream. */
async function readAll(response: HttpResponse) {
  const { status, headers, cookies, enableContentNegotiation } = response;
  const body = Buffer.from(await response.arrayBuffer()).toString();
  return { status, headers: Object.fromEntries(headers.entries()), cookies, enableContentNegotiation, body };
}

const RESPONSES: Readonly<Record<string, HttpResponseInit>> = {
  'a text': {
    status: 200,
    headers: { 'content-type': 'application/json', etag: 'W/"1"' },
    body: '{"name":"Ännchen 😀"}',
  },
  'no body': { status: 304, headers: { etag: 'W/"1"' } },
  'no headers': { status: 204 },
};

for (const [what, init] of Object.entries(RESPONSES))
  test(`gives the library ${what} as an HttpResponse that equals its own`, async () => {
    const ready = toReadyResponse(init);
    if (!(ready instanceof HttpResponse)) throw new Error('The library would create a Response.');
    const own = init.body === undefined ? init : { ...init, body: String(init.body) };
    expect(await readAll(ready)).toEqual(await readAll(new HttpResponse(own)));
  });

test('streams the body, for apps with enableHttpStream and another copy of the library', async () => {
  const ready = toReadyResponse({ status: 200, headers: { etag: 'W/"1"' }, body: 'text' });
  expect(await readAll(new HttpResponse({ ...ready, body: ready.body }))).toMatchObject({ body: 'text' });
  expect(toReadyResponse({ status: 204 }).body).toBeNull();
});

test.each([
  ['a line break in a header', { headers: { location: 'a\r\nset-cookie: b' } }],
  ['a header that is not ASCII', { headers: { location: 'ä' } }],
  ['bytes', { body: new Uint8Array([1]) }],
  ['a JSON body', { jsonBody: {} }],
  ['cookies', { cookies: [{ name: 'a', value: 'b' }] }],
] satisfies [string, HttpResponseInit][])('leaves %s to the library', (_, init) => {
  expect(toReadyResponse(init)).toBe(init);
});
