import { AzureNamedKeyCredential, generateTableSas } from '@azure/data-tables';
import { RowkeyError } from '../base/errors.ts';
import type { TableSasSigner } from './table-sas.ts';

/** The account that `UseDevelopmentStorage=true` means. Microsoft publishes its key, so the key is not a secret. */
const EMULATOR =
  'AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

export interface AccountKeyOptions {
  readonly connectionString: string;
  /** The endpoint of the table service. A signature allows plain HTTP only if the account uses it, as the emulator does. */
  readonly endpoint: string;
}

/** Signs service shared access signatures with the account key of a connection string. */
export function accountKeySigner({ connectionString, endpoint }: AccountKeyOptions): TableSasSigner {
  const parts = /UseDevelopmentStorage=true/i.test(connectionString) ? EMULATOR : connectionString;
  const credential = new AzureNamedKeyCredential(partOf(parts, 'AccountName'), partOf(parts, 'AccountKey'));
  const protocol = endpoint.startsWith('http:') ? 'https,http' : 'https';
  return {
    sign: async ({ table, partition, firstRow, lastRow, permissions, startsAt, expiresAt }) =>
      generateTableSas(table, credential, {
        permissions: {
          query: permissions.includes('r'),
          add: permissions.includes('a'),
          update: permissions.includes('u'),
          delete: permissions.includes('d'),
        },
        protocol,
        startsOn: startsAt,
        expiresOn: expiresAt,
        startPartitionKey: partition,
        ...(firstRow === undefined ? {} : { startRowKey: firstRow }),
        endPartitionKey: partition,
        ...(lastRow === undefined ? {} : { endRowKey: lastRow }),
      }),
  };
}

function partOf(connectionString: string, name: string): string {
  const value = new RegExp(`(?:^|;)\\s*${name}=([^;]+)`, 'i').exec(connectionString)?.[1];
  if (!value) throw new RowkeyError('wrong-setting', `Cannot sign a grant: the connection string has no ${name}.`);
  return value;
}
