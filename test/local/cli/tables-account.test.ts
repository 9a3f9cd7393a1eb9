import { expect, onTestFinished, test, vi } from 'vitest';
import { createInspectCommand } from '../../../local/cli/inspect-command.ts';
import { completeConnection } from '../../../local/cli/tables-account.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const KEY = 'AccountName=contoso;AccountKey=a2V5';
const SAS = 'SharedAccessSignature=sv=2020&sig=a';

test.each([
  `DefaultEndpointsProtocol=https;${KEY};TableEndpoint=https://contoso.table.core.windows.net/;`,
  `${KEY};TableEndpoint=https://contoso.table.core.windows.net`,
  `TableEndpoint=https://contoso.table.core.windows.net;${SAS}`,
  `${KEY};TableEndpoint=http://127.0.0.1:10002/contoso`,
  `${KEY};TableEndpoint=https://tables.example.org`,
  `DefaultEndpointsProtocol=https;${KEY};EndpointSuffix=core.windows.net`,
])('opens the tables of %s', (connectionString) => {
  const { url } = storageAccounts.openStorage({ connectionString: completeConnection(connectionString) }).tables;
  const [, wanted = 'https://contoso.table.core.windows.net'] =
    /TableEndpoint=([^;]+?)\/?(;|$)/.exec(connectionString) ?? [];
  expect(url.split('?')[0]).toBe(wanted);
});

test('inspect reads an account whose connection string has the address of its tables alone', async () => {
  const connection = testStorage(import.meta.url);
  const tables = connection
    .split(';')
    .filter((part) => !/^(QueueEndpoint|BlobEndpoint)=/.test(part))
    .join(';');
  expect(tables).not.toBe(connection);
  const write = vi.spyOn(process.stdout, 'write').mockImplementation(() => true);
  vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  await createInspectCommand().exitOverride().parseAsync(['--connection', tables], { from: 'user' });
  expect(write).toHaveBeenCalled();
});
