import { RowkeyError } from '../../base/errors.ts';
import type { Entity } from '../declaration/entity.ts';
import { withoutApart } from './further-rows.ts';

/** The selected fields of an entity and of its children, by the name of each; undefined for all fields. */
export type Selection = Readonly<Record<string, readonly string[] | undefined>>;

/**
 * Sorts the selected names by entity: `email` is a field of the entity and `reviews.year` of an included child. `available` are the
 * fields of a partial copy. Throws `invalid-input`.
 */
export function toSelection(
  entity: Entity,
  names: readonly string[] | undefined,
  {
    kinds = [],
    groups = [],
    available = Object.keys(entity.columns),
  }: {
    readonly kinds?: readonly Entity[];
    /** Groups of fields to return besides the selected fields, or besides those that every read returns. */
    readonly groups?: readonly string[];
    readonly available?: readonly string[] | undefined;
  } = {},
): Selection {
  const own = available.map((field) => [field, { entity, field }] as const);
  const ofKinds = kinds.flatMap((kind) =>
    Object.keys(kind.columns).map((field) => [`${kind.name}.${field}`, { entity: kind, field }] as const),
  );
  const known = new Map([...own, ...ofKinds]);
  const selection: Record<string, string[]> = {};
  for (const name of new Set(names)) {
    const found = known.get(name);
    if (!found) {
      const of = name.includes('.') ? 'an included child' : entity.name;
      throw new RowkeyError('invalid-input', `"select" names "${name.slice(0, 100)}", which is not a field of ${of}.`, {
        field: 'select',
        accepted: [...known.keys()].join(', '),
      });
    }
    selection[found.entity.name] ??= [];
    selection[found.entity.name]?.push(found.field);
  }
  if (groups.length === 0) return selection;
  const asked = selection[entity.name] ?? Object.keys(withoutApart(entity, entity.columns));
  const ofGroups = groups.flatMap((group) => entity.split[group] ?? []);
  return { ...selection, [entity.name]: [...new Set([...asked, ...ofGroups])] };
}

/** The fields to read for the selected ones. A reference may be bound to the key of its entity. */
export function withKeyOfReferences(entity: Entity, select: readonly string[]): readonly string[] {
  const references = entity.referenceFields;
  return select.some((field) => references.includes(field)) ? [...entity.keyFields, ...select] : select;
}
