import { onceFor } from '../../base/once.ts';
import { type Term, WRITES } from '../declaration/access.ts';
import type { Erasing } from '../declaration/declaration.ts';
import { type Entity, withArchives } from '../declaration/entity.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import { indexFields } from './index-range.ts';
import { memberField } from './reach.ts';

/** Where the rows of a user are: those with the subject of the user in a field. */

/** The rows of one entity with the subject of a user in one field. */
export interface UserRows {
  readonly entity: Entity;
  readonly field: string;
  readonly erasing: Erasing;
  /** The index that lists the rows of one user; undefined for the partition of the entity. */
  readonly index: string | undefined;
}

/** The rows of users in all entities and archives of a model. Throws for a field without a list, which a valid model has not. */
export const userRowsOf = onceFor((entities: readonly Entity[]): readonly UserRows[] =>
  withArchives(entities).flatMap((entity) =>
    fieldsOfUser(entity).map(([field, erasing]) => {
      const list = userListOf(entity, field);
      if (!list) throw new Error(`No list has the ${entity.name} of one "${field}".`);
      return { entity, field, erasing, ...list };
    }),
  ),
);

/** An archive may be without the field, and so has nothing of a user. */
export function fieldsOfUser({ ofUser, isArchive, columns }: Entity): [field: string, erasing: Erasing][] {
  return Object.entries(ofUser).flatMap(([field, erasing]) =>
    erasing === undefined || (isArchive && !Object.hasOwn(columns, field)) ? [] : [[field, erasing]],
  );
}

/** The list that has all rows with one value of the field, and no others. */
export function userListOf(entity: Entity, field: string): Pick<UserRows, 'index'> | undefined {
  const isOfField = ({ fields, parts }: KeyTemplate) =>
    fields.join() === field && parts.every(({ each, hash }) => !each && !hash);
  if (isOfField(entity.partition)) return { index: undefined };
  const found = Object.entries(entity.indexes).find(
    ([, index]) =>
      index.kind === 'inter-partition' &&
      !index.when &&
      index.remote !== undefined &&
      isOfField(index.remote.partition),
  );
  return found && { index: found[0] };
}

/** The fields that rules of the model take for the subject of a caller, by entity. */
export function subjectFieldsOf(entities: readonly Entity[]): ReadonlyMap<Entity, ReadonlySet<string>> {
  const found = new Map(entities.map((entity) => [entity, new Set<string>()]));
  for (const entity of entities) {
    const { rules, unveiled = {}, set = {}, own } = entity.access;
    if (own && 'claim' in own && own.claim === 'sub')
      for (const field of subjectOf(entity, own.index)) found.get(entity)?.add(field);
    const rows = [rules?.read ?? [], ...WRITES.map((action) => rules?.[action] ?? []), ...Object.values(unveiled)];
    const terms: [string, Term<Entity>][] = [
      ...Object.entries(set),
      ...rows.flat().flatMap(({ where = {} }) => Object.entries(where)),
    ];
    for (const [field, term] of terms) {
      if (typeof term !== 'object') continue;
      if (term.is === 'subject') found.get(entity)?.add(field);
      const member = term.is === 'member' ? memberField(term.of, term.field) : undefined;
      if (term.is === 'member' && member !== undefined) found.get(term.of)?.add(member);
    }
  }
  return found;
}

function subjectOf(entity: Entity, name: string): readonly string[] {
  const index = entity.indexes[name];
  return index ? indexFields(entity, index) : [];
}
