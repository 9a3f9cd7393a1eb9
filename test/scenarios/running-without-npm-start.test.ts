import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { startFunctionsHost } from '../../local/instance/functions-host.ts';
import { PATIENCE_MS } from '../patience.ts';
import { runCommand } from '../start-process.ts';
import { testStorage } from '../storage.ts';
import { UNDER_FUNC } from '../under-func.ts';

/** The host and the emulator run by hand, as docs/configuration.md has it: nothing of `npm start` prepares storage. */
test('the app creates what is missing in the emulator, and is healthy with the sample settings', {
  tags: ['slow'],
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-by-hand-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const data = join(folder, '.rowkey');
  const keys = await runCommand('rotate-key', ['--data', data], { deployed: true });
  expect(keys).toMatchObject({ code: 0, said: expect.stringContaining('The new key is in use') });
  expect((await stat(data)).mode & 0o777).toBe(0o700);

  const { Values: settings } = JSON.parse(await readFile('local.settings.sample.json', 'utf8'));
  settings.AzureWebJobsStorage = testStorage(import.meta.url);
  settings.KEY_ENCRYPTION_KEY_FILE = join(data, 'keys.json');
  const logged: string[] = [];
  const host = await startFunctionsHost({
    app: deployedApp.folder,
    port: 0,
    settings,
    func: UNDER_FUNC,
    log: (line) => logged.push(line),
  });
  onTestFinished(() => host.stop());
  const health = async () => {
    const response = host.url ? await fetch(`${host.url}/api/health`).catch(() => undefined) : undefined;
    return response?.json();
  };
  await expect
    .poll(health, { timeout: PATIENCE_MS })
    .toMatchObject({ status: 'ok', storage: 'ok', declaration: 'ok', resources: 'ok' });
  // The real host logs an error response to each of its requests for a container or blob that it then creates.
  const wrong = UNDER_FUNC ? /ENOENT|is missing/i : /ENOENT|is missing|error/i;
  expect(logged.filter((line) => wrong.test(line))).toEqual([]);
});
