import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../lib/define.ts';
import { type VerifyOptions, type VerifyPosition, verifyPage } from '../../../lib/operations/verify.ts';
import { allPages } from '../../all-pages.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { defineCodec, definePlaces, type Entity } from '../../kit/define.ts';
import { engineWrite } from '../../kit/engine.ts';
import { storageAccounts, storageRows } from '../../kit/storage.ts';
import { expectIndexesToAgree, openWorld, type World } from '../../world.ts';

test('an explained repair lists each write once', async () => {
  const { things } = deploy(
    defineEntity('things', {
      schema: z.object({ a: z.string(), b: z.string(), c: z.string() }),
      table: 'things',
      key: { partition: '{a}', row: 'b_{b}' },
      indexes: { copy: intraPartitionIndex({ row: 'c_{c}' }) },
      access: { read: ['hr'], write: ['hr'] },
    }),
  );
  const { engine, storage } = await openWorld(import.meta.url, [things]);
  await engineWrite.createEntity(engine, things, { a: 'one', b: '1', c: '1' });
  await storageRows.tryAction(storage, { table: 'things', partition: 'one' }, { kind: 'delete', row: 'c_1' });
  const steps = await storageAccounts.explain(() => verifyPage(engine, things, { top: 10, repair: true, patience: 0 }));
  expect(steps.filter((step) => 'write' in step)).toEqual([
    expect.objectContaining({ write: 'rows', table: 'things' }),
  ]);
});

describe('a page with more work than its limit', () => {
  const MAX = 60;

  /** Verifies every page and returns the cost and the findings of each. */
  async function pagesOf(world: World, entity: Entity, options: Partial<VerifyOptions>) {
    const common = { top: 100, repair: true, patience: 0, maxTransactions: MAX };
    return allPages((position: VerifyPosition | undefined) =>
      storageAccounts.measureCost(async (spent) => {
        const page = await verifyPage(world.engine, entity, { position, ...common, ...options });
        return { ...page, cost: spent.transactions };
      }),
    );
  }

  const FILMS = 16;
  const ACTORS = 20;
  const { films } = deploy(
    defineEntity('films', {
      schema: z.object({ genre: z.string(), title: z.string(), cast: z.array(z.string()) }),
      table: 'films',
      key: { partition: '{genre}', row: '{title}' },
      indexes: { actor: interPartitionIndex({ table: 'filmsbyactor', partition: '{cast[]}', row: '{title}_{genre}' }) },
      access: { read: ['hr'], write: ['hr'] },
    }),
  );

  test('ends early among entities with many index rows, and the pages together find and build all of them', {
    tags: ['slow'],
  }, async () => {
    const world = await openWorld(import.meta.url, [films]);
    for (let film = 0; film < FILMS; film += 1) {
      const cast = Array.from({ length: ACTORS }, (_, actor) => `actor ${actor}`);
      const values = { genre: 'Drama', title: `film ${String(film).padStart(2, '0')}`, cast };
      const properties = defineCodec.toProperties(films, values, { WriteId: '1', Incarnation: '1' });
      const address = definePlaces.addressOf(films, values);
      await storageRows.tryAction(world.storage, address, { kind: 'insert', row: address.row, properties });
    }
    const pages = await pagesOf(world, films, { only: 'actor' });
    const found = pages.flatMap(({ findings }) => findings.map(({ partition, row }) => `${partition} in ${row}`));
    expect(new Set(found).size).toBe(FILMS * ACTORS);
    expect(found).toHaveLength(FILMS * ACTORS);
    expect(pages.reduce((sum, { checked }) => sum + checked, 0)).toBe(FILMS);
    // Eight films are compared concurrently, and one is repaired at a time.
    const ofFilm = ACTORS + 4;
    expect(Math.max(...pages.map(({ cost }) => cost))).toBeLessThan(2 * MAX + 8 * ofFilm + 3 * ofFilm);
    await expectIndexesToAgree(world.storage, films);
  });

  test('ends within a long list, and the next page continues there', { tags: ['slow'] }, async () => {
    const { marks } = deploy(
      defineEntity('marks', {
        schema: z.object({ pupil: z.string(), year: z.int32().min(0).max(9999), grade: z.string() }),
        table: 'marks',
        key: { partition: '{pupil}', row: 'y_{year:4}' },
        indexes: { grade: indexEntity({ row: 'grade_{grade}', holds: '{year:4}' }) },
        access: { read: ['hr'], write: ['hr'] },
      }),
    );
    const MEMBERS = 100;
    const world = await openWorld(import.meta.url, [marks]);
    await engineWrite.createEntity(world.engine, marks, { pupil: 'Ann', year: 1050, grade: 'A' });
    const members = Array.from({ length: MEMBERS }, (_, index) => String(1000 + index));
    const address = { table: 'marks', partition: 'Ann', row: 'grade_A' };
    const properties = { EntityType: 'list', Members: JSON.stringify(members) };
    await storageRows.tryAction(world.storage, address, { kind: 'upsert', row: address.row, properties });
    for (const repair of [false, true]) {
      const pages = await pagesOf(world, marks, { repair });
      const findings = pages.flatMap((page) => page.findings);
      // All members except one have no entity.
      expect(findings).toHaveLength(MEMBERS - 1);
      expect(findings.every(({ kind, repaired }) => kind === 'orphaned' && repaired === repair)).toBe(true);
      expect(pages.reduce((sum, { checked }) => sum + checked, 0)).toBe(2);
      // 8 × 16 members are compared concurrently; 16 are repaired before the next check of the limit.
      expect(Math.max(...pages.map(({ cost }) => cost))).toBeLessThan(2 * MAX + 8 * 16 + 5 * 16);
    }
    await expectIndexesToAgree(world.storage, marks);
  });
});
