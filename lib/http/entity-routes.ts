import pMap from 'p-map';
import { z } from 'zod';
import { canRead, checkMentions, hasWriteOnlyRoles, hiddenFields, requireReader } from '../access/rule.ts';
import { type Entity, pick, type Values } from '../define/entity.ts';
import {
  maskOf,
  parse,
  partialSchema,
  schemaWithDetails,
  schemaWithGaps,
  validateTexts,
  writableSchema,
} from '../define/validation.ts';
import { type Page, readEntities, readEntity, readWithChildren, smallFields } from '../engine/read/retrieve.ts';
import { createOnce } from '../engine/write/create-once.ts';
import { type BatchOutcome, putEntities } from '../engine/write/entity-batch.ts';
import { deleteEntity, patchEntity, replaceEntity, type Stored } from '../engine/write/entity-store.ts';
import { RowkeyError } from '../errors.ts';
import { conditionsOf, etagOfView, isNotModified } from './conditions.ts';
import { requestId } from './idempotency.ts';
import { nextLink, PAGE_QUERY, pageOf } from './paging.ts';
import { Problem, toProblem } from './problem.ts';
import { parametersOf, pathTo, type RequestContext, type Route, type RouteResult } from './route.ts';
import { shown, shownList, shownToWriter } from './visible.ts';

/** As many as an entity group transaction holds. */
const MAX_BATCH = 100;
/** Of an entity with a large text: a character may take six bytes in JSON. */
const MAX_LARGE_BODY_BYTES = 33_554_432;

/** The routes that follow from an entity's key. */
export function entityRoutes(entity: Entity): Route[] {
  return [...readRoutes(entity), deleteRoute(entity), ...writeRoutes(entity)];
}

/** Those of an archive, which is read and emptied, and written only by archiving. */
export function archiveRoutes(archive: Entity): Route[] {
  return [...readRoutes(archive), deleteRoute(archive)];
}

function readRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const one = onePath(entity);
  const partition = `${name}/${parametersOf(entity.partition.fields)}`;
  const routes: Route[] = [
    {
      name: `${name}-get`,
      method: 'GET',
      path: one,
      roles: access.read,
      query:
        entity.children.length > 0
          ? {
              include: `Details to read with it: ${entity.children.map((detail) => detail.name).join(', ')}`,
              select: `Fields of what is included, separated by commas, such as ${selectExample(entity)}; large fields are left out unless they are selected`,
            }
          : {},
      summary: `One of ${name}`,
      cacheable: true,
      success: {
        status: 200,
        description: 'The entity, with what it includes',
        body: schemaWithDetails(entity),
        headers: ['ETag'],
      },
      handle: (call) => readOne(entity, call),
    },
  ];
  if (one !== partition)
    routes.push({
      name: `${name}-range`,
      method: 'GET',
      path: partition,
      roles: access.read,
      query: rangeQuery(entity),
      summary: `A range of ${name} within ${entity.partition.fields.join(', ')}`,
      success: listSuccess(entity, []),
      handle: (call) => range(entity, call),
    });
  return routes;
}

function deleteRoute(entity: Entity): Route {
  return {
    name: `${entity.name}-delete`,
    method: 'DELETE',
    path: onePath(entity),
    roles: entity.access.write,
    conditional: true,
    summary: `Delete one of ${entity.name}`,
    success: { status: 204, description: 'Deleted' },
    handle: async (call) => {
      await deleteEntity(call.app.engine, entity, keyOf(entity, call), conditionsOf(call));
      return { status: 204 };
    },
  };
}

function writeRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const change = { path: onePath(entity), roles: access.write, conditional: true } as const;
  const body = entity.union ?? writableSchema(entity);
  const maxBodyBytes = entity.large.length > 0 ? MAX_LARGE_BODY_BYTES : undefined;
  return [
    {
      name: `${name}-create`,
      method: 'POST',
      repeatable: true,
      path: name,
      roles: access.write,
      summary: `Create one of ${name}`,
      requestBody: body,
      maxBodyBytes,
      success: {
        status: 201,
        description: 'Created; Location says where',
        body: writerSchema(entity),
        headers: ['ETag', 'Location'],
      },
      handle: async (call) => {
        const id = await requestId(call, `${name}-create`);
        const stored = await createOnce(call.app.engine, entity, await written(entity, call), id);
        const answer = await entityAnswer(entity, call, stored, 201);
        return { ...answer, headers: { ...answer.headers, location: entityPath(entity, stored.values) } };
      },
    },
    {
      name: `${name}-batch`,
      method: 'POST',
      path: `${name}/batch`,
      roles: access.write,
      summary: `Create or replace up to ${MAX_BATCH} of ${name}`,
      requestBody: batchSchema(body),
      maxBodyBytes,
      success: { status: 200, description: 'What became of each, in order', body: BatchAnswer },
      handle: (call) => batch(entity, call),
    },
    {
      ...change,
      name: `${name}-replace`,
      method: 'PUT',
      summary: `Replace one of ${name}`,
      requestBody: body,
      maxBodyBytes,
      success: { status: 200, description: 'Replaced', body: writerSchema(entity), headers: ['ETag'] },
      handle: async (call) => {
        const input = await written(entity, call);
        const stored = await replaceEntity(call.app.engine, entity, keyOf(entity, call), input, conditionsOf(call));
        return entityAnswer(entity, call, stored);
      },
    },
    {
      ...change,
      name: `${name}-patch`,
      method: 'PATCH',
      summary: `Change some fields of one of ${name}; null takes one out`,
      maxBodyBytes,
      requestBody: writableSchema(entity, entity.encrypted).partial(),
      success: { status: 200, description: 'Changed', body: writerSchema(entity), headers: ['ETag'] },
      handle: async (call) => {
        const patch = await written(entity, call);
        const stored = await patchEntity(call.app.engine, entity, keyOf(entity, call), patch, conditionsOf(call));
        return entityAnswer(entity, call, stored);
      },
    },
  ];
}

