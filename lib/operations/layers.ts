import { isDeepStrictEqual } from 'node:util';
import { RowkeyError } from '../base/errors.ts';
import { commandLine } from '../command-line.ts';
import type { PlacedLayer } from '../define/places/placement.ts';
import { type Layer, type Layers, newestLayers, type Owned, requireRoom, withLayers } from '../storage/slot-row.ts';
import { canOverlap, intersectLayers, layerOf, SLOTS, subtractLayers } from '../storage/slots.ts';
import type { Storage } from '../storage/storage.ts';
import {
  layersIn,
  type Placement,
  type Plan,
  requireAtRest,
  severalAccounts,
  slotsIn,
  writeLayers,
} from './placement.ts';
import { asMover, type MoveOptions } from './slot-mover.ts';

/**
 * Layers: slots of their own for a tenant, a range of keys or an entity. A placement of the model has one layer, or several while it changes:
 *
 * - What is new of it is carved from the layers that have it, layer 0 for the most part: a new layer before such a layer gets the states of its slots.
 * - What it has no more stays in its layer, which is a former one then, until its slots are where all others are. Then the layer is removed.
 * - Layers whose slots agree in all accounts are joined: after their moves, when what they have left is cleaned up.
 *
 * Each is a write to the row of one account after the other that changes the owner of no partition, whether a process has read the row before
 * or after, so it needs no fence. But no slot may move until all rows have the same layers: so each mover completes first what another one
 * has begun. test/model/move.ts visits the interleavings.
 */

/** Each row of an account has all layers with their slots, and room for a move of each slot: at most 1 MiB, of which a text may have 32,768 characters. */
const MAX_LAYERS = 24;
const MAX_LAYERS_LENGTH = 30_000;

/**
 * Gives the accounts the layers that the model needs, joins those that agree, and removes former ones that have nothing of their own. With `isTidying`, carves none.
 * Throws `invalid-input` for a model that the accounts cannot have.
 */
export async function arrangeLayers(
  storage: Storage,
  placed: readonly PlacedLayer[],
  { isTidying = false, ...options }: MoveOptions & { readonly isTidying?: boolean },
): Promise<void> {
  const names = severalAccounts(storage).list.map(({ name }) => name);
  const unknown = placed.find(({ account }) => !names.includes(account));
  if (unknown)
    throw new RowkeyError(
      'invalid-input',
      `The model places "${unknown.layer.name}" in the storage account "${unknown.account}", which STORAGE_ACCOUNTS does not name.`,
      { accepted: names.join(', ') },
    );
  await asMover(storage, options, async (mover, placements) => {
    const rows = placements.map(({ owned }) => owned);
    const before = newestLayers(rows);
    const tidied = { ...before, list: joinLayers(removeFormer(before.list, rows), placed, rows) };
    if (!isTidying)
      for (const layer of tidied.list) for (const { layer: wanted } of placed) requireSeparator(layer, wanted);
    const layers = isTidying ? tidied : refine(tidied, placed);
    if (isDeepStrictEqual(layers.list, before.list)) return;
    const { length } = layers.list;
    const { length: characters } = JSON.stringify(layers.list);
    if (!isTidying && (length > MAX_LAYERS || characters > MAX_LAYERS_LENGTH))
      throw new RowkeyError(
        'invalid-input',
        `The placements need ${length} layers with ${characters} characters, and the row of an account has room for ${MAX_LAYERS} with ${MAX_LAYERS_LENGTH}. Run ${commandLine('accounts', 'clean-up')} first, 20 minutes after the last move at the earliest: it joins the parts of a placement and removes former ones. If that is not enough, put several tenants into one placement, use ranges, or place less.`,
      );
    const next = { ...layers, version: Math.max(layers.version, before.version + 1) };
    for (const { account, owned } of placements) {
      requireAtRest(owned);
      // A new layer gets the moves that are not cleaned up of the layer of which it is a part.
      if (!isTidying) requireRoom(account, withLayers(owned, next));
    }
    await writeLayers(mover, next);
  });
}

/**
 * Splits layers so that each has partitions of one placement. A layer with partitions of no placement is a former one. A partition that
 * several placements have belongs to the first of them. What has no layer yet gets one.
 */
function refine({ version, list }: Layers, placed: readonly PlacedLayer[]): Layers {
  const refined: Layer[] = [];
  let number = version;
  for (const layer of list) {
    for (const { layer: wanted } of placed) {
      const both = intersectLayers(layer, wanted);
      const part = both && subtractLayers(both, refined);
      if (!part) continue;
      if (!subtractLayers(layer, [...refined, part])) {
        const { isFormer: _, ...rest } = layer;
        refined.push({ ...rest, name: wanted.name });
        break;
      }
      number += 1;
      refined.push({ ...part, name: wanted.name, number, of: layer.number });
    }
    const rest = subtractLayers(layer, refined);
    if (rest) refined.push({ ...layer, ...rest, isFormer: true });
  }
  for (const { layer } of placed) {
    const part = subtractLayers(layer, refined);
    if (!part) continue;
    number += 1;
    refined.push({ ...layer, ...part, number });
  }
  return { version: number, list: refined };
}

