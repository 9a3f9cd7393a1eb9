import { z } from 'zod';
import { omit, pick } from '../../base/values.ts';
import { FURTHER_GROUP } from '../../define/codec/further-rows.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { keysWith } from '../../define/validate/feature-errors.ts';
import { furtherRowCheck, furtherRowErrors } from '../../engine/reconcile/check-further-rows.ts';

/**
 * Vertical partitioning: groups of rarely read fields are stored in further rows of the entity, so that reads and writes of the
 * other fields move few bytes. A group changes in the same entity group transaction as its entity.
 */
export const verticalSplit: Feature = {
  name: 'vertical split',
  isUsed: ({ split }) => Object.keys(split).length > 0,
  *validate(entity, { entities }) {
    yield* furtherRowErrors(entity, entities);
    yield* groupErrors(entity);
    if (entity.version > 1 && Object.keys(entity.denormalized).length > 0)
      yield 'it has versions, whose upgrades need the groups, and fields that change with another entity (denormalized), which does not read them. Remove the versions or denormalized.';
    const fields = Object.entries(entity.split).flatMap(([group, each]) =>
      each.map((field) => [field, group] as const),
    );
    for (const [field, group] of fields)
      yield* fieldErrors(entity, field, `the field "${field}" of the group "${group}"`);
  },
  layout: {
    further: {
      apartFields,
      groupsOf: ({ split }, fields = []) =>
        Object.keys(split).filter((group) => split[group]?.some((field) => fields.includes(field))),
      divide(entity, values) {
        const groups = Object.entries(entity.split).map(([group, fields]) => [group, pick(values, fields)] as const);
        const stored = groups.filter(([, fields]) => Object.values(fields).some((value) => value !== null));
        return { own: omit(values, apartFields(entity)), further: new Map(stored) };
      },
    },
  },
  memory: {
    remember: ({ split }) => ({ split }),
    *refuse({ columns, split: now }, before) {
      const { split } = Memory.parse(before);
      for (const [group, fields] of Object.entries(split))
        for (const field of fields)
          if (Object.hasOwn(columns, field) && !now[group]?.includes(field))
            yield `the field ${field} was in the group ${group} of split; its stored values would not be found`;
    },
  },
  check: furtherRowCheck,
};

const Memory = z.object({ split: z.record(z.string(), z.array(z.string())).default({}) });

function apartFields({ split }: Entity): string[] {
  return Object.values(split).flat();
}

function* groupErrors({ split, children, columns }: Entity): Generator<string> {
  for (const [group, fields] of Object.entries(split)) {
    if (!FURTHER_GROUP.test(group))
      yield `the group name "${group}" of split is not accepted. Use 1 to 40 letters, a lower-case letter first.`;
    if (fields.length === 0) yield `the group "${group}" of split has no field. Add one.`;
    if (children.some(({ name }) => name === group))
      yield `the group "${group}" of split has the name of a child, and include could not tell them apart. Rename one of them.`;
    for (const field of fields)
      if (!Object.hasOwn(columns, field))
        yield `the group "${group}" of split has the field "${field}", which the schema does not have. Add it to the schema, or correct the name.`;
  }
  const all = Object.values(split).flat();
  for (const field of new Set(all.filter((each, position) => all.indexOf(each) < position)))
    yield `the field "${field}" is in split twice. Remove it from one group.`;
}

/** A write may not have read the row of a group, so nothing that a write computes can depend on its fields. */
function* fieldErrors(entity: Entity, field: string, what: string): Generator<string> {
  for (const key of keysWith(entity, field))
    yield `${what} is in ${key}, which needs fields that every write reads. Remove it from split, or from ${key}.`;
  for (const [name, { uses }] of Object.entries(entity.indexes))
    if (uses.includes(field) && ![...keysWith(entity, field)].includes(`the key of the index "${name}"`))
      yield `${what} is copied by the index "${name}", which needs fields that every write reads. Remove it from split, or from copies.`;
  if (Object.hasOwn(entity.references, field))
    yield `${what} refers to another entity, whose deletion looks for it in the row of this one. Remove it from split.`;
  if (Object.hasOwn(entity.derived, field))
    yield `${what} is derived, and every write computes it. Remove it from split.`;
  for (const { name, keptFields } of entity.features)
    if (keptFields?.(entity).includes(field))
      yield `${what} is set by the engine (${name}) at every write. Remove it from split.`;
  if (Object.hasOwn(entity.denormalized, field))
    yield `${what} refers to the entity that denormalized copies from, and every write reads it. Remove it from split.`;
}
