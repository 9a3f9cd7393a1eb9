import type { Entity } from '../define/entity.ts';
import { fieldSchemas, hasExactPattern } from '../define/validate/field-schema.ts';
import { prefixWithHyphen } from '../storage/resource-names.ts';
import { OTHER_REQUESTS } from './other-requests.ts';
import type { Route } from './route.ts';

/**
 * The Functions host tries functions in the order of their names, ignores case in the literals of a path, and calls the first
 * whose method and path match. If two routes match the same request, it may reach the wrong one.
 */

/** The host rejects routes that begin with these, even `administrators`. */
const HOST_PREFIXES = ['admin', 'runtime'];
/** https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules#microsoftweb */
const FUNCTION_NAME = /^[a-z][a-z0-9_-]{0,126}$/i;
const INSTANCE_PATH = /^[a-z][a-z0-9-]{0,59}$/;
/** The numbers that `validateTexts` accepts in a path. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

/** A sentence for each conflict. `own` are the routes without an entity, such as `health`. */
export function routeErrors(
  entities: readonly Entity[],
  { own, all, prefix }: { readonly own: readonly Route[]; readonly all: readonly Route[]; readonly prefix: string },
): string[] {
  return [...nameErrors(entities, own), ...pathErrors(all, prefix), ...hiddenErrors(entities, all)];
}

/** An instance on a Functions app: its functions have the prefix, and its routes are below the path. */
export interface Mounted {
  readonly prefix: string;
  readonly path: string;
  readonly routes: readonly Route[];
}

/** Says why an instance cannot have this path. */
export function pathError(path: string): string | undefined {
  if (INSTANCE_PATH.test(path) && !HOST_PREFIXES.some((word) => path.startsWith(word))) return undefined;
  return `The path ${JSON.stringify(path)} is not accepted; a path is 1 to 60 lower-case letters, digits and hyphens, and begins with a letter and not with ${HOST_PREFIXES.join(' or ')}.`;
}

/** A sentence for each conflict of an instance with the others on its app. */
export function mountErrors(added: Mounted, others: readonly Mounted[]): string[] {
  const { path, prefix } = added;
  const errors: string[] = [];
  const error = path === '' ? undefined : pathError(path);
  if (error !== undefined) errors.push(error);
  if (others.some((other) => other.prefix === prefix))
    errors.push(`The prefix "${prefix}" belongs to another instance on the app; each model needs a prefix of its own.`);
  if (others.some((other) => other.path === path))
    errors.push(`The path "${path}" belongs to another instance on the app; each instance needs a path of its own.`);
  const all = [...others, added];
  const taken = all.filter((one) => one.path === '').flatMap(({ routes }) => routes.map(firstSegment));
  for (const { path: used } of all)
    if (taken.includes(used))
      errors.push(`The path "${used}" begins routes of the instance without a path; it needs another name.`);
  return errors;
}

function* nameErrors(entities: readonly Entity[], own: readonly Route[]): Generator<string> {
  const reserved = new Set(own.map(firstSegment));
  for (const { name } of entities) {
    if (reserved.has(name))
      yield `Entity "${name}": the API itself has a route /api/${name}; the reserved names are ${[...reserved].join(', ')}.`;
    const prefix = HOST_PREFIXES.find((word) => name.startsWith(word));
    if (prefix)
      yield `Entity "${name}": the Functions host reserves routes that begin with "${prefix}"; the name must begin differently.`;
  }
}

function* pathErrors(routes: readonly Route[], prefix: string): Generator<string> {
  const names = new Set<string>();
  for (const { name: declared, path } of routes) {
    const name = prefixWithHyphen(prefix, declared);
    if (!FUNCTION_NAME.test(name))
      yield `Route /api/${path}: the host does not accept the function name "${name}"; 1 to 127 letters, digits, - and _ are allowed.`;
    if (name.toLowerCase() >= 'zzz')
      yield `Route /api/${path}: the host would call the function ${OTHER_REQUESTS} first, because it orders functions by name; the entity, or the prefix, needs a name that sorts before "zzz".`;
    if (names.has(name.toLowerCase()))
      yield `Route /api/${path}: another route has the function name "${name}", which ignores case; entities, indexes and attachments need names that differ in more than case.`;
    names.add(name.toLowerCase());
    const parameters = segmentsOf(path).flatMap((segment) => parameterOf(segment)?.toLowerCase() ?? []);
    const twice = parameters.find((parameter, index) => parameters.indexOf(parameter) < index);
    if (twice)
      yield `Route /api/${path}: the path has the parameter "${twice}" twice, which ignores case; the key field or the slot needs another name.`;
  }
}

/**
 * Yields an error for each later route that matches requests of an earlier one. Values that only the later route accepts
 * are fine.
 */
function* hiddenErrors(entities: readonly Entity[], routes: readonly Route[]): Generator<string> {
  // Every process compares thousands of pairs when it starts, so what a pair needs is computed for each route.
  const parsed = routes.map((route) => ({
    route,
    name: route.name.toLowerCase(),
    segments: segmentsOf(route.path).map(parseSegment),
  }));
  const groups = Map.groupBy(parsed, ({ route }) => groupOf(route));
  for (const group of groups.values()) {
    group.sort((one, other) => (one.name < other.name ? -1 : 1));
    for (const [position, first] of group.entries())
      for (let at = position + 1; at < group.length; at += 1) {
        const later = group[at];
        const where = later && overlapOf(entities, first.segments, later.segments);
        if (where !== undefined)
          yield `Route ${first.route.method} /api/${first.route.path} hides ${later?.route.method} /api/${later?.route.path}${where}; rename the index, totals or attachment, or reject that value in the schema.`;
      }
  }
}

/** Only routes of one group can match the same request. */
function groupOf({ method, path }: Route): string {
  const segments = segmentsOf(path);
  return [method, segments.length, segments[0]?.toLowerCase()].join();
}

/** False if the two routes cannot be in conflict with each other. */
export function canConflict(one: Route, other: Route): boolean {
  return groupOf(one) === groupOf(other) || one.name.toLowerCase() === other.name.toLowerCase();
}

interface Segment {
  readonly text: string;
  readonly folded: string;
  readonly parameter: string | undefined;
}

function parseSegment(text: string): Segment {
  return { text, folded: text.toLowerCase(), parameter: parameterOf(text) };
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
  if (!type || Object.hasOwn(entity.derived, field)) return true;
  const isText = (value: unknown) => String(value).toLowerCase() === text.toLowerCase();
  if (type.type === 'integer' || type.type === 'number') return NUMBER.test(text);
  if (type.type === 'boolean') return isText(true) || isText(false);
  if (type.constant !== undefined) return isText(type.constant);
  if (type.choices) return type.choices.some(isText);
  if (text.length < (type.minLength ?? 0) || text.length > (type.maxLength ?? Number.POSITIVE_INFINITY)) return false;
  return !type.pattern || !hasExactPattern(entity.schema, field) || mayMatch(type.pattern, text);
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
  return segmentsOf(path)[0] ?? '';
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter(Boolean);
}

function parameterOf(segment: string): string | undefined {
  return /^\{(\w+)\}$/.exec(segment)?.[1];
}
