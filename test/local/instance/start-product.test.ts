import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startProduct } from '../../../local/instance/start-product.ts';
import { deployedApp } from '../../fixtures/deployed-app.ts';
import { testStorage } from '../../storage.ts';

/** As Core Tools without their port and another instance on it, which is healthy and rejects the token of this one. */
const OTHER_INSTANCE = `#!${process.execPath}
if (process.argv.includes('--version')) process.exit(0);
const { createServer } = require('node:http');
const port = process.argv[process.argv.indexOf('--port') + 1];
createServer(({ url }, response) => response.writeHead(url === '/api/health' ? 200 : 401).end('{}')).listen(port, '127.0.0.1');`;

test.skipIf(process.platform === 'win32')('rejects a port on which another instance returns responses', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-other-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  await writeFile(join(folder, 'func'), OTHER_INSTANCE);
  await chmod(join(folder, 'func'), 0o755);
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const storage = { connectionString: testStorage(import.meta.url) };
  const starting = startProduct({ app: deployedApp, data: join(folder, 'data'), port: 0, func: true, storage });
  await expect(starting).rejects.toThrow(/^Port \d+ is in use by another instance: choose another with --port\.$/);
});
