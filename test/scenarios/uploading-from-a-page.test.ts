import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { createClient } from '../../lib/client/index.ts';
import { PNG } from '../../local/walk/png.ts';
import type { model } from '../fixtures/model.ts';
import { useProduct } from '../product.ts';
import { useBrowser } from '../use-browser.ts';
import { somebody } from '../world.ts';

/** Files that the typed client sends from a page in a real browser, where only `XMLHttpRequest` reports progress. */

// The globals of the page.
declare const connect: typeof createClient<typeof model>;
declare const API: string;
declare const TOKEN: string;

const BYTES = 4_000_000;

const entry = fileURLToPath(new URL('../../lib/client/index.ts', import.meta.url));
const files = new Map<string, string>();
const server = createServer((request, response) => {
  const code = files.get(request.url?.slice(1) ?? '');
  response.setHeader('content-type', code === undefined ? 'text/html; charset=utf-8' : 'text/javascript');
  response.end(code ?? '<!doctype html><script type="module" src="page.js"></script>');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const product = useProduct(import.meta.url, { cors: [origin] });
const browser = await useBrowser();
const one = somebody({ department: 'Uploading', employeeId: '000601' });

beforeAll(async () => {
  const code = `import { createClient } from ${JSON.stringify(entry)}; globalThis.connect = createClient;`;
  const plugin = {
    name: 'page',
    resolveId: (id: string) => (id === 'page' ? id : null),
    load: (id: string) => (id === 'page' ? code : null),
  };
  const bundle = await rolldown({ input: 'page', platform: 'browser', plugins: [plugin] });
  const { output } = await bundle.generate({ format: 'es', minify: true });
  await bundle.close();
  for (const file of output) if (file.type === 'chunk') files.set(file.fileName, file.code);
  expect((await product.as('hr')('POST', '/api/employees', { body: one })).status).toBe(201);
});
afterAll(() => {
  server.close();
});

async function open(): Promise<Page> {
  const page = await browser().newPage();
  const given = { API: `${product.url}/api`, TOKEN: await product.token('hr') };
  await page.addInitScript((values) => Object.assign(globalThis, values), given);
  await page.goto(`${origin}/page.html`);
  await page.waitForFunction(() => 'connect' in globalThis);
  return page;
}

/** Uploads a photo in the page. With `stopsAt`, the page aborts the upload when so many bytes are sent. */
function upload(page: Page, { stopsAt, blockBytes }: { stopsAt?: number; blockBytes?: number } = {}) {
  return page.evaluate(
    async ({ png, bytes, key, stop, block }) => {
      const head = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
      const file = new Blob([head, new Uint8Array(bytes - head.length)], { type: 'image/png' });
      const calls: string[] = [];
      const progress: [number, number][] = [];
      const controller = new AbortController();
      const client = connect({
        url: API,
        token: TOKEN,
        onCall: ({ method, way, status }) => calls.push(`${method} ${way} ${status}`),
      });
      const onProgress = (sent: number, total: number) => {
        progress.push([sent, total]);
        if (stop !== undefined && sent >= stop) controller.abort(new Error('The user left.'));
      };
      const options = { onProgress, signal: controller.signal, ...(block === undefined ? {} : { blockBytes: block }) };
      const outcome = await client.employees.files.photo.put(key, file, options).then(
        (stored) => ({ stored }),
        (error: Error) => ({ error: error.message }),
      );
      const found = await client.employees.files.photo.get(key);
      return { calls, progress, outcome, size: found?.blob.size };
    },
    {
      ...{ png: PNG.toString('base64'), bytes: BYTES, key: { department: 'Uploading', employeeId: '000601' } },
      ...{ stop: stopsAt, block: blockBytes },
    },
  );
}

test('an upload that is aborted stores nothing', { tags: ['slow'] }, async () => {
  const page = await open();
  // On a slow connection, the abort comes before the last byte.
  const { send } = await page
    .context()
    .newCDPSession(page)
    .then((session) => ({ send: session.send.bind(session) }));
  await send('Network.emulateNetworkConditions', {
    ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 200_000 },
  });
  const { outcome, progress, size, calls } = await upload(page, { stopsAt: 1 });
  expect(outcome).toEqual({ error: 'The user left.' });
  expect(progress.at(-1)?.[0]).toBeLessThan(BYTES);
  expect(calls).not.toContain('PUT api 200');
  expect(size).toBeUndefined();
  await page.close();
});

test('an upload goes directly to storage and reports its progress until all bytes are sent', {
  tags: ['slow'],
}, async () => {
  const page = await open();
  const { outcome, progress, size, calls } = await upload(page);
  expect(outcome).toMatchObject({ stored: { type: 'image/png', bytes: BYTES } });
  expect(calls.slice(1, 4)).toEqual(['POST api 201', 'PUT storage 201', 'POST api 200']);
  expect(progress.length).toBeGreaterThan(0);
  expect(progress.at(-1)).toEqual([BYTES, BYTES]);
  expect(progress.map(([sent]) => sent)).toEqual(progress.map(([sent]) => sent).sort((a, b) => a - b));
  expect(size).toBe(BYTES);
  await page.close();
});

test('an upload in blocks reports the progress of all of them', { tags: ['slow'] }, async () => {
  const page = await open();
  const { outcome, progress, size, calls } = await upload(page, { blockBytes: 1_000_000 });
  expect(outcome).toMatchObject({ stored: { type: 'image/png', bytes: BYTES } });
  // Four blocks and their list.
  expect(calls.filter((call) => call === 'PUT storage 201')).toHaveLength(5);
  expect(progress.at(-1)).toEqual([BYTES, BYTES]);
  expect(size).toBe(BYTES);
  await page.close();
});

test('an upload goes through the API if the page cannot reach storage', { tags: ['slow'] }, async () => {
  const page = await open();
  const ours = [new URL(product.url).host, new URL(origin).host];
  await page.route(
    ({ host }) => !ours.includes(host),
    (route) => route.abort(),
  );
  const { outcome, progress, calls } = await upload(page);
  expect(outcome).toMatchObject({ stored: { bytes: BYTES } });
  expect(calls.slice(2, 4)).toEqual(['PUT storage 0', 'PUT api 200']);
  expect(progress.at(-1)).toEqual([BYTES, BYTES]);
  await page.close();
});
