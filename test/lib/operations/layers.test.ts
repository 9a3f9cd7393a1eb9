// @module-tag long

import pMap from 'p-map';
import { expect, test } from 'vitest';
import { arrangeLayers, changedPlacements, planLayers, planToLayer0 } from '../../../lib/operations/layers.ts';
import { baseValues } from '../../kit/base.ts';
import { engineRead } from '../../kit/engine.ts';
import type { Internal } from '../../kit/internal.ts';
import { operationsCheck, operationsMove } from '../../kit/operations.ts';
import { type Storage, storageBlobs, storageRows, storageSlots, storageTables } from '../../kit/storage.ts';
import { countTurns } from '../../patient-clock.ts';
import { IS_EVERY_POINT, sampleItems, samplePoints } from '../../points.ts';
import { accountNamed, createAccounts, FAULTS, RESOURCES, type Several, TABLE } from '../storage/several-accounts.ts';
import {
  at,
  blobIn,
  contentsOf,
  createTraffic,
  put,
  QUICK,
  quick,
  resume,
  rowsIn,
  storageToMove,
  write,
} from './storage-to-move.ts';

countTurns();

const ACME = { name: 'acme', keys: ['acme'], separator: '_' };
const TENANTS = ['acme', 'acme_1', 'acme_2', 'acmeco', 'globex'];

async function storageWithTenants() {
  const created = await storageToMove(1);
  for (const key of TENANTS) await put(created.open(), key, 'a', key);
  return created;
}

/** Carves the layer and brings it to an account. Continues where another process has died. */
async function bring(process: Storage, to: string, layer: Internal['LayerDefinition'] = ACME): Promise<unknown> {
  await arrangeLayers(process, [{ layer, account: to }], quick);
  const placements = await operationsMove.readPlacement((process as Several).accounts);
  await operationsMove.moveSlots(process, planLayers(placements, [{ layer, account: to }]), quick);
  return operationsMove.resumeMoves(process, quick);
}

const partitionsIn = async (storage: Several, account: string) => [
  ...new Set((await rowsIn(storage, account)).map((row) => row.split('/')[0])),
];

test('carves a tenant, moves its partitions alone, and removes the layer when it is back', {
  tags: ['slow'],
}, async () => {
  const { open, storage } = await storageWithTenants();
  const stored = async () =>
    Object.keys(await accountNamed(storage, 'first').table('system').getEntity('slots', 'owned')).filter((name) =>
      /Slots|Moves|Layers/.test(name),
    );
  expect(await stored()).toEqual(['Slots', 'Moves']);
  const stale = open();
  await storageRows.readRow(stale, { ...at('acme_1'), row: 'a' });
  await bring(open(), 'second');
  expect(await stored()).toEqual(['Layers', 'Slots0', 'Moves0', 'Slots1', 'Moves1']);
  expect(await partitionsIn(storage, 'second')).toEqual(['acme', 'acme_1', 'acme_2']);
  await put(open(), 'acme_1', 'b', 'new');
  await put(open(), 'acme_3', 'a', 'acme_3');
  await put(open(), 'acmeco', 'b', 'new');
  const found = { 'acme_1/b': 'new', 'acme_3/a': 'acme_3', 'acmeco/b': 'new', 'globex/a': 'globex' };
  expect(await contentsOf(open())).toMatchObject(found);
  expect((await operationsMove.cleanUp(open(), quick)).rows).toBe(3);
  expect(await partitionsIn(storage, 'first')).toEqual(['acmeco', 'globex', 'p0']);
  await expect(
    arrangeLayers(open(), [{ layer: { ...ACME, separator: '-' }, account: 'second' }], quick),
  ).rejects.toThrow('"acme" has the separator "-", and "acme" in the storage accounts has "_"');

  await arrangeLayers(open(), [], quick);
  const plans = planToLayer0(await operationsMove.readPlacement(storage.accounts), 'acme');
  const { pauses } = await operationsMove.moveSlots(open(), plans, quick);
  expect(pauses).toHaveLength(4_096);
  const layers = async () => operationsMove.layersIn(await operationsMove.readPlacement(storage.accounts));
  await arrangeLayers(open(), [], quick);
  expect(await layers()).toMatchObject([{ number: 1, isFormer: true }]);
  await operationsMove.cleanUp(open(), quick);
  await arrangeLayers(open(), [], quick);
  expect(await layers()).toEqual([]);
  expect(await partitionsIn(storage, 'second')).toEqual([]);
  expect(await contentsOf(open())).toMatchObject({ ...found, 'acme/a': 'acme' });
  await arrangeLayers(open(), [{ layer: ACME, account: 'second' }], quick);
  expect(await layers()).toEqual([{ ...ACME, number: 4 }]);
});

