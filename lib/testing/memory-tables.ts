import { type TableRights, tableRights } from './signatures.ts';
import { SortedMap } from './sorted-map.ts';
import { type Clock, StorageRejection, type StorageReply, type StorageRequest } from './storage-request.ts';
import { isAnnotated, type StoredValue, sizeOf, textual, toStoredValue } from './stored-value.ts';
import { type Property, parseFilter } from './table-filter.ts';
import { runTransaction } from './table-transaction.ts';

interface Entity {
  readonly partition: string;
  readonly row: string;
  readonly etag: string;
  readonly timestamp: StoredValue;
  readonly properties: ReadonlyMap<string, StoredValue>;
}

interface Table {
  readonly name: string;
  readonly partitions: SortedMap<SortedMap<Entity>>;
}

interface Key {
  readonly partition: string;
  readonly row: string;
}

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const MAX_KEY_LENGTH = 512;
const MAX_PROPERTIES = 252;
const MAX_NAME_LENGTH = 255;
const MAX_ENTITY_BYTES = 1_048_576;
const MAX_BODY_BYTES = 4 * 1_048_576;
const PAGE_SIZE = 1_000;
const ENTITY_PATH = /^(\w+)\(PartitionKey='((?:[^']|'')*)',RowKey='((?:[^']|'')*)'\)$/s;
const NOT_IN_KEYS = /[\p{Cc}/\\#?]/u;
const PROPERTY_NAME = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*$/u;
const TICKS_PER_MS = 10_000n;
/** Not properties of the entity: its keys, and what storage itself sets. */
const SYSTEM = /^(PartitionKey|RowKey|Timestamp|odata\..*|.*@odata\..*)$/;

/** Creates a Table service in memory. It handles a request at once, so each request is atomic. */
export function createMemoryTables({
  account,
  key,
  now,
}: {
  readonly account: string;
  readonly key: string;
  readonly now: Clock;
}) {
  const tables = new SortedMap<Table>();
  let lastTick = 0n;
  /** The reverse of each change, while a transaction runs. */
  let undo: (() => void)[] | undefined;

  /** Never returns a value twice, so that two writes of a millisecond have different ETags. */
  function nextTimestamp(): StoredValue {
    const tick = BigInt(Math.floor(now())) * TICKS_PER_MS;
    lastTick = tick > lastTick ? tick : lastTick + 1n;
    const ofMs = new Date(Number(lastTick / TICKS_PER_MS)).toISOString().slice(0, -1);
    return toStoredValue(`${ofMs}${String(lastTick % TICKS_PER_MS).padStart(4, '0')}Z`, 'DateTime');
  }

  function handle(request: StorageRequest): StorageReply {
    const { method, path } = request;
    if (request.body.length > MAX_BODY_BYTES)
      throw new StorageRejection(413, 'RequestBodyTooLarge', 'The request body is too large.');
    if (path === '$batch' && method === 'POST') return transact(request);
    const [, tableToDelete] = /^Tables\('(\w*)'\)$/.exec(path) ?? [];
    if (tableToDelete !== undefined && method === 'DELETE') return deleteTable(request, tableToDelete);
    if (/^Tables(\(\))?$/.test(path)) {
      if (method === 'POST') return createTable(request);
      if (method === 'GET') return listTables(request);
    }
    const [, ofEntity = '', partition = '', row = ''] = ENTITY_PATH.exec(path) ?? [];
    if (ofEntity) return handleEntity(request, ofEntity, { partition: unquote(partition), row: unquote(row) });
    const [, ofTable] = /^(\w+)(?:\(\))?$/.exec(path) ?? [];
    if (ofTable && method === 'POST') return insert(request, ofTable);
    if (ofTable && method === 'GET') return query(request, ofTable);
    throw new StorageRejection(501, 'NotImplemented', `The stand-in does not implement ${method} ${path}.`);
  }

  function createTable(request: StorageRequest): StorageReply {
    requireAccountKey(request);
    const { TableName: name = '' } = parseJson(request);
    if (typeof name !== 'string' || name.length < 3 || name.length > 63)
      throw new StorageRejection(400, 'OutOfRangeInput', 'The length of the table name is not within the limits.');
    if (!/^[A-Za-z][A-Za-z0-9]*$/.test(name) || name.toLowerCase() === 'tables')
      throw new StorageRejection(400, 'InvalidResourceName', 'The table name contains invalid characters.');
    if (tables.get(name.toLowerCase()))
      throw new StorageRejection(409, 'TableAlreadyExists', 'The table specified already exists.');
    tables.set(name.toLowerCase(), { name, partitions: new SortedMap() });
    const body = { 'odata.metadata': `${request.origin}/$metadata#Tables/@Element`, TableName: name };
    return created(request, JSON.stringify(body));
  }

  function deleteTable(request: StorageRequest, name: string): StorageReply {
    requireAccountKey(request);
    if (!tables.get(name.toLowerCase())) throw notFound();
    tables.delete(name.toLowerCase());
    return { status: 204 };
  }

  function listTables(request: StorageRequest): StorageReply {
    requireAccountKey(request);
    const { query: parameters, origin } = request;
    const filter = parameters.get('$filter');
    const matches = filter ? parseFilter(filter).matches : () => true;
    const names: string[] = [];
    const top = topOf(parameters);
    let next: string | undefined;
    for (const [key, { name }] of tables.from(decodeToken(parameters.get('NextTableName')))) {
      if (!matches((property) => (property === 'TableName' ? textual('String', name) : undefined))) continue;
      if (names.length === top) {
        next = key;
        break;
      }
      names.push(name);
    }
    const value = names.map((TableName) => ({ TableName }));
    return {
      status: 200,
      headers: { 'x-ms-continuation-nexttablename': next && encodeToken(next) },
      body: JSON.stringify({ 'odata.metadata': `${origin}/$metadata#Tables`, value }),
    };
  }

  function handleEntity(request: StorageRequest, table: string, at: Key): StorageReply {
    const { method } = request;
    if (method === 'GET') return read(request, table, at);
    if (method === 'DELETE') return remove(request, table, at);
    if (method === 'PUT' || method === 'PATCH' || method === 'MERGE') return write(request, table, at);
    throw new StorageRejection(
      405,
      'MethodNotAllowed',
      'The requested method is not allowed on the specified resource.',
    );
  }

  function open(request: StorageRequest, name: string): { readonly table: Table; readonly rights: TableRights } {
    const rights = tableRights(request, name, { account, key, now });
    const table = tables.get(name.toLowerCase());
    if (!table) throw new StorageRejection(404, 'TableNotFound', 'The table specified does not exist.');
    return { table, rights };
  }

  function read(request: StorageRequest, name: string, at: Key): StorageReply {
    const { table, rights } = open(request, name);
    rights.require('r');
    requireCovered(rights, at);
    const entity = find(table, at);
    if (!entity) throw notFound();
    return { status: 200, headers: { etag: entity.etag }, body: formatOne(request, table, entity) };
  }

  function query(request: StorageRequest, name: string): StorageReply {
    const { table, rights } = open(request, name);
    rights.require('r');
    const { query: parameters } = request;
    const filter = parseFilterOf(parameters);
    const start = {
      partition: decodeToken(parameters.get('NextPartitionKey')),
      row: decodeToken(parameters.get('NextRowKey')),
    };
    const top = topOf(parameters);
    const found: Entity[] = [];
    let next: Entity | undefined;
    for (const entity of rowsFrom(table, start, filter)) {
      if (!rights.covers(entity.partition, entity.row) || !filter.matches((property) => propertyOf(entity, property)))
        continue;
      if (found.length === top) {
        next = entity;
        break;
      }
      found.push(entity);
    }
    const format = formatter(request, table);
    const metadata =
      format.level === 'no' ? '' : `"odata.metadata":${JSON.stringify(`${request.origin}/$metadata#${table.name}`)},`;
    return {
      status: 200,
      headers: {
        'x-ms-continuation-nextpartitionkey': next && encodeToken(next.partition),
        'x-ms-continuation-nextrowkey': next && encodeToken(next.row),
      },
      body: `{${metadata}"value":[${found.map((entity) => format.entity(entity)).join(',')}]}`,
    };
  }

  function insert(request: StorageRequest, name: string): StorageReply {
    const { table, rights } = open(request, name);
    rights.require('a');
    const body = parseJson(request);
    const { PartitionKey: partition, RowKey: row } = body;
    if (typeof partition !== 'string' || typeof row !== 'string')
      throw new StorageRejection(
        400,
        'PropertiesNeedValue',
        'The values are not specified for all properties in the entity.',
      );
    const at = { partition, row };
    requireCovered(rights, at);
    const entity = toEntity(at, parseProperties(body));
    if (find(table, at)) throw new StorageRejection(409, 'EntityAlreadyExists', 'The specified entity already exists.');
    put(table, entity);
    return created(request, formatOne(request, table, entity), entity.etag);
  }

  /** Updates with `If-Match`; inserts or updates without it. */
  function write(request: StorageRequest, name: string, at: Key): StorageReply {
    const { table, rights } = open(request, name);
    const ifMatch = request.headers.get('if-match');
    rights.require('u');
    if (ifMatch === undefined) rights.require('a');
    requireCovered(rights, at);
    const given = parseProperties(parseJson(request));
    const former = find(table, at);
    checkMatch(former, ifMatch);
    const isMerge = request.method !== 'PUT';
    const entity = toEntity(at, isMerge && former ? new Map([...former.properties, ...given]) : given);
    put(table, entity);
    return { status: 204, headers: { etag: entity.etag } };
  }

  function remove(request: StorageRequest, name: string, at: Key): StorageReply {
    const { table, rights } = open(request, name);
    rights.require('d');
    requireCovered(rights, at);
    const ifMatch = request.headers.get('if-match');
    if (ifMatch === undefined) throw new StorageRejection(400, 'MissingRequiredHeader', 'If-Match is required.');
    const former = find(table, at);
    checkMatch(former, ifMatch);
    change(table, at, undefined);
    return { status: 204 };
  }

  function put(table: Table, entity: Entity): void {
    change(table, entity, entity);
  }

  function change({ partitions }: Table, { partition, row }: Key, entity: Entity | undefined): void {
    const rows = partitions.get(partition) ?? new SortedMap<Entity>();
    const former = rows.get(row);
    undo?.push(() => set(partitions, { partition, row }, former));
    set(partitions, { partition, row }, entity);
  }

  function toEntity({ partition, row }: Key, properties: ReadonlyMap<string, StoredValue>): Entity {
    checkKeys(partition, row);
    if (properties.size > MAX_PROPERTIES)
      throw new StorageRejection(400, 'TooManyProperties', 'The entity contains more properties than allowed.');
    // https://learn.microsoft.com/azure/storage/tables/table-storage-design-guide has the formula.
    let bytes = 4 + 2 * (partition.length + row.length);
    for (const [name, value] of properties) bytes += 8 + 2 * name.length + sizeOf(value);
    if (bytes > MAX_ENTITY_BYTES)
      throw new StorageRejection(400, 'EntityTooLarge', 'The entity is larger than the maximum allowed size (1MB).');
    const timestamp = nextTimestamp();
    const etag = `W/"datetime'${encodeURIComponent(JSON.parse(timestamp.json))}'"`;
    return { partition, row, etag, timestamp, properties };
  }

  function transact(request: StorageRequest): StorageReply {
    const steps: (() => void)[] = [];
    undo = steps;
    try {
      return runTransaction(request, {
        keyOf,
        run: handle,
        rollBack() {
          for (const step of steps.reverse()) step();
        },
      });
    } finally {
      undo = undefined;
    }
  }

  return { handle };
}

function set(partitions: Table['partitions'], { partition, row }: Key, entity: Entity | undefined): void {
  const rows = partitions.get(partition) ?? new SortedMap<Entity>();
  if (entity) rows.set(row, entity);
  else rows.delete(row);
  if (rows.size > 0) partitions.set(partition, rows);
  else partitions.delete(partition);
}

function find({ partitions }: Table, { partition, row }: Key): Entity | undefined {
  return partitions.get(partition)?.get(row);
}

function* rowsFrom({ partitions }: Table, start: Key, filter: ReturnType<typeof parseFilterOf>): Generator<Entity> {
  const first = [start.partition, filter.partition ?? filter.fromPartition].toSorted()[1] ?? '';
  for (const [partition, rows] of partitions.from(first)) {
    if (filter.partition !== undefined && partition !== filter.partition) return;
    const from = partition === start.partition && start.row > filter.from ? start.row : filter.from;
    for (const [row, entity] of rows.from(from)) {
      if (filter.to !== undefined && row > filter.to) break;
      yield entity;
    }
  }
}

function parseFilterOf(parameters: URLSearchParams) {
  const text = parameters.get('$filter');
  if (text) return parseFilter(text);
  return { matches: (_: Property) => true, partition: undefined, fromPartition: '', from: '', to: undefined };
}

function propertyOf(entity: Entity, name: string): StoredValue | undefined {
  if (name === 'PartitionKey') return textual('String', entity.partition);
  if (name === 'RowKey') return textual('String', entity.row);
  return name === 'Timestamp' ? entity.timestamp : entity.properties.get(name);
}

function checkMatch(former: Entity | undefined, ifMatch: string | undefined): void {
  if (ifMatch === undefined) return;
  if (ifMatch !== '*' && !/^W\/"[^"]*"$/i.test(ifMatch))
    throw new StorageRejection(400, 'InvalidInput', `The etag value '${ifMatch}' is not valid.`);
  if (!former) throw notFound();
  if (ifMatch !== '*' && decodeURIComponent(ifMatch) !== decodeURIComponent(former.etag))
    throw new StorageRejection(
      412,
      'UpdateConditionNotSatisfied',
      'The update condition specified in the request was not satisfied.',
    );
}

function checkKeys(...keys: readonly string[]): void {
  for (const key of keys) {
    if (key.length > MAX_KEY_LENGTH) throw new StorageRejection(400, 'KeyValueTooLarge', 'A key is longer than 1 KiB.');
    if (NOT_IN_KEYS.test(key))
      throw new StorageRejection(400, 'OutOfRangeInput', 'A key contains a character that is not allowed.');
  }
}

function requireCovered(rights: TableRights, { partition, row }: Key): void {
  if (!rights.covers(partition, row))
    throw new StorageRejection(403, 'AuthorizationFailure', 'The signature does not cover this row.');
}

function requireAccountKey({ headers }: StorageRequest): void {
  if (!headers.get('authorization'))
    throw new StorageRejection(403, 'AuthorizationFailure', 'A signature for a table does not permit this operation.');
}

function notFound(): StorageRejection {
  return new StorageRejection(404, 'ResourceNotFound', 'The specified resource does not exist.');
}

function parseJson({ body }: StorageRequest): Record<string, unknown> {
  try {
    return Object(JSON.parse(body.toString() || '{}'));
  } catch {
    throw new StorageRejection(400, 'InvalidInput', 'The body is not valid JSON.');
  }
}

/** A property without a value is not stored. */
function parseProperties(body: Record<string, unknown>): Map<string, StoredValue> {
  const properties = new Map<string, StoredValue>();
  for (const [name, given] of Object.entries(body)) {
    if (given === null || SYSTEM.test(name)) continue;
    if (name.length > MAX_NAME_LENGTH)
      throw new StorageRejection(400, 'PropertyNameTooLong', 'A property name is too long.');
    if (!PROPERTY_NAME.test(name))
      throw new StorageRejection(400, 'PropertyNameInvalid', 'A property name is invalid.');
    properties.set(name, toStoredValue(given, body[`${name}@odata.type`]));
  }
  return properties;
}

/** A response of 201 has the entity, and one of 204 has no body. */
function created({ headers }: StorageRequest, body: string, etag?: string): StorageReply {
  const prefer = headers.get('prefer') ?? 'return-content';
  const applied = { etag, 'preference-applied': prefer };
  return prefer === 'return-no-content' ? { status: 204, headers: applied } : { status: 201, headers: applied, body };
}

function formatOne(request: StorageRequest, table: Table, entity: Entity): string {
  const format = formatter(request, table);
  const metadata = `${request.origin}/$metadata#${table.name}/@Element`;
  return format.entity(entity, format.level === 'no' ? {} : { 'odata.metadata': metadata });
}

function formatter({ headers, query, origin }: StorageRequest, { name }: Table) {
  const accepted = query.get('$format') ?? headers.get('accept') ?? '';
  const level = /odata=(full|no)metadata/.exec(accepted)?.[1] ?? 'minimal';
  const selected =
    query
      .get('$select')
      ?.split(',')
      .map((word) => word.trim())
      .filter(Boolean) ?? [];
  const select = selected.length > 0 ? new Set(selected) : undefined;
  const account = origin.slice(origin.lastIndexOf('/') + 1);
  return {
    level,
    entity(entity: Entity, more: Record<string, string> = {}): string {
      const { partition, row, etag, timestamp, properties } = entity;
      const link = `${name}(PartitionKey='${partition}',RowKey='${row}')`;
      const annotations = {
        ...more,
        ...(level === 'full' && { 'odata.type': `${account}.${name}`, 'odata.id': `${origin}/${link}` }),
        ...(level !== 'no' && { 'odata.etag': etag }),
        ...(level === 'full' && { 'odata.editLink': link }),
      };
      const parts = Object.entries(annotations).map(([key, text]) => `"${key}":${JSON.stringify(text)}`);
      const add = (key: string, value: StoredValue, isNamed = isAnnotated(value)) => {
        if (select && !select.has(key)) return;
        if (isNamed && level !== 'no') parts.push(`"${key}@odata.type":"Edm.${value.type}"`);
        parts.push(`"${key}":${value.json}`);
      };
      add('PartitionKey', textual('String', partition));
      add('RowKey', textual('String', row));
      add('Timestamp', timestamp, level === 'full');
      for (const [key, value] of properties) add(key, value);
      return `{${parts.join(',')}}`;
    },
  };
}

function topOf(parameters: URLSearchParams): number {
  const text = parameters.get('$top');
  if (text === null) return PAGE_SIZE;
  const top = Number(text);
  if (!Number.isInteger(top) || top < 1 || top > PAGE_SIZE)
    throw new StorageRejection(400, 'InvalidInput', `The value of $top must be from 1 to 1000, not ${text}.`);
  return top;
}

/** The key of the row that an action of a transaction names. */
function keyOf(action: StorageRequest): Key {
  if (action.method === 'POST') {
    const { PartitionKey, RowKey } = parseJson(action);
    return { partition: String(PartitionKey), row: String(RowKey) };
  }
  const [, , partition = '', row = ''] = ENTITY_PATH.exec(action.path) ?? [];
  return { partition: unquote(partition), row: unquote(row) };
}

function unquote(key: string): string {
  return key.replaceAll("''", "'");
}

function encodeToken(key: string): string {
  return Buffer.from(key).toString('base64');
}

function decodeToken(token: string | null): string {
  return Buffer.from(token ?? '', 'base64').toString();
}
