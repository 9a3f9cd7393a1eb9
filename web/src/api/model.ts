import type {
  EntityDescription,
  IndexDescription,
  ModelDescription,
} from '../../../lib/define/declaration/model-description.ts';

export type TemplateDescription = IndexDescription['row'];
export type RangeDescription = IndexDescription['ranges'][number];
export type TotalDescription = EntityDescription['totals'][string];
export type AttachmentDescription = EntityDescription['attachments'][string];
export type ReferenceDescription = EntityDescription['references'][string];
export type SeriesDescription = NonNullable<EntityDescription['series']>;

/** An entity of the model, with its name. */
export interface Entity extends EntityDescription {
  readonly name: string;
}

/** The model as the pages use it. */
export interface Model {
  readonly roles: readonly string[];
  readonly operatorRole: string;
  /** The role that reads all rows. */
  readonly steward?: string | undefined;
  readonly blocksUsers: boolean;
  readonly erasesUsers: boolean;
  readonly backup?: ModelDescription['backup'];
  readonly entities: ReadonlyMap<string, Entity>;
}

export type Values = Readonly<Record<string, unknown>>;

export interface Roles {
  readonly roles: readonly string[];
}

export function toModel({ blocksUsers, erasesUsers, entities, ...model }: ModelDescription): Model {
  const named = Object.entries(entities).map(([name, entity]) => [name, { name, ...entity }] as const);
  const users = { blocksUsers: blocksUsers === true, erasesUsers: erasesUsers === true };
  return { ...model, ...users, entities: new Map(named) };
}

const shares = (allowed: readonly string[], { roles }: Roles) => allowed.some((role) => roles.includes(role));

/** The alternatives of the caller's roles. */
const ofCaller = <Each extends { readonly role: string }>(alternatives: readonly Each[], { roles }: Roles) =>
  alternatives.filter(({ role }) => roles.includes(role));

export function canRead({ access }: Entity, caller: Roles): boolean {
  return shares(access.read, caller);
}

/** True if the rules let the caller do this to at least some rows. An archive is written only by archiving. */
export function may({ access, archiveOf }: Entity, action: 'create' | 'update' | 'delete', caller: Roles): boolean {
  return (archiveOf === undefined || action === 'delete') && ofCaller(access.rules[action], caller).length > 0;
}

/** True if the caller may create or change rows. */
export function canWrite(entity: Entity, caller: Roles): boolean {
  return may(entity, 'create', caller) || may(entity, 'update', caller);
}

/** True if the caller may do this to rows with their children, which go along. */
export function canTake(entity: Entity, action: 'update' | 'delete', { entities }: Model, caller: Roles): boolean {
  const children = entity.children.map((name) => entities.get(name)?.access);
  return (
    ofCaller(entity.access.rules[action], caller).length > 0 &&
    children.every((each) => each !== undefined && shares(each.write, caller))
  );
}

/** True if no rule limits the caller to some rows. */
export function readsEveryRow({ access }: Entity, caller: Roles): boolean {
  return ofCaller(access.rules.read, caller).some(({ terms }) => terms.length === 0);
}

/** True if the rules open a list to the caller: that of a partition, or of an index of many. */
export function canList(entity: Entity, caller: Roles, index?: string): boolean {
  return ofCaller(entity.access.rules.read, caller).some(({ lists }) =>
    index === undefined ? lists.key : lists.indexes.includes(index),
  );
}

/** True if the API lists all rows that the rules let the caller read. A caller who reads every row has no such list. */
export function canListOwn(entity: Entity, caller: Roles): boolean {
  return shares(entity.access.mine ?? [], caller) && !readsEveryRow(entity, caller);
}

export function isOperator({ operatorRole }: Model, { roles }: Roles): boolean {
  return roles.includes(operatorRole);
}

/** True for a caller who may read what was stored at an instant. */
export function readsPast({ backup }: Model, caller: Roles): boolean {
  return backup !== undefined && shares(backup.roles, caller);
}

/** True for a caller who may read whole tables. */
export function mayScan(model: Model, user: Roles): boolean {
  return isOperator(model, user) || (model.steward !== undefined && user.roles.includes(model.steward));
}

/** The fields that the caller may read, in the order of the declaration: key fields first. */
export function readableFields({ key, fields }: Entity, caller: Roles): string[] {
  const rest = Object.keys(fields).filter((field) => !key.fields.includes(field));
  return [...key.fields, ...rest].filter((field) => {
    const restricted = fields[field]?.restricted;
    return restricted === undefined || shares(restricted, caller);
  });
}

/** True if the caller may read every row of the entity with all its fields. Explanations of writes require it. */
export function canReadWhole(entity: Entity, caller: Roles): boolean {
  return readsEveryRow(entity, caller) && readsEveryField(entity, caller);
}

/** True if the caller may read all fields of the rows that the rules let the caller read. */
export function readsEveryField(entity: Entity, caller: Roles): boolean {
  return canRead(entity, caller) && readableFields(entity, caller).length >= Object.keys(entity.fields).length;
}

/**
 * The field whose values a person reads as the names of rows: the label of the entity, or the first text that the caller may read, is no key
 * and comes with a list. Dates, ids and choices do not count. Undefined if there is none.
 */
export function labelField(entity: Entity, caller: Roles): string | undefined {
  if (entity.label !== undefined) return entity.label;
  return readableFields(entity, caller).find((field) => {
    const { encrypted, large, schema } = entity.fields[field] ?? {};
    const isText = schema?.type === 'string' && !schema.enum && !MACHINE_FORMATS.includes(String(schema.format));
    return isText && !encrypted && !large && !entity.key.fields.includes(field);
  });
}

const MACHINE_FORMATS = ['date', 'date-time', 'time', 'duration', 'uuid', 'ipv4', 'ipv6'];

const LONGEST_LABEL = 120;

/** `Sales / 000123 · jonesj@contoso.com`. */
export function describeRow(entity: Entity, caller: Roles, values: Values): string {
  const key = keyPath(entity, values).join(' / ');
  const label = values[labelField(entity, caller) ?? ''];
  return typeof label === 'string' && label !== '' ? `${key} · ${label.slice(0, LONGEST_LABEL)}` : key;
}

/** The label of a row; undefined if the entity or the row has none. */
export function labelOf({ label = '' }: Entity, values: Values | undefined): string | undefined {
  const text = values?.[label];
  return typeof text === 'string' && text !== '' ? text.slice(0, LONGEST_LABEL) : undefined;
}

export function isNumeric({ fields }: Entity, field: string): boolean {
  return ['integer', 'number'].includes(String(fields[field]?.schema.type));
}

/** True if the entities of a partition can be listed: more than one may share a partition key. */
export function hasRange({ key, series }: Entity): boolean {
  return series === undefined && key.partition.fields.length < key.fields.length;
}

/** True if a row may lack the field. A derived field of the key may be optional, but every row has it. */
export function canLack({ fields, key }: Entity, field: string): boolean {
  return fields[field]?.optional === true && !key.fields.includes(field);
}

/** The fields that a row may lack and then is not in the index, because they are in its keys. */
export function neededFields(entity: Entity, { partition, row }: Pick<IndexDescription, 'partition' | 'row'>) {
  const inKeys = new Set([...(partition?.fields ?? []), ...row.fields]);
  return [...inKeys].filter((field) => canLack(entity, field));
}

/** The values of the key in the order of a path. */
export function keyPath({ key }: Entity, values: Values): string[] {
  return key.fields.map((field) => String(values[field] ?? ''));
}
