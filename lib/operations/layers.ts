import { isDeepStrictEqual } from 'node:util';
import { RowkeyError } from '../base/errors.ts';
import type { PlacedLayer } from '../define/places/placement.ts';
import type { Owned } from '../storage/slot-row.ts';
import { canOverlap, SLOTS } from '../storage/slots.ts';
import type { Storage } from '../storage/storage.ts';
import {
  completeLayers,
  layersIn,
  type Placement,
  type Plan,
  requireAtRest,
  severalAccounts,
  slotsIn,
  writeLayers,
} from './placement.ts';
import { acceptAll, asMover, type MoveOptions } from './slot-mover.ts';

/**
 * Layers: slots of their own for a tenant, a range of keys or an entity. A layer is carved by a write to the row of each account, in which it
 * gets the states of the slots of layer 0. That changes the owner of no partition, whether a process has read the row before or after, so it
 * needs no fence. But no slot may move until the rows of all accounts have the layer: of one that lacks it, the account owns what it owns of
 * layer 0. So each mover completes first what another one has begun. test/model/move.ts visits the interleavings.
 */

/** Each row of an account has all layers with their slots: at most 1 MiB, of which a text may have 32,000 characters. */
const MAX_LAYERS = 24;
const MAX_LAYERS_LENGTH = 30_000;

/** Carves the layers that the accounts lack. Throws `invalid-input` for another definition under a name that they have. */
export async function carveLayers(
  storage: Storage,
  placed: readonly PlacedLayer[],
  options: MoveOptions,
): Promise<void> {
  const wanted = placed.map(({ layer }) => layer);
  const names = severalAccounts(storage).list.map(({ name }) => name);
  const unknown = placed.find(({ account }) => !names.includes(account));
  if (unknown)
    throw new RowkeyError(
      'invalid-input',
      `The model places "${unknown.layer.name}" in the storage account "${unknown.account}", which STORAGE_ACCOUNTS does not name.`,
      { accepted: names.join(', ') },
    );
  await asMover(storage, options, async (mover) => {
    await acceptAll(mover);
    const placements = await completeLayers(mover);
    const known = layersIn(placements);
    for (const { name, ...definition } of wanted) {
      const { name: _, number, ...before } = known.get(name) ?? { name, number: 0, ...definition };
      if (!isDeepStrictEqual(before, definition))
        throw new RowkeyError(
          'invalid-input',
          `The layer "${name}" is another one in the storage accounts: ${JSON.stringify(before)}. Choose another name, or remove that layer first.`,
        );
    }
    const added = wanted.filter(({ name }) => !known.has(name));
    if (added.length === 0) return;
    const layers = [...(placements[0]?.owned.layers ?? []), ...added];
    const isTooMuch = layers.filter(Boolean).length > MAX_LAYERS || JSON.stringify(layers).length > MAX_LAYERS_LENGTH;
    if (isTooMuch)
      throw new RowkeyError(
        'invalid-input',
        `The row of an account has room for ${MAX_LAYERS} layers, whose definitions have ${MAX_LAYERS_LENGTH} characters together. Put several tenants into one layer, or use ranges.`,
      );
    for (const { owned } of placements) requireAtRest(owned);
    await writeLayers(mover, layers);
  });
}

/** Removes a layer whose slots agree with those of layer 0 in each account, also in what is not cleaned up. */
export async function removeLayer(storage: Storage, name: string, options: MoveOptions): Promise<void> {
  await asMover(storage, options, async (mover) => {
    await acceptAll(mover);
    const placements = await completeLayers(mover);
    const { number } = findLayer(placements, name);
    const layers = placements[0]?.owned.layers ?? [];
    // Partitions of the layer that are also in a later one are in that one afterwards.
    const later = layers.flatMap((layer, index) =>
      layer && index >= number && canOverlap(layer, { ...layers[number - 1], name }) ? [index + 1] : [],
    );
    for (const { account, owned } of placements) {
      requireAtRest(owned);
      for (const other of [0, ...later]) {
        const [one, its] = [slotsOf(owned, other), slotsOf(owned, number)];
        if (isDeepStrictEqual(one, its)) continue;
        const isThere = withoutLeft(one.text) === withoutLeft(its.text);
        const where = other === 0 ? 'all other slots are' : `the layer "${layers[other - 1]?.name}" is`;
        throw new RowkeyError(
          'busy',
          isThere
            ? `What the slots of "${name}" have left in the account ${account.name} is not cleaned up. Clean up first.`
            : `The slots of "${name}" are not where ${where} in the account ${account.name}. Move them there first.`,
        );
      }
    }
    await writeLayers(
      mover,
      layers.map((layer, index) => (index + 1 === number ? null : layer)),
    );
  });
}

function findLayer(placements: readonly Placement[], name: string) {
  const known = layersIn(placements);
  const layer = known.get(name);
  if (layer) return layer;
  throw new RowkeyError('invalid-input', `Layer "${name}" not found.`, { accepted: [...known.keys()].join(', ') });
}

/** What the row of an account says of the slots of a layer. */
function slotsOf({ text, moves }: Owned, layer: number) {
  const [start, end] = [layer * SLOTS, (layer + 1) * SLOTS];
  const states = [...moves].filter(([index]) => index >= start && index < end);
  return {
    text: text.slice(start, end),
    moves: new Map(states.map(([index, state]) => [index - start, state] as const)),
  };
}

const withoutLeft = (text: string) => text.replaceAll('g', '-');

/** Brings the slots of each layer to the account that is declared for it. */
export function planLayers(placements: readonly Placement[], placed: readonly PlacedLayer[]): Plan[] {
  const known = layersIn(placements);
  return placed.flatMap(({ layer, account: to }) => {
    const number = known.get(layer.name)?.number;
    if (number === undefined) return [];
    const slots = placements.flatMap((placement) =>
      placement.account.name === to ? [] : slotsIn(placement, 'at rest', number),
    );
    return slots.length > 0 ? [{ slots, to }] : [];
  });
}

/** Brings the slots of a layer to where those of layer 0 are. */
export function planToLayer0(placements: readonly Placement[], name: string): Plan[] {
  const { number } = findLayer(placements, name);
  return placements.flatMap((placement) => {
    const here = new Set(slotsIn(placement, 'at rest', number));
    const slots = slotsIn(placement, 'at rest').map((slot) => `${number}-${slot}`);
    const missing = slots.filter((slot) => !here.has(slot));
    return missing.length > 0 ? [{ slots: missing, to: placement.account.name }] : [];
  });
}
