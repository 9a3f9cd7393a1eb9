import { z } from 'zod';
import { canRead, hasWriteOnlyRoles } from '../../access/rule.ts';
import { RowkeyError } from '../../base/errors.ts';
import { parse, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { slotsOf } from '../../pattern-helpers/series-rows.ts';
import { readSpan, spanKeyFields } from '../../pattern-helpers/series-span.ts';
import { deleteSeries, increment, readSeries, setCounts, toSlot } from '../../patterns/data-series.ts';
import { readKey } from '../entity-key.ts';
import { readRequestId } from '../idempotency.ts';
import { type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';
import { isNotModified, readConditions } from '../view-etag.ts';

const Count = z.strictObject({ count: z.int32().min(0) });
/** The largest increment for a role that may not read the count. */
const MAX_UNREAD_INCREMENT = 1_000_000;
const Increment = z.strictObject({ by: z.int32() });
const Counts = z.strictObject({ counts: z.record(z.string(), z.int32().min(0)) });

/** A chart is one GET, setting a count is one merge, and concurrent increments are all counted. */
export function seriesRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const slot = slotsOf(entity).name;
  const path = `${name}/${toPathTemplate(entity.keyFields)}`;
  return [
    {
      name: `${name}-get`,
      method: 'GET',
      path,
      roles: access.read,
      summary: `Get all counts of an entity of ${name}, by ${slot}`,
      cacheable: true,
      success: {
        status: 200,
        description: `A count for each ${slot}`,
        body: () => entity.schema.extend({ counts: z.array(z.int()) }),
        headers: ['ETag'],
      },
      handle: async (context) => getCounts(entity, context),
    },
    {
      name: `${name}-patch`,
      method: 'PATCH',
      path,
      roles: access.write,
      conditional: true,
      summary: `Set several counts, by ${slot}`,
      requestBody: () => Counts,
      success: { status: 204, description: 'All counts are set' },
      handle: async (context) => {
        const { counts } = parse(Counts, await context.json());
        const bySlot = Object.entries(counts).map(([text, count]) => [toSlot(entity, text), count] as const);
        return putCounts(entity, context, new Map(bySlot));
      },
    },
    {
      name: `${name}-delete`,
      method: 'DELETE',
      path,
      roles: access.write,
      conditional: true,
      summary: `Delete all counts of an entity of ${name}`,
      success: { status: 204, description: 'Deleted' },
      handle: async (context) => {
        await deleteSeries(context.app.engine, entity, readKey(entity, context), readConditions(context));
        return { status: 204 };
      },
    },
    {
      name: `${name}-put-${slot}`,
      method: 'PUT',
      path: `${path}/{${slot}}`,
      roles: access.write,
      conditional: true,
      summary: `Set the count of one ${slot}`,
      requestBody: () => Count,
      success: { status: 204, description: 'Set' },
      handle: async (context) => {
        const { count } = parse(Count, await context.json());
        return putCounts(entity, context, new Map([[toSlot(entity, context.params[slot] ?? ''), count]]));
      },
    },
    {
      name: `${name}-increment`,
      method: 'POST',
      repeatable: true,
      path: `${path}/{${slot}}/increments`,
      roles: access.write,
      summary: `Add to the count of one ${slot}; concurrent increments all count`,
      requestBody: () => Increment,
      success: {
        status: 200,
        description: 'The new count',
        body: () => Count,
        ...(hasWriteOnlyRoles(entity) ? { unread: 'Added; the roles of the caller may not read the count' } : {}),
      },
      handle: async (context) => {
        const { by } = parse(Increment, await context.json());
        const isReader = canRead(entity, context.caller);
        if (!isReader) checkUnreadIncrement(by);
        const at = toSlot(entity, context.params[slot] ?? '');
        const id = await readRequestId(context, `${name}-increment`);
        const count = await increment(context.app.engine, entity, readKey(entity, context), { slot: at, by, id });
        return isReader ? { status: 200, body: { count } } : { status: 204 };
      },
    },
    ...(entity.series?.span ? [spanRoute(entity)] : []),
  ];
}

const Points = z.object({ items: z.array(z.object({ at: z.iso.datetime(), count: z.int() })) });

function spanRoute(entity: Entity): Route {
  const { name, access } = entity;
  const fields = spanKeyFields(entity);
  const slot = slotsOf(entity).name;
  return {
    name: `${name}-span`,
    method: 'GET',
    path: [name, ...(fields.length > 0 ? [toPathTemplate(fields)] : [])].join('/'),
    roles: access.read,
    query: {
      from: `The first ${slot}, in UTC, such as 2026-11-20T09; a prefix is its beginning`,
      to: `The last ${slot}, included; a prefix is its end`,
    },
    summary: `Get the counts of ${name} from one instant to another, by ${slot}`,
    success: { status: 200, description: `A count for each ${slot}, in the order of time`, body: () => Points },
    handle: async ({ app, params, query }) => {
      const key = validateTexts(entity, params, fields);
      const bounds = { from: query.get('from') ?? '', to: query.get('to') ?? '' };
      return { status: 200, body: { items: await readSpan(app.engine, entity, key, bounds) } };
    },
  };
}

async function getCounts(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const { values, counts, etag } = await readSeries(context.app.engine, entity, readKey(entity, context));
  if (isNotModified(context, etag)) return { status: 304, headers: { etag } };
  return { status: 200, headers: { etag }, body: { ...values, counts } };
}

async function putCounts(
  entity: Entity,
  context: RequestContext,
  counts: ReadonlyMap<number, number>,
): Promise<RouteResult> {
  await setCounts(context.app.engine, entity, readKey(entity, context), counts, readConditions(context));
  return { status: 204 };
}

/**
 * A 400 for a count out of range discloses the approximate count. Allowing only small positive increments limits that to
 * counts near the maximum. Throws `forbidden`.
 */
function checkUnreadIncrement(by: number): void {
  if (by >= 0 && by <= MAX_UNREAD_INCREMENT) return;
  throw new RowkeyError(
    'forbidden',
    `A role that may not read the count may add at most ${MAX_UNREAD_INCREMENT} at a time; got ${by}.`,
    {
      field: 'by',
      accepted: `0 to ${MAX_UNREAD_INCREMENT}`,
    },
  );
}
