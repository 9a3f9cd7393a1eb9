import { isDeepStrictEqual } from 'node:util';
import { pick, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { type Total, toIndex } from '../../lib/define/declaration/totals.ts';
import { periodOf } from '../../lib/define/keys/calendar.ts';
import { rangeStarts } from '../../lib/define/places/index-range.ts';
import type { WalkWorld } from './walk-world.ts';

/** Compares the totals that the store returns, of each group and as ranges, with the entities. */
export async function compareTotals(
  { store }: WalkWorld,
  entity: Entity,
  current: readonly Values[],
): Promise<string[]> {
  const all: string[] = [];
  for (const [of, declared] of Object.entries(entity.totals)) {
    const { get, range } = store[entity.name].totals[of];
    const expected = expectedTotals(declared, current);
    const compare = (what: string, found: unknown, wanted: unknown) => {
      if (!isDeepStrictEqual(rounded(found), rounded(wanted)))
        all.push(
          `${entity.name}, ${what} of the totals ${of}: ${JSON.stringify(found)}, but should be ${JSON.stringify(wanted)}`,
        );
    };
    for (const total of expected) compare('group', await get(total.group), total);
    for (const first of rangeStarts(entity, toIndex(declared)))
      for (const [start, totals] of Map.groupBy(expected, ({ group }) => JSON.stringify(pick(group, first)))) {
        const items = await Array.fromAsync<{ readonly group: Values }>(range(JSON.parse(start)));
        const inOrder = (some: readonly { readonly group: Values }[]) =>
          some.toSorted((one, other) => (JSON.stringify(one.group) < JSON.stringify(other.group) ? -1 : 1));
        compare(`range from ${start}`, inOrder(items), inOrder(totals));
      }
  }
  return all;
}

function expectedTotals({ sum, min, max, when = () => true, ...declared }: Total, current: readonly Values[]) {
  const isThere = (value: unknown) => value !== undefined && value !== null;
  const keyFields = [...declared.partition.fields, ...declared.row.fields];
  const counted = current.filter((one) => keyFields.every((field) => isThere(one[field])) && when(one));
  const groupOf = (one: Values): Values =>
    Object.fromEntries(
      declared.groupFields.map((field) => {
        const unit = declared.periods[field];
        return [field, unit ? periodOf(unit, String(one[field])) : one[field]];
      }),
    );
  return [...Map.groupBy(counted, (one) => JSON.stringify(groupOf(one)))].map(([group, all]) => {
    const valuesOf = (field: string) => all.map((one) => one[field] as string | number).filter(isThere);
    const least = (fields: readonly string[], sign: number) =>
      Object.fromEntries(
        fields.flatMap((field) => {
          const [first] = valuesOf(field).sort((one, other) => (one < other ? -sign : sign));
          return first === undefined ? [] : [[field, first]];
        }),
      );
    const sums = sum.map((field) => [field, valuesOf(field).reduce((total: number, one) => total + Number(one), 0)]);
    return {
      group: JSON.parse(group) as Values,
      count: all.length,
      sum: Object.fromEntries(sums),
      min: least(min, 1),
      max: least(max, -1),
    };
  });
}

/** The engine adds decimals, and the walk binary fractions. */
function rounded(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, part) =>
    typeof part === 'number' ? Math.round(part * 1e6) / 1e6 : part,
  );
}
