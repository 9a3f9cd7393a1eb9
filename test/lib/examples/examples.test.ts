import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkTypes } from '../../check-types.ts';

const ENTRIES = [
  'lib/index.ts',
  'lib/client/index.ts',
  'lib/client/sign-in.ts',
  'lib/testing/index.ts',
  'test/lib/examples/app.ts',
];

interface Example {
  readonly name: string;
  readonly source: string;
  readonly code: string;
}

/** The code after each `@example` of a comment, up to the next tag or the end of the comment. */
const examples = globSync('lib/**/*.ts').flatMap((source): Example[] => {
  const found = readFileSync(source, 'utf8').matchAll(/^ *\* @example\n((?: *\*(?!\/)(?! @).*\n)*)/gm);
  return [...found].map(([, lines = ''], at) => {
    const name = `${basename(source, '.ts')}-${at + 1}.ts`;
    return { name, source, code: lines.replaceAll(/^ *\* ?/gm, '') };
  });
});

/** What adopters call. */
const CALLED = [
  'createClient',
  'createRowkey',
  'createTestStore',
  'defineEntity',
  'defineModel',
  'defineOperation',
  'defineSeries',
  'defineUnion',
  'fromEnvironment',
  'openSession',
  'indexEntity',
  'interPartitionIndex',
  'intraPartitionIndex',
  'registerFunctions',
  'rowkey.handler',
  'total',
  ...['batch', 'by', 'create', 'delete', 'deleteRange', 'get', 'put', 'range', 'replace', 'totals', 'update'].map(
    (method) => `store.vehicles.${method}`,
  ),
  'store.depots.list',
  ...['get', 'increment', 'set', 'span'].map((method) => `store.trips.${method}`),
];

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-examples-'));
  await symlink(resolve('node_modules'), join(folder, 'node_modules'));
  const names = await Promise.all(
    ENTRIES.map(async (entry) => {
      const { default: _, ...values }: Record<string, unknown> = await import(pathToFileURL(resolve(entry)).href);
      return `import { ${Object.keys(values).join(', ')} } from '${resolve(entry)}';`;
    }),
  );
  const head = ["import { app } from '@azure/functions';", "import { z } from 'zod';", ...names].join('\n');
  // In a block, a declaration of the example hides an import of the same name.
  for (const { name, source, code } of examples) {
    await writeFile(join(folder, name), `${head}\n{\n${code}}\n`);
    // The store and the client share these calls and their comments.
    if (source.startsWith('lib/api'))
      await writeFile(join(folder, `client-${name}`), `${head}\n{\nconst store = client;\n${code}}\n`);
  }
  const options = { extends: resolve('tsconfig.json'), include: ['*.ts'], exclude: [] };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(options));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('every example in a comment compiles', { tags: ['slow'] }, async () => {
  expect(await checkTypes(folder)).toBe('');
});

test.each(examples.filter(({ source }) => source.startsWith('lib/define')))(
  'the declarations of an example are valid: $name',
  async ({ name }) => {
    await import(pathToFileURL(join(folder, name)).href);
  },
);

test('everything that adopters call has an example', () => {
  const code = examples.map((example) => example.code).join('\n');
  expect(
    CALLED.filter((called) => !new RegExp(`(?<!\\w|\\w\\.)${called.replaceAll('.', '\\.')}\\b`).test(code)),
  ).toEqual([]);
});
