import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openAccessApp } from '../access-app.ts';
import { accessChecks } from '../kit/access.ts';
import { defineCodec } from '../kit/define.ts';
import { sampleRuns } from '../points.ts';
import type { Caller, Row } from './evaluator.ts';
import { define } from './proof-model.ts';
import { derive } from './proof-world.ts';
import { ACTIONS, type Given, type Plan, plans, type Rules, rulesOf, type Term, VALUES } from './random-model.ts';
import { beginnings, callers, taskRows } from './random-requests.ts';

/** Cedar (https://www.cedarpolicy.com) as an oracle: each alternative is a policy, each row a resource, and each caller a principal. */

interface Entity {
  readonly uid: { readonly type: string; readonly id: string };
  readonly attrs: Readonly<Record<string, unknown>>;
  readonly parents: readonly [];
}
interface Cedar {
  preparsePolicySet(id: string, policies: { staticPolicies: string }): { readonly type: 'success' | 'failure' };
  statefulIsAuthorized(call: {
    readonly principal: Entity['uid'];
    readonly action: Entity['uid'];
    readonly resource: Entity['uid'];
    readonly context: object;
    readonly preparsedPolicySetId: string;
    readonly entities: readonly Entity[];
  }):
    | { readonly type: 'failure' }
    | {
        readonly type: 'success';
        readonly response: {
          readonly decision: 'allow' | 'deny';
          readonly diagnostics: { readonly errors: readonly unknown[] };
        };
      };
}
/** The build for Node is a CommonJS module. */
const cedar = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as Cedar;

const RUNS = Number(process.env.RULES_MODELS ?? 30);

const json = (value: unknown) => JSON.stringify(value);

function conditionOf(field: string, term: Term): string {
  const value = `resource.${field}`;
  switch (term.is) {
    case 'equal':
      return `${value} == ${json(term.value)}`;
    case 'one of':
      return `${json(term.values)}.contains(${value})`;
    case 'prefix':
      return `${value} like ${json(`${term.prefix}*`)}`;
    case 'between': {
      if (typeof term.from === 'number') return `${value} >= ${term.from} && ${value} <= ${term.to}`;
      // Cedar does not order texts.
      const all: readonly unknown[] = VALUES[field as keyof typeof VALUES];
      return `${json(all.filter((one) => String(one) >= String(term.from) && String(one) <= String(term.to)))}.contains(${value})`;
    }
    case 'subject':
      return `${value} == principal.subject`;
    case 'claim':
      return `principal.teams.contains(${value})`;
    case 'own':
      return `principal has own && ${value} == principal.own.${field === 'team' ? 'team' : 'person'}`;
    case 'member':
      return `principal.${term.level ?? 'any'}.contains(${value})`;
  }
}

function policyOf(action: string, { role, where }: Given): string {
  const terms = Object.entries(where).map(([field, term]) => `resource has ${field} && ${conditionOf(field, term)}`);
  const conditions = [`principal.roles.contains(${json(role)})`, ...terms].map((one) => `(${one})`);
  return `permit(principal, action == Action::${json(action)}, resource) when { ${conditions.join(' && ')} };`;
}

const policiesOf = (rules: Rules) =>
  [
    ...ACTIONS.flatMap((action) => rules[action].map((alternative) => policyOf(action, alternative))),
    'permit(principal, action, resource) when { principal.roles.contains("root") };',
  ].join('\n');

type Beginning = typeof beginnings extends fc.Arbitrary<infer T> ? T : never;

function principalOf({ subject, roles, claims }: Caller, { people, members }: Beginning): Record<string, unknown> {
  const mine = members.filter(({ user }) => user === subject);
  const teams = (level?: string) =>
    mine.filter((one) => level === undefined || one.level === level).map(({ team }) => team);
  const own = Object.entries(people).find(([person]) => claims.email === `${person}@x`);
  return {
    subject,
    roles: [...roles],
    teams: [claims.teams ?? []].flat(),
    any: teams(),
    admin: teams('admin'),
    member: teams('member'),
    ...(own ? { own: { person: own[0], team: own[1] } } : {}),
  };
}

