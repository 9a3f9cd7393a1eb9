import pMap from 'p-map';
import { z } from 'zod';
import { getEntity, getThroughIndex } from '../../api/get.ts';
import { type Operation, perform } from '../../api/operation.ts';
import { checkFields, listIndex, listRange, listWhole, requireWhole, wholeListOf } from '../../api/reads.ts';
import { RowkeyError } from '../../base/errors.ts';
import { jsonText } from '../../base/json-text.ts';
import type { Values } from '../../base/values.ts';
import { parse } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
import { indexFields, isOfMany, ORDERS, requireRangeStart } from '../../define/places/index-range.ts';
import { fromContinuation, toContinuation } from '../../engine/read/continuation.ts';
import { PAGE_LENGTH } from '../../engine/read/page-length.ts';
import { listedFields, type Page, type PageOptions } from '../../engine/read/retrieve.ts';
import { measureCost } from '../../storage/cost.ts';
import { bind, toViewEtag } from '../bind.ts';
import { Problem, reportProblem } from '../problem.ts';
import { LIST_BODY, MAX_NAMES, MAX_TOP, toCaller } from '../query.ts';
import type { RequestContext, Route } from '../route.ts';

/**
 * Several reads in one request: the calls of the store as JSON, under the access rules of the routes. Large fields are not
 * returned, so that a response is bounded by its pages.
 */

const MAX_READS = 16;
const READS_CONCURRENCY = 4;
const DEFAULT_TOP = 50;

const Fields = z.record(z.string(), z.unknown());
const list = {
  ...LIST_BODY,
  top: z.int().min(1).max(MAX_TOP).optional().describe(`Page size, ${DEFAULT_TOP} by default`),
  continuation: z.string().optional().describe('From the result of the previous page'),
};
const bound = z.union([z.string(), z.number()]).optional();

const Get = z.strictObject({
  get: z.string().describe('An entity of the model'),
  key: Fields,
  include: z
    .array(z.string())
    .max(MAX_NAMES)
    .optional()
    .describe('Children, and groups of fields, to return with the entity'),
  where: z.record(z.string(), Fields).optional().describe('A filter for each of the included children'),
  select: list.select,
});
const Range = z.strictObject({
  range: z.string().describe('An entity of the model'),
  partition: Fields,
  from: z.string().optional(),
  to: z.string().optional(),
  ...list,
});
const By = z.strictObject({
  by: z.string().describe('An index of the entity'),
  entity: z.string(),
  values: Fields.describe('The fields of one value, or the first ones of a range'),
  from: bound,
  to: bound,
  prefix: z.string().optional(),
  order: z.enum(ORDERS).optional(),
  ...list,
});
const List = z.strictObject({
  list: z.string().describe('A lookup table of the model'),
  ...LIST_BODY,
});
type Read = z.infer<typeof Get> | z.infer<typeof Range> | z.infer<typeof By> | z.infer<typeof List>;

/** What a read of one entity through an index does not accept, as its GET does not. */
const OF_LISTS = By.omit({ by: true, entity: true, values: true, select: true }).keyof().options;

const Name = z.string().regex(/^[A-Za-z]\w{0,49}$/, 'a letter, then letters, digits and _ are needed');
const Query = z.strictObject({
  reads: z.record(Name, z.union([Get, Range, By, List])).describe(`1 to ${MAX_READS} reads by names of your choice`),
});
/** Each read is validated on its own, because a read that is not valid leaves the others as they are. */
const Unchecked = z.strictObject({ reads: z.record(Name, z.looseObject({})) });

const transactions = z.int().describe('Storage transactions of this read');
const Result = z.union([
  z.strictObject({ status: z.literal(200), transactions, etag: z.string().optional(), entity: Fields }),
  z.strictObject({ status: z.literal(200), transactions, items: z.array(Fields), continuation: z.string().optional() }),
  z.strictObject({ status: z.int(), transactions, problem: Problem }),
]);
type Result = z.infer<typeof Result>;

/** `entities` can be read by their key: they are not data series. */
export function queryRoute(entities: readonly Entity[]): Route {
  return bind(
    {
      name: 'query',
      summary: 'Read several entities and lists in one request',
      kind: 'read',
      // Each read counts.
      deeds: [],
      roles: [...new Set(entities.flatMap(({ access }) => access.read))],
      input: () => Query,
      output: () => z.object({ reads: z.record(z.string(), Result) }),
      run: async (_, context: RequestContext) => ({ reads: await runReads(entities, context) }),
    },
    {
      method: 'POST',
      path: 'query',
      success: { status: 200, description: 'A result for each read, by its name; a read that fails has a problem' },
      read: (context) => context,
    },
  );
}

async function runReads(entities: readonly Entity[], context: RequestContext): Promise<Record<string, Result>> {
  const { reads } = parse(Unchecked, await context.json());
  const named = Object.entries(reads);
  if (named.length < 1 || named.length > MAX_READS)
    throw queryError('reads', `has ${named.length} reads`, `1 to ${MAX_READS} reads`);
  const isPage = ({ get, list }: Values) => get === undefined && list === undefined;
  const topOf = (read: Values) => (isPage(read) ? Math.max(1, Number(read.top) || DEFAULT_TOP) : 0);
  const tops = named.reduce((sum, [, read]) => sum + topOf(read), 0);
  if (tops > MAX_TOP) throw queryError('top', `is ${tops} in all reads together`, `at most ${MAX_TOP} together`);
  let length = 0;
  const run = async ([name, read]: (typeof named)[number]) => {
    const result = await measureCost(async (cost): Promise<Result> => {
      try {
        if (length >= PAGE_LENGTH)
          throw new RowkeyError('too-large', 'The other reads fill the response.', {
            accepted: 'this read in a request of its own',
          });
        const values = await runRead(entities, context, parseRead(read));
        return { status: 200, transactions: cost.transactions, ...values };
      } catch (error) {
        const problem = reportProblem(error, context.root, context.log);
        return { status: problem.status, transactions: cost.transactions, problem };
      }
    });
    length += jsonText(result).length;
    return [name, result] as const;
  };
  return Object.fromEntries(await pMap(named, run, { concurrency: READS_CONCURRENCY }));
}

