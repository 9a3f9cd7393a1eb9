import { execFile } from 'node:child_process';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, inject, test } from 'vitest';

/** A program named az keeps the registration in a file, as Microsoft Graph does: a change replaces the list. */

const SCRIPT = fileURLToPath(new URL('../../../local/commands/redirects.ts', import.meta.url));
const CONSOLE = 'https://fleet.azurewebsites.net/console/';
const folder = inject('folder');
const registration = join(folder, 'registration.json');

beforeEach(async () => {
  await writeFile(registration, JSON.stringify({ spa: { redirectUris: [CONSOLE] } }));
  const az = `#!${process.execPath}
const { readFileSync, writeFileSync } = require('node:fs');
const [, , rest, ...args] = process.argv;
const of = (name) => args[args.indexOf(name) + 1];
if (rest !== 'rest' || !of('--url').startsWith("https://graph.microsoft.com/v1.0/applications(appId='client')")) process.exit(9);
if (of('--method') === 'get') process.stdout.write(readFileSync(${JSON.stringify(registration)}));
else writeFileSync(${JSON.stringify(registration)}, of('--body'));
`;
  await writeFile(join(folder, 'az'), az);
  await chmod(join(folder, 'az'), 0o755);
});

function add(addresses: readonly string[], path = folder): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; stdout: string; stderr: string }>();
  const env = { ...process.env, PATH: path };
  execFile(process.execPath, [SCRIPT, 'client', ...addresses], { env }, (error, stdout, stderr) =>
    resolve({ code: error?.code ?? 0, stdout, stderr }),
  );
  return promise;
}
const stored = async () => JSON.parse(await readFile(registration, 'utf8')).spa.redirectUris;

test('adds addresses to those that there are, each once', async () => {
  const page = 'https://app.contoso.com/';
  expect(await add([page, 'http://localhost:5173/'])).toMatchObject({ code: 0 });
  expect(await add([page])).toMatchObject({ code: 0, stdout: `${CONSOLE}\n${page}\nhttp://localhost:5173/\n` });
  expect(await stored()).toEqual([CONSOLE, page, 'http://localhost:5173/']);
});

test.each(['app.contoso.com', 'http://app.contoso.com/', 'https://app.contoso.com/#x', 'ftp://localhost/'])(
  'rejects %s, and changes nothing',
  async (address) => {
    const { code, stderr } = await add(['https://app.contoso.com/', address]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('An address must begin with https://')]);
    expect(await stored()).toEqual([CONSOLE]);
  },
);

test('says that the Azure CLI is missing', async () => {
  await rm(join(folder, 'az'));
  const { code, stderr } = await add(['https://app.contoso.com/']);
  expect([code, stderr]).toEqual([1, 'The Azure CLI is not installed. Install az and sign in with az login.\n']);
});
