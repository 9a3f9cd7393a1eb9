import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../lib/client/index.ts';
import { createRowkey } from '../../lib/index.ts';
import { storageOptions } from '../../local/instance/storage-accounts.ts';
import { buildFixtures } from '../fixtures/build.ts';
import { operationsModel, operationsMove } from '../kit/operations.ts';
import { storageSlots } from '../kit/storage.ts';
import { quick } from '../lib/operations/storage-to-move.ts';
import { PATIENCE_MS } from '../patience.ts';
import { countTurns } from '../patient-clock.ts';
import { sampleItems } from '../points.ts';
import { useProduct } from '../product.ts';
import { DOOR_ACCOUNTS, testStorage } from '../storage.ts';
import {
  DOORS,
  HELD,
  importAll,
  keyOf,
  type Outcome,
  putThing,
  replaceField,
  type Thing,
  type Ways,
  type Written,
} from './doors.ts';
import { type Field, INPUTS, type Input } from './inputs.ts';
import { model } from './model.ts';
import { READS, type Read } from './reads.ts';

countTurns();

/** Each value arrives by each door as it was given, or is refused by all doors alike with a code, and reaches no other thing. */

const app = { model, folder: fileURLToPath(new URL('../../dist/doors', import.meta.url)), packs: undefined };
beforeAll(async () => {
  await buildFixtures(app, '../doors/functions.ts');
  // A bundle exports nothing, and the commands look for the model.
  const main = '{app.js,../../test/doors/model.ts}';
  await writeFile(join(app.folder, 'package.json'), JSON.stringify({ type: 'module', main }));
});

const FIELDS: readonly Field[] = ['room', 'id', 'handle', 'label', 'amount', 'at', 'free'];
const KEY_FIELDS: readonly Field[] = ['room', 'id'];
/** The doors whose path has the key, which a path may not be able to spell. */
const PATH_DOORS = ['PUT', 'PATCH'];

/** `npm run doors` sends every value. */
const IS_EVERY_VALUE = process.env.EVERY === 'doors';
/** Inputs of each field in any other run. */
const SAMPLE = 2;

let number = 0;

function write({ field, value, text }: Input): Written {
  number += 1;
  const base: Thing = { room: `room${number}`, id: `id${number}`, handle: `handle${number}`, label: `label${number}` };
  return {
    base,
    field,
    thing: value === undefined ? undefined : { ...base, [field]: value },
    value: text,
    text: text === undefined ? undefined : replaceField(base, field, text),
  };
}

/** What is stored once the input is held. */
function heldOf({ base, field }: Written, input: Input, door: string): Thing {
  if (door === 'PATCH' && 'patched' in input) return { ...base, [field]: input.patched };
  return { ...base, [field]: 'held' in input ? input.held : (input.value ?? JSON.parse(input.text ?? '')) };
}

const [single, first, ...further] = DOOR_ACCOUNTS;
const SETUPS = [
  { title: 'on one account', account: single, others: [] },
  { title: 'on three accounts', account: first, others: further },
];

/** The outcome of each input by each door: `npm run doors` prints them. */
const COLUMNS = ['import', ...Object.keys(DOORS)];
const lines: string[][] = [['accounts', 'field', 'value', ...COLUMNS]];
afterAll(() => {
  if (!IS_EVERY_VALUE) return;
  const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  console.log(lines.map((line) => `| ${line.map(cell).join(' | ')} |`).join('\n'));
});

