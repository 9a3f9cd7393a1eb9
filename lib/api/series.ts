import { z } from 'zod';
import { limitOf, refusedByRules } from '../access/limit.ts';
import { canRead } from '../access/rule.ts';
import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { narrow } from '../define/codec/limit.ts';
import type { Action } from '../define/declaration/access.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { rolesTo } from '../define/places/reach.ts';
import { notFound } from '../engine/read/entity-rows.ts';
import { slotsOf } from '../features/data-series/data-series.ts';
import {
  deleteSeries,
  increment,
  readSeries,
  type Series,
  setCounts,
  toSlot,
} from '../features/data-series/series-counts.ts';
import { readSpan, type SeriesPoint, type SpanBounds } from '../features/data-series/series-span.ts';
import type { Operation, View } from './operation.ts';
import type { RemoveInput } from './writes.ts';

/** What callers read and write of a data series. Keys have been checked. */

export const Count = z.strictObject({ count: z.int32().min(0) }).meta({ title: 'series-count' });
export const Counts = z
  .strictObject({ counts: z.record(z.string(), z.int32().min(0)) })
  .meta({ title: 'series-counts' });
export const Increment = z.strictObject({ by: z.int32() }).meta({ title: 'series-increment' });

/** The largest increment for a role that may not read the count. */
const MAX_UNREAD_INCREMENT = 1_000_000;

/** All counts of an entity. Throws `not-found`. */
export function getSeries(entity: Entity): Operation<{ readonly key: Values }, Series> {
  return {
    name: `${entity.name}-get`,
    summary: `Get all counts of an entity of ${entity.name}, by ${slotsOf(entity).name}`,
    output: () => entity.schema.extend({ counts: z.array(z.int()) }),
    kind: 'read',
    entity,
    roles: rolesTo(entity, 'read'),
    async run(view, { key }) {
      await requireReach(view, entity, 'read', key);
      return readSeries(view.engine, entity, key);
    },
  };
}

/** The counts from one instant to another. */
export function getSpan(entity: Entity): Operation<{ readonly key: Values } & SpanBounds, readonly SeriesPoint[]> {
  return {
    name: `${entity.name}-span`,
    summary: `Get the counts of ${entity.name} from one instant to another, by ${slotsOf(entity).name}`,
    kind: 'read',
    entity,
    roles: rolesTo(entity, 'read'),
    async run(view, { key, ...bounds }) {
      await requireReach(view, entity, 'read', key);
      return readSpan(view.engine, entity, key, bounds);
    },
  };
}

/** Sets several counts, by the text of their slot. */
export function setSeries(
  entity: Entity,
): Operation<RemoveInput & { readonly counts: Readonly<Record<string, number>> }, void> {
  return {
    name: `${entity.name}-patch`,
    summary: `Set several counts, by ${slotsOf(entity).name}`,
    input: () => Counts,
    kind: 'write',
    entity,
    roles: rolesTo(entity, 'update'),
    async run(view, { key, counts, conditions }) {
      await requireReach(view, entity, 'update', key);
      const bySlot = Object.entries(counts).map(([slot, count]) => [toSlot(entity, slot), count] as const);
      return setCounts(view.engine, entity, key, new Map(bySlot), conditions);
    },
  };
}

export function removeSeries(entity: Entity): Operation<RemoveInput, void> {
  return {
    name: `${entity.name}-delete`,
    summary: `Delete all counts of an entity of ${entity.name}`,
    kind: 'write',
    entity,
    deeds: ['delete'],
    roles: rolesTo(entity, 'delete'),
    async run(view, { key, conditions }) {
      await requireReach(view, entity, 'delete', key);
      await deleteSeries(view.engine, entity, key, conditions);
    },
  };
}

interface IncrementInput {
  readonly key: Values;
  readonly slot: string;
  readonly by: number;
  /** Identifies a request that may be repeated. */
  readonly id: string | undefined;
}

/** Adds to a count and returns it; concurrent increments all count. */
export function incrementSeries(entity: Entity): Operation<IncrementInput, z.infer<typeof Count>> {
  return {
    name: `${entity.name}-increment`,
    summary: `Add to the count of one ${slotsOf(entity).name}; concurrent increments all count`,
    input: () => Increment,
    output: () => Count,
    repeatable: true,
    kind: 'write',
    entity,
    roles: rolesTo(entity, 'update'),
    /** A 400 for a count out of range discloses the approximate count. Small positive increments limit that to counts near the maximum. */
    admit(caller, { by }) {
      if (canRead(entity, caller) || (by >= 0 && by <= MAX_UNREAD_INCREMENT)) return;
      throw new RowkeyError(
        'forbidden',
        `A role that may not read the count may add at most ${MAX_UNREAD_INCREMENT} at a time; got ${by}.`,
        { field: 'by', accepted: `0 to ${MAX_UNREAD_INCREMENT}` },
      );
    },
    async run(view, { key, slot, ...change }) {
      await requireReach(view, entity, 'update', key);
      return { count: await increment(view.engine, entity, key, { ...change, slot: toSlot(entity, slot) }) };
    },
  };
}

/** A series has no fields but its key, which decides. The first write of a key creates it. Throws `not-found`, `forbidden`. */
async function requireReach(view: View, entity: Entity, action: Exclude<Action, 'create'>, key: Values): Promise<void> {
  if (!narrow(await limitOf(view, entity, action), key)) return;
  const canSee = action !== 'read' && !narrow(await limitOf(view, entity, 'read'), key);
  throw canSee ? refusedByRules(entity, action) : notFound(entity, key);
}
