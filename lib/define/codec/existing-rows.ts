import { RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { onceFor } from '../../base/once.ts';
import { mapValues, omit, type Values, WrongValue } from '../../base/values.ts';
import type { Action, Properties, RowComparison, RowCondition, RowFilter } from '../../storage/row-types.ts';
import type { Storage } from '../../storage/storage.ts';
import type { TableShape, TableShapes } from '../../storage/table-shape.ts';
import type { ColumnType } from '../declaration/declaration.ts';
import type { Entity } from '../declaration/entity.ts';
import type { StoredType } from '../declaration/existing.ts';
import { buildKey, type KeyTemplate, parseKey } from '../keys/key-template.ts';

/**
 * The rows of tables that another program fills, as its declarations say: other names and types of properties, keys whose fields are no properties, and kinds of rows
 * that their keys or a property of theirs tell apart. What the engine has to store in such a row has a name of its own, which the other program does not
 * read. Properties that no field names are carried from each read to the next write.
 */

/** Begins what the engine stores beside the properties of the other program. */
export const OWN_PROPERTY = 'Rowkey';
/** The type of a row that is none of the other program's, such as a tombstone. */
const OWN_TYPE = 'RowkeyType';
/** The properties that no field names, and texts that are not those of their values, in a row as the engine has it: their JSON. */
const CARRIED = 'Carried';

interface Column {
  readonly field: string;
  readonly name: string;
  readonly type: StoredType;
  readonly column: ColumnType;
}

interface Kind {
  readonly entity: Entity;
  readonly byField: ReadonlyMap<string, Column>;
  readonly byName: ReadonlyMap<string, Column>;
  /** The fields that are read from the key. */
  readonly ofKey: readonly string[];
  readonly where: readonly (readonly [name: string, value: unknown])[];
}

/** The shapes of the tables of a model; undefined if it has none. */
function shapesOf(entities: readonly Entity[]): TableShapes | undefined {
  const existing = entities.filter((entity) => entity.existing);
  if (existing.length === 0) return undefined;
  const byTable = Map.groupBy(existing, ({ table }) => table);
  return new Map([...byTable].map(([table, kinds]) => [table, shapeOf(kinds.map(kindOf))]));
}

/**
 * The storage of an app with these entities; with `isRestored`, one to which a backup is restored, whose tables nobody else writes. Throws `wrong-setting`
 * for several accounts with a table of another program.
 */
export function withShapes<Opened extends Storage>(
  storage: Opened,
  entities: readonly Entity[],
  { isRestored = false }: { readonly isRestored?: boolean } = {},
): Opened {
  const shapes = shapesOf(isRestored ? entities.map(asWritten) : entities);
  if (!shapes) return storage;
  if (!storage.accounts) return { ...storage, shapes };
  const tables = [...shapes.keys()].join(', ');
  throw new RowkeyError(
    'wrong-setting',
    `Invalid settings: the model has tables of another program (${tables}), which are in one account. Remove STORAGE_ACCOUNTS.`,
  );
}

const asWritten = (entity: Entity): Entity => ({
  ...entity,
  existing: entity.existing && { ...entity.existing, readOnly: false },
});

/** How the fields of an entity are stored. */
const kindOf = onceFor((entity: Entity): Kind => {
  const { properties = {}, where = {} } = entity.existing ?? {};
  const columns = Object.entries(entity.columns).flatMap(([field, column]): Column[] => {
    const given = properties[field];
    if (given === undefined && entity.keyFields.includes(field)) return [];
    const { name = field, type } = typeof given === 'string' ? { name: given } : (given ?? {});
    return [{ field, name, column, type: type ?? (column === 'Json' ? 'String' : column) }];
  });
  return {
    entity,
    byField: new Map(columns.map((column) => [column.field, column])),
    byName: new Map(columns.map((column) => [column.name, column])),
    ofKey: entity.keyFields.filter((field) => !columns.some((column) => column.field === field)),
    where: Object.entries(where),
  };
});

/** The property of each field that has one. */
export function storedFields(entity: Entity): readonly Pick<Column, 'field' | 'name' | 'type'>[] {
  return [...kindOf(entity).byField.values()];
}

/** The type of a text of a field in a table of another program. */
export function storedTextType(entity: Entity, field: string): StoredType | undefined {
  const { column, type } = (entity.existing && kindOf(entity).byField.get(field)) ?? {};
  return column === 'String' ? type : undefined;
}

function shapeOf(kinds: readonly Kind[]): TableShape {
  const kindNamed = (type: unknown) => kinds.find(({ entity }) => entity.name === type);
  /** The property of a name that the engine has for it; undefined if it is none, as a field of the key. */
  const storedName = (name: string): string | undefined => {
    if (name === 'Timestamp' || name === CARRIED) return name === CARRIED ? undefined : name;
    if (name === 'EntityType') return OWN_TYPE;
    if (/^[A-Z]/.test(name)) return OWN_PROPERTY + name;
    return kinds.flatMap(({ byField }) => byField.get(name) ?? [])[0]?.name;
  };
  const marking = [OWN_TYPE, ...new Set(kinds.flatMap(({ where }) => where.map(([name]) => name)))];
  return {
    toProperties: (row) => toProperties(kinds, row),
    toStored(partition, action) {
      if (action.kind === 'delete') return requireWritten(possibleKinds(kinds, partition, action.row), action);
      const kind =
        kindNamed(action.properties.EntityType) ?? kindAt(kinds, partition, action.row, Object.keys(action.properties));
      return requireWritten(kind ? [kind] : [], { ...action, properties: toStoredProperties(kind, action.properties) });
    },
    // The other program may have merged into a row that the engine was about to remove.
    isAmbiguous: (stored) => typeof stored[OWN_TYPE] === 'string',
    toSelected: (select) => {
      const names = select.flatMap((name) => {
        // An entity of another kind may have the field under another name.
        const ofKinds = kinds.flatMap(({ byField }) => byField.get(name)?.name ?? []);
        return ofKinds.length > 0 ? ofKinds : (storedName(name) ?? []);
      });
      return [...new Set([...marking, ...names])];
    },
    toFilter: (filter) => toFilter(kindNamed, filter),
  };
}

function possibleKinds(kinds: readonly Kind[], partition: string, row: string): readonly Kind[] {
  return kinds.filter(({ entity }) => keyFieldsAt(entity, partition, row) !== undefined);
}

/** The kind of a row of which only the key is known, and names of fields. Kinds with one form of key may have different fields. */
function kindAt(
  kinds: readonly Kind[],
  partition: string,
  row: string,
  names: readonly string[] = [],
): Kind | undefined {
  const possible = possibleKinds(kinds, partition, row);
  const fields = names.filter((name) => /^[a-z]/.test(name));
  return possible.find(({ byField }) => fields.every((field) => byField.has(field))) ?? possible[0];
}

/** The last of the doors: the engine has refused the write of an entity that is only read before anything else is done. */
function requireWritten<Written extends Action>(possible: readonly Kind[], action: Written): Written {
  const [first] = possible;
  if (first && possible.every(({ entity }) => entity.existing?.readOnly)) throw onlyRead(first.entity);
  return action;
}

/** The error of a write of an entity whose table the app only reads. */
export function onlyRead({ name }: Entity): RowkeyError {
  return new RowkeyError('method-not-allowed', `${name} is only read: another program writes its table.`);
}

type StoredRow = Parameters<TableShape['toProperties']>[0];

function toProperties(kinds: readonly Kind[], { partition, row, properties }: StoredRow): Properties {
  const own: Record<string, unknown> = {};
  const theirs: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(properties))
    if (name !== OWN_TYPE && name.startsWith(OWN_PROPERTY)) own[name.slice(OWN_PROPERTY.length)] = value;
    else if (name !== OWN_TYPE) theirs[name] = value;
  const type = properties[OWN_TYPE];
  // The other program may have written into a row that the engine was about to remove: then it is a row of that program.
  if (typeof type === 'string' && Object.keys(theirs).length === 0) return { ...own, EntityType: type };
  for (const kind of kinds) {
    const key = keyFieldsAt(kind.entity, partition, row);
    if (key && kind.where.every(([name, value]) => isSame(theirs[name], toWhere(value))))
      return { ...toFields(kind, theirs, key), ...marksOf(kind.entity, own) };
  }
  return carry({}, theirs);
}

