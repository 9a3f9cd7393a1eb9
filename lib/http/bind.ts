import { z } from 'zod';
import { type Operation, perform } from '../api/operation.ts';
import type { Values } from '../base/values.ts';
import { partialSchema, readableSchema, validateTexts } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Page, PageOptions } from '../engine/read/retrieve.ts';
import { readPageQuery, toNextLink } from './query.ts';
import { pathTo, type RequestContext, type Route, type RouteResult, toPathTemplate } from './route.ts';

/** Routes as bindings of operations: who may call a route, and whether it changes anything, follows from its operation. */

interface Binding<Input, Read extends Input, Output> extends Omit<Route, 'roles' | 'kind' | 'handle'> {
  /** Makes the input of the operation, and may add what `present` needs. Throws `invalid-input`. */
  read(context: RequestContext): Read | Promise<Read>;
  /** By default the output is the body, if the route describes one. */
  present?(output: Output, context: RequestContext, input: Read): RouteResult | Promise<RouteResult>;
}

export function bind<Input, Read extends Input, Output>(
  operation: Operation<Input, Output>,
  { read, present, ...route }: Binding<Input, Read, Output>,
): Route {
  const { roles, kind } = operation;
  const { status, body } = route.success;
  return {
    ...route,
    roles,
    kind,
    async handle(context) {
      const input = await read(context);
      const output = await perform(operation, context, () => input);
      if (present) return present(output, context, input);
      return body ? { status, body: output } : { status };
    },
  };
}

interface PageBinding<Input> extends Omit<Route, 'method' | 'roles' | 'kind' | 'handle'> {
  /** Throws `invalid-input`. */
  read(context: RequestContext): {
    readonly input: Omit<Input, keyof PageOptions>;
    /** The path of the next page. */
    readonly path: string;
  };
}

/** A GET of a page of a list, with the link to the next page. */
export function bindPage<Input extends PageOptions>(
  operation: Operation<Input, Page>,
  { read, ...route }: PageBinding<Input>,
): Route {
  const { roles, kind } = operation;
  return {
    ...route,
    method: 'GET',
    roles,
    kind,
    async handle(context) {
      const { input, path } = read(context);
      // A continuation is valid only for the same path and input.
      const bound = JSON.stringify([path, input]);
      const whole = { ...input, ...(await readPageQuery(context, bound)) } as Input;
      return presentPage(context, await perform(operation, context, () => whole), { path, bound });
    },
  };
}

/** Reads the key of an entity from the path. Throws `invalid-input`. */
export function readKey(entity: Entity, { params }: RequestContext): Values {
  return validateTexts(entity, params, entity.keyFields);
}

export function toEntityPath({ root }: Pick<RequestContext, 'root'>, entity: Entity, values: Values): string {
  return pathTo(root, entity.name, ...entity.keyFields.map((field) => values[field]));
}

export function toEntityTemplate({ name, keyFields }: Entity): string {
  return `${name}/${toPathTemplate(keyFields)}`;
}

/** The success of a route that lists entities: whole, or without `select` the `copied` fields. */
export function describeList(entity: Entity, copied?: readonly string[]): Route['success'] {
  return {
    status: 200,
    description: 'A page of entities',
    body: () => listOf(copied ? copySchema(entity, copied) : readableSchema(entity)),
    selected: () => listOf(partialSchema(entity, [])),
    headers: ['Link'],
  };
}

function copySchema(entity: Entity, copied: readonly string[]): z.ZodType {
  const { schema, access } = entity;
  // An optional field may have no value, and a restricted one is left out for some roles.
  const isCertain = (field: string) =>
    !Object.hasOwn(access.restricted ?? {}, field) && !schema.shape[field]?.safeParse(undefined).success;
  return partialSchema(entity, copied.filter(isCertain));
}

function listOf(item: z.ZodType): z.ZodType {
  return z.object({ items: z.array(item) });
}

/** A page of entities, with the link to the next page. */
export async function presentPage(
  context: RequestContext,
  { items, next }: Page,
  { path, bound }: { readonly path: string; readonly bound: string },
): Promise<RouteResult> {
  return { status: 200, body: { items }, headers: await toNextLink(context, next, { path, bound }) };
}