function onePath({ name, keyFields }: Entity): string {
  return `${name}/${parametersOf(keyFields)}`;
}

/** Alone by a point query; with what it includes by one range query (compound key pattern). */
async function readOne(entity: Entity, call: RequestContext): Promise<RouteResult> {
  const key = keyOf(entity, call);
  const names = call.query.get('include')?.split(',') ?? [];
  const kinds = names.map((name) => entity.children.find((detail) => detail.name === name.trim()));
  const known = kinds.filter((kind) => kind !== undefined);
  if (known.length < kinds.length)
    throw new RowkeyError('invalid-input', 'The query parameter include names what is no detail of it.', {
      field: 'include',
      accepted: entity.children.map(({ name }) => name).join(', '),
    });
  for (const kind of known) requireReader(kind, call.caller);
  const select = selectedChildren(known, call);
  if (known.length === 0) {
    const stored = await readEntity(call.app.engine, entity, key);
    // Table storage ignores If-None-Match, so the comparison is ours; the row was read all the same.
    const headers = headersOf(entity, call, stored);
    if (isNotModified(call, String(headers.etag))) return { status: 304, headers };
    return { status: 200, headers, body: await shown(call, entity, stored.values) };
  }
  const { etag, values } = await readWithChildren(call.app.engine, entity, key, known, { select });
  const details = await pMap(known, async (kind) => {
    const list = values[kind.name];
    const fields = select[kind.name];
    const items = await shownList(call, kind, Array.isArray(list) ? list : []);
    return [kind.name, fields ? items.map((item) => pick(item, fields)) : items];
  });
  const body = { ...(await shown(call, entity, values)), ...Object.fromEntries(details) };
  return { status: 200, headers: { etag: etagOfView(etag, hiddenFields(entity, call.caller)) }, body };
}

function selectExample({ children }: Entity): string {
  const [kind] = children.filter(({ large }) => large.length > 0).concat(children);
  return `${kind?.name}.${kind?.large[0] ?? Object.keys(kind?.columns ?? {}).at(-1)}`;
}

/** The fields that are selected of each kind that is included, by its name. Throws `invalid-input`. */
function selectedChildren(kinds: readonly Entity[], { query }: RequestContext): Record<string, string[]> {
  const names = query.get('select')?.split(',') ?? [];
  const selected: Record<string, string[]> = {};
  for (const name of names.map((text) => text.trim())) {
    const kind = kinds.find((one) => Object.keys(one.columns).some((field) => name === `${one.name}.${field}`));
    if (!kind)
      throw new RowkeyError(
        'invalid-input',
        `The query parameter select names ${name}, which is no field of what is included.`,
        {
          field: 'select',
          accepted:
            kinds.flatMap((one) => Object.keys(one.columns).map((field) => `${one.name}.${field}`)).join(',') ||
            'include as well',
        },
      );
    selected[kind.name] = [...(selected[kind.name] ?? []), name.slice(kind.name.length + 1)];
  }
  return selected;
}

/** The key of the entity that a call is about, from its path. Throws `invalid-input`. */
export function keyOf(entity: Entity, { params }: RequestContext): Values {
  return validateTexts(entity, params, entity.keyFields);
}

/** Where an entity is found. */
export function entityPath(entity: Entity, values: Values): string {
  return pathTo(entity.name, ...entity.keyFields.map((field) => values[field]));
}

/** The answer of a route that lists entities: whole ones, or parts of which only `certain` fields are always there. */
export function listSuccess(entity: Entity, certain?: readonly string[]): Route['success'] {
  const item = certain ? partialSchema(entity, certain) : schemaWithGaps(entity);
  const description = 'The entities; the header Link names the next page, if there is more';
  return { status: 200, description, body: z.object({ items: z.array(item) }), headers: ['Link'] };
}

/** Every other field is a filter. */
function rangeQuery(entity: Entity): Record<string, string> {
  const fields = Object.keys(entity.columns).filter(
    (field) => !entity.partition.fields.includes(field) && isComparable(entity, field),
  );
  const filters = fields.map((field) => [field, `Only those with this ${field}; storage looks at the whole range`]);
  return { ...Object.fromEntries(filters), ...RANGE_QUERY };
}

