import type { Values } from '../lib/index.ts';
import { model } from './fixtures/model.ts';
import type { Entity } from './kit/define.ts';
import { httpDoor, type Route } from './kit/http.ts';
import { sampleItems } from './points.ts';

/**
 * What each caller may do at each route: it follows from `access` in the declaration, the method and path of the route, and the fields of the
 * entity. No authorization code of the product is called.
 */

export const OWNER = 'owner.zz@contoso.com';

export interface Caller {
  readonly name: string;
  readonly roles: readonly string[];
  readonly email?: string;
}
const NOBODY: Caller = { name: 'nobody', roles: [] };
export const CALLERS: readonly Caller[] = [
  NOBODY,
  { name: 'a reader', roles: ['reader'] },
  { name: 'a reader with an own employee', roles: ['reader'], email: OWNER },
  { name: 'hr', roles: ['hr'] },
  { name: 'an operator', roles: ['operator'] },
  { name: 'an operator who is a reader', roles: ['operator', 'reader'] },
  { name: 'an operator who is hr', roles: ['operator', 'hr'] },
];
export const EVERYTHING: Caller = { name: 'all', roles: ['reader', 'hr', 'operator'] };

export const has = ({ roles }: Caller, allowed: readonly string[] = []) => allowed.some((role) => roles.includes(role));
const fieldsOf = (entity: Entity) => [...Object.keys(entity.schema.shape), ...(entity.series ? ['counts'] : [])];

export function visibleFields(entity: Entity, caller: Caller): string[] {
  const { read, restricted = {} } = entity.access;
  if (!has(caller, read)) return [];
  return fieldsOf(entity).filter((field) => !(field in restricted) || has(caller, restricted[field]));
}

/** The restricted fields that a rule shows to readers in their own row. */
export function fieldsOfOwner({ access: { unveiled = {} } }: Entity, caller: Caller, { email }: Values): string[] {
  return has(caller, ['reader']) && caller.email !== undefined && email === caller.email ? Object.keys(unveiled) : [];
}

export const seesAll = (entity: Entity, caller: Caller) =>
  visibleFields(entity, caller).length === fieldsOf(entity).length;

export interface Target {
  readonly route: Route;
  readonly parts: readonly string[];
  readonly entity: Entity | undefined;
}
const accepting = httpDoor.createRoutes(model).filter(({ isUndescribed }) => !isUndescribed);
export const TARGETS: readonly Target[] = accepting.map((route) => {
  const parts = route.path.split('/');
  const name = parts[0] === 'operations' ? parts[2] : parts[0];
  const entity = model.list.find((one) => name !== undefined && [one.name, one.archive?.name].includes(name));
  // Operations on the children in an archive: `operations/import/formeremployees/reviews`.
  const child = entity?.children.find((one) => parts[0] === 'operations' && one.name === parts[3]);
  return { route, parts, entity: child ?? entity };
});

/** The expected status: 'open' if the caller is allowed, otherwise 401 or 403. */
export function expected({ route, parts, entity }: Target, caller: Caller, explain: boolean): 'open' | 401 | 403 {
  const { method, path } = route;
  if (['health', 'model', 'openapi.json', 'problems'].includes(path)) return 'open';
  const attachment = entity && parts.map((part) => entity.attachments[part]).find((found) => found);
  if (attachment?.public && method === 'GET') return 'open';
  if (caller.roles.length === 0) return 401;
  const may = (allowed: boolean) => (allowed ? 'open' : 403);
  if (path === 'query' || path === 'me') return may(caller.roles.length > 0);
  if (path === 'transact')
    return may(has(caller, ['hr']) && (!explain || model.list.every((one) => seesAll(one, caller))));
  if (path === 'grants') return may(caller.email === OWNER && caller.roles.includes('reader'));
  const beside = model.list.filter(({ table }) => table === entity?.table);
  if (explain && method !== 'GET' && beside.some((one) => !seesAll(one, caller))) return 403;
  if (parts[0] === 'operations') {
    const reads = parts[1] === 'scan' || (parts[1] === 'files' && method === 'GET');
    const writes = parts[1] === 'import' || (parts[1] === 'files' && method === 'PUT');
    if (parts[1] === 'why')
      return may(
        has(caller, ['operator']) && model.list.some((one) => one.name === 'employees' && seesAll(one, caller)),
      );
    return may(
      caller.roles.includes('operator') &&
        (!reads || has(caller, entity?.access.read)) &&
        (!writes || has(caller, entity?.access.write)),
    );
  }
  if (!entity) throw new Error(`${path} is of no entity.`);
  const { read, write, own } = entity.access;
  if (attachment && parts.at(-1) === 'grants') return may(has(caller, read));
  if (attachment && method !== 'GET') return may(has(caller, write) || (own !== undefined && caller.email === OWNER));
  if (parts.at(-1) === '{operationId}' || method !== 'GET') return may(has(caller, write));
  const visible = visibleFields(entity, caller);
  if (parts[1] === 'totals')
    return may(entity.totals[parts[2] ?? '']?.uses.every((field) => visible.includes(field)) ?? false);
  if (parts[1] !== 'by') return may(has(caller, read));
  // The order of a list reveals the fields of the row key, and its entities have all fields of the keys, even if the path does not.
  const index = entity.indexes[parts[2] ?? ''];
  const inKeys = [...(index?.row.fields ?? []), ...(index?.remote?.partition.fields ?? [])];
  return may([...parts.slice(3).map((part) => part.slice(1, -1)), ...inKeys].every((field) => visible.includes(field)));
}

/** The kind of a route: its name without the names of the model. An archive and a public attachment have kinds of their own. */
function kindOf({ route, parts, entity }: Target): string {
  if (!entity || parts[0] === 'operations')
    return `${route.method} ${route.name.replace(/^(operations-\w+)-.*$/, '$1')}`;
  const isArchive = entity.archive?.name === parts[0];
  const isPublic = parts.some((part) => entity.attachments[part]?.public);
  const rest = route.name
    .slice(parts[0]?.length)
    .replace(/^-(by|totals|file|put)-[^-]+/, '-$1')
    .replace(/-\d+$/, '');
  return `${route.method} ${isArchive ? 'archive' : ''}${isPublic ? 'public' : ''}${rest}`;
}

/** The routes that a run visits as each caller. */
export function sampleTargets(): ReadonlyMap<Caller, readonly Target[]> {
  const byName = new Map(TARGETS.map((target) => [target.route.name, target]));
  const kinds = Object.entries(Object.groupBy(TARGETS, kindOf)).map(([kind, targets = []]) => ({
    routes: targets.map(({ route }) => route.name),
    callers: sampleItems(
      CALLERS.map(({ name }) => name),
      ['callers', kind],
      3,
    ),
  }));
  const rejected = [...byName].map(([name, target]) => {
    const rejects = CALLERS.filter((caller) => expected(target, caller, false) !== 'open').map((caller) => caller.name);
    // A caller without a role tests the token only.
    const withRole = rejects.filter((caller) => caller !== NOBODY.name);
    return { name, callers: new Set(sampleItems(withRole.length > 0 ? withRole : rejects, ['caller', name])) };
  });
  return new Map(
    CALLERS.map((caller) => {
      const names = new Set([
        ...kinds
          .filter(({ callers }) => callers.includes(caller.name))
          .flatMap(({ routes }) => sampleItems(routes, ['route', caller.name])),
        ...rejected.filter(({ callers }) => callers.has(caller.name)).map(({ name }) => name),
      ]);
      return [caller, [...names].flatMap((name) => byName.get(name) ?? [])];
    }),
  );
}
