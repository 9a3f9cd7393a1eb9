import { randomBytes } from 'node:crypto';
import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';
import { TableClient, type TableEntity } from '@azure/data-tables';
import type { ContainerClient } from '@azure/storage-blob';
import { startAzurite } from '../../local/instance/azurite.ts';
import { apiCalls } from '../kit/api.ts';
import { type Engine, engineCore } from '../kit/engine.ts';
import { operationsModel } from '../kit/operations.ts';
import { type Storage, storageAccounts, storageTables } from '../kit/storage.ts';
import { model } from './growth-model.ts';
import { createPlainCode, createPlainResources, type PlainCode } from './plain.ts';

/** The store in this process, and plain clients of the same tables, on an emulator of their own. */
export interface GrowthWorld {
  readonly store: ReturnType<typeof openStore>;
  readonly storage: Storage;
  /** Of the product, in both directions, so far. */
  readonly bytes: () => number;
  /** A plain client of a table that the model declares. */
  plainTable(name: string): TableClient;
  /** Plain code, which names tables as they are in storage. */
  readonly plainCode: PlainCode;
  /** The container of the plain code's long lists. */
  readonly plainBlobs: ContainerClient;
  stop(): Promise<void>;
}

export async function openGrowthWorld(): Promise<GrowthWorld> {
  // In memory: an emulator on disk stalls for seconds to write out hundreds of thousands of rows.
  const account = { name: 'growth', key: randomBytes(64).toString('base64') };
  const azurite = await startAzurite({ folder: undefined, accounts: [account] });
  const connectionString = azurite.connectionString();
  const { httpClient, bytes } = countBytes();
  const storage = storageAccounts.openStorage({ connectionString, httpClient }, model.prefix);
  await storageTables.provision(storage, operationsModel.resourcesOf(model.list, Date.now()));
  const plainTables = new Map<string, TableClient>();
  return {
    store: openStore(engineCore.createEngine(storage)),
    storage,
    bytes,
    plainTable(name) {
      const { tableName } = storage.table(name);
      const known =
        plainTables.get(name) ??
        TableClient.fromConnectionString(connectionString, tableName, { allowInsecureConnection: true });
      plainTables.set(name, known);
      return known;
    },
    plainBlobs: await createPlainResources(connectionString),
    plainCode: createPlainCode(connectionString),
    stop: azurite.stop,
  };
}

function openStore(engine: Engine) {
  // Without the audit log, which costs each write one transaction at every size.
  return apiCalls.createStore<typeof model.entities>(model.list, {
    engine: async () => engine,
    record: (_by, write) => write(),
  });
}

function countBytes(inner = createDefaultHttpClient()): { httpClient: HttpClient; bytes: () => number } {
  let bytes = 0;
  const httpClient: HttpClient = {
    async sendRequest(request) {
      const response = await inner.sendRequest(request);
      const { body } = request;
      if (typeof body === 'string') bytes += Buffer.byteLength(body);
      else bytes += Number(request.headers.get('content-length') ?? 0);
      bytes += response.bodyAsText ? Buffer.byteLength(response.bodyAsText) : 0;
      if (!response.bodyAsText) bytes += Number(response.headers.get('content-length') ?? 0);
      return response;
    },
  };
  return { httpClient, bytes: () => bytes };
}

/** A row as the SDK sends it. */
export function withoutSystemProperties({
  etag: _,
  timestamp: __,
  ...row
}: TableEntity & { etag?: string }): TableEntity {
  return row as TableEntity;
}
