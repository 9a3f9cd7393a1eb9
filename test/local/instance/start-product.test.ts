import { EventEmitter } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readInstance } from '../../../local/instance/instance.ts';
import { startProduct } from '../../../local/instance/start-product.ts';
import { keepAccountCount } from '../../../local/instance/storage-accounts.ts';
import { deployedApp } from '../../fixtures/deployed-app.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { SECOND_ACCOUNT, testStorage } from '../../storage.ts';

/** As Core Tools without their port and another instance on it, which is healthy and rejects the token of this one. */
const OTHER_INSTANCE = `#!${process.execPath}
if (process.argv.includes('--version')) process.exit(0);
const { createServer } = require('node:http');
const port = process.argv[process.argv.indexOf('--port') + 1];
createServer(({ url }, response) => response.writeHead(url === '/api/health' ? 200 : 401).end('{}')).listen(port, '127.0.0.1');`;

test.skipIf(process.platform === 'win32')(
  'rejects a port on which another instance returns responses',
  { tags: ['slow'] },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rowkey-other-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    await writeFile(join(folder, 'func'), OTHER_INSTANCE);
    await chmod(join(folder, 'func'), 0o755);
    vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const storage = { connectionString: testStorage(import.meta.url) };
    const starting = startProduct({ app: deployedApp, data: join(folder, 'data'), port: 0, func: true, storage });
    await expect(starting).rejects.toThrow(/^Port \d+ is in use by another instance: choose another with --port\.$/);
  },
);

test('provisions several storage accounts, and names each to the app', { tags: ['slow'] }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-several-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const connectionString = testStorage(import.meta.url);
  const second = testStorage(SECOND_ACCOUNT);
  const host = createServer((_, response) => response.end('{}'))
    .listen(0, '127.0.0.1')
    .unref();
  let settings: Readonly<Record<string, string>> = {};
  const product = await startProduct({
    app: deployedApp,
    data: folder,
    port: 0,
    storage: { connectionString, further: [second], backup: 'of the backup' },
    async startHost(options) {
      settings = options.settings;
      const { port } = host.address() as AddressInfo;
      const end = async () => void host.close();
      return { process: new EventEmitter(), isCoreTools: false, url: `http://127.0.0.1:${port}`, stop: end, kill: end };
    },
  });
  onTestFinished(() => product.stop());
  expect(settings).toMatchObject({
    AzureWebJobsStorage: connectionString,
    STORAGE_ACCOUNTS: 'second',
    second,
    BackupStorage: 'of the backup',
  });
  expect(await readInstance(folder)).toMatchObject({ accounts: 2 });
  for (const each of [connectionString, second]) {
    const { queue } = storageAccounts.openStorage({ connectionString: each });
    expect((await queue('transfers-poison').getProperties()).approximateMessagesCount).toBe(0);
  }
});

test('keeps the number of storage accounts of a folder, which may only grow', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-count-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  expect([await keepAccountCount(folder), await keepAccountCount(folder, 2)]).toEqual([1, 2]);
  expect([await keepAccountCount(folder, 3), await keepAccountCount(folder)]).toEqual([3, 3]);
  await expect(keepAccountCount(folder, 2)).rejects.toThrow('is in 3 storage accounts: start with --accounts 3,');
});
