import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';

/** A page that imports the client, and of the model only its type. */

const MAX_BYTES = 6_144;

let folder: string;
let code: string;
let entry: readonly string[];
let modules: readonly string[];
beforeAll(async () => {
  folder = await mkdtemp(join(inject('folder'), 'page-'));
  const at = (path: string) => JSON.stringify(new URL(path, import.meta.url).pathname);
  const page = `
    import { createClient, RowkeyClientError } from ${at('../../../lib/client/index.ts')};
    import type { model } from ${at('../../fixtures/model.ts')};
    const client = createClient<typeof model>({ url: '/api' });
    try {
      console.log(await client.employees.get({ department: 'Sales', employeeId: '000123' }));
    } catch (error) {
      if (error instanceof RowkeyClientError) console.error(error.code);
    }`;
  await writeFile(join(folder, 'page.ts'), page);
  const bundle = await rolldown({ input: join(folder, 'page.ts'), platform: 'browser' });
  const { output } = await bundle.generate({ format: 'es', minify: true });
  await bundle.close();
  code = output[0].code;
  entry = output[0].moduleIds;
  modules = output.flatMap((file) => ('moduleIds' in file ? file.moduleIds : []));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('has the client alone: no server code, no schema and no package', () => {
  const own = /\/lib\/(client\/[\w-]+|base\/(json-value|merge-patch))\.ts$|\/page\.ts$/;
  expect(modules.filter((id) => !own.test(id))).toEqual([]);
  expect(code).not.toMatch(/\bfrom\s*["']|\brequire\(|emailCompanyWide|process\./);
});

test('is one file of at most 6 KB, without the calls that are loaded when they are used', () => {
  const later = ['batches', 'json-body', 'direct', 'files', 'own-data', 'query', 'series', 'totals', 'transfers'];
  expect(entry.filter((id) => later.some((name) => id.endsWith(`/lib/client/${name}.ts`)))).toEqual([]);
  // A file that the page loads too would not be counted.
  expect(code).not.toMatch(/import\s*[{"'*]/);
  expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(MAX_BYTES);
});

test('uses nothing that React Native does not have', () => {
  for (const missing of [
    'new URL',
    'URLSearchParams',
    'AbortSignal.',
    'structuredClone',
    'DOMException',
    'TextEncoder',
  ])
    expect(code).not.toContain(missing);
});
