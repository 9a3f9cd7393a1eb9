import { z } from 'zod';
import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { isWithin } from '../define/codec/limit.ts';
import { matches } from '../define/codec/query.ts';
import { ACTIONS, type Action, type Alternative, TransitionSide } from '../define/declaration/access.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { alternativesOf, describeTerm } from '../define/places/rule-words.ts';
import type { Engine } from '../engine/engine.ts';
import { type AppliedRule, type ResolvedAlternative, type ResolvedTerm, resolveTerms, toLimit } from './limit.ts';
import type { Caller } from './token.ts';

/** Why a caller reaches a row, or does not: the alternatives of the rule, as `limit.ts` resolves and compares them. */

const scalars = z.array(z.union([z.string(), z.number(), z.boolean()]));

const TermExplanation = z.object({
  term: z.string().describe('In words'),
  caller: scalars
    .optional()
    .describe('What the caller has of it: memberships, values of a claim. Absent for a constant'),
});

/** The rule that bounded what a request read. */
export const AppliedRuleExplanation = z.object({
  entity: z.string(),
  action: z.enum(ACTIONS),
  list: z.string().optional().describe('The list: `key`, or the name of an index. Absent for a single row'),
  alternatives: z.array(
    z.object({ role: z.string(), transition: TransitionSide.optional(), terms: z.array(TermExplanation) }),
  ),
});

const ActionExplanation = z.object({
  allowed: z.boolean(),
  refused: z
    .string()
    .optional()
    .describe('Why every such request of the caller gets 403, such as for too many memberships'),
  alternatives: z.array(
    z.object({
      role: z.string(),
      transition: TransitionSide.optional(),
      hasRole: z.boolean().describe('False if the caller has not the role, so that no term is compared'),
      allows: z.boolean(),
      terms: z.array(
        TermExplanation.extend({
          holds: z.boolean().optional(),
          row: z.unknown().optional().describe('The value of the field in the row'),
        }),
      ),
    }),
  ),
});
export const Decision = z.object(
  Object.fromEntries(ACTIONS.map((action) => [action, ActionExplanation])) as Record<Action, typeof ActionExplanation>,
);
export type Decision = z.infer<typeof Decision>;

export function describeApplied({ entity, action, index, alternatives }: AppliedRule): object {
  const found = Object.entries(entity.indexes).find(([, one]) => one === index);
  const list = index === 'key' ? index : found?.[0];
  return {
    entity: entity.name,
    action,
    ...(list === undefined ? {} : { list }),
    alternatives: alternatives.map(({ terms, ...alternative }) => ({
      ...alternative,
      terms: terms.map((term) => explainTerm(entity, term)),
    })),
  };
}

interface Asked {
  readonly engine: Engine;
  readonly caller: Caller;
  readonly entity: Entity;
  readonly values: Values;
}

/** For each action, whether the caller may do it with a row of these values, and which term decides. `admit` throws `forbidden` for a blocked user. */
export async function explainDecision(asked: Asked, admit: () => Promise<void>): Promise<Decision> {
  const explain = (action: Action) => admit().then(() => explainAction(asked, action));
  const decided = ACTIONS.map(async (action) => [action, await explain(action).catch(toRefusal)] as const);
  return Object.fromEntries(await Promise.all(decided)) as Decision;
}

/** A rule that cannot be resolved refuses the request as a whole. */
function toRefusal(error: unknown): Decision[Action] {
  if (!(error instanceof RowkeyError && error.code === 'forbidden')) throw error;
  return { allowed: false, refused: error.message, alternatives: [] };
}

async function explainAction(asked: Asked, action: Action): Promise<Decision[Action]> {
  const { caller, entity, values } = asked;
  const alternatives = await Promise.all(
    alternativesOf(entity, action).map(async (alternative) => {
      const { role, transition } = alternative;
      const named = { role, ...(transition ? { transition } : {}) };
      if (!caller.roles.includes(role)) return { ...named, ...unusable(entity, alternative) };
      const resolved = { role, terms: await resolveTerms(asked, entity, alternative) };
      // Nothing is known of the row after the transition.
      if (transition?.side === 'after')
        return {
          ...named,
          hasRole: true,
          allows: false,
          terms: resolved.terms.map((term) => explainTerm(entity, term)),
        };
      return { ...named, hasRole: true, allows: isAllowed([resolved], values), terms: explainTerms(asked, resolved) };
    }),
  );
  return { allowed: alternatives.some(({ allows }) => allows), alternatives };
}

function isAllowed(alternatives: readonly ResolvedAlternative[], values: Values): boolean {
  return isWithin(toLimit(alternatives), values);
}

function unusable(entity: Entity, { where = {} }: Alternative<string, Entity>) {
  const terms = Object.entries(where).map(([field, term]) => ({ term: describeTerm(entity, field, term) }));
  return { hasRole: false, allows: false, terms };
}

function explainTerms({ entity, values }: Asked, { terms }: ResolvedAlternative) {
  return terms.map((resolved) => ({
    ...explainTerm(entity, resolved),
    holds: resolved.comparisons !== undefined && matches(resolved.comparisons, values),
    row: values[resolved.field],
  }));
}

function explainTerm(entity: Entity, { field, term, comparisons = [] }: ResolvedTerm): z.infer<typeof TermExplanation> {
  const isOfCaller = typeof term === 'object' && ['subject', 'claim', 'own', 'member'].includes(term.is);
  const caller = comparisons.flatMap(({ values }) => values);
  return { term: describeTerm(entity, field, term), ...(isOfCaller ? { caller } : {}) };
}
