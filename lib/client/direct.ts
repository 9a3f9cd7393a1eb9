import type { Stored, Values } from '../base/values.ts';
import type { FieldDescription } from '../define/declaration/model-description.ts';
import type { Grant } from './client-types.ts';
import type { EntityDescription } from './paths.ts';
import type { Transport } from './transport.ts';

/**
 * Reads the caller's own rows directly from Table storage, with grants of the API. A read returns undefined if the API has to
 * be asked: the row is not the caller's own or of an older version, the app decrypts a field, or the grant fails. Loaded at first
 * use, because most pages do without.
 */
export interface Direct {
  grant(name: string, permissions?: string): Promise<Grant>;
  /** The entity, if the key is that of the caller's own row. */
  read(name: string, entity: EntityDescription, options: DirectRead): Promise<Stored<Values> | undefined>;
  /** A page of the partition, if it is the caller's own. */
  page(name: string, entity: EntityDescription, options: DirectPage): Promise<DirectResult | undefined>;
}

interface DirectRead {
  readonly key: Values;
  /** An ETag that the row had before. */
  readonly spent?: string | undefined;
  /** All without it. */
  readonly select: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface DirectPage extends DirectRead {
  readonly top: number | undefined;
  readonly after: string | undefined;
}

interface DirectResult {
  readonly items: readonly Values[];
  readonly next: string | undefined;
}

interface Kept {
  readonly grant: Promise<Grant>;
  readonly renewAt: number;
  readonly expiresAt: number;
}

const RENEW_BEFORE_MS = 120_000;
/** The clock of a device may be wrong, so a grant is kept for one to thirteen of its fifteen minutes. */
const KEEP_AT_LEAST_MS = 60_000;
const KEEP_AT_MOST_MS = 780_000;
const AFTER_FAILURE_MS = 60_000;
const JSON_ROWS = { accept: 'application/json;odata=nometadata' };

export function createDirect(transport: Transport): Direct {
  const grants = new Map<string, Kept>();
  /** When an entity may be read directly again after a failure. */
  const failed = new Map<string, number>();
  /** Entities whose next grant must be new: the API repeats a grant for some minutes, also after a move of the row. */
  const rejected = new Set<string>();

  function issue(name: string, permissions: string): Promise<Grant> {
    const id = `${name} ${permissions}`;
    const now = Date.now();
    const body = { entity: name, scope: 'own', permissions, ...(rejected.delete(name) ? { renew: true } : {}) };
    // While it would wait, the API can be asked.
    const request = { method: 'POST', path: '/grants', body, repeat: 'never' } as const;
    const grant = transport.send(request).then(({ text }): Grant => {
      const issued = JSON.parse(text);
      const left = Date.parse(issued.expiresAt) - now - RENEW_BEFORE_MS;
      const keep = Math.min(KEEP_AT_MOST_MS, Math.max(KEEP_AT_LEAST_MS, left));
      grants.set(id, {
        grant: Promise.resolve(issued),
        renewAt: now + keep,
        expiresAt: now + keep + RENEW_BEFORE_MS / 2,
      });
      return issued;
    });
    // While it is under way, all callers wait for it, or use the earlier one.
    const earlier = grants.get(id);
    const isEarlierValid = earlier !== undefined && earlier.expiresAt > now;
    const pending = isEarlierValid
      ? { ...earlier, renewAt: earlier.expiresAt }
      : { grant, renewAt: Number.POSITIVE_INFINITY, expiresAt: 0 };
    grants.set(id, pending);
    grant.catch(() => grants.get(id) === pending && grants.delete(id));
    return pending.grant;
  }

  function grant(name: string, permissions = 'r'): Promise<Grant> {
    const kept = grants.get(`${name} ${permissions}`);
    return kept && kept.renewAt > Date.now() ? kept.grant : issue(name, permissions);
  }

  /** Runs a read with a grant. Its failure is the reason to ask the API, for a while without a further try. */
  async function attempt<Result>(
    name: string,
    { signal, after }: { readonly signal?: AbortSignal | undefined; readonly after?: string | undefined },
    read: (grant: Grant) => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    if (after === undefined && (failed.get(name) ?? 0) > Date.now()) return undefined;
    try {
      return await read(await grant(name));
    } catch (error) {
      // The API cannot continue a list that storage began.
      if (signal?.aborted || after !== undefined) throw error;
      // The row may have been moved or deleted, or the grant does not work: the next grant is a new one.
      rejected.add(name);
      grants.delete(`${name} r`);
      failed.set(name, Date.now() + AFTER_FAILURE_MS);
      return undefined;
    }
  }

  return {
    grant,
    read: (name, entity, { key, select: names, signal, spent }) =>
      attempt(name, { signal }, async ({ url, token, key: own, fields: visible }) => {
        const fields = names ?? visible;
        if (!entity.key.fields.every((field) => String(own[field]) === String(key[field]))) return undefined;
        if (!isReadable(entity, fields, visible)) return undefined;
        const select = encodeURIComponent([...fields, ...SYSTEM].join(','));
        const reply = await transport.sendToStorage(`${url}?$select=${select}&${token}`, {
          headers: JSON_ROWS,
          signal,
        });
        const values = toValues(name, entity, fields, JSON.parse(reply.text));
        const etag = reply.headers.get('etag') ?? '';
        if (etag === spent) throw new Error('The row has moved to another account, and is here as it was.');
        return values && { etag, values };
      }),
    page: (name, entity, { key, select, top = 100, after, signal }) =>
      attempt(name, { signal, after }, async ({ url, token, partition, key: own, fields: visible }) => {
        const { fields: inPartition } = entity.key.partition;
        const isOwn = !url.endsWith(')') && inPartition.every((field) => String(own[field]) === String(key[field]));
        const fields = select ?? visible;
        // Rows of an older version may be on any page.
        if (!isOwn || !isReadable(entity, fields, visible) || entity.version > 1) return undefined;
        const filter = rangeFilter(name, entity, partition);
        const position = after === undefined ? '' : `&${after}`;
        const query = `$filter=${encodeURIComponent(filter)}&$select=${[...fields, ...SYSTEM].join(',')}&$top=${top}`;
        const reply = await transport.sendToStorage(`${url}()?${query}${position}&${token}`, {
          headers: JSON_ROWS,
          signal,
        });
        const rows: Values[] = JSON.parse(reply.text).value;
        const items = rows.map((row) => toValues(name, entity, fields, row)).filter((values) => values !== undefined);
        return { items, next: nextPosition(reply.headers) };
      }),
  };
}

/** The properties that tell an entity from other rows. */
const SYSTEM = ['EntityType', 'EntityVersion', 'SourceRow'];

/** Only the app decrypts, and loads texts from blobs. */
function isReadable({ fields }: EntityDescription, selected: readonly string[], visible: readonly string[]): boolean {
  return selected.every((field) => visible.includes(field) && !fields[field]?.encrypted && !fields[field]?.large);
}

function rangeFilter(name: string, { key, access }: EntityDescription, partition: string): string {
  const [head = ''] = key.row.template.split('{');
  const last = head.at(-1);
  const after = last && head.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1);
  return [
    `PartitionKey eq ${quote(partition)}`,
    ...(after ? [`RowKey ge ${quote(head)}`, `RowKey lt ${quote(after)}`] : []),
    // A row that a client wrote may have any type.
    ...(access.writtenByClients ? [] : [`EntityType eq ${quote(name)}`]),
  ].join(' and ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function nextPosition(headers: Headers): string | undefined {
  const names = ['NextPartitionKey', 'NextRowKey'];
  const given = names.flatMap((name) => {
    const value = headers.get(`x-ms-continuation-${name}`);
    return value === null ? [] : [`${name}=${encodeURIComponent(value)}`];
  });
  return given.length > 0 ? given.join('&') : undefined;
}

/** Undefined for a row that is no entity for readers, and for one that only the app can upgrade. */
function toValues(name: string, entity: EntityDescription, fields: readonly string[], row: Values): Values | undefined {
  const { access, version } = entity;
  const isOwn = access.writtenByClients || (row.EntityType === name && row.SourceRow === undefined);
  if (!isOwn || Number(row.EntityVersion ?? version) !== version) return undefined;
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const description = entity.fields[field];
    const stored = row[field] ?? undefined;
    if (!description) continue;
    const value = stored === undefined ? undefined : toValue(description, stored);
    if (access.writtenByClients && !isValid(description, stored, value)) return undefined;
    if (value !== undefined) values[field] = value;
  }
  return values;
}

