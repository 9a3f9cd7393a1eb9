import { createHash } from 'node:crypto';
import { z } from 'zod';
import { hiddenFields } from '../access/rule.ts';
import { type Caller, isVisitor } from '../access/token.ts';
import { type Operation, perform } from '../api/operation.ts';
import { toRequestId } from '../api/writes.ts';
import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { partialSchema, readableSchema, validateTexts } from '../define/codec/validation.ts';
import { hasTerms } from '../define/declaration/access.ts';
import { type Conditions, isNamed } from '../define/declaration/conditions.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Position } from '../engine/read/continuation.ts';
import type { PageOptions } from '../engine/read/retrieve.ts';
import { checkQuery, readPageQuery, toNextLink } from './query.ts';
import { pathTo, type RequestContext, type Route, type RouteResult, toPathTemplate } from './route.ts';

/** Routes as bindings of operations: what a route does, and who may call it, follows from its operation. */

type Form<Input, Read extends Input, Output> = Omit<
  Route,
  'name' | 'summary' | 'roles' | 'kind' | 'requestBody' | 'repeatable' | 'isGrant' | 'handle'
> &
  Partial<Pick<Route, 'name' | 'summary' | 'requestBody'>> & {
    /** Makes the input of the operation, and may add what `present` needs. Throws `invalid-input`. */
    read(context: RequestContext): Read | Promise<Read>;
    /** By default the output is the body, if the route describes one. */
    present?(output: Output, context: RequestContext, input: Read): RouteResult | Promise<RouteResult>;
  };

export function bind<Input, Read extends Input, Output>(
  operation: Operation<Input, Output>,
  { read, present, ...form }: Form<Input, Read, Output>,
): Route {
  const { name, summary, roles, kind, input: requestBody, output: body, repeatable, isGrant } = operation;
  const success = { ...(body ? { body } : {}), ...form.success };
  const readWithQuery = (context: RequestContext) => {
    checkQuery(context);
    return read(context);
  };
  return {
    name,
    summary,
    ...(requestBody ? { requestBody } : {}),
    ...(repeatable ? { repeatable } : {}),
    ...(isGrant ? { isGrant } : {}),
    ...form,
    success,
    roles,
    kind,
    async handle(context) {
      // Most requests have no query.
      const { input, output } = await perform(operation, context, context.query.size > 0 ? readWithQuery : read);
      if (present) return present(output, context, input);
      return success.body ? { status: success.status, body: output } : { status: success.status };
    },
  };
}

interface OnePage {
  /** Where the next page starts; undefined after the last one. */
  readonly next: Position | undefined;
}

type PageForm<Input, Output> = Omit<Form<Input, never, Output>, 'read' | 'present' | 'method'> &
  Partial<Pick<Route, 'method'>> & {
    /** The input without the page. Throws `invalid-input`. */
    read?(context: RequestContext): Omit<Input, keyof PageOptions> | Promise<Omit<Input, keyof PageOptions>>;
    /** The body of the response. By default the page without `next`. */
    present?(output: Output, context: RequestContext): unknown;
  };

/** A request that reads, or works on, one page. The response links the next one. */
export function bindPage<Input extends PageOptions, Output extends OnePage>(
  operation: Operation<Input, Output>,
  { read = () => ({}) as Omit<Input, keyof PageOptions>, present, ...form }: PageForm<Input, Output>,
): Route {
  const { status } = form.success;
  return bind(operation, {
    method: 'GET',
    ...form,
    success: { headers: ['Link'], ...form.success },
    async read(context) {
      const given = await read(context);
      const path = fillPath(form.path, context);
      // A continuation is valid only for the same path and input.
      const bound = JSON.stringify([path, given]);
      const page = await readPageQuery(context, bound);
      return { ...given, ...page, link: { path, bound } } as unknown as Input & {
        link: { path: string; bound: string };
      };
    },
    async present(output, context, { link }) {
      const { next, ...page } = output;
      const body = present ? present(output, context) : page;
      return { status, body, headers: await toNextLink(context, next, link) };
    },
  });
}

/** The path of a request with these parameters. */
function fillPath(template: string, { root, params }: RequestContext): string {
  return `${root}/${template.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''))}`;
}

/** Reads the key of an entity from the path. Throws `invalid-input`. */
export function readKey(entity: Entity, { params }: RequestContext): Values {
  return validateTexts(entity, params, entity.keyFields);
}

export function toEntityPath({ root }: Pick<RequestContext, 'root'>, entity: Entity, values: Values): string {
  return pathTo(root, entity.name, ...entity.keyFields.map((field) => values[field]));
}

export function toEntityTemplate({ name, keyFields }: Entity): string {
  return toPathTemplate([name], keyFields);
}

/** The success of a route that lists entities: whole, or without `select` the `copied` fields. */
export function describeList(entity: Entity, copied?: readonly string[]): Route['success'] {
  return {
    status: 200,
    description: 'A page of entities',
    body: () => listOf(copied ? copySchema(entity, copied) : readableSchema(entity)),
    published: () => listOf(publishedEntity(entity)).meta({ title: `${entity.name}-page` }),
  };
}

