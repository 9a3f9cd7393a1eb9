import { z } from 'zod';
import { canRead, hasWriteOnlyRoles } from '../../access/rule.ts';
import {
  Count,
  Counts,
  getSeries,
  getSpan,
  Increment,
  incrementSeries,
  removeSeries,
  setSeries,
} from '../../api/series.ts';
import { parse, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { slotsOf } from '../../features/data-series/data-series.ts';
import { spanKeyFields } from '../../features/data-series/series-span.ts';
import { bind, isNotModified, readConditions, readKey, readRequestId, toEntityTemplate } from '../bind.ts';
import { type RequestContext, type Route, toPathTemplate } from '../route.ts';

const Point = z.object({ at: z.iso.datetime(), count: z.int() }).meta({ title: 'chart-point' });
const Points = z.object({ items: z.array(Point) }).meta({ title: 'chart' });

/** A chart is one GET, setting a count is one merge, and concurrent increments are all counted. */
export function seriesRoutes(entity: Entity): Route[] {
  const slot = slotsOf(entity).name;
  const path = toEntityTemplate(entity);
  const readTarget = (context: RequestContext) => ({
    key: readKey(entity, context),
    conditions: readConditions(context),
  });
  return [
    bind(getSeries(entity), {
      method: 'GET',
      path,
      cacheable: true,
      success: { status: 200, description: `A count for each ${slot}`, headers: ['ETag'] },
      read: (context) => ({ key: readKey(entity, context) }),
      present: ({ values, counts, etag }, context) =>
        isNotModified(context, etag)
          ? { status: 304, headers: { etag } }
          : { status: 200, headers: { etag }, body: { ...values, counts } },
    }),
    bind(setSeries(entity), {
      method: 'PATCH',
      path,
      conditional: true,
      success: { status: 204, description: 'All counts are set' },
      read: async (context) => ({ ...parse(Counts, await context.json()), ...readTarget(context) }),
    }),
    bind(removeSeries(entity), {
      method: 'DELETE',
      path,
      conditional: true,
      success: { status: 204, description: 'Deleted' },
      read: readTarget,
    }),
    bind(setSeries(entity), {
      name: `${entity.name}-put-${slot}`,
      method: 'PUT',
      path: `${path}/{${slot}}`,
      conditional: true,
      summary: `Set the count of one ${slot}`,
      requestBody: () => Count,
      success: { status: 204, description: 'Set' },
      read: async (context) => ({
        counts: { [context.params[slot] ?? '']: parse(Count, await context.json()).count },
        ...readTarget(context),
      }),
    }),
    bind(incrementSeries(entity), {
      method: 'POST',
      path: `${path}/{${slot}}/increments`,
      success: {
        status: 200,
        description: 'The new count',
        ...(hasWriteOnlyRoles(entity) ? { unread: 'Added; the roles of the caller may not read the count' } : {}),
      },
      read: async (context) => ({
        ...parse(Increment, await context.json()),
        slot: context.params[slot] ?? '',
        id: await readRequestId(context),
        key: readKey(entity, context),
      }),
      present: (body, { caller }) => (canRead(entity, caller) ? { status: 200, body } : { status: 204 }),
    }),
    ...(entity.series?.span ? [spanRoute(entity)] : []),
  ];
}

function spanRoute(entity: Entity): Route {
  const fields = spanKeyFields(entity);
  const slot = slotsOf(entity).name;
  return bind(getSpan(entity), {
    method: 'GET',
    path: toPathTemplate([entity.name], fields),
    query: {
      from: `The first ${slot}, in UTC, such as 2026-11-20T09; a prefix is its beginning`,
      to: `The last ${slot}, included; a prefix is its end`,
    },
    success: { status: 200, description: `A count for each ${slot}, in the order of time`, body: () => Points },
    read: ({ params, query }) => ({
      key: validateTexts(entity, params, fields),
      from: query.get('from') ?? '',
      to: query.get('to') ?? '',
    }),
    present: (items) => ({ status: 200, body: { items } }),
  });
}
