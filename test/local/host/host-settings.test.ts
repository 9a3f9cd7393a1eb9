import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readHostSettings } from '../../../local/host/host-settings.ts';

async function read(settings: unknown) {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-host-json-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const text = typeof settings === 'string' ? settings : JSON.stringify(settings);
  await writeFile(join(folder, 'host.json'), text);
  return readHostSettings(folder);
}
const queues = (settings: object) => ({ version: '2.0', extensions: { queues: settings } });

const bundle = (version: string, id = 'Microsoft.Azure.Functions.ExtensionBundle') => ({
  version: '2.0',
  extensionBundle: { id, version },
});

test('reads host.json of the app', async () => {
  expect(await readHostSettings('.')).toMatchObject({ http: { routePrefix: '' }, hasExtensionBundle: true });
});

test('the app receives messages in batches and asks an idle queue at least every second', async () => {
  const { queues } = await readHostSettings('.');
  expect(queues.batchSize).toBeGreaterThanOrEqual(16);
  expect(queues.newBatchThreshold).toBeGreaterThan(0);
  expect(queues.maxPollingInterval).toBeLessThanOrEqual(1_000);
});

test('has the defaults of the host, and ignores the case of the encoding and what it does not know', async () => {
  expect(await read({ ...queues({ messageEncoding: 'None' }), telemetryMode: 'x', functionTimeout: '-1' })).toEqual({
    http: { routePrefix: 'api' },
    queues: {
      messageEncoding: 'none',
      batchSize: 16,
      newBatchThreshold: 8,
      maxDequeueCount: 5,
      visibilityTimeout: 0,
      maxPollingInterval: 2000,
    },
    hasExtensionBundle: false,
  });
});

test.each(['[4.0.0, 5.0.0)', '[4.*, 5.0.0)', '(,5.0]', '[4.28.0]', '4.0.0', '4.*', '*', '4.0.0-beta.1'])(
  'accepts the bundle version %j',
  async (version) => {
    expect(await read(bundle(version))).toMatchObject({ hasExtensionBundle: true });
  },
);

test('accepts a log level in any case, as the host does', async () => {
  await read({ version: '2.0', logging: { logLevel: { default: 'information' } } });
});

test.each<[string, unknown, string]>([
  ['a text that is not JSON', '{', 'host.json is not valid: it is not JSON'],
  ['no version', {}, 'version: '],
  ['another version', { version: '3.0' }, 'version: '],
  ['a batch size of 0', queues({ batchSize: 0 }), 'extensions.queues.batchSize: '],
  ['a batch size of 33', queues({ batchSize: 33 }), 'extensions.queues.batchSize: '],
  ['a batch size that is no number', queues({ batchSize: 'x' }), 'extensions.queues.batchSize: '],
  ['a negative threshold', queues({ newBatchThreshold: -1 }), 'extensions.queues.newBatchThreshold: '],
  ['no attempt', queues({ maxDequeueCount: 0 }), 'extensions.queues.maxDequeueCount: '],
  ['a short polling interval', queues({ maxPollingInterval: '00:00:00.05' }), 'maxPollingInterval: expected at least'],
  ['a span that is none', queues({ maxPollingInterval: 'soon' }), 'expected a time span'],
  ['an unknown encoding', queues({ messageEncoding: 'hex' }), 'extensions.queues.messageEncoding: '],
  [
    'a prefix with a slash at its end',
    { version: '2.0', extensions: { http: { routePrefix: 'a/' } } },
    'expected no /',
  ],
  ['a short time-out', { version: '2.0', functionTimeout: '00:00:00' }, 'functionTimeout: '],
  ['an unknown level', { version: '2.0', logging: { logLevel: { default: 'Loud' } } }, 'logging.logLevel.default: '],
  ['a bundle without a version', { version: '2.0', extensionBundle: { id: 'x' } }, 'extensionBundle.version: '],
  ['a bundle with an invalid id', bundle('4.0.0', 'a b'), 'extensionBundle.id: '],
  ...['', 'latest', '[4.0.0', '4.0.0)', '[4.0.0, 5.0.0, 6.0.0]', '4.x'].map((version): [string, unknown, string] => [
    `the bundle version "${version}"`,
    bundle(version),
    'extensionBundle.version: ',
  ]),
])('rejects host.json with %s', async (_, settings, message) => {
  await expect(read(settings)).rejects.toThrow(message);
});
