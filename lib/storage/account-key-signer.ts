import { AzureNamedKeyCredential, generateTableSas } from '@azure/data-tables';
import { RowkeyError } from '../errors.ts';
import type { TableSasSigner } from './table-sas-signer.ts';

/** What `UseDevelopmentStorage=true` stands for; published by Microsoft, so no secret. */
const EMULATOR =
  'AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

export interface AccountKeyOptions {
  readonly connectionString: string;
  /** Of the tables: plain HTTP is allowed to signatures only where the account itself speaks it, as the emulator does. */
  readonly endpoint: string;
}

/** Signs as a service shared access signature, with the key in a connection string. */
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
  if (!value) throw new RowkeyError('wrong-setting', `No grant can be signed: the connection string has no ${name}.`);
  return value;
}