describe.each(SETUPS)('$title', { tags: ['slow'] }, ({ title: setup, account, others }) => {
  const product = useProduct(account, { app, further: others });
  const kept: Thing[] = [];
  let ways: Ways;
  beforeAll(async () => {
    const token = await product.token('editor');
    const storage = storageOptions([testStorage(account), ...others.map(testStorage)]);
    const auth = { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' };
    ways = {
      product,
      client: createClient<typeof model>({ url: `${product.url}/api`, token, cacheSize: 0 }),
      store: createRowkey({ model, storage, auth }).store,
    };
  });

  async function misread(thing: Thing, names = Object.keys(READS)): Promise<string[]> {
    const found: string[] = [];
    for (const name of names) {
      const read = READS[name] as Read;
      const fault = await read(thing, ways).catch((error) => `failed: ${error.message}`);
      if (fault) found.push(`${name} ${fault}`);
    }
    return found;
  }

  /** Checks what a door has done with a thing, and deletes it unless it is kept. */
  async function faultsOf(written: Written, input: Input, outcome: Outcome, door: string): Promise<string[]> {
    const isKept = door === 'store';
    const faults: string[] = [];
    if (outcome === HELD) {
      if (input.isRefused) faults.push('held, but no door may');
      const held = heldOf(written, input, door);
      // Each door stores in the same way: that each read returns the value is tried once.
      faults.push(...(await misread(held, isKept ? undefined : ['store by key'])));
      if (isKept && faults.length === 0) kept.push(held);
      else await ways.store.things.delete(keyOf(held)).catch((error) => faults.push(`not deleted: ${error.message}`));
    } else {
      const left = await ways.store.things.get(keyOf(written.base));
      if (left) faults.push('refused, but stored');
    }
    return faults;
  }

  async function createDecoy({ base, field }: Written, { decoy }: Input): Promise<Thing | undefined> {
    if (decoy === undefined) return undefined;
    const isKey = KEY_FIELDS.includes(field as Field);
    const key = isKey ? { room: base.room, id: base.id } : { room: `${base.room}-decoy`, id: base.id };
    const thing = {
      ...base,
      ...key,
      handle: `${base.handle}-decoy`,
      label: `${base.label}-decoy`,
      [field]: decoy,
    } as Thing;
    // A decoy that is refused cannot be reached.
    const isThere = await putThing(ways, thing).then(
      () => true,
      () => false,
    );
    return isThere ? thing : undefined;
  }

  test.each(FIELDS)('holds every value of %s as it was given, or refuses it', async (field) => {
    const all = INPUTS.filter((input) => input.field === field);
    // By their numbers: not every value has JSON.
    const inputs = sampleItems([...all.keys()], [field, others.length], SAMPLE, IS_EVERY_VALUE).flatMap(
      (index) => all[index] ?? [],
    );
    const faults: string[] = [];
    const rows = new Map<Input, Record<string, Outcome>>(inputs.map((input) => [input, {}]));
    const note = (input: Input, door: string, outcome: Outcome, found: readonly string[]) => {
      (rows.get(input) ?? {})[door] = outcome;
      faults.push(...found.map((fault) => `${field} ${input.title}, by ${door}: ${fault}`));
    };

    const imported = inputs.map(write);
    const outcomes = await importAll(imported, ways);
    for (const [index, input] of inputs.entries()) {
      const written = imported[index] as Written;
      const outcome = outcomes[index];
      if (outcome) note(input, 'import', outcome, await faultsOf(written, input, outcome, 'import'));
    }
    for (const input of inputs)
      for (const [name, door] of Object.entries(DOORS)) {
        const written = write(input);
        const decoy = await createDecoy(written, input);
        const outcome = await door(written, ways).catch((error) => `FAILED: ${error.message}`);
        if (outcome === undefined) continue;
        const found = outcome.startsWith('FAILED') ? [outcome] : await faultsOf(written, input, outcome, name);
        if (decoy) {
          const { values } = (await ways.store.things.get(keyOf(decoy))) ?? {};
          if (!isDeepStrictEqual(values, decoy)) found.push(`reached another thing: ${JSON.stringify(values)}`);
          else await ways.store.things.delete(keyOf(decoy));
        }
        note(input, name, outcome, found);
      }
    for (const [{ title }, row] of rows) {
      lines.push([setup, field, title.slice(0, 40), ...COLUMNS.map((door) => row[door] ?? '')]);
      const alike = Object.entries(row).filter(([door]) => !(KEY_FIELDS.includes(field) && PATH_DOORS.includes(door)));
      const held = alike.filter(([, outcome]) => outcome === HELD);
      if (held.length > 0 && held.length < alike.length)
        faults.push(`${field} ${title}: not all doors alike: ${JSON.stringify(row)}`);
    }
    expect(faults).toEqual([]);
  });

  test.runIf(others.length > 0)(
    'keeps every value while rows move to another account, and after it',
    { tags: ['slow'] },
    async () => {
      const { storage } = product;
      const given = { ...quick, resources: operationsModel.resourcesOf(model.list, Date.now(), model) };
      const moveAll = async (to: string) => {
        const keys = kept.flatMap(({ room, handle, label }) => [
          storageSlots.slotOf(room),
          ...[handle, label].map((value) => storageSlots.slotOf(value)),
        ]);
        await operationsMove.moveSlots(storage, [{ slots: [...new Set(keys)].sort(), to }], given);
      };
      /** The host reads the map of slots again after some seconds. */
      const check = async (when: string) => {
        await expect
          .poll(
            async () => {
              const faults = [];
              for (const thing of kept)
                faults.push(...(await misread(thing)).map((fault) => `${describeThing(thing)} ${fault}`));
              return faults.slice(0, 5);
            },
            { timeout: PATIENCE_MS, message: when },
          )
          .toEqual([]);
      };
      const verified = async () => {
        const { code, said } = await product.run('verify', 'things');
        expect(code, said).toBe(0);
      };
      expect(kept.length).toBeGreaterThan(SAMPLE);
      await moveAll('third');
      await check('at another account');
      await verified();
      await operationsMove.cleanUp(storage, given);
      await check('after the clean-up');
      await verified();
      await moveAll('first');
      await check('at the first account');
      await verified();
    },
  );
});

const describeThing = (thing: Thing) => JSON.stringify(thing).slice(0, 200);
