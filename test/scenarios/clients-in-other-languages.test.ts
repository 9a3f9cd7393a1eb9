import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { checkTypes } from '../check-types.ts';
import { model } from '../clients/app/model.ts';
import { useProduct } from '../product.ts';

/**
 * Programs with clients that generators make from /api/openapi.json, without anything of this repository: the programs compile, and each
 * makes ten calls to the running app. docs/other-languages.md shows parts of them.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CLIENTS = join(ROOT, 'test', 'clients');
const run = promisify(execFile);
const product = useProduct(import.meta.url, { app: { model, folder: join(CLIENTS, 'app'), packs: undefined } });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(inject('folder'), 'clients-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  const described = await (await fetch(new URL('/api/openapi.json', product.url))).text();
  await writeFile(join(folder, 'openapi.json'), described);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function environment(owner: string) {
  return {
    ...process.env,
    ROWKEY_URL: product.url,
    ROWKEY_TOKEN: await product.token('hr'),
    ROWKEY_OWNER: await product.token('reader', owner),
  };
}

const GENERATORS = {
  fetch: { package: 'openapi-typescript/bin/cli.js', words: ['openapi.json', '-o', 'fetch/api.d.ts'] },
  hey: { package: '@hey-api/openapi-ts/bin/run.js', words: ['-i', 'openapi.json', '-o', 'hey/api'] },
} as const;

test.each([
  ['openapi-typescript', 'fetch'],
  ['@hey-api/openapi-ts', 'hey'],
] as const)('a client of %s compiles, and makes ten calls', { tags: ['slow'] }, async (_, name) => {
  const { package: generator, words } = GENERATORS[name];
  await mkdir(join(folder, name), { recursive: true });
  const installed = join(CLIENTS, 'generators', 'node_modules', generator);
  await run(process.execPath, [installed, ...words], { cwd: folder });
  const project = join(folder, name);
  await copyFile(join(CLIENTS, 'programs', `${name}.ts`), join(project, 'program.ts'));
  await writeFile(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  const options = {
    ...{ target: 'es2024', module: 'esnext', moduleResolution: 'bundler', lib: ['es2024', 'dom', 'dom.iterable'] },
    ...{ types: ['node'], strict: true, skipLibCheck: true, noEmit: true, allowImportingTsExtensions: true },
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['program.ts'] }));
  expect(await checkTypes(project)).toBe('');
  const bundle = await rolldown({ input: join(project, 'program.ts'), platform: 'node' });
  await bundle.write({ file: join(project, 'program.mjs'), format: 'esm' });
  const { stdout } = await run(process.execPath, [join(project, 'program.mjs')], { env: await environment('') });
  expect(stdout.trim().split('\n')).toEqual([
    expect.stringMatching(/^create 201 [fh]000[78]01@contoso\.com none$/),
    'read Ann 304',
    'patch 1 412 etag-mismatch',
    'pages 2 1',
    'photo image/png true',
    'operation Manager none',
    'delete 204 404 not-found',
  ]);
});

const DOTNET = {
  ...process.env,
  ...{ DOTNET_CLI_TELEMETRY_OPTOUT: '1', DOTNET_NOLOGO: '1' },
  ...{ KIOTA_TUTORIAL_ENABLED: 'false', KIOTA_OFFLINE_ENABLED: 'true' },
};

async function dotnet(cwd: string, ...words: readonly string[]): Promise<string> {
  const failed = (error: { readonly stdout?: string; readonly message: string }) => {
    throw new Error(`${error.message}\n${error.stdout}`, { cause: error });
  };
  return (await run('dotnet', words, { cwd, env: DOTNET }).catch(failed)).stdout;
}

/** Restores the generators and the libraries of the programs. Returns why that is not possible. */
async function whyNoDotnet(): Promise<string | undefined> {
  const version = await dotnet(ROOT, '--version').catch(() => '');
  if (Number.parseInt(version, 10) < 10) return 'The .NET SDK 10 is needed.';
  const restore = async () => {
    await cp(join(CLIENTS, 'dotnet'), join(folder, 'dotnet'), { recursive: true });
    await dotnet(join(folder, 'dotnet'), 'tool', 'restore');
    for (const name of ['nswag', 'kiota']) await dotnet(join(folder, 'dotnet', name), 'restore');
  };
  return restore().then(
    () => undefined,
    (error: Error) => `NuGet is needed: ${error.message.slice(0, 300)}`,
  );
}

test('clients of NSwag and Kiota compile, and each makes ten calls', { tags: ['slow'] }, async ({ skip }) => {
  const why = await whyNoDotnet();
  if (why) return skip(why);
  const home = join(folder, 'dotnet');
  const described = join(folder, 'openapi.json');
  const options = [
    ...['/namespace:Rowkey.Generated', '/classname:RowkeyClient', '/JsonLibrary:SystemTextJson', '/WrapResponses:true'],
    ...['/GenerateOptionalParameters:true', '/GenerateOptionalPropertiesAsNullable:true'],
    '/GenerateNullableReferenceTypes:true',
  ];
  const output = '/output:nswag/Client.cs';
  await dotnet(home, 'nswag', 'openapi2csclient', `/input:${described}`, output, ...options);
  const named = ['-c', 'RowkeyClient', '-n', 'Rowkey.Kiota', '-o', 'kiota/Client'];
  await dotnet(home, 'kiota', 'generate', '-l', 'CSharp', '-d', described, ...named);
  const play = async (name: string, owner: string) => {
    await dotnet(join(home, name), 'build', '--no-restore', '-c', 'Release', '-v', 'q', '-p:RunAnalyzers=false');
    const program = join(home, name, 'bin', 'Release', 'net10.0', `${name}.dll`);
    const { stdout } = await run('dotnet', [program], { env: { ...DOTNET, ...(await environment(owner)) } });
    return stdout.trim().split('\n');
  };
  expect(await play('nswag', 'n000501@contoso.com')).toEqual([
    'create: 201 n000501@contoso.com 2026-11-20 phone=none',
    'read: 200 Ann, then 304',
    'patch: 200 1 30',
    'stale: 412 etag-mismatch',
    'pages: 2 + 1',
    'photo: image/png True True',
    'grant: 201 n000501@contoso.com r',
    'operation: Manager before=none',
    'batch: 204 204',
    'delete: 204, then 404 not-found: employees "NSwag/000501" not found.',
    'JsonContent: 411, then 201',
  ]);
  expect(await play('kiota', 'k000601@contoso.com')).toEqual([
    'create: k000601@contoso.com 2026-11-20 phone=none',
    'read: Ann, then nothing',
    'patch: 1 30',
    'stale: 412 etag-mismatch',
    'pages: 2 + 1',
    'photo: image/png True',
    'grant: k000601@contoso.com r',
    'operation: Manager before=none',
    'batch: 204 204',
    'delete: then 404 not-found: employees "Kiota/000601" not found.',
  ]);
});
