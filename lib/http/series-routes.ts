import { z } from 'zod';
import { canRead, hasWriteOnlyRoles } from '../access/rule.ts';
import type { Entity } from '../define/entity.ts';
import { parse } from '../define/validation.ts';
import { RowkeyError } from '../errors.ts';
import { deleteSeries, increment, readSeries, setCounts, slotsOf, toSlot } from '../patterns/data-series.ts';
import { keyOf } from './entity-routes.ts';
import { requestId } from './idempotency.ts';
import { parametersOf, type RequestContext, type Route, type RouteResult } from './route.ts';

const Count = z.strictObject({ count: z.int32().min(0) });
/** The most that a role may add to a count that it may not read. */
const MAX_UNREAD_INCREMENT = 1_000_000;
const Increment = z.strictObject({ by: z.int32() });
const Counts = z.strictObject({ counts: z.record(z.string(), z.int32().min(0)) });

/** The routes of a data series: a chart is one get, a count one merge, an increment loses none. */
export function seriesRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const slot = slotsOf(entity).name;
  const one = `${name}/${parametersOf(entity.keyFields)}`;
  const answer = entity.schema.extend({ counts: z.array(z.int()) });
  return [
    {
      name: `${name}-get`,
      method: 'GET',
      path: one,
      roles: access.read,
      summary: `All counts of one of ${name}, by ${slot}`,
      success: { status: 200, description: `A count for each ${slot}`, body: answer },
      handle: async (call) => read(entity, call),
    },
    {
      name: `${name}-patch`,
      method: 'PATCH',
      path: one,
      roles: access.write,
      summary: `Set several counts at once, by ${slot}`,
      requestBody: Counts,
      success: { status: 204, description: 'Set, all of them' },
      handle: async (call) => {
        const { counts } = parse(Counts, await call.json());
        const bySlot = Object.entries(counts).map(([text, count]) => [toSlot(entity, text), count] as const);
        await setCounts(call.app.engine, entity, keyOf(entity, call), new Map(bySlot));
        return { status: 204 };
      },
    },
    {
      name: `${name}-delete`,
      method: 'DELETE',
      path: one,
      roles: access.write,
      summary: `Delete all counts of one of ${name}`,
      success: { status: 204, description: 'Deleted' },
      handle: async (call) => {
        await deleteSeries(call.app.engine, entity, keyOf(entity, call));
        return { status: 204 };
      },
    },
    {
      name: `${name}-put-${slot}`,
      method: 'PUT',
      path: `${one}/{${slot}}`,
      roles: access.write,
      summary: `Set the count of one ${slot}`,
      requestBody: Count,
      success: { status: 204, description: 'Set' },
      handle: async (call) => {
        const { count } = parse(Count, await call.json());
        await setCounts(
          call.app.engine,
          entity,
          keyOf(entity, call),
          new Map([[toSlot(entity, call.params[slot] ?? ''), count]]),
        );
        return { status: 204 };
      },
    },
    {
      name: `${name}-increment`,
      method: 'POST',
      repeatable: true,
      path: `${one}/{${slot}}/increments`,
      roles: access.write,
      summary: `Add to the count of one ${slot}; none of those who do so at once is lost`,
      requestBody: Increment,
      success: {
        status: 200,
        description: 'The new count',
        body: Count,
        ...(hasWriteOnlyRoles(entity) ? { unread: 'Added, for a role that may not read the count' } : {}),
      },
      handle: async (call) => {
        const { by } = parse(Increment, await call.json());
        const isReader = canRead(entity, call.caller);
        if (!isReader) checkUnreadIncrement(by);
        const at = toSlot(entity, call.params[slot] ?? '');
        const id = await requestId(call, `${name}-increment`);
        const count = await increment(call.app.engine, entity, keyOf(entity, call), { slot: at, by, id });
        return isReader ? { status: 200, body: { count } } : { status: 204 };
      },
    },
  ];
}

async function read(entity: Entity, call: RequestContext): Promise<RouteResult> {
  const { values, counts } = await readSeries(call.app.engine, entity, keyOf(entity, call));
  return { status: 200, body: { ...values, counts } };
}

/**
 * A count that would leave its range is a 400, which tells how large the count is. Without negative and very large
 * increments only a count near the limit can be told that way. Throws `forbidden`.
 */
function checkUnreadIncrement(by: number): void {
  if (by >= 0 && by <= MAX_UNREAD_INCREMENT) return;
  throw new RowkeyError(
    'forbidden',
    `A role that may not read the count may only add to it, at most ${MAX_UNREAD_INCREMENT} at a time; got ${by}.`,
    {
      field: 'by',
      accepted: `0 to ${MAX_UNREAD_INCREMENT}`,
    },
  );
}
