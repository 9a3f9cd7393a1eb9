import { z } from 'zod';
import type { Alternative, Declared } from '../declaration/access.ts';
import type { DeclaredEntity } from '../declaration/declaration.ts';
import { describeIssues } from '../schema/issues.ts';
import { optionsOf } from '../schema/options.ts';

/**
 * The form of the terms of rules, before anything compares them. A declaration that the compiler has not checked may have any value in their
 * place, and linking, other checks and storage expect the form.
 */

const text = z
  .string({ error: 'needs a text' })
  .refine((given) => given.isWellFormed(), { error: 'needs well-formed Unicode' });
// Without NaN and infinities, which neither JSON nor a filter has.
const number = z.number({ error: 'needs a finite number' });
const bound = z.union([text, number], { error: 'needs a text or a finite number' });
const scalar = z.union([text, number, z.boolean()], { error: 'needs a text, a finite number, true or false' });
const name = text.min(1, { error: 'needs a text that is not empty' });
const entity = z.custom<Declared>(isDeclared, { error: 'needs a declared entity, or a function that returns it' });
const values = z
  .array(scalar, { error: 'needs a list of values' })
  .min(1, { error: 'needs at least one value' })
  .readonly();
/** What `verifiedBy` of a claim must be. */
export const VerifiedBy = z.record(name, values, { error: 'needs the accepted values by the name of the claim' });

const FORMS: Readonly<Record<string, z.ZodType>> = {
  'one of': optionsOf({ is: z.string(), values }),
  prefix: optionsOf({ is: z.string(), prefix: text }),
  between: optionsOf({ is: z.string(), from: bound, to: bound }),
  subject: optionsOf({ is: z.string() }),
  claim: optionsOf({ is: z.string(), claim: name, verifiedBy: VerifiedBy.optional() }),
  own: optionsOf({ is: z.string(), of: entity.optional(), field: name.optional() }),
  member: optionsOf({
    is: z.string(),
    of: entity,
    field: name,
    where: z.record(z.string(), scalar, { error: 'needs the values of fields by name' }),
  }),
};

function isDeclared(given: unknown): boolean {
  const of: unknown = typeof given === 'function' ? given() : given;
  return typeof of === 'object' && of !== null && 'keyFields' in of;
}

/** Yields the errors of the terms of an entity that have not the form of a term. */
export function* malformedTermErrors({ name, access }: DeclaredEntity): Generator<string> {
  const { rules, unveiled = {}, set = {} } = access;
  for (const [field, term] of Object.entries(set))
    for (const error of formErrors(term)) yield `Entity "${name}": access.set names "${field}", ${error}`;
  const ofFields = Object.entries(unveiled).map(([field, rule]) => [`read "${field}"`, rule] as const);
  const all: (readonly [string, readonly Alternative[]])[] = [...(rules ? Object.entries(rules) : []), ...ofFields];
  for (const [what, rule] of all)
    for (const { role, where = {} } of rule)
      for (const [field, term] of Object.entries(where))
        for (const error of formErrors(term))
          yield `Entity "${name}": the rule to ${what} of the role "${role}" compares "${field}", ${error}`;
}

function* formErrors(term: unknown): Generator<string> {
  if (typeof term !== 'object' || term === null) {
    if (!scalar.safeParse(term).success) yield `with a term that is no value: ${ACCEPTED}`;
    return;
  }
  const is: unknown = Object(term).is;
  const form = typeof is === 'string' && Object.hasOwn(FORMS, is) ? FORMS[is] : undefined;
  if (!form) {
    yield `with an unknown term: ${ACCEPTED}`;
    return;
  }
  const { error } = form.safeParse(term, { jitless: true });
  if (!error) return;
  for (const { field, message } of describeIssues(error, term, (issue) => issue.message))
    yield `with a term "${is}" that is not valid: "${field}" ${message}.`;
}

const ACCEPTED =
  "use a value, oneOf('a', 'b'), startsWith('a'), between(1, 9), subject(), a claim of defineClaims, own() or memberOf(…).";