test('completes a layer in an account that was added, before slots move there', { tags: ['slow'] }, async () => {
  const { open } = await storageToMove(3, ['first', 'second', 'third']);
  const two = open(2) as Several;
  await arrangeLayers(two, [{ layer: ACME, account: 'second' }], quick);
  const all = open() as Several;
  await put(all, 'acme', 'a', 1);
  await bring(all, 'third');
  expect(await partitionsIn(all, 'third')).toEqual(['acme']);
  expect((await operationsMove.readPlacement(all.accounts)).map(({ owned }) => owned.layers)).toEqual(
    all.accounts.list.map(() => ({ version: 1, list: [{ ...ACME, number: 1 }] })),
  );
});

test('has what is split off a layer at the account of the layer, while one account has the part', {
  tags: ['slow'],
}, async () => {
  const { open, storage } = await storageWithTenants();
  await bring(open(), 'second');
  const vip = { name: 'vip', keys: ['acme_1'], separator: '_', number: 2, of: 1 };
  await storageSlots.changeLayers(
    accountNamed(storage, 'first'),
    { version: 2, list: [vip, { ...ACME, number: 1 }] },
    () => {},
  );
  const process = open() as Several;
  const placements = await operationsMove.readPlacement(process.accounts);
  expect(
    operationsMove.findOwner(
      placements,
      storageSlots.slotAt(vip.number * storageSlots.SLOTS + storageSlots.slotIndex(storageSlots.slotOf('acme_1'))),
    ),
  ).toBeUndefined();
  await put(process, 'acme_1', 'b', 'new');
  expect(await partitionsIn(storage, 'second')).toEqual(['acme', 'acme_1', 'acme_2']);
  expect(await contentsOf(process)).toMatchObject({ 'acme_1/a': 'acme_1', 'acme_1/b': 'new' });
});

test('joins what is added to a placement when it is where the rest is, and nothing is left elsewhere', {
  tags: ['slow'],
}, async () => {
  const { open, storage } = await storageWithTenants();
  await bring(open(), 'second');
  await operationsMove.cleanUp(open(), quick);
  const both = { ...ACME, keys: ['acme', 'globex'] };
  const placed = [{ layer: both, account: 'second' }];
  const numbers = async () =>
    operationsMove.layersIn(await operationsMove.readPlacement(storage.accounts)).map(({ number }) => number);
  const tidy = () => arrangeLayers(open(), placed, { ...quick, isTidying: true });
  await arrangeLayers(open(), placed, quick);
  await tidy();
  expect(await numbers()).toEqual([1, 2]);
  await bring(open(), 'second', both);
  await tidy();
  expect(await numbers()).toEqual([1, 2]);
  await operationsMove.cleanUp(open(), quick);
  await tidy();
  expect(await numbers()).toEqual([1]);
  expect(await contentsOf(open())).toMatchObject({ 'acme/a': 'acme', 'globex/a': 'globex' });
});

test('carves no layer while a slot moves', async () => {
  const { open, storage } = await storageWithTenants();
  const state = { phase: 'fencing', move: 'm1', to: 'second', turn: 1 } as const;
  await storageSlots.changeSlots(accountNamed(storage, 'first'), [storageSlots.slotOf('acme')], () => state);
  await expect(arrangeLayers(open(), [{ layer: ACME, account: 'second' }], quick)).rejects.toThrow('Slots are moving.');
  expect(operationsMove.layersIn(await operationsMove.readPlacement(storage.accounts))).toEqual([]);
});

