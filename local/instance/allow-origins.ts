import { accountsOf, type Storage } from '../../lib/storage/storage.ts';

const EVERY_RULE = { allowedHeaders: '*', exposedHeaders: 'etag,x-ms-*', maxAgeInSeconds: 3600 };

/** The CORS rules of infra/modules/storage.bicep; test/infra compares them. */
export const TABLE_RULE = { ...EVERY_RULE, allowedMethods: 'GET,HEAD,POST,PUT,PATCH,MERGE,DELETE,OPTIONS' };
export const BLOB_RULE = { ...EVERY_RULE, allowedMethods: 'GET,HEAD,PUT,OPTIONS' };

/** Allows pages of these origins, and of no others, to use tables and blobs with a signature. */
export async function allowOrigins(storage: Storage, origins: readonly string[]): Promise<void> {
  const rules = <Rule>(rule: Rule) => (origins.length === 0 ? [] : [{ ...rule, allowedOrigins: origins.join(',') }]);
  const allowed = accountsOf(storage).flatMap(({ tables, blobs }) => [
    tables.setProperties({ cors: rules(TABLE_RULE) }),
    blobs.setProperties({ cors: rules(BLOB_RULE) }),
  ]);
  await Promise.all(allowed);
}
