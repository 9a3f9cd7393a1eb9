import { type Alternative, WRITES } from '../declaration/access.ts';
import type { Entity } from '../declaration/entity.ts';
import { countDeeds, type Deed, type RequestLimit } from '../declaration/request-limit.ts';

interface Visited {
  readonly entities: readonly Entity[];
  readonly operations: readonly {
    readonly name: string;
    readonly kind: 'read' | 'write';
    readonly roles: readonly string[];
  }[];
  readonly roles: readonly string[];
  readonly operatorRole: string;
  readonly signedIn?: string | undefined;
  readonly anyone?: string | undefined;
  readonly limits: readonly RequestLimit[];
}

/** Yields what the role of requests without a token cannot have: such a caller has no identity, and costs nothing to invent. */
export function* visitorErrors(model: Visited): Generator<string> {
  const { anyone, roles, operatorRole, signedIn, entities, operations } = model;
  if (anyone === undefined) return;
  if (!roles.includes(anyone)) {
    yield `anyone is "${anyone}", which is not a role of the model. Use one of ${roles.join(', ')}.`;
    return;
  }
  if (anyone === operatorRole)
    yield `anyone is "${anyone}", which is also operatorRole: everybody would be an operator, without a token. Use another role.`;
  if (anyone === signedIn)
    yield `anyone is "${anyone}", which is also signedIn, and a request without a token has no identity. Use two roles.`;
  for (const entity of entities)
    for (const error of entityErrors(entity, model, anyone)) yield `Entity "${entity.name}": ${error}`;
  for (const { name, kind, roles: named } of operations)
    if (kind === 'write' && named.includes(anyone) && !isLimited(model, { operation: name }, 'update'))
      yield `Operation "${name}": the role "${anyone}" of anyone may call it any number of times. Add to limits: { role: '${anyone}', operation: '${name}', requests: 20, per: 'hour' }.`;
}

/** The error of a function of the app that visitors may call any number of times, if it is one. */
export function functionError(model: Pick<Visited, 'anyone' | 'limits'>, roles: readonly string[]): string | undefined {
  const { anyone } = model;
  if (anyone === undefined || !roles.includes(anyone) || isLimited(model, {}, 'update')) return undefined;
  return `The role "${anyone}" of anyone may call the function any number of times. Add to limits of the model: { role: '${anyone}', requests: 60, per: 'hour' }.`;
}

function* entityErrors({ name, access, archive }: Entity, model: Visited, anyone: string): Generator<string> {
  const { rules, unveiled = {}, own, set = {}, write } = access;
  const named = [
    ...Object.entries(rules ?? {}).map(([action, rule]) => [`the rule to ${action}`, rule] as const),
    ...Object.entries(unveiled).map(([field, rule]) => [`the rule to read "${field}"`, rule] as const),
  ];
  for (const [what, rule] of named)
    for (const [field, is] of identityTerms(rule, anyone))
      yield `${what} of the role "${anyone}" compares "${field}" with ${is} of the caller, and a request without a token has none. Compare a value, or name a role of users.`;
  if (own && 'claim' in own && access.read.includes(anyone))
    yield `access.own gives each caller who may read it a row of its own and grants, and the role "${anyone}" of anyone has no identity. Remove it from access.read.`;
  const writes = WRITES.filter((action) =>
    rules ? rules[action].some(({ role }) => role === anyone) : write.includes(anyone),
  );
  const [first] = Object.keys(set);
  if (first !== undefined && writes.includes('create'))
    yield `access.set takes "${first}" from the caller, and the role "${anyone}" of anyone has no identity. Let it create rows of an entity without access.set.`;
  for (const action of writes) {
    // A limit of an entity does not count the deletes of its archive.
    const limited = archive && action === 'delete' ? {} : { entity: name };
    const named = 'entity' in limited ? ` entity: '${name}',` : '';
    if (!isLimited(model, limited, action))
      yield `the role "${anyone}" of anyone may ${action} any number of rows. Add to limits: { role: '${anyone}',${named} action: '${action}', requests: 20, per: 'hour' }.`;
  }
}

const IDENTITIES: Readonly<Record<string, string>> = {
  subject: 'the subject',
  claim: 'a claim',
  own: 'the own entity',
  member: 'a membership',
};

/** The fields that the rule compares with what a visitor does not have. */
function identityTerms(
  rule: readonly Alternative<string, unknown>[],
  anyone: string,
): (readonly [field: string, is: string])[] {
  return rule
    .filter(({ role }) => role === anyone)
    .flatMap(({ where = {} }) => Object.entries(where))
    .flatMap(([field, term]) => {
      const is = typeof term === 'object' ? IDENTITIES[term.is] : undefined;
      return is === undefined ? [] : [[field, is] as const];
    });
}

/** True if a limit of visitors counts each such deed. */
function isLimited(
  { anyone, limits }: Pick<Visited, 'anyone' | 'limits'>,
  { entity, operation }: { readonly entity?: string; readonly operation?: string },
  deed: Deed,
): boolean {
  return limits.some(
    (limit) =>
      limit.role === anyone &&
      [undefined, entity].includes(limit.entity) &&
      [undefined, operation].includes(limit.operation) &&
      countDeeds(limit, [deed]) > 0,
  );
}
