import { z } from 'zod';
import { canRead, hasWriteOnlyRoles } from '../../access/rule.ts';
import { getSeries, getSpan, incrementSeries, removeSeries, setSeries } from '../../api/series.ts';
import { parse, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { slotsOf } from '../../features/data-series/data-series.ts';
import { spanKeyFields } from '../../features/data-series/series-span.ts';
import { bind, readKey, toEntityTemplate } from '../bind.ts';
import { readRequestId } from '../idempotency.ts';
import { type Route, toPathTemplate } from '../route.ts';
import { isNotModified, readConditions } from '../view-etag.ts';

const Count = z.strictObject({ count: z.int32().min(0) });
const Increment = z.strictObject({ by: z.int32() });
const Counts = z.strictObject({ counts: z.record(z.string(), z.int32().min(0)) });
const Points = z.object({ items: z.array(z.object({ at: z.iso.datetime(), count: z.int() })) });

/** A chart is one GET, setting a count is one merge, and concurrent increments are all counted. */
export function seriesRoutes(entity: Entity): Route[] {
  const { name } = entity;
  const slot = slotsOf(entity).name;
  const path = toEntityTemplate(entity);
  return [
    bind(getSeries(entity), {
      name: `${name}-get`,
      method: 'GET',
      path,
      summary: `Get all counts of an entity of ${name}, by ${slot}`,
      cacheable: true,
      success: {
        status: 200,
        description: `A count for each ${slot}`,
        body: () => entity.schema.extend({ counts: z.array(z.int()) }),
        headers: ['ETag'],
      },
      read: (context) => ({ key: readKey(entity, context) }),
      present: ({ values, counts, etag }, context) =>
        isNotModified(context, etag)
          ? { status: 304, headers: { etag } }
          : { status: 200, headers: { etag }, body: { ...values, counts } },
    }),
    bind(setSeries(entity), {
      name: `${name}-patch`,
      method: 'PATCH',
      path,
      conditional: true,
      summary: `Set several counts, by ${slot}`,
      requestBody: () => Counts,
      success: { status: 204, description: 'All counts are set' },
      read: async (context) => ({
        ...parse(Counts, await context.json()),
        key: readKey(entity, context),
        conditions: readConditions(context),
      }),
    }),
    bind(removeSeries(entity), {
      name: `${name}-delete`,
      method: 'DELETE',
      path,
      conditional: true,
      summary: `Delete all counts of an entity of ${name}`,
      success: { status: 204, description: 'Deleted' },
      read: (context) => ({ key: readKey(entity, context), conditions: readConditions(context) }),
    }),
    bind(setSeries(entity), {
      name: `${name}-put-${slot}`,
      method: 'PUT',
      path: `${path}/{${slot}}`,
      conditional: true,
      summary: `Set the count of one ${slot}`,
      requestBody: () => Count,
      success: { status: 204, description: 'Set' },
      read: async (context) => ({
        counts: { [context.params[slot] ?? '']: parse(Count, await context.json()).count },
        key: readKey(entity, context),
        conditions: readConditions(context),
      }),
    }),
    bind(incrementSeries(entity), {
      name: `${name}-increment`,
      method: 'POST',
      repeatable: true,
      path: `${path}/{${slot}}/increments`,
      summary: `Add to the count of one ${slot}; concurrent increments all count`,
      requestBody: () => Increment,
      success: {
        status: 200,
        description: 'The new count',
        body: () => Count,
        ...(hasWriteOnlyRoles(entity) ? { unread: 'Added; the roles of the caller may not read the count' } : {}),
      },
      read: async (context) => ({
        ...parse(Increment, await context.json()),
        slot: context.params[slot] ?? '',
        id: await readRequestId(context, `${name}-increment`),
        key: readKey(entity, context),
      }),
      present: (count, { caller }) => (canRead(entity, caller) ? { status: 200, body: { count } } : { status: 204 }),
    }),
    ...(entity.series?.span ? [spanRoute(entity)] : []),
  ];
}

function spanRoute(entity: Entity): Route {
  const { name } = entity;
  const fields = spanKeyFields(entity);
  const slot = slotsOf(entity).name;
  return bind(getSpan(entity), {
    name: `${name}-span`,
    method: 'GET',
    path: [name, ...(fields.length > 0 ? [toPathTemplate(fields)] : [])].join('/'),
    query: {
      from: `The first ${slot}, in UTC, such as 2026-11-20T09; a prefix is its beginning`,
      to: `The last ${slot}, included; a prefix is its end`,
    },
    summary: `Get the counts of ${name} from one instant to another, by ${slot}`,
    success: { status: 200, description: `A count for each ${slot}, in the order of time`, body: () => Points },
    read: ({ params, query }) => ({
      key: validateTexts(entity, params, fields),
      from: query.get('from') ?? '',
      to: query.get('to') ?? '',
    }),
    present: (items) => ({ status: 200, body: { items } }),
  });
}
