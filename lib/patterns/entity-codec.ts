import { RowkeyError } from '../errors.ts';
import type { Properties, Row } from '../storage/rows.ts';
import { type ColumnType, type Entity, pick, type Values } from './entity.ts';

/** Properties of ours begin with a capital; a schema's fields cannot. */
export interface SystemProperties {
  /** Which entity a row is, and of which version of its declaration (heterogeneous entity types pattern). */
  readonly EntityType: string;
  readonly EntityVersion: number;
  /** The write that made the row what it is: how a writer recognises its own after a lost reply. */
  readonly WriteId: string;
  /** One life of an entity from its creation on, through moves, to tell it from a later one of the same key. */
  readonly Incarnation: string;
  /** The row key, in this partition, of the entity that holds copies of this one's fields. */
  readonly DenormalizedTo?: string;
  /** Set while an entity arrives from another partition: readers see it, writers wait. */
  readonly MovingFrom?: string;
}

/** What is known of an entity's row: the state a change is planned from. */
export type Snapshot =
  | { readonly state: 'absent' }
  /** With `movedTo`, the id of the operation that moved the entity and still has to open it where it arrived. */
  /** Keeps the counts of an entity that does not exist. */
  | { readonly state: 'placeholder'; readonly etag: string; readonly writeId: string; readonly counts: Values }
  | { readonly state: 'tombstone'; readonly etag: string; readonly writeId: string; readonly movedTo: string }
  | { readonly state: 'live'; readonly etag: string; readonly values: Values; readonly system: SystemProperties };

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model */
const MAX_STRING_LENGTH = 32_768;
/** The service allows 255 with PartitionKey, RowKey and Timestamp; some are for our own. */
const MAX_PROPERTIES = 240;
const ENTITY_VERSION = 1;
/** What a deleted entity's row is until the reconciler takes it away; a range filters by type and so never meets one. */
export const TOMBSTONE = 'tombstone';
/** What keeps the counts of an entity that does not exist. */
export const PLACEHOLDER = 'placeholder';

/** The stored form of an entity. Throws `too-large` naming the field that does not fit. */
export function toProperties(
  entity: Entity,
  values: Values,
  system: Omit<SystemProperties, 'EntityType' | 'EntityVersion'>,
): Properties {
  const stored = fieldsToProperties(entity, values);
  return { ...stored, ...system, EntityType: entity.name, EntityVersion: ENTITY_VERSION };
}

export function fieldsToProperties(entity: Entity, values: Values): Properties {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (entries.length > MAX_PROPERTIES)
    throw new RowkeyError(
      'too-large',
      `An entity holds at most ${MAX_PROPERTIES} fields; the wide entities pattern spreads more over several.`,
    );
  return Object.fromEntries(
    entries.map(([field, value]) => [field, toProperty(field, entity.columns[field] ?? 'Json', value)]),
  );
}

/** The fields of a row, without ours and without those that the entity does not declare. */
export function toValues(entity: Entity, properties: Properties): Values {
  const values: Record<string, unknown> = {};
  for (const [field, type] of Object.entries(entity.columns)) {
    const stored = properties[field];
    if (stored !== undefined && stored !== null) values[field] = fromProperty(type, stored);
  }
  return values;
}

export function toSnapshot(entity: Entity, row: Row | undefined): Snapshot {
  if (!row) return { state: 'absent' };
  const { etag, properties } = row;
  if (properties.EntityType === TOMBSTONE) {
    const { WriteId, MovedTo = '' } = properties;
    return { state: 'tombstone', etag, writeId: String(WriteId), movedTo: String(MovedTo) };
  }
  if (properties.EntityType === PLACEHOLDER)
    return {
      state: 'placeholder',
      etag,
      writeId: String(properties.WriteId),
      counts: pick(properties, Object.keys(entity.counts)),
    };
  return { state: 'live', etag, values: toValues(entity, properties), system: systemOf(properties) };
}

function systemOf(properties: Properties): SystemProperties {
  const optional = (name: 'DenormalizedTo' | 'MovingFrom') => {
    const value = properties[name];
    return typeof value === 'string' && value !== '' ? { [name]: value } : {};
  };
  return {
    EntityType: String(properties.EntityType),
    EntityVersion: Number(properties.EntityVersion),
    WriteId: String(properties.WriteId),
    Incarnation: String(properties.Incarnation),
    ...optional('DenormalizedTo'),
    ...optional('MovingFrom'),
  };
}

function toProperty(field: string, type: ColumnType, value: unknown): unknown {
  if (type === 'Double' || type === 'Int64') return { type, value: String(value) };
  if (type === 'Boolean' || type === 'Int32') return value;
  const text = type === 'Json' ? JSON.stringify(value) : String(value);
  if (text.length <= MAX_STRING_LENGTH) return text;
  throw new RowkeyError(
    'too-large',
    `The field ${field} is longer than one property holds; a large value belongs in a blob.`,
    {
      field,
      accepted: `at most ${MAX_STRING_LENGTH} characters`,
    },
  );
}

/** Of a property as it is read, or as it is to be written: with its type beside it. */
function fromProperty(type: ColumnType, property: unknown): unknown {
  const isTyped = typeof property === 'object' && property !== null && 'value' in property;
  const stored = isTyped ? property.value : property;
  if (type === 'Int64' || type === 'Double' || type === 'Int32') return Number(stored);
  return type === 'Json' && typeof stored === 'string' ? JSON.parse(stored) : stored;
}