/**
 * An entity in every response. Each field is optional, because a request may select others, a list may be of partial copies, and a caller who may
 * not read the entity gets its key.
 */
export function publishedEntity(entity: Entity): z.ZodType {
  return partialSchema(entity, []).meta({ title: entity.name });
}

function copySchema(entity: Entity, copied: readonly string[]): z.ZodType {
  const { schema, access } = entity;
  // An optional field may have no value, and a restricted one is left out for some roles.
  const isCertain = (field: string) =>
    !Object.hasOwn(access.restricted ?? {}, field) && !schema.shape[field]?.safeParse(undefined).success;
  return partialSchema(entity, copied.filter(isCertain));
}

export function listOf(item: z.ZodType): z.ZodType {
  return z.object({ items: z.array(item) });
}

/** The part of an ETag that names a view. No ETag of storage contains `;`. */
const VIEW = /;view=[\w-]*(?=")/g;

/** Reads the conditions of a write. An ETag of any view stands for the stored state that it was created from. */
export function readConditions({ headers }: RequestContext): Conditions {
  const [ifMatch, ifNoneMatch] = ['if-match', 'if-none-match'].map((name) => headers.get(name) ?? undefined);
  return { ifMatch: ifMatch && toStoredEtag(ifMatch), ifNoneMatch: ifNoneMatch && toStoredEtag(ifNoneMatch) };
}

/** The condition on the stored state, without the names of views. */
export function toStoredEtag(condition: string): string {
  return condition.replace(VIEW, '');
}

/** True if the caller has the current state. Only a GET may return 304 (RFC 9110, 13.1.2). */
export function isNotModified({ headers }: RequestContext, etag: string): boolean {
  return isNamed(headers.get('if-none-match') ?? '', etag);
}

/**
 * The ETag of an entity without the `hidden` fields, or of the selected fields alone. It contains the ETag of storage, which a
 * write compares, and differs for each set of fields: a browser may revalidate one caller's copy with another caller's token
 * (RFC 9111, 4.1), and a client may revalidate its copy of a part with a request for all.
 */
export function toViewEtag(etag: string, hidden: readonly string[], select?: readonly string[]): string {
  if (hidden.length === 0 && !select) return etag;
  const fields = [hidden, ...(select ? [[...new Set(select)]] : [])].map((names) => names.toSorted());
  const view = createHash('sha256').update(JSON.stringify(fields)).digest('base64url').slice(0, 12);
  return etag.replace(/"$/, `;view=${view}"`);
}

export function toEntityHeaders(
  entity: Entity,
  caller: Caller,
  {
    etag,
    select,
    hidden = hiddenFields(entity, caller),
  }: {
    readonly etag: string;
    readonly select?: readonly string[] | undefined;
    /** The fields that the response leaves out; by default those that the roles of the caller leave out. */
    readonly hidden?: readonly string[] | undefined;
  },
): Record<string, string> & { readonly etag: string } {
  const { maxAge } = entity;
  const kept = isVisitor(caller) && isSameForAll(entity) ? 'public' : 'private';
  return {
    etag: toViewEtag(etag, hidden, select),
    ...(maxAge ? { 'cache-control': `${kept}, max-age=${maxAge}` } : {}),
  };
}

/** True if all readers see the same of the same rows. A shared cache that ignores `Vary` then shows nobody what another one sees. */
function isSameForAll({ access: { rules, restricted } }: Entity): boolean {
  return restricted === undefined && !Object.values(rules ?? {}).some((rule) => rule.some(hasTerms));
}

const MAX_KEY_LENGTH = 200;
/** That of a UUID is 36. Visitors share one space of keys, so a key must be hard to guess, and two never choose one by chance. */
const MIN_KEY_LENGTH_OF_VISITORS = 32;

/**
 * The id of a request that its caller may repeat. It is derived from the `Idempotency-Key` header, the caller, the route,
 * the path and the body, or the `content` in its place. So a repetition finds what the first attempt created, and requests
 * need no record. Undefined without the header. Throws `invalid-input`. https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
 */
export async function readRequestId(context: RequestContext, content?: string): Promise<string | undefined> {
  const key = context.headers.get('idempotency-key');
  if (key === null) return undefined;
  const least = isVisitor(context.caller) ? MIN_KEY_LENGTH_OF_VISITORS : 1;
  if (!/^[\x21-\x7e]+$/.test(key) || key.length < least || key.length > MAX_KEY_LENGTH)
    throw new RowkeyError('invalid-input', 'Header "Idempotency-Key" is not valid.', {
      field: 'Idempotency-Key',
      accepted: `${least} to ${MAX_KEY_LENGTH} printable ASCII characters without spaces${least > 1 ? ', such as a UUID, as the request has no token' : ''}`,
    });
  return toRequestId([
    context.caller.subject,
    context.route.name,
    JSON.stringify(context.params),
    key,
    content ?? (await context.bytes()),
  ]);
}