test('names the placements that have other partitions in the model than in the accounts', async () => {
  const { open, storage } = await storageWithTenants();
  const umbrella = { name: 'umbrella', keys: ['umbrella'], separator: '_' };
  const place = (...layers: (typeof ACME)[]) => layers.map((layer) => ({ layer, account: 'second' }));
  await arrangeLayers(open(), place(ACME, umbrella), quick);
  const placements = await operationsMove.readPlacement(storage.accounts);
  const changed = (...layers: (typeof ACME)[]) => [...changedPlacements(placements, place(...layers))];
  expect(changed(ACME, umbrella)).toEqual([]);
  expect(changed(umbrella, ACME)).toEqual([]);
  expect(changed(umbrella)).toEqual([]);
  expect(changed({ ...ACME, keys: ['acme', 'globex'] }, umbrella)).toEqual(['acme']);
  expect(changed({ ...ACME, keys: ['acme_1'] }, umbrella)).toEqual(['acme']);
  expect(changed({ ...ACME, keys: ['umbrella'] }, { ...umbrella, keys: ['acme'] })).toEqual(['acme', 'umbrella']);
  expect(changed({ ...ACME, separator: '-' }, umbrella)).toEqual(['acme']);
});

test('reads no row of ownership again because an added account lacks a layer', { tags: ['slow'] }, async () => {
  const { open, requests } = await storageToMove(1, ['first', 'second', 'third']);
  const two = open(2);
  await put(two, 'acme_1', 'a', 1);
  await bring(two, 'second');
  const all = open() as Several;
  await storageTables.provision(all, RESOURCES);
  const placements = await operationsMove.readPlacement(all.accounts);
  expect(placements.map(({ owned }) => owned.layers.version)).toEqual([1, 1, 0]);
  const process = open();
  await storageRows.scanTable(process, { table: TABLE, limit: 1 });
  requests.length = 0;
  for (const key of ['acme_1', 'p0', 'acme_1', 'p0'])
    expect(await storageRows.readRow(process, { ...at(key), row: 'a' }), key).toBeDefined();
  expect(requests).toHaveLength(4);
});

test('continues a scan that finds nothing for long while a layer is carved in one account only', {
  tags: ['slow'],
}, async () => {
  const { open, storage, keys } = await storageToMove(80);
  const [first, second] = [accountNamed(storage, 'first'), accountNamed(storage, 'second')];
  // What moves have left.
  for (const partition of keys)
    await storageRows.submit(second, { ...at(partition), actions: [{ kind: 'insert', row: 'left', properties: {} }] });
  await write(storage, 'p0', { kind: 'delete', row: 'a' });
  await storageSlots.changeSlots(first, [storageSlots.slotOf('q')], () => ({ phase: 'none' }));
  await storageSlots.changeSlots(second, [storageSlots.slotOf('q')], () => ({ phase: 'at rest' }));
  await storageSlots.changeLayers(first, { version: 1, list: [{ ...ACME, number: 1 }] }, () => {});
  const process = open();
  let resume: string | undefined;
  const found: string[] = [];
  const places = new Set<string | undefined>();
  do {
    const bound = { rowsPerCall: 1, length: Number.POSITIVE_INFINITY };
    const page = await storageRows.scanTable(process, { table: TABLE, limit: 100, bound, mayPause: true, resume });
    found.push(...page.rows.map(({ partition }) => partition));
    resume = page.resume;
    expect(places).not.toContain(resume);
    places.add(resume);
  } while (resume !== undefined);
  expect(found).toEqual(keys.slice(1).sort());
});

const writeFile = (storage: Storage, name: string) =>
  storageBlobs.writeBlob(storage, { container: 'files', name }, Buffer.from(name), { type: 'text/plain' });

const filesIn = (storage: Several, account: string) =>
  Array.fromAsync(storageBlobs.listContainer(accountNamed(storage, account), 'files'), ({ name }) => name);

