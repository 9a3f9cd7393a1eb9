import { z } from 'zod';
import { mapValues } from '../base/values.ts';

/** The schemas around the current one, which may contain themselves. */
type Outer = ReadonlyMap<z.ZodType, () => z.ZodType>;

/**
 * The schema of a value in a merge patch (RFC 7396): each member of an object may be absent, at every level, and null removes an optional
 * member. A schema without objects is returned as it is. Only describes a body: the engine validates what a patch makes of an entity.
 */
export function mergeSchema(type: z.ZodType, outer: Outer = new Map()): z.ZodType {
  const around = outer.get(type);
  if (around) return z.lazy(around);
  if (type instanceof z.ZodObject) return mergeObject(type, outer);
  if (type instanceof z.ZodRecord)
    return z.partialRecord(type.keyType, mergeSchema(type.valueType as z.ZodType, outer).nullable());
  if (type instanceof z.ZodUnion) {
    const options = type.options as readonly z.ZodType[];
    const merged = options.map((option) => mergeSchema(option, outer));
    return merged.every((option, index) => option === options[index]) ? type : z.union(merged);
  }
  const wrapped = unwrap(type);
  const merged = wrapped && mergeSchema(wrapped, outer);
  if (!merged || merged === wrapped) return type;
  return type instanceof z.ZodNullable ? merged.nullable() : merged;
}

function mergeObject(type: z.ZodObject, outer: Outer): z.ZodType {
  const members: Readonly<Record<string, z.ZodType>> = type.shape as never;
  const inner = new Map(outer).set(type, () => merged);
  const merged: z.ZodType = new z.ZodObject({
    ...type.def,
    checks: [],
    shape: mapValues(members, (member) => {
      const value = mergeSchema(member, inner);
      return (member.isOptional() ? value.nullable() : value).optional();
    }),
  });
  return merged;
}

/** What the schema adds null, a default or a mark to. Free JSON is a lazy schema of a union. */
function unwrap(type: z.ZodType): z.ZodType | undefined {
  const isWrapper =
    type instanceof z.ZodOptional ||
    type instanceof z.ZodNullable ||
    type instanceof z.ZodDefault ||
    type instanceof z.ZodPrefault ||
    type instanceof z.ZodReadonly;
  if (isWrapper) return type.unwrap() as z.ZodType;
  const inner = type instanceof z.ZodLazy ? type.unwrap() : undefined;
  return inner instanceof z.ZodObject ? inner : undefined;
}
