import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, inject as given, test } from 'vitest';
import { type DeclaredEntity, defineModel, type Model } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { openWorld, prepareWorlds } from '../../local/walk/walk-world.ts';
import * as packs from '../../model/entities.ts';
import { model as deployed } from '../../model/model.ts';
import { model as fixtures } from '../fixtures/model.ts';
import { fill } from '../injecting/fill.ts';
import { comparePage, noteOutcome } from '../injecting/injection-table.ts';
import { type Injection, injectionsInto } from '../injecting/injections-into.ts';
import { readRows, restore } from '../injecting/stored-rows.ts';
import { recount, relatedTo, tryInjection } from '../injecting/try-injection.ts';
import { definePlaces } from '../kit/define.ts';
import { engineCore } from '../kit/engine.ts';
import { storageAccounts } from '../kit/storage.ts';
import { sampleItems } from '../points.ts';
import { testStorage } from '../storage.ts';

/**
 * Rows that are changed behind the app's back: for each kind of stored row of each entity, the consistency check finds each injury once,
 * repairs it in one run or leaves it to a person, and makes no answer worse. Answers are compared with a recount of the stored entities.
 */

/** `npm run injections` tries every injection: on the emulator, each takes seconds. */
const IS_EVERY_INJECTION = process.env.EVERY === 'injections';
/** Of each model, in any other run. */
const INJECTIONS_IN_SAMPLE = 3;
const connectionString = testStorage(import.meta.url);
const folder = await mkdtemp(join(given('folder'), 'injecting-'));
const { roles, operatorRole } = deployed;
const ofPacks = Object.entries<DeclaredEntity | readonly DeclaredEntity[]>(packs).flatMap(([name, entities]) =>
  Array.isArray(entities) && entities.length > 0
    ? [{ name, model: defineModel({ roles, operatorRole, entities }) as Model }]
    : [],
);
const models = [{ name: 'the fixtures', model: fixtures as Model }, ...ofPacks];

test.each(models)(
  'each injury is found once, and its repair makes no answer worse: $name',
  { tags: ['slow'] },
  async ({ name, model }) => {
    const world = await (await prepareWorlds(model, { connectionString, folder }))();
    await fill(world, { seed: 3 });
    expect(await recount(world, model.list)).toEqual([]);
    const all = await readRows(world, model.list);
    const wrong: string[] = [];
    for (const injection of sampleInjections(injectionsInto(model.list, all), name)) {
      const entities = relatedTo(model.list, injection.entity);
      const before = all.filter(({ table }) =>
        entities.some((entity) => definePlaces.tablesOf(entity).includes(table)),
      );
      try {
        // The list of a lookup is kept for each opened storage.
        const storage = storageAccounts.openStorage({ connectionString, httpClient }, model.prefix);
        const fresh = openWorld(model, engineCore.createEngine(storage, world.engine));
        const outcome = await tryInjection(fresh, entities, injection);
        if (!outcome) continue;
        noteOutcome(injection, outcome);
        wrong.push(...outcome.violations.map((text) => `${injection.title}: ${text}`));
      } catch (error) {
        wrong.push(`${injection.title}: ${error instanceof Error ? error.stack : error}`);
      }
      await restore(world, entities, before);
    }
    expect(wrong).toEqual([]);
  },
);

function sampleInjections(all: readonly Injection[], name: string): Injection[] {
  const titles = sampleItems(
    all.map(({ title }) => title),
    name,
    INJECTIONS_IN_SAMPLE,
    IS_EVERY_INJECTION,
  );
  return all.filter(({ title }) => titles.includes(title));
}

afterAll(comparePage);
