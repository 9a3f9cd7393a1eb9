import { accountKeySigner } from './account-key-signer.ts';
import type { Address } from './rows.ts';
import type { Storage } from './storage.ts';
import type { TableSasSigner } from './table-sas.ts';
import { userDelegationSigner } from './user-delegation-signer.ts';

/** Signs with the account key if there is one (the emulator), else with a key delegated to the app's identity. */
export function tableSasSigner({ connectionString, tables, table }: Storage): TableSasSigner {
  const signer = connectionString
    ? accountKeySigner({ connectionString, endpoint: tables.url })
    : userDelegationSigner({ tables });
  return { sign: (request) => signer.sign({ ...request, table: table(request.table).tableName }) };
}

/** The URL of a row; the signature goes into its query. */
export function rowUrl(storage: Storage, { table, partition, row }: Address): string {
  return `${tableUrl(storage, table)}(PartitionKey='${quote(partition)}',RowKey='${quote(row)}')`;
}

/** The URL of a table, to read or add rows; the signature and a filter go into its query. */
export function tableUrl(storage: Storage, table: string): string {
  return `${storage.tables.url.replace(/\/$/, '')}/${storage.table(table).tableName}`;
}

function quote(key: string): string {
  return encodeURIComponent(key.replaceAll("'", "''"));
}
