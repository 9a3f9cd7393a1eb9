import type { Values } from '../../lib/base/values.ts';
import { type Action, type Alternative, hasTerms, type Term } from '../../lib/define/declaration/access.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { Model } from '../../lib/define/define-model.ts';
import { memberField } from '../../lib/define/places/reach.ts';
import type { Route } from '../../lib/http/route.ts';
import { createRoutes } from '../../lib/http/routes.ts';
import { addComputed, makeExampleInput, makeExampleValues } from './example-values.ts';
import type { SampleRequest } from './samples.ts';

/** Requests that show the use of an entity, and the roles and claims that they need. */
export interface Examples {
  readonly roles: readonly string[];
  /** The claims by which the rules on rows allow the requests, and by which the example entity is the caller's own. */
  readonly claims: Claims;
  readonly requests: readonly ExampleRequest[];
}

type Claims = Readonly<Record<string, string>>;

export interface ExampleRequest {
  readonly method: string;
  /** With the prefix `/api`. */
  readonly path: string;
  readonly body?: object;
}

/** The values of an example, and the claims of its caller. */
interface Example {
  readonly values: Values;
  readonly claims: Claims;
}

/**
 * Requests for the first entity of the sample data. Without sample data, generates values from the schemas for the entity
 * that allows the most requests; the first request creates it. An entity that an empty app accepts comes before all others, and if there is none,
 * an operation of the app.
 * Returns undefined if no entity allows any request.
 */
export function makeExampleRequests(model: Model, samples: readonly SampleRequest[]): Examples | undefined {
  // A child needs an existing parent.
  const storable = model.list.filter(({ series, childOf }) => !series && !childOf);
  const routes = new Map(createRoutes(model).map((route) => [route.name, route]));
  for (const { method, path, body } of samples) {
    const entity = storable.find(({ name }) => method === 'POST' && name === path);
    if (entity && !(body instanceof Uint8Array))
      return makeExamples(routes, entity, { values: { ...body }, claims: {} }, { isStored: true });
  }
  const all = storable.flatMap((entity) => {
    const values = makeExampleValues(entity);
    if (!values) return [];
    const allowed = followRules(entity, values);
    const examples = makeExamples(routes, entity, allowed ?? { values, claims: {} }, { isStored: false });
    return [{ examples, isAccepted: allowed !== undefined && isAcceptedFirst(entity, values) }];
  });
  const accepted = all.filter(({ isAccepted }) => isAccepted);
  // The first rows of some apps are made by the app itself.
  const call = accepted.length === 0 && callOf(model);
  if (call) return call;
  const candidates = (accepted.length > 0 ? accepted : all).map(({ examples }) => examples);
  const most = Math.max(...candidates.map(({ requests }) => requests.length));
  return candidates.find(({ requests }) => requests.length === most);
}

/** A call of the first operation whose input the schema describes. */
function callOf({ operations }: Model): Examples | undefined {
  for (const { name, roles, input } of Object.values(operations)) {
    const body = makeExampleInput(input);
    if (body)
      return { roles: roles.slice(0, 1), claims: {}, requests: [{ method: 'POST', path: `/api/${name}`, body }] };
  }
  return undefined;
}

/** False if the values refer to another entity, or have an example date, which a period may no longer keep. */
function isAcceptedFirst({ references, denormalized, period }: Entity, values: Values): boolean {
  const fields = [...Object.keys(references), ...Object.keys(denormalized)];
  return !period && fields.every((field) => values[field] === undefined);
}

/** An example that the rules on rows let a caller create in an empty app, with the fields from the caller; undefined if they let nobody. */
function followRules(entity: Entity, values: Values): Example | undefined {
  const { rules, set = {}, steward } = entity.access;
  const ofUsers = rules?.create.filter(({ role }) => role !== steward);
  const rule = ofUsers?.map((alternative) => ({ ...alternative, where: { ...set, ...alternative.where } }));
  if (!rule) return followTerms({ where: set }, values);
  const examples = rule
    .toSorted((one, other) => Number(hasTerms(one)) - Number(hasTerms(other)))
    .map((alternative) => [alternative, followTerms(alternative, values)] as const);
  return examples.find(([alternative, example]) => isMet(entity, alternative, example))?.[1];
}