/** The names of the placements that have other partitions in the model than in the accounts. */
export function changedPlacements(placements: readonly Placement[], placed: readonly PlacedLayer[]): Set<string> {
  const before = newestLayers(placements.map(({ owned }) => owned));
  const { list } = refine(before, placed);
  const partsOf = (name: string, layers: readonly Layer[]) =>
    layers.filter((layer) => layer.name === name && !layer.isFormer);
  const names = placed.map(({ layer }) => layer.name);
  return new Set(names.filter((name) => !isDeepStrictEqual(partsOf(name, list), partsOf(name, before.list))));
}

function requireSeparator(layer: Layer, wanted: PlacedLayer['layer']): void {
  const isOther = layer.keys && wanted.keys && layer.separator !== wanted.separator;
  if (!isOther || !canOverlap(layer, wanted)) return;
  throw new RowkeyError(
    'invalid-input',
    `The placement "${wanted.name}" has the separator ${JSON.stringify(wanted.separator)}, and "${layer.name}" in the storage accounts has ${JSON.stringify(layer.separator)}. Remove the placement from the model and run ${commandLine('accounts', `remove ${layer.name}`)} before you declare it with another separator.`,
  );
}

/** Leaves out the former layers whose partitions come into layers that agree with them in all accounts, also in what is not cleaned up. */
function removeFormer(list: readonly Layer[], rows: readonly Owned[]): readonly Layer[] {
  const gone = list.find((layer, at) => {
    const below = list.slice(at + 1).filter((other) => hasPartOf(other, layer, list.slice(0, at)));
    return layer.isFormer && agree([layer.number, 0, ...below.map(({ number }) => number)], rows);
  });
  return gone
    ? removeFormer(
        list.filter((layer) => layer !== gone),
        rows,
      )
    : list;
}

/** True if a layer would have partitions of another one that are in none of the layers before. */
function hasPartOf(layer: Layer, other: PlacedLayer['layer'], before: readonly Layer[]): boolean {
  const both = intersectLayers(layer, other);
  return both !== undefined && subtractLayers(both, before) !== undefined;
}

/** Makes one layer of those of a placement that agree in all accounts, if they have all that the placement has. */
function joinLayers(list: readonly Layer[], placed: readonly PlacedLayer[], rows: readonly Owned[]): readonly Layer[] {
  let joined = list;
  for (const { layer: wanted } of placed) {
    const parts = joined.filter(({ name, isFormer }) => name === wanted.name && !isFormer);
    const [first] = parts;
    if (
      !first ||
      parts.length === 1 ||
      !agree(
        parts.map(({ number }) => number),
        rows,
      )
    )
      continue;
    const start = joined.indexOf(first);
    const isWhole = !subtractLayers(wanted, [...joined.slice(0, start), ...parts]);
    const isMore = parts.some((part) => subtractLayers(part, [wanted]));
    const others = joined.slice(start).filter((layer) => !parts.includes(layer));
    if (!isWhole || isMore || others.some((layer) => hasPartOf(layer, wanted, joined.slice(0, joined.indexOf(layer)))))
      continue;
    const { of: _, ...kept } = first;
    joined = joined.flatMap((layer) =>
      layer === first ? { number: kept.number, ...wanted } : parts.includes(layer) ? [] : layer,
    );
  }
  return joined;
}

/** True if all accounts say the same of the slots of these layers. */
function agree([first = 0, ...others]: readonly number[], rows: readonly Owned[]): boolean {
  return rows.every((owned) =>
    others.every((other) => isDeepStrictEqual(slotsOf(owned, first), slotsOf(owned, other))),
  );
}

/** What the row of an account says of the slots of a layer. */
function slotsOf({ texts, moves }: Owned, layer: number) {
  const states = [...moves].filter(([index]) => layerOf(index) === layer);
  return { text: texts.get(layer), moves: new Map(states.map(([index, state]) => [index % SLOTS, state])) };
}

/** Brings the slots of each layer to the account that is declared for it, and those of former layers of the placements to where those of layer 0 are. */
export function planLayers(placements: readonly Placement[], placed: readonly PlacedLayer[]): Plan[] {
  const wanted = layersIn(placements).filter(({ isFormer }) => !isFormer);
  const plans = placed.flatMap(({ layer, account: to }) => {
    const slots = wanted
      .filter(({ name }) => name === layer.name)
      .flatMap(({ number }) =>
        placements.flatMap((placement) => (placement.account.name === to ? [] : slotsIn(placement, 'at rest', number))),
      );
    return slots.length > 0 ? [{ slots, to }] : [];
  });
  return [...plans, ...placed.flatMap(({ layer }) => planToLayer0(placements, layer.name))];
}

/** Brings the slots of the former layers of a name to where those of layer 0 are. */
export function planToLayer0(placements: readonly Placement[], name: string): Plan[] {
  const former = layersIn(placements).filter((layer) => layer.name === name && layer.isFormer);
  return placements.flatMap((placement) => {
    const missing = former.flatMap(({ number }) => {
      const here = new Set(slotsIn(placement, 'at rest', number));
      const slots = slotsIn(placement, 'at rest').map((slot) => `${number}-${slot}`);
      return slots.filter((slot) => !here.has(slot));
    });
    return missing.length > 0 ? [{ slots: missing, to: placement.account.name }] : [];
  });
}
