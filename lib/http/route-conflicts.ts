import type { Entity } from '../define/declaration/entity.ts';
import { fieldSchemas, isExact } from '../define/schema/field-schema.ts';
import { groupOf, groupRoutes, parseSegments, type Segment } from './api-handler.ts';
import type { Route } from './route.ts';

/** If two routes match the same request, it reaches the one that the router prefers. */

/** The Functions host rejects routes that begin with these, even `administrators`. */
const HOST_PREFIXES = ['admin', 'runtime'];
const INSTANCE_PATH = /^[a-z][a-z0-9-]{0,59}$/;
/** The numbers that `validateTexts` accepts in a path. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

/** A sentence for each conflict. `own` are the routes without an entity, such as `health`. */
export function routeErrors(
  entities: readonly Entity[],
  { own, all }: { readonly own: readonly Route[]; readonly all: readonly Route[] },
): string[] {
  return [...nameErrors(entities, own), ...pathErrors(all), ...hiddenErrors(entities, all)];
}

/** An instance on a Functions app: its queues and timers have the prefix, and its routes are below the path. */
export interface Mounted {
  readonly prefix: string;
  readonly path: string;
  readonly routes: readonly Route[];
}

/** Says why an instance cannot have this path. */
export function pathError(path: string): string | undefined {
  if (INSTANCE_PATH.test(path) && !HOST_PREFIXES.some((word) => path.startsWith(word))) return undefined;
  return `The path ${JSON.stringify(path)} is not accepted. Use 1 to 60 lower-case letters, digits and hyphens, a letter first, and begin it with neither ${HOST_PREFIXES.join(' nor ')}.`;
}

/** A sentence for each conflict of an instance with the others on its app. */
export function mountErrors(added: Mounted, others: readonly Mounted[]): string[] {
  const { path, prefix } = added;
  const errors: string[] = [];
  const error = path === '' ? undefined : pathError(path);
  if (error !== undefined) errors.push(error);
  if (others.some((other) => other.prefix === prefix))
    errors.push(`The prefix "${prefix}" belongs to another instance on the app. Give each model a prefix of its own.`);
  if (others.some((other) => other.path === path))
    errors.push(`The path "${path}" belongs to another instance on the app. Give each instance a path of its own.`);
  const all = [...others, added];
  // Routes ignore the case, and the name of an operation may have capitals.
  const taken = all
    .filter((one) => one.path === '')
    .flatMap(({ routes }) => routes.map((route) => firstSegment(route).toLowerCase()));
  for (const { path: used } of all)
    if (taken.includes(used))
      errors.push(`The path "${used}" begins routes of the instance without a path. Give it another name.`);
  return errors;
}

function* nameErrors(entities: readonly Entity[], own: readonly Route[]): Generator<string> {
  const reserved = new Set(own.map(firstSegment));
  for (const { name } of entities) {
    if (reserved.has(name))
      yield `Entity "${name}": the API itself has a route /api/${name}. Choose a name other than ${[...reserved].join(', ')}.`;
  }
}

function* pathErrors(routes: readonly Route[]): Generator<string> {
  const names = new Set<string>();
  for (const { name, path } of routes) {
    if (names.has(name.toLowerCase()))
      yield `Route /api/${path}: another route has the operation id "${name}", which ignores case. Give entities, indexes and attachments names that differ in more than case.`;
    names.add(name.toLowerCase());
    const parameters = parseSegments(path).flatMap(({ parameter }) => parameter?.toLowerCase() ?? []);
    const twice = parameters.find((parameter, index) => parameters.indexOf(parameter) < index);
    if (twice)
      yield `Route /api/${path}: the path has the parameter "${twice}" twice, which ignores case. Rename the key field or the slot.`;
  }
}

/** Yields an error for each route that cannot be reached with some of its values, because the router prefers another one. */
function* hiddenErrors(entities: readonly Entity[], routes: readonly Route[]): Generator<string> {
  for (const group of groupRoutes(routes).values())
    for (const [position, first] of group.entries())
      for (const later of group.slice(position + 1)) {
        if (later.route.method !== first.route.method) continue;
        const where = overlapOf(entities, first.segments, later.segments);
        if (where !== undefined)
          yield `Route ${first.route.method} /api/${first.route.path} hides ${later.route.method} /api/${later.route.path}${where}. Rename the index, totals or attachment, or reject that value in the schema.`;
      }
}

/** False if the two routes cannot be in conflict with each other. */
export function canConflict(one: Route, other: Route): boolean {
  const isSamePlace = one.method === other.method && groupOf(one.path.split('/')) === groupOf(other.path.split('/'));
  return isSamePlace || one.name.toLowerCase() === other.name.toLowerCase();
}

/** The values of `later` with which a request reaches `first`; undefined if there are none. */
function overlapOf(
  entities: readonly Entity[],
  segments: readonly Segment[],
  others: readonly Segment[],
): string | undefined {
  const isDifferent = (segment: Segment, index: number) =>
    segment.parameter === undefined &&
    others[index]?.parameter === undefined &&
    segment.folded !== others[index]?.folded;
  if (segments.some(isDifferent)) return undefined;
  const entity = entities.find(({ name }) => name === others[0]?.text);
  const values: string[] = [];
  for (const [index, { text, parameter: own }] of segments.entries()) {
    const parameter = others[index]?.parameter;
    if (own !== undefined || parameter === undefined) continue;
    if (entity && !canBe(entity, parameter, text)) return undefined;
    values.push(`${parameter} is "${text}"`);
  }
  return values.length > 0 ? ` where ${values.join(' and ')}` : '';
}

/** True if a field may have this text, ignoring case, or if that is unknown. */
function canBe(entity: Entity, field: string, text: string): boolean {
  const type = fieldSchemas(entity.schema)[field];
  if (!type || Object.hasOwn(entity.derived, field) || !isExact(entity.schema, field)) return true;
  const isText = (value: unknown) => String(value).toLowerCase() === text.toLowerCase();
  if (type.type === 'integer' || type.type === 'number') return NUMBER.test(text);
  if (type.type === 'boolean') return isText(true) || isText(false);
  if (type.constant !== undefined) return isText(type.constant);
  if (type.choices) return type.choices.some(isText);
  if (text.length < (type.minLength ?? 0) || text.length > (type.maxLength ?? Number.POSITIVE_INFINITY)) return false;
  return !type.pattern || mayMatch(type.pattern, text);
}

/** The flag `i` would make an exception such as [^a] or (?!a) exclude more than it does without the flag. */
function mayMatch(pattern: string, text: string): boolean {
  if (/\[\^|\(\?<?!|\\[PSDWB]/.test(pattern)) return true;
  try {
    return new RegExp(pattern, 'iu').test(text);
  } catch {
    return true;
  }
}

function firstSegment({ path }: Route): string {
  return path.split('/')[0] ?? '';
}