/** Storage compares what a property holds. */
function isComparable(entity: Entity, field: string): boolean {
  return entity.columns[field] !== 'Json' && !entity.large.includes(field) && !entity.encrypted.includes(field);
}

/** Of a list. */
export const SELECT = 'Names of fields, separated by commas; a large field is left out unless it is selected';

const RANGE_QUERY: Readonly<Record<string, string>> = {
  from: 'The first value of the first field of the row key; a prefix will do',
  to: 'The last value, all that begin with it included',
  select: SELECT,
  ...PAGE_QUERY,
};

/** A list of entities, with the link to the next page. */
export async function pageAnswer(
  call: RequestContext,
  entity: Entity,
  page: Page,
  { path, bound, select }: { path: string; bound: string; select?: readonly string[] | undefined },
): Promise<RouteResult> {
  const list = await shownList(call, entity, page.items);
  const body = { items: select ? list.map((values) => pick(values, select)) : list };
  return { status: 200, body, headers: await nextLink(call, page.next, { path, bound }) };
}

async function range(entity: Entity, call: RequestContext): Promise<RouteResult> {
  const { query, params, app } = call;
  const { fields } = entity.partition;
  const key = validateTexts(entity, params, fields);
  const [from, to, select] = ['from', 'to', 'select'].map((name) => query.get(name) || undefined);
  const path = pathTo(entity.name, ...fields.map((field) => key[field]));
  const where = filterOf(entity, call);
  const bound = JSON.stringify([path, from, to, select, where]);
  const options = {
    from,
    to,
    where,
    select: selected(entity, select) ?? smallFields(entity),
    ...(await pageOf(call, bound)),
  };
  const page = await readEntities(app.engine, entity, key, options);
  return pageAnswer(call, entity, page, { bound, path, select: options.select });
}

function filterOf(entity: Entity, { caller, query }: RequestContext): Values {
  const asked = Object.keys(entity.columns).filter((field) => query.has(field) && !(field in RANGE_QUERY));
  const texts = Object.fromEntries(asked.map((field) => [field, query.get(field) ?? '']));
  // Who may not see a field may not find out by it.
  checkMentions(entity, caller, texts);
  return validateTexts(entity, texts, asked);
}

/** The fields that a list is asked for; undefined without `select`. Throws `invalid-input`. */
export function selected(entity: Entity, select: string | undefined): string[] | undefined {
  const fields = select?.split(',').map((field) => field.trim());
  const known = Object.keys(entity.columns);
  const wrong = fields?.find((field) => !known.includes(field));
  if (wrong === undefined) return fields;
  throw new RowkeyError('invalid-input', `The query parameter select names ${wrong}, which is no field.`, {
    field: 'select',
    accepted: known.join(','),
  });
}

/** What a write answers. */
async function entityAnswer(entity: Entity, call: RequestContext, stored: Stored, status = 200): Promise<RouteResult> {
  return { status, headers: headersOf(entity, call, stored), body: await shownToWriter(call, entity, stored.values) };
}

/** The same as a schema: where a role only writes, the key may be all there is. */
function writerSchema(entity: Entity): z.ZodType {
  const whole = schemaWithGaps(entity);
  return hasWriteOnlyRoles(entity) ? z.union([whole, entity.schema.pick(maskOf(entity.keyFields))]) : whole;
}

function headersOf(entity: Entity, { caller }: RequestContext, stored: Stored): Record<string, string> {
  const { maxAge } = entity;
  const etag = etagOfView(stored.etag, hiddenFields(entity, caller));
  return { etag, ...(maxAge ? { 'cache-control': `private, max-age=${maxAge}` } : {}) };
}

async function written(entity: Entity, call: RequestContext): Promise<unknown> {
  const input = await call.json();
  checkMentions(entity, call.caller, input);
  return input;
}

function batchSchema(item: z.ZodType) {
  return z.strictObject({ items: z.array(item).min(1).max(MAX_BATCH) });
}

const BatchAnswer = z.object({
  results: z.array(z.object({ status: z.int(), problem: Problem.optional() })),
});

async function batch(entity: Entity, call: RequestContext): Promise<RouteResult> {
  const { items } = parse(batchSchema(z.unknown()), await call.json());
  for (const item of items) checkMentions(entity, call.caller, item);
  const outcomes = await putEntities(call.app.engine, entity, items);
  const isReader = canRead(entity, call.caller);
  // That a stored entity equals the sent one is shown only to a role that may read it.
  const visible = outcomes.map((outcome) => (outcome === 'unchanged' && !isReader ? 'replaced' : outcome));
  return { status: 200, body: { results: visible.map(toResult) } };
}

const STATUS_OF = { created: 201, replaced: 200, unchanged: 304 } as const;

function toResult(outcome: BatchOutcome) {
  if (typeof outcome === 'string') return { status: STATUS_OF[outcome] };
  const problem = toProblem(outcome);
  return { status: problem.status, problem };
}
