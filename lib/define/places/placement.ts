import { z } from 'zod';
import { canOverlap, isSeparator, type LayerDefinition } from '../../storage/slots.ts';
import type { Entity } from '../declaration/entity.ts';
import { optionsOf } from '../schema/options.ts';
import { tablesOf } from './index-entries.ts';

/** The storage account of some entities, or of some partition keys, such as those of a tenant. All conditions hold for what is placed. */
export interface Placement<Name extends string = string> {
  /** Their rows, indexes, lists, totals, archives and the files of their rows. Entities that share a table are placed together. */
  readonly entities?: readonly Name[] | undefined;
  /** Partition keys: each itself, and those that begin with it and the separator. With the files of their rows, unless `from` or `to` limits them. */
  readonly keys?: readonly string[] | undefined;
  /** What follows a key of `keys` in a longer partition key. Ends with ASCII punctuation. By default `_`. */
  readonly separator?: string | undefined;
  /** Partition keys from here, inclusive, in the order of UTF-16 units. */
  readonly from?: string | undefined;
  /** Partition keys before this one, exclusive. */
  readonly to?: string | undefined;
  /** The name of the storage account. */
  readonly account: string;
}

export const PlacementOptions = optionsOf({
  entities: z.array(z.string()).min(1).readonly().optional(),
  keys: z.array(z.string()).min(1).readonly().optional(),
  separator: z.string().min(1).optional(),
  from: z.string().optional(),
  to: z.string().optional(),
  account: z.string(),
} satisfies Record<keyof Placement, z.ZodType>);

type Placements = Readonly<Record<string, Placement>>;

/** A layer, and the account that the model places it in. */
export interface PlacedLayer {
  readonly layer: LayerDefinition;
  readonly account: string;
}

interface Placed {
  readonly list: readonly Entity[];
  readonly placement: Placements;
}

/** The layers of the model, in the order of their declaration. */
export function layersOf({ list, placement }: Placed): readonly PlacedLayer[] {
  return Object.entries(placement).map(([name, { entities, keys, separator = '_', from, to, account }]) => {
    const named = entities && list.filter((entity) => entities.includes(entity.name));
    const layer = {
      name,
      ...(named && { tables: [...new Set(named.flatMap(tablesOf))].sort() }),
      ...(keys && { keys: [...keys].sort(), separator }),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
    };
    return { layer, account };
  });
}

const NAME = /^[A-Za-z][A-Za-z0-9-]{0,39}$/;

/** Yields a sentence for each placement that names what the model does not have, or that another one places too. */
export function* placementErrors({ list, placement }: Placed): Generator<string> {
  const known = list.map(({ name }) => name);
  for (const [name, { entities = [], keys, separator, from, to }] of Object.entries(placement)) {
    const start = `placement "${name}"`;
    if (!NAME.test(name)) yield `${start} needs a name of 1 to 40 letters, digits and hyphens, a letter first.`;
    if (entities.length === 0 && !keys && from === undefined && to === undefined)
      yield `${start} places nothing. Add entities, keys, from or to.`;
    if (separator !== undefined && !keys) yield `${start} has a separator without keys. Add keys, or remove it.`;
    if (separator !== undefined && !isSeparator(separator))
      yield `${start} has the separator ${JSON.stringify(separator)}. Use one that ends with ASCII punctuation other than "!".`;
    if (from !== undefined && to !== undefined && from >= to)
      yield `${start} has no key from ${JSON.stringify(from)} before ${JSON.stringify(to)}. Exchange them.`;
    for (const entity of entities.filter((each) => !known.includes(each)))
      yield `${start} names the entity "${entity}", which the model does not have. Use one of ${known.join(', ')}.`;
    const tables = new Set(list.filter((entity) => entities.includes(entity.name)).flatMap(tablesOf));
    for (const other of list.filter((entity) => !entities.includes(entity.name))) {
      const shared = tablesOf(other).find((table) => tables.has(table));
      if (shared !== undefined)
        yield `${start} places the table ${shared}, which the entity "${other.name}" uses too. Add "${other.name}" to its entities.`;
    }
  }
  yield* overlaps(layersOf({ list, placement }));
}

/** A tenant and an entity may overlap: then the first one has what is in both. */
function* overlaps(layers: readonly PlacedLayer[]): Generator<string> {
  for (const [index, { layer }] of layers.entries())
    for (const { layer: other } of layers.slice(0, index))
      if (!layer.tables === !other.tables && canOverlap(layer, other))
        yield `placement "${layer.name}" and "${other.name}" can place the same partition. Let each partition be in one of them.`;
}
