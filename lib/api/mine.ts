import { listLimitOf } from '../access/limit.ts';
import { hasCode, RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import type { Values } from '../base/values.ts';
import type { Comparison } from '../define/declaration/comparison.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Index } from '../define/declaration/indexes.ts';
import { buildKey } from '../define/keys/key-template.ts';
import { type PlaceOfMine, placesOfMine } from '../define/places/reach.ts';
import { withoutSteward } from '../define/places/readers.ts';
import type { Page, PageOptions } from '../engine/read/retrieve.ts';
import type { Operation } from './operation.ts';
import { admitFilterOf, type ListInput, listIn } from './reads.ts';

/** The partitions that one page reads at most; the next page reads on. */
const MAX_PARTITIONS = 16;

/**
 * All rows that the rules let the caller read, whatever their partitions: the partitions follow from the terms, one range query each.
 * Undefined if the rules do not name the partitions of a key or of an index.
 */
export const listMine = onceFor((entity: Entity): Operation<ListInput & PageOptions, Page> | undefined => {
  const places = placesOfMine(entity);
  if (places.length === 0) return undefined;
  return {
    name: `${entity.name}-mine`,
    summary: `List the ${entity.name} that the rules let the caller read`,
    kind: 'read',
    entity,
    roles: [...new Set(places.flatMap(({ roles }) => roles))],
    ...admitFilterOf(entity),
    async run(given, { after, top, ...input }) {
      // What a steward reaches by other roles: pages of users work for those who are stewards too.
      const { caller } = given;
      const view = {
        ...given,
        caller: caller && { ...caller, roles: withoutSteward(caller.roles, entity.access.steward) },
      };
      const { name, fields } = placeFor(view.caller?.roles ?? [], places);
      const index = name === undefined ? undefined : entity.indexes[name];
      const limit = await listLimitOf(view, entity, index);
      if (!limit)
        throw new RowkeyError(
          'forbidden',
          `The caller may read all ${entity.name}, so no rule names their partitions.`,
          {
            accepted: `a list of one ${fields.join(', ')}`,
          },
        );
      const all = partitionsOf(limit, fields).filter(({ given }) => isPartition(entity, index, given));
      const start = after?.place === undefined ? 0 : all.findIndex(({ id }) => id >= String(after.place));
      const items: Values[] = [];
      for (const [read, { id, given }] of (start < 0 ? [] : all.slice(start)).entries()) {
        // The next page begins with this partition.
        if (items.length >= top || read >= MAX_PARTITIONS) return { items, next: { row: '', place: id } };
        const isContinued = id === after?.place && (after.row !== '' || after.resume !== undefined);
        const page = { ...input, top: top - items.length, after: isContinued ? after : undefined };
        const found = await listIn(view, entity, { index: name, given, page });
        items.push(...found.items);
        if (found.next) return { items, next: { ...found.next, place: id } };
      }
      return { items, next: undefined };
    },
  };
});

/** False for a value of the caller that no key can have, such as an empty claim or one that is too long: no row has it there. */
function isPartition(entity: Entity, index: Index | undefined, given: Values): boolean {
  try {
    buildKey((index?.remote ?? entity).partition, given);
    return true;
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return false;
    throw error;
  }
}

/** The list that the most roles of the caller name. */
function placeFor(roles: readonly string[], places: readonly PlaceOfMine[]): PlaceOfMine {
  const countOf = (place: PlaceOfMine) => place.roles.filter((role) => roles.includes(role)).length;
  return places.reduce((best, place) => (countOf(place) > countOf(best) ? place : best));
}

interface PlaceOfRows {
  /** In the order of this text, a list continues although partitions came or went. */
  readonly id: string;
  readonly given: Values;
}

/** The values of these fields in each alternative, each combination once. */
function partitionsOf(limit: readonly (readonly Comparison[])[], fields: readonly string[]): PlaceOfRows[] {
  const all = limit.flatMap((alternative) =>
    fields.reduce<Values[]>(
      (some, field) => {
        const values = alternative.find((one) => one.field === field)?.values ?? [];
        return some.flatMap((given) => values.map((value) => ({ ...given, [field]: value })));
      },
      [{}],
    ),
  );
  const byId = new Map(all.map((given) => [JSON.stringify(given), given]));
  return [...byId].map(([id, given]) => ({ id, given })).toSorted((one, other) => (one.id < other.id ? -1 : 1));
}
