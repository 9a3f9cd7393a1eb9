import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, test } from 'vitest';
import { accountsOpener } from '../../../local/cli/open-accounts.ts';
import { writeInstance } from '../../../local/instance/instance.ts';
import { deployedApp } from '../../fixtures/deployed-app.ts';

/** Which model a command of a clone uses, which has an app of its own: that of the app that runs on the data folder. */

const DEFINE = pathToFileURL('lib/index.ts').href;

/** The data folder of a running instance of the app in another folder. */
async function runApp(app: string): Promise<string> {
  const folder = await mkdtemp(join(inject('folder'), 'data-'));
  const at = 'http://127.0.0.1:1/rowkey';
  const services = { tables: at, queues: at, blobs: at };
  const identity = { issuer: at, jwksUri: at, audience: 'api' };
  await writeInstance(folder, { url: at, ...identity, ...services, accounts: 1, app, roles: [], pid: process.pid });
  return folder;
}

test('a command of a clone uses the model of the app that runs on the data folder', async () => {
  const other = await mkdtemp(join(inject('folder'), 'app-'));
  await writeFile(join(other, 'package.json'), '{ "type": "module", "main": "app.js" }');
  await writeFile(
    join(other, 'app.js'),
    `import { defineModel } from '${DEFINE}';
     export const model = defineModel({ roles: ['operator'], operatorRole: 'operator', prefix: 'other', entities: [] });`,
  );
  const open = accountsOpener(deployedApp);
  expect((await open(await runApp(other))).storage.table('system').tableName).toBe('other0system');
  const own = await open(await runApp(deployedApp.folder));
  expect(own.resources.tables).toEqual(expect.arrayContaining(['employees']));
});
