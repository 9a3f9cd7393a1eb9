import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define/define-entity.ts';
import { readEntity } from '../../../../lib/engine/read/retrieve.ts';
import { putEntities } from '../../../../lib/engine/write/entity-batch.ts';
import { createEntity } from '../../../../lib/engine/write/entity-store.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { openWorld } from '../../../world.ts';

const thing = <const Name extends string>(name: Name, row: '{b}' | 'own_{b}') =>
  defineEntity(name, {
    schema: z.object({ a: z.string(), b: z.string() }),
    table: 'things',
    key: { partition: '{a}', row },
    access: { read: ['hr'], write: ['hr'] },
  });

test('rejects a batch item that would replace another kind of entity under the same key', async () => {
  const { things, others } = deploy(thing('things', '{b}'), thing('others', 'own_{b}'));
  const { engine } = await openWorld(import.meta.url, [things, others]);
  const other = { a: 'one', b: '1' };
  await createEntity(engine, others, other);
  const outcomes = await putEntities(engine, things, [{ a: 'one', b: 'own_1' }]);
  expect(outcomes).toEqual([expect.objectContaining({ code: 'duplicate-key' })]);
  expect((await readEntity(engine, others, other)).values).toEqual(other);
});
