import { ROW_TYPES } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { jsonText } from '../../base/json-text.ts';
import { onceFor } from '../../base/once.ts';
import { hasValue, mapValues, pick, type Values, WrongValue } from '../../base/values.ts';
import type { Properties, Row } from '../../storage/rows.ts';
import type { Snapshot, SystemProperties } from '../declaration/change.ts';
import type { ColumnType } from '../declaration/declaration.ts';
import type { ColumnForm, Entity } from '../declaration/entity.ts';
import { fieldSchemas } from '../schema/field-schema.ts';
import { storedTextType } from './existing-rows.ts';

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
export const MAX_STRING_LENGTH = 32_768;
const MAX_ENTITY_BYTES = 1_048_576;
/** In base64. */
const MAX_BINARY_LENGTH = 4 * Math.ceil(65_536 / 3);
/** Keys of 1 KiB each, the timestamp, and 8 bytes and a type for each property. */
const ENTITY_OVERHEAD = 2_200;
const PROPERTY_OVERHEAD = 16;
/** The service allows 255 with PartitionKey, RowKey and Timestamp. The rest is for system properties. */
export const MAX_PROPERTIES = 240;
/** The type of a deleted entity's row until the reconciler removes the row. Ranges filter by type and never return it. */
export const TOMBSTONE = ROW_TYPES.tombstone;
/** The type of a row under the key of an entity that does not exist. It keeps the fields that other entities have set. */
export const PLACEHOLDER = ROW_TYPES.placeholder;

/** The stored form of an entity. Throws `too-large`, which names the field that does not fit. */
export function toProperties(
  entity: Entity,
  values: Values,
  system: Omit<SystemProperties, 'EntityType' | 'EntityVersion'>,
): Properties {
  const stored = fieldsToProperties(entity, values);
  const properties = { ...stored, ...system, EntityType: entity.name, EntityVersion: entity.version };
  checkRowSize(entity.existing ? sizedAsStored(entity, properties) : properties);
  return properties;
}