test('moves the blobs of the rows of an entity with it', { tags: ['slow'] }, async () => {
  const { open, storage } = await storageWithTenants();
  const names = [blobIn('000', 1, 'others'), blobIn('000', 1), blobIn('fff', 2), blobIn('', 3)];
  for (const name of names) await writeFile(storage, name);
  await bring(open(), 'second');
  expect(await filesIn(storage, 'second')).toEqual([]);
  await bring(open(), 'second', { name: 'work', tables: [TABLE] });
  expect(await filesIn(storage, 'second')).toEqual(names.slice(1, 3));
  await operationsMove.cleanUp(open(), quick);
  expect(await filesIn(storage, 'first')).toEqual([names[0], names[3]]);
  expect(await Array.fromAsync(storageBlobs.listContainer(open(), 'files'), ({ name }) => name)).toEqual(names);
  expect(await partitionsIn(storage, 'second')).toEqual(['acme', 'acme_1', 'acme_2', 'acmeco', 'globex', 'p0']);
});

let callsOfLayer: number | undefined;

test.each(FAULTS)(
  'loses nothing of a layer if its mover meets a fault at any call: %s',
  { tags: ['slow'] },
  async (fault) => {
    const play = async (call: number) => {
      const { openWith, open, storage } = await storageWithTenants();
      const label = `${fault} at call ${call}`;
      const [file, other] = ['acme_1', 'acmeco'].map((partition) =>
        engineRead.createBlobName({ ...at(partition), row: 'a' }, 'text'),
      ) as [string, string];
      for (const name of [file, other]) await writeFile(storage, name);
      const traffic = createTraffic(open, ['acme_1', 'globex']);
      const mover = openWith(call === 0 ? undefined : fault, call);
      const again = async (attempts = 10): Promise<unknown> =>
        bring(open(), 'second').catch((error: unknown) => {
          if (attempts === 0 || !baseValues.hasCode(error, 'busy')) throw error;
          return resume(open).then(() => again(attempts - 1));
        });
      const hasFile = async () =>
        (await storageBlobs.readBlob(open(), { container: 'files', name: file }))?.toString() === file;
      await bring(mover.storage, 'second').catch(async () => {
        expect(await hasFile(), label).toBe(true);
        await resume(open);
        await again();
      });
      await traffic.end();
      expect(await partitionsIn(storage, 'second'), label).toEqual(['acme', 'acme_1', 'acme_2']);
      expect(await filesIn(storage, 'second'), label).toEqual([file]);
      expect(await hasFile(), label).toBe(true);
      const others = Object.fromEntries(['acme', 'acme_2', 'acmeco', 'p0'].map((key) => [`${key}/a`, key]));
      expect(await contentsOf(open()), label).toEqual({ ...others, ...traffic.rows() });
      return mover.countCalls();
    };
    callsOfLayer ??= await play(0);
    expect(callsOfLayer).toBeGreaterThan(40);
    await pMap(samplePoints(callsOfLayer), play, { concurrency: 4 });
  },
);

const TABLES = [TABLE, 'others', 'indexes'];

