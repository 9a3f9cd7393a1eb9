import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startFunctionsHost } from '../../local/instance/functions-host.ts';
import { testStorage } from '../storage.ts';
import { waitForUrl } from './first-request.ts';

test('a host that ends before it listens ends the measurement, with what the host logged', {
  tags: ['slow'],
}, async () => {
  const app = await mkdtemp(join(tmpdir(), 'rowkey-first-'));
  onTestFinished(() => rm(app, { recursive: true }));
  await writeFile(join(app, 'package.json'), '{"type":"module","main":"app.js"}');
  await writeFile(join(app, 'host.json'), '{"version":"2.0"}');
  await writeFile(join(app, 'app.js'), 'throw new Error("This app cannot be loaded.");');
  const logged: string[] = [];
  const settings = { AzureWebJobsStorage: testStorage(import.meta.url) };
  const host = await startFunctionsHost({ app, port: 0, settings, func: false, log: (line) => logged.push(line) });
  await expect(waitForUrl(host, logged)).rejects.toThrow(/ended before it listened.*This app cannot be loaded/s);
});