/** What the engine needs of a row, which one that the other program has written lacks. */
function marksOf({ name, version }: Entity, own: Properties): Properties {
  return { WriteId: '', Incarnation: '', ...own, EntityType: name, EntityVersion: version };
}

function toFields({ entity, byName, ofKey, where }: Kind, theirs: Properties, key: Properties): Properties {
  const fields: Record<string, unknown> = {};
  const unknown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(theirs)) {
    const column = byName.get(name);
    const field = column && toColumn(column, value);
    if (column) fields[column.field] = field;
    // A text that the emulator keeps beside the one of its value stays until the value changes.
    if (column ? typeof field === 'string' && field !== plain(value) : !where.some(([known]) => known === name))
      unknown[name] = value;
  }
  for (const field of ofKey) fields[field] = ofColumn(entity.columns[field], key[field]);
  return carry(fields, unknown);
}

function carry(fields: Record<string, unknown>, unknown: Properties): Properties {
  const isNone = Object.values(unknown).every((value) => (value ?? undefined) === undefined);
  return isNone ? fields : { ...fields, [CARRIED]: JSON.stringify(unknown) };
}

const NUMBERS: readonly ColumnType[] = ['Int32', 'Int64', 'Double'];

/**
 * The fields that the key of a row has; undefined if it is no key of the entity. A key that its template would write in another way is none: a write would miss the
 * row.
 */
