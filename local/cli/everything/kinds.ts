import { omit, pick, type Values } from '../../../lib/base/values.ts';
import { upgradeFrom } from '../../../lib/define/codec/entity-codec.ts';
import { validate } from '../../../lib/define/codec/validation.ts';
import { archivedChildren, type Entity, nameOfKind } from '../../../lib/define/declaration/entity.ts';
import type { LinkedModel } from '../../../lib/define/define-model.ts';
import { keptPeriods, periodOf } from '../../../lib/define/keys/calendar.ts';
import { hasConstantDefault } from '../../../lib/define/schema/field-schema.ts';
import { pathTo } from '../../../lib/http/route.ts';
import { FILES } from './manifest.ts';

/** What one file has of a model: its entities, series, and archives with the children in them. */

export interface Kind {
  /** As in the paths of operations, such as `employees`, `formeremployees` and `formeremployees/reviews`. */
  readonly name: string;
  readonly entity: Entity;
  /** True for rows that the API stores as they are, with the values that it computed when they were archived. */
  readonly isArchived: boolean;
}

/** Every kind, after those that its rows need: their parent, what they refer to, and the sources of copies in them. */
export function listKinds({ list }: Pick<LinkedModel, 'list'>): Kind[] {
  const sorted = new Set<Entity>();
  const visited = new Set<Entity>();
  const visit = (entity: Entity) => {
    if (visited.has(entity)) return;
    visited.add(entity);
    const { childOf, references, denormalized } = entity;
    if (childOf) visit(childOf);
    for (const { to } of Object.values(references)) visit(to);
    // The queue brings copies with a fan-out, whichever is first.
    for (const { source, fanOut } of Object.values(denormalized)) if (!fanOut) visit(source);
    sorted.add(entity);
  };
  for (const entity of list) visit(entity);
  const archived = list.flatMap(({ archive }) => (archive ? [archive, ...archivedChildren(archive)] : []));
  const toKind = (isArchived: boolean) => (entity: Entity) => ({ name: nameOfKind(entity), entity, isArchived });
  return [...[...sorted].map(toKind(false)), ...archived.map(toKind(true))];
}

/** The path of the API at which the rows of a kind are read. */
export function scanPath(root: string, { name }: Kind, top: number): string {
  return `${root}/operations/scan/${name}?top=${top}`;
}

/** The path at which rows are stored, up to 100 in a request. */
export function writePath(root: string, { name, entity, isArchived }: Kind): string {
  return isArchived || entity.access.set ? `${root}/operations/import/${name}` : pathTo(root, entity.name, 'batch');
}

export function rowPath(root: string, { name, entity, isArchived }: Kind, row: Values): string {
  const key = pathTo('', ...entity.keyFields.map((field) => row[field]));
  return `${root}/${isArchived ? 'operations/files/' : ''}${name}${key}`;
}

/** The fields that a row in the file does not have, because importing computes them. */
export function computedFields({ entity, isArchived }: Kind): readonly string[] {
  return isArchived ? [] : entity.decidedFields.filter((field) => !(field in entity.attachments));
}

/** What a row of an earlier version is now, with its files. */
export function upgradeRow({ entity }: Kind, { [FILES]: files, ...row }: Values, version: number): Values {
  const upgraded = version < entity.version ? upgradeFrom(entity, row, version) : row;
  return files === undefined ? upgraded : { ...upgraded, [FILES]: files };
}

/** The row as a read returns it after its import: the schema may have added defaults and changed texts. */
export function expectRow(kind: Kind, row: Values): Values {
  const { entity, isArchived } = kind;
  if (isArchived || entity.series) return row;
  const files = pick(row, [FILES]);
  try {
    return { ...omit(validate(entity, omit(row, [FILES, ...entity.decidedFields])), entity.decidedFields), ...files };
  } catch {
    // The API has rejected it.
    return row;
  }
}

/** The fields that a comparison leaves out: they are new, and the API has given each row another default. */
export function incomparableFields({ entity }: Kind, exported: readonly string[]): string[] {
  const isNew = (field: string) => !exported.includes(field);
  const hasDefault = (field: string) =>
    field in entity.defaults || entity.schema.shape[field]?.safeParse(undefined).data !== undefined;
  return Object.keys(entity.columns).filter(
    (field) => isNew(field) && hasDefault(field) && !hasConstantDefault(entity.schema, field),
  );
}

export function formatRow({ name, entity }: Kind, row: Values): string {
  return `${name} "${entity.keyFields.map((field) => row[field]).join('/')}"`;
}

/** True for a row of a period that is not kept any more. */
export function isPast({ period }: Entity, row: Values): boolean {
  if (!period) return false;
  const of = periodOf(period.per, String(row[period.field]));
  return of !== undefined && of < keptPeriods(period, Date.now()).first;
}
