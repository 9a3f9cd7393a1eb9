import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, type IndexEntity, indexEntity, RowkeyError, type Values } from '../../lib/index.ts';
import { allItems } from '../all-pages.ts';
import { collectAllOrphans } from '../collect-all-orphans.ts';
import { outcomeOf, tryFaults } from '../fault-driver.ts';
import { deploy } from '../fixtures/deploy.ts';
import { model } from '../fixtures/model.ts';
import { engineRead, engineWrite, type Position } from '../kit/engine.ts';
import { storageRows } from '../kit/storage.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { putAll } from '../put-all.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, QUICK } from '../world.ts';

/** Index entities that outgrow their row move to a blob and back without a visible effect. */

const { crowd: people } = deploy(
  defineEntity('crowd', {
    schema: z.object({ town: z.string(), personId: z.string(), lastName: z.string() }),
    table: 'crowd',
    key: { partition: '{town}', row: 'id_{personId}' },
    indexes: {
      here: indexEntity({ row: 'lastname_{lastName}', holds: '{personId}' }),
      everywhere: indexEntity({
        table: 'crowdbylastname',
        partition: '{lastName}',
        row: 'ids',
        holds: '{town}/{personId}',
      }),
    },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const { here, everywhere } = people.indexes;

const world = await openWorld(import.meta.url, [people]);

/** Long values, so that a few hundred of them outgrow a row. */
const person = (town: string, number: number, lastName: string) => ({
  town,
  personId: String(number).padStart(200, '0'),
  lastName,
});
const listHere = (town: string, lastName: string) => ({ table: 'crowd', partition: town, row: `lastname_${lastName}` });
const listEverywhere = (lastName: string) => ({ table: 'crowdbylastname', partition: lastName, row: 'ids' });
const isInBlob = async (address: Parameters<typeof storageRows.readRow>[1]) =>
  (await storageRows.readRow(world.storage, address))?.properties.MembersBlob !== undefined;
const countOf = async (address: Parameters<typeof storageRows.readRow>[1]) =>
  engineRead.membersOf(await engineRead.readList(world.storage, address)).length;
const blobs = async () =>
  (await Array.fromAsync(world.storage.blobs.getContainerClient('large').listBlobsFlat())).length;

const readAll = (index: IndexEntity, given: Values) =>
  allItems((after: Position | undefined) =>
    engineRead.readByList(world.engine, people, index, given, { top: 100, after }),
  );

describe('a list', () => {
  test('moves to a blob and back as it grows and shrinks, in the partition and in another', async () => {
    const all = Array.from({ length: 220 }, (_, number) => person('Here', number, 'Long'));
    await putAll(world.engine, people, all.slice(0, 100));
    await world.settle();
    expect([await isInBlob(listHere('Here', 'Long')), await isInBlob(listEverywhere('Long'))]).toEqual([false, false]);
    await putAll(world.engine, people, all.slice(100));
    await world.settle();
    expect([await isInBlob(listHere('Here', 'Long')), await isInBlob(listEverywhere('Long'))]).toEqual([true, true]);
    expect(await readAll(here, { town: 'Here', lastName: 'Long' })).toEqual(all);
    expect(await readAll(everywhere, { lastName: 'Long' })).toEqual(all);
    await expectIndexesToAgree(world.storage, people);
    await engineWrite.patchEntity(world.engine, people, all[0] ?? {}, { lastName: 'Other' });
    await pMap(all.slice(1, 110), (one) => engineWrite.deleteEntity(world.engine, people, one), { concurrency: 4 });
    await world.settle();
    expect([await isInBlob(listHere('Here', 'Long')), await isInBlob(listEverywhere('Long'))]).toEqual([false, false]);
    expect(await readAll(everywhere, { lastName: 'Long' })).toEqual(all.slice(110));
    await expectIndexesToAgree(world.storage, people);
    expect(await blobs()).toBe(0);
  });

  test('in a blob survives every fault at every call, and leftovers are collected', { tags: ['slow'] }, async () => {
    const town = 'Faulty';
    await putAll(
      world.engine,
      people,
      Array.from({ length: 200 }, (_, number) => person(town, number, 'Fault')),
    );
    await world.settle();
    let number = 1_000;
    const write = (engine: typeof world.engine) => {
      number += 1;
      return engineWrite.createEntity(engine, people, person(town, number, 'Fault'));
    };
    const outcomes = await tryFaults(({ fault, client }) =>
      outcomeOf(write(world.engineThrough(client, fault && QUICK))),
    );
    const acknowledged = outcomes.filter((outcome) => outcome === 'done').length;
    await world.settle();
    const what = 'Write with a list in a blob, each storage call: every fault';
    await countTried({ what, times: outcomes.length }, async () => {
      const values = await expectIndexesToAgree(world.storage, people);
      expect(values.filter(({ lastName }) => lastName === 'Fault').length).toBeGreaterThanOrEqual(201 + acknowledged);
      await collectAllOrphans({ ...world.engine, now: () => Date.now() + 2 * 24 * 60 * 60 * 1_000 }, model.list);
      expect(await blobs()).toBe(2);
      await expectIndexesToAgree(world.storage, people);
    });
  });

  // Enough for a blob: few with long ids, and with every point as many as the documentation promises.
  const { each, digits } = IS_EVERY_POINT ? { each: 1_250, digits: 12 } : { each: 65, digits: 40 };
  test('is correct with over a thousand entities of one name and 16 concurrent writers', {
    tags: ['slow'],
    timeout: 900_000,
  }, async () => {
    const writers = Array.from({ length: 16 }, (_, writer) =>
      Array.from({ length: each }, (_, index) => {
        const number = writer * each + index;
        return { town: `Town${number % 20}`, personId: String(number).padStart(digits, '0'), lastName: 'Smith' };
      }),
    );
    let isOver = false;
    const consuming = (async () => {
      while (!isOver) await world.handleVisible();
    })();
    // Repeats a failed request, as a client does when storage or concurrent writers were too slow.
    const put = async (batch: readonly Values[], attempts = 10): Promise<unknown[]> => {
      const answers = await putAll(world.engine, people, batch).catch((error: RowkeyError) => batch.map(() => error));
      const again = batch.filter((_, index) => isLater(answers[index]));
      const refused = answers.filter((answer) => answer !== 'created' && answer !== 'unchanged' && !isLater(answer));
      if (again.length === 0) return refused;
      return [...refused, ...(attempts > 1 ? await put(again, attempts - 1) : again)];
    };
    const outcomes = await Promise.all(
      writers.map(async (mine) => [...(await put(mine.slice(0, each / 2))), ...(await put(mine.slice(each / 2)))]),
    );
    isOver = true;
    await consuming;
    await world.settle();
    expect(outcomes.flat()).toEqual([]);
    expect(await isInBlob(listEverywhere('Smith'))).toBe(true);
    expect(await countOf(listEverywhere('Smith'))).toBe(16 * each);
    await expectIndexesToAgree(world.storage, people);
  });
});

function isLater(outcome: unknown): boolean {
  return outcome instanceof RowkeyError && ['busy', 'storage-unavailable'].includes(outcome.code);
}
