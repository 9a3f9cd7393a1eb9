import type { Action, Given, Rules, Term } from './random-model.ts';

/**
 * A naive evaluator of rules on rows, written from the documentation alone: it looks at every entity and asks whether one of the caller's
 * alternatives holds for it. It shares no code with the product.
 */

export type Row = Readonly<Record<string, unknown>>;

export interface Caller {
  readonly subject: string;
  readonly roles: readonly string[];
  readonly claims: Readonly<Record<string, string | readonly string[]>>;
}

export interface World {
  readonly people: readonly Row[];
  readonly members: readonly Row[];
}

/** The caller without rules. */
const ROOT = 'root';

function holds(world: World, caller: Caller, field: string, term: Term, value: unknown): boolean {
  if (value === undefined) return false;
  switch (term.is) {
    case 'equal':
      return value === term.value;
    case 'one of':
      return term.values.some((one) => one === value);
    case 'prefix':
      return typeof value === 'string' && value.startsWith(term.prefix);
    case 'between':
      return typeof value === typeof term.from && (value as string) >= term.from && (value as string) <= term.to;
    case 'subject':
      return value === caller.subject;
    case 'claim': {
      const { teams } = caller.claims;
      return Array.isArray(teams) ? teams.includes(value) : teams === value;
    }
    case 'own': {
      const { email } = caller.claims;
      const mine = world.people.find((person) => typeof email === 'string' && person.email === email);
      return mine !== undefined && mine[field === 'team' ? 'team' : 'person'] === value;
    }
    case 'member':
      return world.members.some(
        (member) =>
          member.team === value &&
          member.user === caller.subject &&
          (term.level === undefined || member.level === term.level),
      );
  }
}

function reaches(world: World, caller: Caller, { role, where }: Given, row: Row): boolean {
  if (!caller.roles.includes(role)) return false;
  return Object.entries(where).every(([field, term]) => holds(world, caller, field, term, row[field]));
}

/** True if the caller may do this with a row: of an update, if it may begin from it. */
export function may(world: World, caller: Caller, rules: Rules, action: Action, row: Row): boolean {
  if (caller.roles.includes(ROOT)) return true;
  const begins = action === 'update' ? (rules.transitions ?? []).map(({ before }) => before) : [];
  return [rules[action], ...begins].some((rule) => rule.some((one) => reaches(world, caller, one, row)));
}

/** True if the caller may change a row so. Without `before`, if the caller may for some row. */
export function mayChange(world: World, caller: Caller, rules: Rules, before: Row | undefined, after: Row): boolean {
  if (caller.roles.includes(ROOT)) return true;
  const holdsFor = (rule: readonly Given[], row: Row) => rule.some((one) => reaches(world, caller, one, row));
  const pairs = [{ before: rules.update, after: rules.update }, ...(rules.transitions ?? [])];
  return pairs.some((pair) => holdsFor(pair.after, after) && (before === undefined || holdsFor(pair.before, before)));
}

/** True if the caller has a role for the action. */
export function hasRole(caller: Caller, rules: Rules, ...actions: Action[]): boolean {
  return (
    caller.roles.includes(ROOT) ||
    actions.some((action) => {
      const pairs = action === 'update' ? (rules.transitions ?? []) : [];
      const all = [...rules[action], ...pairs.flatMap(({ before, after }) => [...before, ...after])];
      return all.some(({ role }) => caller.roles.includes(role));
    })
  );
}

/** A list in the order of keys. */
export interface List {
  /** The fields that are whole in the partition key, and whether there are others. */
  readonly inPartition: readonly string[];
  readonly isWhole: boolean;
  /** The first field of the row key, if it is whole. */
  readonly first: string | undefined;
  /** The fields that a copy has; undefined for all. */
  readonly fields?: readonly string[] | undefined;
  /** True if each row leads to another one. */
  readonly looksUp?: boolean;
}

const isEquality = ({ is }: Term) => is !== 'prefix' && is !== 'between';

/** Which alternatives open a list. */
function opens({ where, lists }: Given, list: List): boolean {
  const terms = Object.entries(where);
  if (terms.length === 0) return true;
  if (lists === 'none') return false;
  if (terms.some(([field]) => list.fields && !list.fields.includes(field))) return false;
  const fixed = terms.filter(([field, term]) => list.inPartition.includes(field) && isEquality(term));
  if (list.looksUp) return fixed.length === terms.length;
  if (lists === 'filtered') return true;
  if (fixed.length > 0 && list.isWhole && fixed.length === list.inPartition.length) return true;
  return list.first !== undefined && terms.some(([field]) => field === list.first);
}

/** The rows of a list that the caller reads; undefined if no alternative opens the list to the caller's roles. */
export function listed(
  world: World,
  caller: Caller,
  rules: Rules,
  list: List,
  rows: readonly Row[],
): readonly Row[] | undefined {
  if (caller.roles.includes(ROOT)) return rows;
  const open = rules.read.filter((alternative) => opens(alternative, list) && caller.roles.includes(alternative.role));
  if (open.length === 0) return undefined;
  return rows.filter((row) => open.some((alternative) => reaches(world, caller, alternative, row)));
}

/** True if every row with these values of some fields is within reach, whatever its other fields are. */
export function reachesAll(world: World, caller: Caller, rules: Rules, action: Action, known: Row): boolean {
  if (caller.roles.includes(ROOT)) return true;
  return rules[action].some(
    (alternative) =>
      caller.roles.includes(alternative.role) &&
      Object.entries(alternative.where).every(([field, term]) => holds(world, caller, field, term, known[field])),
  );
}
