import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { startFunctionsHost } from '../../local/instance/functions-host.ts';
import { endChild, spawnScript } from '../../local/instance/spawn-child.ts';
import { chooseFixedPorts } from '../fixed-ports.ts';
import { PATIENCE_MS } from '../patience.ts';
import { runCommand } from '../start-process.ts';
import { UNDER_FUNC } from '../under-func.ts';

const AZURITE = createRequire(import.meta.url).resolve('azurite/dist/src/azurite.js');
/** What the emulator documents as its account for `UseDevelopmentStorage=true`. */
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const HEALTHY = { status: 'ok', storage: 'ok', declaration: 'ok', resources: 'ok' };

/** A folder, the sample settings, and the documented command of the emulator, each with other ports and paths only. */
async function prepare() {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-by-hand-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const data = join(folder, '.rowkey');
  const keys = await runCommand('rotate-key', ['--data', data], { deployed: true });
  expect(keys).toMatchObject({ code: 0, said: expect.stringContaining('The new key is in use') });
  expect((await stat(data)).mode & 0o777).toBe(0o700);

  const { blob, queue, table } = await chooseFixedPorts();
  const [, documented = ''] =
    /^npx azurite (.+?)(?: &)?$/m.exec(await readFile('docs/reference/configuration.md', 'utf8')) ?? [];
  const options = documented.replace('.rowkey', data).split(' ');
  const ports = { blob, queue, table };
  const portOptions = Object.entries(ports).flatMap(([service, port]) => [`--${service}Port`, String(port)]);
  const { Values: settings } = JSON.parse(await readFile('local.settings.sample.json', 'utf8'));
  expect(settings).toMatchObject({ AzureWebJobsStorage: 'UseDevelopmentStorage=true' });
  const endpoints = [
    `BlobEndpoint=http://127.0.0.1:${blob}`,
    `QueueEndpoint=http://127.0.0.1:${queue}`,
    `TableEndpoint=http://127.0.0.1:${table}`,
  ];
  const account = `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${KEY}`;
  settings.AzureWebJobsStorage = [account, ...endpoints.map((endpoint) => `${endpoint}/devstoreaccount1`)].join(';');
  settings.KEY_ENCRYPTION_KEY_FILE = join(data, 'keys.json');
  return { options: [...options, ...portOptions], settings };
}

async function startEmulator(options: readonly string[]): Promise<() => Promise<void>> {
  const child = spawnScript(AZURITE, options);
  onTestFinished(() => endChild(child));
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('Table service is successfully listening')) break;
  return () => endChild(child);
}

async function startHost(settings: Readonly<Record<string, string>>) {
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
  return { logged, health };
}

/** The host and the emulator run by hand, as docs/reference/configuration.md has it: nothing of `npm start` prepares storage. */
test('the app creates what is missing in the emulator, and is healthy with the sample settings', {
  tags: ['slow'],
}, async () => {
  const { options, settings } = await prepare();
  await startEmulator(options);
  const { logged, health } = await startHost(settings);
  await expect.poll(health, { timeout: PATIENCE_MS }).toMatchObject(HEALTHY);
  // The real host logs an error response to each of its requests for a container or blob that it then creates.
  const wrong = UNDER_FUNC ? /ENOENT|is missing/i : /ENOENT|is missing|error/i;
  expect(logged.filter((line) => wrong.test(line))).toEqual([]);
});

test('the log says which option the emulator lacks, and the app serves once the emulator has it', {
  tags: ['slow'],
}, async () => {
  const { options, settings } = await prepare();
  const stop = await startEmulator(options.filter((option) => option !== '--skipApiVersionCheck'));
  const { logged, health } = await startHost(settings);
  await expect.poll(health, { timeout: PATIENCE_MS }).toMatchObject({ declaration: 'refused' });
  expect(logged.join('\n')).toContain(
    'The storage emulator rejects the API version of the SDK (400 InvalidHeaderValue): start Azurite with --skipApiVersionCheck.',
  );
  expect(logged.join('\n')).not.toContain('Missing in the storage account');
  await stop();
  await startEmulator(options);
  await expect.poll(health, { timeout: PATIENCE_MS }).toMatchObject(HEALTHY);
});
