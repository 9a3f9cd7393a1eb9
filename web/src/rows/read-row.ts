import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { EntityClient, Stored } from '../api/entity-client.ts';
import { type Entity, type Roles, readableFields, type Values } from '../api/model.ts';

/** Reads a row. A field that cannot be read is null, as in a list: the API rejects the read and names the field. */
export async function readRow(
  client: Pick<EntityClient, 'get'>,
  {
    entity,
    user,
    rowKey,
    signal,
  }: { readonly entity: Entity; readonly user: Roles; readonly rowKey: Values; readonly signal: AbortSignal },
): Promise<Stored | undefined> {
  const apart = Object.values(entity.split).flat();
  const listed = readableFields(entity, user).filter((field) => !apart.includes(field));
  const lost: Record<string, null> = {};
  for (;;) {
    const select = listed.filter((field) => !Object.hasOwn(lost, field));
    try {
      const stored = await client.get(rowKey, { signal, ...(select.length < listed.length ? { select } : {}) });
      return stored && { ...stored, values: { ...stored.values, ...lost } };
    } catch (error) {
      const { code, problem } = error instanceof RowkeyClientError ? error : {};
      const field = code === 'needs-repair' ? problem?.field : undefined;
      if (field === undefined || !select.includes(field)) throw error;
      lost[field] = null;
    }
  }
}