/** Any user may read and change all tasks of a team. */
const every = [{ role: 'user', where: { team: { is: 'equal', value: 't1' } }, lists: 'none' }] as const;
const allRules = { read: every, create: every, update: every, delete: every };
const OPEN: Plan = {
  key: 0,
  indexes: [],
  totals: [],
  isOneWrite: false,
  isOwnerSet: false,
  isMovable: false,
  isDerived: false,
  isRootSteward: false,
  isLeadVisitor: false,
  tasks: allRules,
  notes: allRules,
};
const USER: Caller = { subject: 'ann', roles: ['user'], claims: {} };
const ROW: Row = {
  team: 't1',
  owner: 'bob',
  id: '10',
  state: 'draft',
  day: '2026-10-03',
  rank: 0,
  flag: true,
  size: 1,
};

const stats = { models: 0, decisions: 0, allowed: 0 };

test('decides like Cedar', { tags: ['slow'], timeout: 3_600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      plans,
      beginnings,
      fc.array(callers, { minLength: 6, maxLength: 6 }),
      taskRows(20),
      async (plan, beginning, all, rows) => {
        const defined = define(plan);
        fc.pre(defined !== undefined);
        const { ask, engine } = await openAccessApp(import.meta.url, defined.model);
        const root = { subject: 'root', roles: ['root'] };
        for (const [person, team] of Object.entries(beginning.people))
          await ask(root, 'POST', 'people', { person, team, email: `${person}@x` });
        for (const member of beginning.members) await ask(root, 'POST', 'members', member);
        for (const kind of ['tasks', 'notes'] as const) {
          const entity = defined.model.list.find(({ name }) => name === kind);
          if (!entity) throw new Error(kind);
          const staticPolicies = policiesOf(rulesOf(plan, plan[kind]));
          const parsed = cedar.preparsePolicySet('rules', { staticPolicies });
          if (parsed.type === 'failure') throw new Error(json(parsed));
          for (const caller of all)
            for (const action of ACTIONS) {
              const limit = await accessChecks.limitOf({ engine, caller }, entity, action);
              for (const row of rows.map(derive))
                decide({ caller, action, row, beginning }, defineCodec.isWithin(limit, row));
            }
        }
        stats.models += 1;
      },
    ),
    {
      ...sampleRuns(RUNS),
      ...(process.env.RULES_MODELS ? { numRuns: RUNS } : {}),
      // A small sample may allow nothing.
      examples: [[OPEN, { tasks: [], members: [], people: { ann: 't1', bob: 't1' } }, [USER], [ROW]]],
    },
  );
  if (process.env.RULES_MODELS) console.log(json(stats));
  expect(stats.allowed).toBeGreaterThan(0);
});

function decide(
  { caller, action, row, beginning }: { caller: Caller; action: string; row: Row; beginning: Beginning },
  found: boolean,
): void {
  const principal = { type: 'User', id: caller.subject };
  const resource = { type: 'Row', id: 'row' };
  // Cedar has no fractions.
  const attrs = Object.fromEntries(Object.entries(row).filter(([field]) => field !== 'size'));
  const answer = cedar.statefulIsAuthorized({
    principal,
    action: { type: 'Action', id: action },
    resource,
    context: {},
    preparsedPolicySetId: 'rules',
    entities: [
      { uid: principal, attrs: principalOf(caller, beginning), parents: [] },
      { uid: resource, attrs, parents: [] },
    ],
  });
  if (answer.type === 'failure' || answer.response.diagnostics.errors.length > 0) throw new Error(json(answer));
  const expected = answer.response.decision === 'allow';
  stats.decisions += 1;
  stats.allowed += Number(expected);
  if (found !== expected) throw new Error(`${found} in place of ${expected}: ${json({ caller, action, row })}`);
}