function parseRead(read: Values): Read {
  if ('get' in read) return parse(Get, read);
  if ('list' in read) return parse(List, read);
  return 'range' in read ? parse(Range, read) : parse(By, read);
}

type Found = { readonly etag?: string; readonly entity: Values } | { readonly items: Values[]; continuation?: string };

async function runRead(entities: readonly Entity[], context: RequestContext, read: Read): Promise<Found> {
  if ('get' in read) return runGet(findEntity(entities, 'get', read.get), context, read);
  if ('range' in read) {
    const { range, partition, ...options } = read;
    const entity = findEntity(entities, 'range', range);
    return runList(listRange(entity), entity, context, read, () => ({
      ...options,
      partition: checkFields(entity, partition, entity.partition.fields),
    }));
  }
  if ('list' in read) return runWholeList(entities, context, read);
  return runBy(findEntity(entities, 'entity', read.entity), context, read);
}

/** A list of all entities, which usually takes no transaction. */
async function runWholeList(
  entities: readonly Entity[],
  context: RequestContext,
  { list: name, ...input }: z.infer<typeof List>,
): Promise<Found> {
  const entity = findEntity(entities.filter(wholeListOf), 'list', name);
  return {
    items: [...requireWhole(entity, (await perform(listWhole(entity), context, () => input)).output)],
  };
}

async function runGet(
  entity: Entity,
  context: RequestContext,
  { key, include = [], where, select = [] }: z.infer<typeof Get>,
): Promise<Found> {
  const { output } = await perform(getEntity(entity), context, () => {
    const kinds = entity.children.filter(({ name }) => include.includes(name));
    checkSmall([entity, ...kinds], select);
    const own = select.filter((name) => !name.includes('.'));
    const small = own.length > 0 ? own : listedFields(entity);
    const names = [...(small ?? []), ...select.filter((name) => name.includes('.'))];
    const all = small || names.length > 0 ? names : undefined;
    return { key: checkFields(entity, key, entity.keyFields), include, where, select: all };
  });
  const { etag, fields, hidden, values = {} } = output;
  return { etag: toViewEtag(etag, hidden, fields), entity: values };
}

/** One entity, if the index leads to one, or a list. */
async function runBy(entity: Entity, context: RequestContext, read: z.infer<typeof By>): Promise<Found> {
  const { by: name, entity: _, values, ...options } = read;
  const index = findIndex(entity, name);
  const given = Object.keys(values);
  const fields = indexFields(entity, index);
  const isOneValue = given.length === fields.length && fields.every((field) => given.includes(field));
  if (!isOneValue || isOfMany(entity, index))
    return runList(listIndex(entity, name), entity, context, read, () => {
      if (!isOneValue) requireRangeStart(entity, index, { name, fields: given });
      return { ...options, given: checkFields(entity, values, given) };
    });
  const { output } = await perform(getThroughIndex(entity, name), context, () => {
    const name = OF_LISTS.find((option) => read[option] !== undefined);
    if (name) throw queryError(name, 'is for lists, and the index leads to one entity', 'no such member');
    checkSmall([entity], read.select);
    return { given: checkFields(entity, values, fields), select: read.select ?? listedFields(entity) };
  });
  return { entity: output.values };
}

async function runList<Input>(
  operation: Operation<Input & PageOptions, Page>,
  entity: Entity,
  context: RequestContext,
  { top = DEFAULT_TOP, continuation, ...read }: z.infer<typeof Range> | z.infer<typeof By>,
  readInput: () => Input,
): Promise<Found> {
  const { storage } = context.engine;
  const bound = toCaller(context, JSON.stringify(['query', read]));
  const { output } = await perform(operation, context, async () => {
    const input = readInput();
    checkSmall([entity], read.select);
    const after = continuation === undefined ? undefined : await fromContinuation(storage, bound, continuation);
    return { ...input, top, after };
  });
  const { items, next } = output;
  return { items: [...items], ...(next ? { continuation: await toContinuation(storage, bound, next) } : {}) };
}

function checkSmall([entity, ...kinds]: readonly Entity[], select: readonly string[] = []): void {
  const largeOf = (one?: Entity) => one?.large ?? [];
  const large = [...largeOf(entity), ...kinds.flatMap((kind) => largeOf(kind).map((field) => `${kind.name}.${field}`))];
  const name = select.find((one) => large.includes(one));
  if (name) throw queryError('select', `names the large field "${name}"`, 'other fields; a GET returns large fields');
}

function findEntity(entities: readonly Entity[], member: string, name: string): Entity {
  const entity = entities.find((each) => each.name === name);
  if (entity) return entity;
  throw queryError(member, 'names no entity of the model', entities.map((each) => each.name).join(', '));
}

function findIndex(entity: Entity, name: string): Index {
  const index = Object.hasOwn(entity.indexes, name) ? entity.indexes[name] : undefined;
  if (index) return index;
  throw queryError('by', `names no index of ${entity.name}`, Object.keys(entity.indexes).join(', '));
}

function queryError(field: string, why: string, accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `"${field}" ${why}.`, { field, accepted });
}