/** The values with those that the terms demand, and claims with these values. Terms of stored entities are left out. */
function followTerms({ where = {} }: Pick<Alternative<string, Entity>, 'where'>, given: Values): Example {
  const values: Record<string, unknown> = { ...given };
  const claims: Record<string, string> = {};
  for (const [field, term] of Object.entries(where)) {
    if (typeof term !== 'object') values[field] = term;
    else if (term.is === 'one of') values[field] = term.values[0];
    else if (term.is === 'subject') values[field] = claims.sub ??= String(values[field]);
    else if (term.is === 'claim') claims[term.claim] ??= String(values[field]);
  }
  return { values, claims };
}

/** True if all terms hold for the example, once it is stored, and its caller. */
function isMet(entity: Entity, { where = {} }: Alternative<string, Entity>, { values, claims }: Example): boolean {
  const holds = (value: unknown, term: Term<Entity>): boolean => {
    if (typeof term !== 'object') return value === term;
    switch (term.is) {
      case 'one of':
        return term.values.some((one) => one === value);
      case 'prefix':
        return String(value).startsWith(term.prefix);
      case 'between':
        return (value as string) >= term.from && (value as string) <= term.to;
      case 'subject':
        return value === claims.sub;
      case 'claim':
        return String(value) === claims[term.claim] && Object.keys(term.verifiedBy ?? {}).length === 0;
      case 'member': {
        const { of, field, where: others } = term;
        const user = memberField(of, field) ?? '';
        // The example may be the membership itself.
        return (
          of === entity &&
          Object.entries({ ...others, [user]: claims.sub }).every(([name, one]) => values[name] === one)
        );
      }
      case 'own':
        return false;
    }
  };
  return Object.entries(where).every(([field, term]) => holds(values[field], term));
}

function makeExamples(
  routes: ReadonlyMap<string, Route>,
  entity: Entity,
  { values, claims }: Example,
  { isStored }: { readonly isStored: boolean },
): Examples {
  const all = addComputed(entity, values);
  const steps: { route: Route; roles: readonly string[]; body?: object }[] = [];
  const add = (name: string, action: Action, body?: object) => {
    const route = routes.get(name);
    const rule = entity.access.rules?.[action].filter((one) => isMet(entity, one, { values: all, claims }));
    const roles = route?.roles?.filter((role) => rule?.some((one) => one.role === role) ?? true) ?? [];
    if (route && roles.length > 0) steps.push({ route, roles, ...(body === undefined ? {} : { body }) });
  };
  if (!isStored) add(`${entity.name}-create`, 'create', values);
  add(`${entity.name}-get`, 'read');
  add(`${entity.name}-range`, 'read');
  const index = Object.entries(entity.indexes).find(
    ([name, { when }]) => when?.(all) !== false && fillPath(routes.get(`${entity.name}-by-${name}`), all) !== undefined,
  );
  if (index) add(`${entity.name}-by-${index[0]}`, 'read');
  const claim = findOwnClaim(entity, all);
  if (claim) add('grants-create', 'read', { entity: entity.name, scope: 'own' });
  const requests = steps.flatMap(({ route, body }) => {
    const path = fillPath(route, all);
    return path === undefined ? [] : [{ method: route.method, path, ...(body === undefined ? {} : { body }) }];
  });
  return { roles: chooseRoles(steps.map(({ roles }) => roles)), claims: { ...claims, ...claim }, requests };
}

function findOwnClaim({ access: { own }, indexes }: Entity, values: Values): Claims | undefined {
  if (!own || !('index' in own)) return undefined;
  const [field = ''] = indexes[own.index]?.row.fields ?? [];
  return values[field] === undefined ? undefined : { [own.claim]: String(values[field]) };
}

/** The path of a route with these values. Undefined if a value is missing. The first element stands for a list. */
function fillPath(route: Route | undefined, values: Values): string | undefined {
  if (!route) return undefined;
  const parts = route.path.split('/').map((part) => {
    const field = /^\{(\w+)\??\}$/.exec(part)?.[1];
    const value = field === undefined ? part : [values[field]].flat()[0];
    return value === undefined ? undefined : encodeURIComponent(String(value));
  });
  return parts.includes(undefined) ? undefined : ['/api', ...parts].join('/');
}

/** One role that may send every request, or a role for each. */
function chooseRoles(needed: readonly (readonly string[])[]): string[] {
  const one = needed[0]?.find((role) => needed.every((roles) => roles.includes(role)));
  return one === undefined ? [...new Set(needed.flatMap(([role]) => role ?? []))] : [one];
}
