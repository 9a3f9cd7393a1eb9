import type { Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { Model } from '../../lib/define/define-model.ts';
import type { Route } from '../../lib/http/route.ts';
import { createRoutes } from '../../lib/http/routes.ts';
import { addDerived, makeExampleValues } from './example-values.ts';
import type { SampleRequest } from './samples.ts';

/** Requests that show the use of an entity, and the roles and claim that they need. */
export interface Examples {
  readonly roles: readonly string[];
  /** The claim that makes the example entity the caller's own, if the model declares one. */
  readonly claim: { readonly name: string; readonly value: string } | undefined;
  readonly requests: readonly ExampleRequest[];
}

export interface ExampleRequest {
  readonly method: string;
  /** With the prefix `/api`. */
  readonly path: string;
  readonly body?: object;
}

/**
 * Requests for the first entity of the sample data. Without sample data, generates values from the schemas for the entity
 * that allows the most requests; the first request creates it. An entity that an empty app accepts comes before all others.
 * Returns undefined if no entity allows any request.
 */
export function makeExampleRequests(model: Model, samples: readonly SampleRequest[]): Examples | undefined {
  // A child needs an existing parent.
  const storable = model.list.filter(({ series, childOf }) => !series && !childOf);
  const routes = new Map(createRoutes(model).map((route) => [route.name, route]));
  for (const { method, path, body } of samples) {
    const entity = storable.find(({ name }) => method === 'POST' && name === path);
    if (entity && !(body instanceof Uint8Array)) return makeExamples(routes, entity, body, { isStored: true });
  }
  const all = storable.flatMap((entity) => {
    const values = makeExampleValues(entity);
    if (!values) return [];
    const examples = makeExamples(routes, entity, values, { isStored: false });
    return [{ examples, isAccepted: isAcceptedFirst(entity, values) }];
  });
  const accepted = all.filter(({ isAccepted }) => isAccepted);
  const candidates = (accepted.length > 0 ? accepted : all).map(({ examples }) => examples);
  const most = Math.max(...candidates.map(({ requests }) => requests.length));
  return candidates.find(({ requests }) => requests.length === most);
}

/** False if the values refer to another entity, or have an example date, which a period may no longer keep. */
function isAcceptedFirst({ references, denormalized, period }: Entity, values: Values): boolean {
  const fields = [...Object.keys(references), ...Object.keys(denormalized)];
  return !period && fields.every((field) => values[field] === undefined);
}

function makeExamples(
  routes: ReadonlyMap<string, Route>,
  entity: Entity,
  values: Values,
  { isStored }: { readonly isStored: boolean },
): Examples {
  const all = addDerived(entity, values);
  const steps: { route: Route; body?: object }[] = [];
  const add = (name: string, body?: object) => {
    const route = routes.get(name);
    if (route) steps.push({ route, ...(body === undefined ? {} : { body }) });
  };
  if (!isStored) add(`${entity.name}-create`, values);
  add(`${entity.name}-get`);
  add(`${entity.name}-range`);
  const index = Object.entries(entity.indexes).find(
    ([name, { when }]) => when?.(all) !== false && fillPath(routes.get(`${entity.name}-by-${name}`), all) !== undefined,
  );
  if (index) add(`${entity.name}-by-${index[0]}`);
  const claim = findOwnClaim(entity, all);
  if (claim) add('grants-create', { entity: entity.name, scope: 'own' });
  const requests = steps.flatMap(({ route, body }) => {
    const path = fillPath(route, all);
    return path === undefined ? [] : [{ method: route.method, path, ...(body === undefined ? {} : { body }) }];
  });
  return { roles: chooseRoles(steps.map(({ route }) => route.roles ?? [])), claim, requests };
}

function findOwnClaim({ access: { own }, indexes }: Entity, values: Values): Examples['claim'] {
  if (!own || !('index' in own)) return undefined;
  const [field = ''] = indexes[own.index]?.row.fields ?? [];
  return values[field] === undefined ? undefined : { name: own.claim, value: String(values[field]) };
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
