import { accountKeySigner } from './account-key-signer.ts';
import type { Address } from './rows.ts';
import type { Storage } from './storage.ts';
import { userDelegationSigner } from './user-delegation-signer.ts';

/** Permissions for the rows of one partition, all or from `firstRow` to `lastRow` inclusive, for a while. */
export interface TableSasRequest {
  readonly table: string;
  readonly partition: string;
  readonly firstRow?: string;
  readonly lastRow?: string;
  /** A subset of `raud`, in this order. */
  readonly permissions: string;
  readonly startsAt: Date;
  readonly expiresAt: Date;
}

export interface TableSasSigner {
  /** The shared access signature as the query of a URL, without the question mark. */
  sign(request: TableSasRequest): Promise<string>;
}

/** Signs with the account key if there is one (the emulator), else with a key delegated to the app's identity. */
export function tableSasSigner({ connectionString, tables }: Storage): TableSasSigner {
  return connectionString
    ? accountKeySigner({ connectionString, endpoint: tables.url })
    : userDelegationSigner({ tables });
}

/** The URL of a row; the signature goes into its query. */
export function rowUrl(storage: Storage, { table, partition, row }: Address): string {
  return `${tableUrl(storage, table)}(PartitionKey='${quote(partition)}',RowKey='${quote(row)}')`;
}

/** The URL of a table, to read or add rows; the signature and a filter go into its query. */
export function tableUrl({ tables }: Storage, table: string): string {
  return `${tables.url.replace(/\/$/, '')}/${table}`;
}

function quote(key: string): string {
  return encodeURIComponent(key.replaceAll("'", "''"));
}
