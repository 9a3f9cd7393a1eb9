import { z } from 'zod';
import { describeIssues } from './issues.ts';

/** The options of a declaration. An unknown option is an error: a misspelt one would have no effect. */
export function optionsOf<Shape extends z.ZodRawShape>(shape: Shape) {
  const accepted = Object.keys(shape).join(', ');
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? `is not an option. Use ${accepted}` : undefined),
  });
}

/** Lists the errors of options, each as a sentence. */
export function optionErrors(options: z.ZodType, given: unknown): string[] {
  // Each process parses a declaration once: to compile the schemas takes longer than that.
  const { error } = options.safeParse(given, { jitless: true });
  if (!error) return [];
  return describeIssues(error, given, ({ message }) => message).map(({ field, message }) => {
    return `${field === '' ? 'the declaration' : `"${field}"`} ${message}.`;
  });
}

export const names = z.array(z.string()).readonly();
/** A value, or none, with a check of its own, which says what is accepted. */
export function anything<Value = unknown>(): z.ZodType<Value> {
  const unchecked: z.ZodType = z.unknown().optional();
  return unchecked as z.ZodType<Value>;
}
export const byName = z.record(z.string(), anything());

/** Another declaration, or with `isFunction` a function that returns it. */
export function declaredEntity({ isFunction = false } = {}) {
  const isEntity = (value: unknown) => typeof value === 'object' && value !== null && 'keyFields' in value;
  return z.custom((value) => isEntity(value) || (isFunction && typeof value === 'function'), {
    error: `needs a declared entity${isFunction ? ', or a function that returns it' : ''}`,
  });
}

/** What the description of a model has for an entity: its name, which is accepted too. */
export const nameOfEntity = z.preprocess((of) => (typeof of === 'string' ? of : Object(of).name), z.string());

/** A part of a declaration that has errors. The entity reports them, because only the entity knows the names. */
class InvalidPart {
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    this.errors = errors;
  }
}

/** Builds an index or totals from options, or returns an `InvalidPart`, which `defineEntity` rejects. */
export function buildPart<Part>(options: z.ZodType, given: unknown, build: () => Part): Part {
  const invalid = (errors: readonly string[]): Part => {
    const part: unknown = new InvalidPart(errors);
    return part as Part;
  };
  const errors = optionErrors(options, given);
  if (errors.length > 0) return invalid(errors);
  try {
    return build();
  } catch (error) {
    return invalid([error instanceof Error ? error.message : String(error)]);
  }
}

/** Lists the errors of parts that `buildPart` could not build, and those that none of these functions has made. */
export function partErrors(what: string, functions: readonly string[], parts: object = {}): string[] {
  return Object.entries(parts).flatMap(([name, part]) => {
    if (part instanceof InvalidPart) return part.errors.map((error) => `the ${what} "${name}": ${error}`);
    return 'uses' in Object(part) ? [] : `the ${what} "${name}" is made by no function. Use ${functions.join(' or ')}.`;
  });
}