function keyFieldsAt(
  { partition, row, columns }: Entity,
  partitionKey: string,
  rowKey: string,
): Properties | undefined {
  const [ofPartition, ofRow] = [parseKey(partition, partitionKey), parseKey(row, rowKey)];
  if (!ofPartition || !ofRow) return undefined;
  const values = { ...ofPartition, ...ofRow };
  // A number has one text: 7 is not in the key 007.
  const isText = (field: string) =>
    !NUMBERS.includes(columns[field] ?? 'String') || String(Number(values[field])) === String(values[field]);
  if (!Object.keys(values).every(isText)) return undefined;
  const isBuilt = (template: KeyTemplate, key: string) =>
    template.fields.some((field) => values[field] === undefined) || buildKey(template, values) === key;
  return isBuilt(partition, partitionKey) && isBuilt(row, rowKey) ? values : undefined;
}

/** A field of the key as a column of this type has it. */
function ofColumn(column: ColumnType | undefined, value: unknown): unknown {
  if (column === 'Int64' || column === 'Double') return { type: column, value: String(value) };
  if (column === 'Int32') return Number(value);
  return column === 'Boolean' ? value === 'true' : String(value);
}

/** The types of columns whose values are of a type of storage as they are. */
const COLUMN_OF: Readonly<Partial<Record<StoredType, readonly ColumnType[]>>> = {
  String: ['String', 'Json'],
  Boolean: ['Boolean'],
  Int32: ['Int32', 'Int64', 'Double'],
  Int64: ['Int32', 'Int64', 'String'],
  Double: ['Double'],
  DateTime: ['String'],
  Guid: ['String'],
  Binary: ['String'],
};

/** True if the values of a column can be stored as this type. */
export function canBeStored(column: ColumnType, type: StoredType): boolean {
  return COLUMN_OF[type]?.includes(column) === true;
}

/** The value of a property as the column has it, or a wrong value that a write stores as it is. */
function toColumn(of: Column, value: unknown): unknown {
  const { field, type, column } = of;
  const found = typeOf(value);
  const text = plain(value);
  if (found === type && column === 'String') return toCanonical(of, text);
  if (found === type && (type !== 'Int64' || Number.isSafeInteger(Number(text)))) return value;
  // A program that has widened a number reads what it has stored before.
  if (found === 'Int32' && (type === 'Int64' || type === 'Double') && column !== 'String')
    return { type, value: String(value) };
  return new WrongValue({ [field]: typeof value === 'object' ? value : { type: found, value } });
}

function typeOf(value: unknown): string {
  if (typeof value === 'string') return 'String';
  if (typeof value === 'boolean') return 'Boolean';
  if (typeof value === 'number') return 'Int32';
  return String(Object(value).type);
}

function plain(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'value' in value ? value.value : value;
}

function toStoredProperties(kind: Kind | undefined, properties: Properties): Properties {
  const { EntityType: type, EntityVersion: _, [CARRIED]: carried, ...rest } = properties;
  const former: Properties = typeof carried === 'string' ? JSON.parse(carried) : {};
  const stored: Record<string, unknown> = { ...omit(former, [...(kind?.byName.keys() ?? [])]) };
  const isEntity = type !== undefined && type === kind?.entity.name;
  if (type !== undefined && !isEntity) stored[OWN_TYPE] = type;
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined || value === null) continue;
    if (/^[A-Z]/.test(name)) {
      // The engine has it for none: nothing has to be told from it.
      if (value !== '') stored[OWN_PROPERTY + name] = value;
      continue;
    }
    const column = kind?.byField.get(name);
    if (column) {
      const was = former[column.name];
      const isSameValue = was !== undefined && toColumn(column, was) === value;
      stored[column.name] = isSameValue ? was : fromColumn(column, value);
    } else if (!kind?.ofKey.includes(name)) stored[name] = value;
  }
  if (isEntity) for (const [name, value] of kind.where) stored[name] = toWhere(value);
  return stored;
}

