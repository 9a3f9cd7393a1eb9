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

/**
 * The schema of a value that is sent as a whole: an optional member of an object may also be null, at every level. Only describes a body, whose
 * nulls `omitNulls` removes.
 */
export function sentWithNulls(type: z.ZodType, outer: Outer = new Map()): z.ZodType {
  const around = outer.get(type);
  if (around) return z.lazy(around);
  if (type instanceof z.ZodObject) {
    const inner = new Map(outer).set(type, () => sent);
    const shape = mapValues(type.shape as Readonly<Record<string, z.ZodType>>, (member) => {
      const value = sentWithNulls(member, inner);
      return member.isOptional() ? value.nullable().optional() : value;
    });
    const sent: z.ZodType = new z.ZodObject({ ...type.def, checks: [], shape });
    return sent;
  }
  if (type instanceof z.ZodArray) {
    const element = sentWithNulls(type.element as z.ZodType, outer);
    return element === type.element ? type : new z.ZodArray({ ...type.def, element });
  }
  if (type instanceof z.ZodDiscriminatedUnion) {
    const options = type.options.map((option) => sentWithNulls(option as z.ZodType, outer));
    return new z.ZodDiscriminatedUnion({ ...type.def, options });
  }
  const wrapped = unwrap(type);
  const sent = wrapped && sentWithNulls(wrapped, outer);
  if (!sent || sent === wrapped) return type;
  return type instanceof z.ZodNullable ? sent.nullable() : sent;
}

/**
 * The value without the members that are null where the schema has an optional member that cannot be null. Programs in other languages often
 * send null for a member without a value.
 */
export function omitNulls(type: z.ZodType, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const inner = unwrap(type);
  if (inner) return omitNulls(inner, value);
  if (Array.isArray(value))
    return type instanceof z.ZodArray ? value.map((one) => omitNulls(type.element as z.ZodType, one)) : value;
  if (type instanceof z.ZodDiscriminatedUnion) {
    const { discriminator, options } = type.def;
    const kind = (options as readonly z.ZodObject[]).find(
      (option) => option.shape[discriminator]?.safeParse(Object(value)[discriminator]).success,
    );
    return kind ? omitNulls(kind, value) : value;
  }
  if (!(type instanceof z.ZodObject)) return value;
  const shape = type.shape as Readonly<Record<string, z.ZodType>>;
  const members = Object.entries(value).flatMap(([name, member]) => {
    const declared = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (!declared) return [[name, member]];
    if (member !== null) return [[name, omitNulls(declared, member)]];
    return declared.isOptional() && !declared.isNullable() ? [] : [[name, null]];
  });
  return Object.fromEntries(members);
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