/** Nothing has validated a row that a client wrote. The API leaves out an invalid one. */
function isValid({ optional, schema }: FieldDescription, stored: unknown, value: unknown): boolean {
  return stored === undefined ? optional : value !== undefined && matches(schema, value);
}

function toValue({ type }: FieldDescription, stored: unknown): unknown {
  if (type === 'Boolean') return typeof stored === 'boolean' ? stored : undefined;
  // Storage sends 64-bit numbers as texts.
  const value = type === 'Int64' ? Number(stored) : stored;
  if (type === 'Int64' || type === 'Int32' || type === 'Double') return Number.isFinite(value) ? value : undefined;
  if (typeof stored !== 'string') return undefined;
  return type === 'Json' ? JSON.parse(stored) : stored;
}

/** The rules of a JSON Schema that a text or a number can break. */
function matches(schema: FieldDescription['schema'], value: unknown): boolean {
  const { pattern, minLength, maxLength, minimum, maximum, enum: choices, anyOf } = schema;
  if (anyOf !== undefined) return (anyOf as FieldDescription['schema'][]).some((one) => matches(one, value));
  if (Array.isArray(choices) && !choices.includes(value)) return false;
  const [size, least, most] =
    typeof value === 'string' ? [value.length, minLength, maxLength] : [Number(value), minimum, maximum];
  if (typeof value === 'string' && typeof pattern === 'string' && !new RegExp(pattern, 'u').test(value)) return false;
  return size >= Number(least ?? size) && size <= Number(most ?? size);
}