/** A number that is not whole is a Double; a whole one is an Int32, as in JSON. */
function toWhere(value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? { type: 'Double', value: String(value) } : value;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?Z$/;
/** The first year that the service accepts. */
const FIRST_YEAR = '1601';
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const INT64_MAX = 2n ** 63n - 1n;
const BASE64 = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** True for the text of a whole number of 64 bits, without leading zeros. */
export const isInt64 = (text: unknown): text is string =>
  typeof text === 'string' &&
  /^(0|-?[1-9]\d{0,18})$/.test(text) &&
  BigInt(text) <= INT64_MAX &&
  BigInt(text) >= -INT64_MAX - 1n;

/** What a text must be to be stored as a type, and how it is told to a caller. */
const TEXTS: Readonly<
  Partial<Record<StoredType, { readonly isValid: (text: string) => boolean; readonly accepted: string }>>
> = {
  DateTime: {
    isValid: (text) => INSTANT.test(text) && text >= FIRST_YEAR && !Number.isNaN(Date.parse(text)),
    accepted:
      'an instant in UTC from the year 1601 on with at most seven digits of a second, such as 2026-11-20T08:00:00.1234567Z',
  },
  Guid: { isValid: (text) => GUID.test(text), accepted: 'a UUID' },
  Int64: { isValid: isInt64, accepted: 'a whole number of 64 bits, without leading zeros' },
  Binary: { isValid: (text) => BASE64.test(text), accepted: 'bytes in base64' },
};

/** The one text of each value that the service returns; the emulator returns the text that was written. */
const CANONICAL: Readonly<Partial<Record<StoredType, (text: string) => string>>> = {
  DateTime: (text) => {
    const withSeconds = text.replace(/(T\d\d:\d\d)Z$/, '$1:00Z');
    return withSeconds.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
  },
  Guid: (text) => text.toLowerCase(),
  Binary: (text) => Buffer.from(text, 'base64').toString('base64'),
};

function toCanonical({ column, type }: Column, value: unknown): unknown {
  const isText = column === 'String' && typeof value === 'string' && TEXTS[type]?.isValid(value);
  return isText ? (CANONICAL[type]?.(value) ?? value) : value;
}

/** The values that a caller gives, with the texts that a read returns after they are stored: an index has the same ones. */
export function withCanonicalTexts(entity: Entity, values: Values): Values {
  if (!entity.existing) return values;
  const { byField } = kindOf(entity);
  return mapValues(values, (value, field) => {
    const column = byField.get(field);
    return column ? toCanonical(column, value) : value;
  });
}

function fromColumn({ field, name, type, column }: Column, value: unknown): unknown {
  const text = TEXTS[type];
  if (column === 'String' && text && typeof value === 'string') {
    if (text.isValid(value)) return { type, value };
    const what = `The field ${field} cannot be stored as the ${type} ${name}: ${text.accepted} is needed.`;
    throw new RowkeyError('invalid-input', what, { field, accepted: text.accepted });
  }
  // What a read found of another type goes back as it was.
  const found = typeOf(value);
  if (found === type || typeof value === 'object') return value;
  return type === 'Int64' || type === 'Double' ? { type, value: String(value) } : value;
}

function toFilter(
  kindNamed: (type: unknown) => Kind | undefined,
  given: RowFilter,
): ReturnType<TableShape['toFilter']> {
  const types =
    given.type === undefined
      ? undefined
      : [given.type].flat().map((one) => (typeof one === 'string' ? { type: one } : one));
  const isOfType = ({ EntityType }: Properties) => !types || types.some(({ type }) => type === EntityType);
  const [only] = types?.length === 1 ? types : [];
  const kind = only && kindNamed(only.type);
  // A tombstone has no other property.
  const ofEngine: RowComparison[] = only && !kind ? [{ name: OWN_TYPE, operator: 'eq', values: [only.type] }] : [];
  const where = [...(given.where ?? []), ...(only && 'where' in only ? (only.where ?? []) : [])];
  const compare = (comparison: RowComparison) => toComparison(kind, comparison);
  const compared = where.flatMap((condition): RowCondition[] => {
    if (!('anyOf' in condition)) return [compare(condition) ?? []].flat();
    const anyOf = condition.anyOf.map((all) => all.map(compare));
    const isWhole = (all: readonly (RowComparison | undefined)[]): all is RowComparison[] => !all.includes(undefined);
    return anyOf.every(isWhole) ? [{ anyOf }] : [];
  });
  const ofKind = (kind?.where ?? []).map(
    ([name, value]) => ({ name, operator: 'eq', values: [toWhere(value)] }) as const,
  );
  return { filter: { where: [...ofEngine, ...ofKind, ...compared], counted: given.counted }, isOfType };
}

function toComparison(kind: Kind | undefined, { name, operator, values }: RowComparison): RowComparison | undefined {
  if (name === 'Timestamp') return { name, operator, values };
  const column = kind?.byField.get(name);
  if (!column) return undefined;
  // Storage orders them by another value than their texts, which the caller compares.
  const isOrdered = !['eq', 'ne', 'in'].includes(operator);
  if (isOrdered && column.column === 'String' && ['Int64', 'Guid', 'Binary'].includes(column.type)) return undefined;
  try {
    return { name: column.name, operator, values: values.map((value) => fromColumn(column, value)) };
  } catch {
    // No stored value is equal to such a text, but one may be less or greater than it.
    return undefined;
  }
}
