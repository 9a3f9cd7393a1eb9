import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { checkTypes } from '../check-types.ts';
import { useProduct } from '../product.ts';

/** A client that oazapfts generates from /api/openapi.json, without anything of this repository. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const product = useProduct(import.meta.url);

const PROGRAM = `
import * as api from './api.ts';

const { ROWKEY_URL = '', ROWKEY_TOKEN = '' } = process.env;
api.defaults.baseUrl = ROWKEY_URL;
api.defaults.headers = { authorization: \`Bearer \${ROWKEY_TOKEN}\` };

const key = ['Generated', '000123'] as const;
const body: api.EmployeesCreateBody = {
  ...{ department: key[0], employeeId: key[1], email: 'ann@contoso.com' },
  ...{ firstName: 'Ann', lastName: 'Lee', age: 30 },
};
const created = await api.employeesCreate(body, { idempotencyKey: 'generated-1' });
console.log(created.status, 'email' in created.data && created.data.email);

const found = await api.employeesByEmailCompanyWide('ann@contoso.com');
console.log(found.status, 'data' in found && 'lastName' in found.data && found.data.lastName);

const current = await api.employeesGet(...key);
const etag = current.headers.get('etag') ?? '';
const patched = await api.employeesPatch(...key, { phone: '1' }, { ifMatch: etag });
const refused = await api.employeesPatch(...key, { phone: '2' }, { ifMatch: etag });
console.log(patched.status, refused.status, refused.status === 412 && refused.data.code);

const removed = await api.employeesPatch(...key, { phone: null });
console.log(removed.status === 200 && 'phone' in removed.data);
const [department, employeeId] = key;
const batch = await api.employeesBatch({ actions: [{ patch: { department, employeeId, phone: '3' }, ifMatch: '*' }] });
console.log('results' in batch.data && batch.data.results[0]?.status);

const list = await api.employeesRange(key[0], { age: ['ge:30', 'lt:40'], select: 'age' });
console.log(JSON.stringify(list.status === 200 && list.data));
const invalid = await api.employeesCreate({ ...body, employeeId: 'x' });
console.log(invalid.status === 400 && invalid.data.field);
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(inject('folder'), 'generated-client-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  const options = {
    ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'dom', 'dom.iterable'], types: ['node'] },
    ...{ strict: true, skipLibCheck: true, noEmit: true, allowImportingTsExtensions: true },
  };
  const files = {
    'package.json': { type: 'module' },
    'tsconfig.json': { compilerOptions: options, files: ['program.ts'] },
    'openapi.json': await (await fetch(new URL('/api/openapi.json', product.url))).json(),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content));
  await writeFile(join(folder, 'program.ts'), PROGRAM);
  const generator = join(ROOT, 'node_modules', 'oazapfts', 'dist', 'cli.js');
  await run(process.execPath, [generator, 'openapi.json', 'api.ts'], { cwd: folder });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('a generated client compiles under strict', async () => {
  expect(await checkTypes(folder)).toBe('');
});

test('a generated client writes, reads, filters and gets problems', async () => {
  const env = { PATH: process.env.PATH, ROWKEY_URL: product.url, ROWKEY_TOKEN: await product.token('hr') };
  const { stdout } = await run(process.execPath, [join(folder, 'program.ts')], { env, cwd: folder });
  expect(stdout.trim().split('\n')).toEqual([
    '201 ann@contoso.com',
    '200 Lee',
    '200 412 etag-mismatch',
    'false',
    '200',
    '{"items":[{"age":30}]}',
    'employeeId',
  ]);
});
