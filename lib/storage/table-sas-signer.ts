import { accountKeySigner } from './account-key-signer.ts';
import type { Address } from './rows.ts';
import type { Storage } from './storage.ts';
import { userDelegationSigner } from './user-delegation-signer.ts';

/** The rows of one partition, all or from `firstRow` to `lastRow` inclusive, and what may be done with them until when. */
export interface TableSasRequest {
  readonly table: string;
  readonly partition: string;
  readonly firstRow?: string;
  readonly lastRow?: string;
  /** Of `raud`, in this order. */
  readonly permissions: string;
  readonly startsAt: Date;
  readonly expiresAt: Date;
}

export interface TableSasSigner {
  /** The shared access signature as the query of a URL, without the question mark. */
  sign(request: TableSasRequest): Promise<string>;
}

/** Signs with the account key where one is in use (the emulator), and else with a key delegated to the app's identity. */
export function tableSasSigner({ connectionString, tables }: Storage): TableSasSigner {
  return connectionString
    ? accountKeySigner({ connectionString, endpoint: tables.url })
    : userDelegationSigner({ tables });
}

/** Where a row is read with the signature as the query. */
export function rowUrl(storage: Storage, { table, partition, row }: Address): string {
  return `${tableUrl(storage, table)}(PartitionKey='${quoted(partition)}',RowKey='${quoted(row)}')`;
}

/** Where the rows of a partition are read, with the signature and a filter in the query, or one is added. */
export function tableUrl({ tables }: Storage, table: string): string {
  return `${tables.url.replace(/\/$/, '')}/${table}`;
}

function quoted(key: string): string {
  return encodeURIComponent(key.replaceAll("'", "''"));
}