/** The stored form of some fields, without system properties. Omits fields without a value. Throws as `toProperties` does. */
export function fieldsToProperties(entity: Entity, values: Values): Properties {
  const known = formsOf(entity);
  const properties: (readonly [string, unknown])[] = [];
  for (const [field, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    if (value instanceof WrongValue) {
      properties.push(...Object.entries(value.stored));
      continue;
    }
    const { type, forms } = known.get(field) ?? { type: 'Json', forms: formsOfField(entity, field) };
    if (forms.length === 0) properties.push([field, toProperty(entity, field, value, type)]);
    // A long text takes several properties.
    else properties.push(...encode(entity, field, value, forms, type));
  }
  if (properties.length > MAX_PROPERTIES)
    throw new RowkeyError(
      'too-large',
      `The entity takes ${properties.length} properties; one row holds ${MAX_PROPERTIES}.`,
      {
        accepted: `at most ${MAX_PROPERTIES} properties, one for each field with a value and each further part of a long text`,
      },
    );
  return Object.fromEntries(properties);
}

type Form = ColumnForm;

function encode(entity: Entity, field: string, value: unknown, forms: readonly Form[], type: ColumnType) {
  for (const form of forms) {
    const encoded = form.encode(entity, field, value);
    if (encoded) return encoded;
  }
  return [[field, toProperty(entity, field, value, type)] as const];
}

/** A field of an earlier declaration. */
const UNDECLARED = { type: 'String', container: undefined, forms: [] } as const;

/** The declared fields, each with its type and with the patterns that store it. */
const formsOf = onceFor(
  (entity: Entity) =>
    new Map(
      Object.entries(entity.columns).map(([field, type]) => {
        const container = type === 'Json' ? fieldSchemas(entity.schema)[field]?.type : undefined;
        return [field, { type, container, forms: formsOfField(entity, field) }];
      }),
    ),
);

function formsOfField(entity: Entity, field: string): readonly Form[] {
  return entity.features.flatMap(({ stored }) => (stored?.columns.names(entity, field) ? [stored.columns] : []));
}

/** How a pattern stores a field; undefined for a field that is one property of its type. */
export function columnFormOf(entity: Entity, field: string): Form | undefined {
  return (formsOf(entity).get(field)?.forms ?? formsOfField(entity, field))[0];
}

/** The properties that store the fields, for a projection, and the properties that tell an entity from other rows. */
export function storedNames(entity: Entity, fields: readonly string[]): string[] {
  const names = fields.flatMap((field) => columnFormOf(entity, field)?.names(entity, field) ?? [field]);
  const ofMoves = entity.formerKey ? ['MovingFrom'] : [];
  return [...names, 'EntityType', 'SourceRow', ...ofMoves, ...(entity.furtherRows ? ['FurtherRows', 'WriteId'] : [])];
}

/** The declared fields of a row, without system properties. */
export function toValues(entity: Entity, properties: Properties): Values {
  const version = storedVersion(entity, properties);
  return version < entity.version ? upgradeValues(entity, properties, version) : currentValues(entity, properties);
}

/** The declared fields of a row that the current version has stored. */
export function currentValues(entity: Entity, properties: Properties): Values {
  const values: Record<string, unknown> = {};
  for (const [field, { type, container, forms }] of formsOf(entity)) {
    const property = properties[field];
    if (property instanceof WrongValue) {
      values[field] = property;
      continue;
    }
    const value = forms[0] ? forms[0].decode(entity, field, properties) : fromProperty(type, property);
    if (value === undefined) continue;
    const isRight = forms[0] ? !isNumberLike(property) : isOfColumn({ type, container }, property, value);
    values[field] = isRight ? value : new WrongValue({ [field]: property });
  }
  return values;
}

/** No field with a form of its own is stored as a number or a Boolean. */
function isNumberLike(property: unknown): boolean {
  return typeof property === 'number' || typeof property === 'boolean' || typeof property === 'bigint';
}

/** True if a property, which was read as this value, is of the type of its column. `container` is the type of all values of JSON. */
function isOfColumn(
  { type, container }: { readonly type: ColumnType; readonly container: string | undefined },
  property: unknown,
  value: unknown,
): boolean {
  switch (type) {
    case 'String':
      return typeof value === 'string' && !(property instanceof Uint8Array);
    case 'Boolean':
      return typeof value === 'boolean';
    case 'Json':
      if (container === 'array') return Array.isArray(value);
      return typeof property === 'string' && (container !== 'object' || (typeof value === 'object' && value !== null));
    case 'Double':
      return typeof value === 'number' && Number.isFinite(value);
    default:
      return Number.isInteger(value);
  }
}

/** True if a read takes the value of a field, once it is stored, for one of its type. */
export function fitsColumn(entity: Entity, field: string, value: unknown): boolean {
  const column = formsOf(entity).get(field);
  // A list or an object is stored as a text.
  return !column || isOfColumn(column, column.type === 'Json' ? '' : value, value);
}

/** The version of the declaration that the row was stored with, or the current version if the row has no valid one. */
export function storedVersion(entity: Entity, { EntityVersion }: Properties): number {
  const version = Number(EntityVersion ?? entity.version);
  return Number.isInteger(version) && version >= 1 ? version : entity.version;
}

/**
 * Converts a row of an older declaration. The upgrade also receives fields that are no longer declared. It cannot change a key field:
 * the row would have another key than the entity.
 */
function upgradeValues(entity: Entity, properties: Properties, from: number): Values {
  const fields = Object.keys(properties).filter((name) => /^[a-z]/.test(name));
  const stored: Values = Object.fromEntries(
    fields.map((field) => {
      const {
        type,
        forms: [form],
      } = formsOf(entity).get(field) ?? UNDECLARED;
      return [field, form ? form.decode(entity, field, properties) : fromProperty(type, properties[field])];
    }),
  );
  return upgradeFrom(entity, stored, from);
}

/** The values of an earlier version as the declaration has them. Throws `needs-repair` if an upgrade fails. */
export function upgradeFrom(entity: Entity, stored: Values, from: number): Values {
  let values = stored;
  for (let version = from; version < entity.version; version += 1)
    try {
      values = entity.upgrades[version]?.(values) ?? values;
    } catch (cause) {
      // A row that no earlier version wrote. The error of the function may have a value of the row.
      const name = cause instanceof Error ? cause.name : 'an error';
      const what = `An entity of ${entity.name} cannot be upgraded from version ${version}: ${name}.`;
      throw new RowkeyError('needs-repair', what, { cause });
    }
  // A number that was stored as a text is the same key.
  const isChanged = (field: string) => hasValue(stored[field]) && String(stored[field]) !== String(values[field]);
  return { ...pick(values, Object.keys(entity.columns)), ...pick(stored, entity.keyFields.filter(isChanged)) };
}

/** Reads the state of an entity from its row. The caller has checked that the row is of this type and not a copy. */
export function toSnapshot(entity: Entity, row: Row | undefined): Snapshot {
  if (!row) return { state: 'absent' };
  const { etag, properties } = row;
  // Ignore system properties of rows that a client may have written: with them a client could hide or block the row.
  if (entity.isWrittenByClients) {
    const { WriteId = '', Incarnation = '' } = properties;
    const system = { WriteId: String(WriteId), Incarnation: String(Incarnation) };
    const type = { EntityType: entity.name, EntityVersion: entity.version };
    return { state: 'live', etag, values: valuesIfAny(entity, properties), system: { ...type, ...system } };
  }
  if (properties.EntityType === TOMBSTONE) {
    const { WriteId, MovedTo = '' } = properties;
    return { state: 'tombstone', etag, writeId: String(WriteId), movedTo: String(MovedTo) };
  }
  if (properties.EntityType === PLACEHOLDER)
    return { state: 'placeholder', etag, writeId: String(properties.WriteId), kept: properties };
  const further = row.further ? { further: row.further } : {};
  return { state: 'live', etag, values: toValues(entity, properties), system: systemOf(properties), ...further };
}

/** An upgrade may throw on values that a client wrote, because it expects an older declaration's values. */
function valuesIfAny(entity: Entity, properties: Properties): Values {
  try {
    return toValues(entity, properties);
  } catch {
    return {};
  }
}

function systemOf(properties: Properties): SystemProperties {
  const system: Record<string, unknown> & SystemProperties = {
    EntityType: String(properties.EntityType),
    EntityVersion: Number(properties.EntityVersion),
    WriteId: String(properties.WriteId),
    Incarnation: String(properties.Incarnation),
  };
  for (const name of ['DenormalizedTo', 'MovingFrom', 'Leaving', 'Left', 'FurtherRows', 'Carried'])
    if (typeof properties[name] === 'string' && properties[name] !== '') system[name] = properties[name];
  return system;
}

function toProperty(entity: Entity, field: string, value: unknown, type: ColumnType): unknown {
  if (type === 'Double' || type === 'Int64') return { type, value: String(value) };
  if (type === 'Boolean' || type === 'Int32') return value;
  const text = type === 'Json' ? jsonText(value) : String(value);
  const longest = isBinary(entity, field) ? MAX_BINARY_LENGTH : MAX_STRING_LENGTH;
  if (text.length <= longest) return text;
  throw tooLong(field, longest);
}

/** True for a field whose base64 is stored as bytes. */
function isBinary(entity: Entity, field: string): boolean {
  return storedTextType(entity, field) === 'Binary';
}

export function tooLong(field: string, length: number): RowkeyError {
  return new RowkeyError('too-large', `The field ${field} is longer than it can be; a field may be declared large.`, {
    field,
    accepted: `at most ${length} characters`,
  });
}

/** Estimates the size as the service does. The emulator accepts any size. */
export function checkRowSize(properties: Properties): void {
  if (rowSize(properties) > MAX_ENTITY_BYTES)
    throw new RowkeyError('too-large', 'The entity is larger than Table storage holds.', {
      accepted: `at most ${MAX_ENTITY_BYTES} bytes, in which a character takes two`,
    });
}

/** The properties of a row of another program's table, those that no field names by themselves, and bytes as they are. */
function sizedAsStored(entity: Entity, { Carried: carried, ...properties }: Properties): Properties {
  const toBytes = (value: unknown) => Buffer.from(String(value), 'base64');
  const unknown: Properties = typeof carried === 'string' ? JSON.parse(carried) : {};
  return {
    ...mapValues(properties, (value, field) => (isBinary(entity, field) ? toBytes(value) : value)),
    ...mapValues(unknown, (value) => (Object(value).type === 'Binary' ? toBytes(Object(value).value) : value)),
  };
}

function rowSize(properties: Properties): number {
  let size = ENTITY_OVERHEAD;
  for (const [name, value] of Object.entries(properties)) size += propertySize(name, value);
  return size;
}

/** At least the bytes of a property in a row. */
export function propertySize(name: string, value: unknown): number {
  const text = typeof value === 'string' ? 2 * value.length : 0;
  const bytes = value instanceof Uint8Array ? value.length : text;
  return PROPERTY_OVERHEAD + 2 * name.length + bytes;
}

/**
 * Reads a property, which has its type beside it if it was read or is about to be written. A property of another type than
 * the declared one keeps its value in a form that JSON can hold. Never throws, because rows are also changed by hand.
 */
function fromProperty(type: ColumnType, property: unknown): unknown {
  if (property === undefined || property === null) return undefined;
  const isTyped = typeof property === 'object' && 'value' in property;
  const stored = isTyped ? property.value : property;
  const isNumber = type === 'Int64' || type === 'Double' || type === 'Int32';
  if (isNumber && (isTyped || typeof stored === 'bigint')) return Number(stored);
  if (type === 'Json' && typeof stored === 'string') return parseJson(stored);
  if (typeof stored === 'bigint') return Number.isSafeInteger(Number(stored)) ? Number(stored) : String(stored);
  if (stored instanceof Uint8Array) return Buffer.from(stored).toString('base64');
  if (stored instanceof Date) return Number.isNaN(stored.getTime()) ? null : stored.toISOString();
  return stored;
}

/** The parsed value, or the text itself if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Splits a text into parts of at most `length` UTF-16 code units. Never splits a surrogate pair. */
export function splitText(text: string, length: number): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = start + length;
    const isCut = /[\ud800-\udbff]/.test(text[end - 1] ?? '') && end < text.length;
    parts.push(text.slice(start, isCut ? end - 1 : end));
    start = isCut ? end - 1 : end;
  }
  return parts;
}

/** A value that the row does not contain itself. The engine passes it on unchanged. */

/** An encrypted property: see encrypted-properties.ts. */
export interface Sealed {
  readonly sealed: string;
}

/** A text that is too long for its row: see large-entities.ts. */
export interface InBlob {
  readonly blob: string;
  /** In UTF-16 code units. */
  readonly length: number;
  readonly sha256: string;
  /** How the blob is compressed, as in Content-Encoding. */
  readonly encoding?: 'br';
}

export function isSealed(value: unknown): value is Sealed {
  return typeof value === 'object' && value !== null && 'sealed' in value && typeof value.sealed === 'string';
}

export function isInBlob(value: unknown): value is InBlob {
  return typeof value === 'object' && value !== null && 'blob' in value && 'sha256' in value && 'length' in value;
}

export function isReference(value: unknown): value is Sealed | InBlob {
  return isSealed(value) || isInBlob(value);
}

/** A reference cannot be resolved: it was changed by hand, or its blob or key is gone. */
export class ReferenceBroken extends Error {
  override readonly name: string = 'ReferenceBroken';
}

/** The prefix of a property that refers to the blob of a field. */
export const BLOB_PREFIX = 'Blob_';