/** A sequence of numbers that a seed determines. */
function createRandom(seed: number) {
  let state = seed;
  const below = (count: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
  return { below, someOf: <Item>(items: readonly Item[]) => items.filter(() => below(2) === 0) };
}

/** What a model may place: tenants, and entities, of all tenants, of some, or of a range. */
function createModel({ below, someOf }: ReturnType<typeof createRandom>): Internal['PlacedLayer'][] {
  const account = () => ['first', 'second', 'third'][below(3)] ?? '';
  const keys = someOf(TENANTS);
  const tables = someOf(TABLES).sort();
  const ofSome =
    [
      { keys: ['acme_1', 'globex'], separator: '_' },
      { from: 'acme_1', to: 'b' },
    ][below(4)] ?? {};
  const sales = { layer: { name: 'sales', keys, separator: '_' }, account: account() };
  const work = { layer: { name: 'work', tables, ...ofSome }, account: account() };
  const placed = [...(keys.length > 0 ? [sales] : []), ...(tables.length > 0 ? [work] : [])];
  return below(2) === 0 ? placed : placed.reverse();
}

test.each(
  sampleItems(
    Array.from({ length: 8 }, (_, index) => index + 1),
    'walk of placements',
  ),
)(
  'has everything where the model says after changes of it, moves and crashes: walk %i',
  { tags: ['slow'] },
  async (seed) => {
    const random = createRandom(seed);
    const resources = { ...RESOURCES, tables: [...RESOURCES.tables, ...TABLES] };
    // Busy machines renew a shorter hold too late again and again.
    const given = { timing: { ...QUICK, holdMs: 2_000 }, resources };
    const { openWith, open } = createAccounts();
    const storage = open() as Several;
    await storageTables.provision(storage, resources);
    const places = TABLES.flatMap((table) => TENANTS.map((partition) => ({ table, partition })));
    for (const place of places)
      await storageRows.submit(storage, {
        ...place,
        actions: [{ kind: 'insert', row: 'a', properties: { EntityType: 'thing' } }],
      });
    const files = places.map((place) => engineRead.createBlobName({ ...place, row: 'a' }, 'text'));
    for (const name of files) await writeFile(storage, name);
    const readFiles = async () => {
      const process = open();
      for (const name of files)
        expect(String(await storageBlobs.readBlob(process, { container: 'files', name }))).toBe(name);
    };
    const traffic = createTraffic(open, ['acme_1', 'globex']);
    let placed: Internal['PlacedLayer'][] = [];
    const balance = async (process: Storage) => {
      await operationsMove.resumeMoves(process, given);
      await arrangeLayers(process, placed, given);
      const placements = await operationsMove.readPlacement((process as Several).accounts);
      // As by the command that ends placements which the model no longer has.
      const names = new Set(operationsMove.layersIn(placements).map(({ name }) => name));
      for (const { layer } of placed) names.delete(layer.name);
      const ended = [...names].flatMap((name) => planToLayer0(placements, name));
      return operationsMove.moveSlots(
        process,
        [...planLayers(placements, placed), ...ended, ...operationsMove.planBalance(placements)],
        given,
      );
    };
    const tidy = async (process: Storage) => {
      await operationsMove.resumeMoves(process, given);
      await operationsMove.cleanUp(process, given);
      await arrangeLayers(process, placed, { ...given, isTidying: true });
    };
    const works = [balance, balance, tidy, (process: Storage) => operationsMove.moveBack(process, undefined, given)];
    const surely = async <Done>(work: (process: Storage) => Promise<Done>, attempts = 10): Promise<Done> =>
      work(open()).catch(async (error: unknown) => {
        if (attempts === 0 || !baseValues.hasCode(error, 'busy')) throw error;
        return surely(work, attempts - 1);
      });
    /** As an operator does who reads that slots stay: on a busy machine, their last rows are not copied in time. */
    const balanceAll = async (attempts = 5): Promise<void> => {
      const { left } = await surely(balance);
      if (left.length > 0 && attempts > 0) await balanceAll(attempts - 1);
    };
    for (let step = 0; step < (IS_EVERY_POINT ? 5 : 3); step += 1) {
      placed = createModel(random);
      const work = works[random.below(works.length)] ?? balance;
      const isFaulty = random.below(2) === 0;
      const { storage: process } = openWith(isFaulty ? FAULTS[random.below(3)] : undefined, 1 + random.below(120));
      await work(process).catch(() => {});
      await readFiles();
    }
    for (let round = 0; round < 2; round += 1) {
      await balanceAll();
      await surely(tidy);
    }
    await traffic.end();
    const label = JSON.stringify(placed);
    const placements = await operationsMove.readPlacement(storage.accounts);
    // A placement has no layer if those before it have all that it would have.
    const before = (at: number) => placed.slice(0, at).map(({ layer }) => layer);
    const parts = placed.filter(({ layer }, at) => storageSlots.subtractLayers(layer, before(at)));
    // Parts of a placement on both sides of another one are not joined.
    expect(
      [
        ...new Set(
          operationsMove.layersIn(placements).map(({ name, isFormer }) => (isFormer ? `${name} (former)` : name)),
        ),
      ].sort(),
      label,
    ).toEqual(parts.map(({ layer }) => layer.name).sort());
    for (const { account, owned } of placements)
      for (const { table, partition } of places) {
        const model = placed.find(({ layer }) =>
          storageSlots.layerMatcher(layer)(storageSlots.placeOf(table, partition)),
        );
        const expected =
          model?.account ?? operationsMove.findOwner(placements, storageSlots.slotOf(partition))?.account.name;
        const { layers } = owned;
        const index = storageSlots.indexIn({ layers }, storageSlots.placeOf(table, partition));
        const isHere = account.name === expected;
        expect([table, partition, storageSlots.isOwned(owned, index)], label).toEqual([table, partition, isHere]);
        const filter = `PartitionKey eq '${partition}'`;
        const rows = await Array.fromAsync(account.table(table).listEntities({ queryOptions: { filter } }));
        expect(rows.length > 0, `${account.name}: ${table}/${partition} of ${label}`).toBe(isHere);
      }
    await readFiles();
    for (const { account } of placements) {
      const accountOf = (name: string) =>
        placed.find(({ layer }) => storageSlots.layerMatcher(layer)(storageBlobs.placeOfBlob(name)))?.account ??
        operationsMove.findOwner(placements, storageBlobs.placeOfBlob(name).slot)?.account.name;
      expect(await filesIn(storage, account.name), label).toEqual(
        files.filter((name) => accountOf(name) === account.name).sort(),
      );
    }
    expect(Object.keys(await contentsOf(open()))).toEqual(expect.arrayContaining(Object.keys(traffic.rows())));
    expect(await contentsOf(open())).toMatchObject(traffic.rows());
  },
);

/** As many layers as a row may have, each of a tenant, with a definition as long as a row may have. */
const MOST_LAYERS: readonly Internal['PlacedLayer'][] = Array.from({ length: 24 }, (_, index) => {
  const keys = Array.from({ length: 24 }, (_key, at) => `tenant-${index}-${at}-${'x'.repeat(35)}`);
  return { layer: { name: `tenant${index}`, keys }, account: 'second' };
});

test('rejects layers that would not fit with what is not cleaned up, before any account is changed', async () => {
  const { open, storage } = await storageToMove(1);
  const others = Array.from({ length: 200 }, (_, index) => storageSlots.slotAt(index));
  const state = { phase: 'gone', to: 'second', turn: 1, goneAt: Date.now() } as const;
  await storageSlots.changeSlots(accountNamed(storage, 'first'), others, (_, slot) => ({
    ...state,
    move: `m1234567890abc${slot}`,
  }));
  await storageSlots.changeSlots(accountNamed(storage, 'second'), others, () => ({ phase: 'at rest' }));
  const before = await operationsMove.readPlacement(storage.accounts);
  await expect(arrangeLayers(open(), MOST_LAYERS, quick)).rejects.toThrow(
    'The row of the storage account first has no room for the change: with it, 200 moves are not cleaned up.',
  );
  expect((await operationsMove.readPlacement(storage.accounts)).map(({ owned }) => owned.etag)).toEqual(
    before.map(({ owned }) => owned.etag),
  );
});

test.runIf(IS_EVERY_POINT)('stores the largest row of an account, and tells of all its slots', async () => {
  const { open, storage } = await storageToMove(1);
  await arrangeLayers(open(), MOST_LAYERS, quick);
  // Each slot of each layer has left under a move.
  const placements = await operationsMove.readPlacement(storage.accounts);
  const [first] = placements;
  if (!first) throw new Error('There is no account.');
  const all = [0, ...operationsMove.layersIn(placements).map(({ number }) => number)];
  const slots = all.flatMap((layer) => operationsMove.slotsIn(first, 'at rest', layer));
  expect(slots).toHaveLength(25 * storageSlots.SLOTS);
  const goneAt = Date.now();
  const gone = { phase: 'gone', move: 'm1234567890abcde', to: 'second', turn: 1, isClosed: false, goneAt } as const;
  const moves = new Map(slots.map((slot) => [storageSlots.slotIndex(slot), gone]));
  storageSlots.requireRoom(first.account, { ...first.owned, moves });
  expect(await storageSlots.changeSlots(first.account, slots, () => gone)).toBeDefined();
  const states = await operationsCheck.readAccountStates({ storage: open(), now: Date.now });
  expect(states.moves).toMatchObject([{ slots: slots.length, gone: slots.length, phase: 'gone', goneAt }]);
});
