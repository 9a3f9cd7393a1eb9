import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { batchOnce } from '../../../../lib/engine/write/entity-store.ts';
import { defineEntity, interPartitionIndex, RowkeyError, type Values } from '../../../../lib/index.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineWrite } from '../../../kit/engine.ts';
import type { Internal } from '../../../kit/internal.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../../../world.ts';

/** Requests that are repeated with the same ids. */

const { slips, badges } = deploy(
  defineEntity('slips', {
    schema: z.object({
      desk: z.string(),
      slipId: z.uuid().default(() => randomUUID()),
      text: z.string().max(5).optional(),
    }),
    table: 'slips',
    key: { partition: '{desk}', row: '{slipId}' },
    access: { read: [], write: [] },
  }),
  defineEntity('badges', {
    schema: z.object({ desk: z.string(), badgeId: z.string(), code: z.string(), text: z.string().optional() }),
    table: 'slips',
    key: { partition: '{desk}', row: 'badge_{badgeId}' },
    indexes: { code: interPartitionIndex({ table: 'badgesbycode', partition: 'c', row: '{code}', unique: true }) },
    access: { read: [], write: [] },
  }),
) as unknown as { readonly slips: Entity; readonly badges: Entity };
const world = await openWorld(import.meta.url, [slips, badges]);
const { engine } = world;

let made = 0;
const newDesk = () => {
  made += 1;
  return `desk${made}`;
};
const rowsAt = async (desk: string) =>
  (await rowsOf(world.storage, 'slips')).filter(({ partitionKey }) => partitionKey === desk);
const shown = (outcomes: Awaited<ReturnType<typeof batchOnce>>) =>
  outcomes.map((outcome) => (outcome instanceof RowkeyError ? outcome.code : outcome));
const idsFor = (actions: readonly unknown[]) => actions.map(() => randomUUID());
const daysLater = (days: number): Engine => ({ ...engine, now: () => Date.now() + days * 86_400_000 });

describe('a batch that is repeated', () => {
  test('is done once, with the keys of its first attempt', async () => {
    const desk = newDesk();
    const actions: Internal['BatchAction'][] = [{ create: { desk } }, { put: { desk, text: 'put' } }];
    const ids = idsFor(actions);
    const first = await batchOnce(engine, slips, actions, ids);
    expect(shown(first)).toMatchObject([{ outcome: 'created' }, { outcome: 'stored' }]);
    const rows = (await rowsAt(desk)).map(({ rowKey, text }) => [rowKey, text]);
    expect(rows).toHaveLength(2);
    const again = await batchOnce(engine, slips, actions, ids);
    expect(shown(again)).toMatchObject([first[0], { outcome: expect.stringMatching(/stored|unchanged/) }]);
    expect((await rowsAt(desk)).map(({ rowKey, text }) => [rowKey, text])).toEqual(rows);
    // Another request has other keys.
    await batchOnce(engine, slips, actions, idsFor(actions));
    expect(await rowsAt(desk)).toHaveLength(4);
    await batchOnce(engine, slips, actions, undefined);
    expect(await rowsAt(desk)).toHaveLength(6);
  });

  test('says the present state of what it has created, and rejects what others have created', async () => {
    const desk = newDesk();
    const badge = (badgeId: string, code = `${desk} ${badgeId}`) => ({ desk, badgeId, code });
    await engineWrite.createEntity(engine, badges, badge('theirs'));
    const actions = [badge('ours'), badge('theirs'), badge('taken', `${desk} theirs`)].map((create) => ({ create }));
    const ids = idsFor(actions);
    const [created, ...rejected] = await batchOnce(engine, badges, actions, ids);
    expect(created).toMatchObject({ outcome: 'created' });
    expect(shown(rejected)).toEqual(['duplicate-key', 'duplicate-value']);
    const { etag } = await engineWrite.patchEntity(engine, badges, { desk, badgeId: 'ours' }, { text: 'changed' });
    const again = await batchOnce(engine, badges, actions, ids);
    expect(shown(again)).toEqual([{ outcome: 'created', etag }, 'duplicate-key', 'duplicate-value']);
    // The id of another action is that of another request.
    const exchanged = await batchOnce(engine, badges, actions, [ids[1], ids[0], ids[2]] as string[]);
    expect(shown(exchanged)).toEqual(['duplicate-key', 'duplicate-key', 'duplicate-value']);
    await engineWrite.deleteEntity(engine, badges, { desk, badgeId: 'ours' });
    await world.settle();
    expect(shown(await batchOnce(engine, badges, actions, ids))[0]).toMatchObject({ outcome: 'created' });
    await world.settle();
    await expectIndexesToAgree(world.storage, { ...badges, children: [] });
  });

  test('rejects what is not valid, and does the rest', async () => {
    const desk = newDesk();
    const actions: Internal['BatchAction'][] = [
      { create: { desk, text: 'too long' } },
      { create: { desk, text: 'short' } },
      { put: { desk, text: 'too long' } },
      { delete: { desk } },
    ];
    const ids = idsFor(actions);
    for (const _ of [1, 2])
      expect(shown(await batchOnce(engine, slips, actions, ids))).toEqual([
        'invalid-input',
        { outcome: 'created', etag: expect.any(String) },
        'invalid-input',
        'invalid-input',
      ]);
    expect(await rowsAt(desk)).toHaveLength(1);
  });

  test('deletes and patches again', async () => {
    const desk = newDesk();
    await engineWrite.createEntity(engine, badges, { desk, badgeId: 'b', code: desk });
    await engineWrite.createEntity(engine, badges, { desk, badgeId: 'c', code: `${desk}c` });
    const actions: Internal['BatchAction'][] = [
      { patch: { desk, badgeId: 'b', text: 'patched' } },
      { delete: { desk, badgeId: 'c' } },
    ];
    const ids = idsFor(actions);
    expect(shown(await batchOnce(engine, badges, actions, ids))).toMatchObject([
      { outcome: 'stored' },
      { outcome: 'deleted' },
    ]);
    expect(shown(await batchOnce(engine, badges, actions, ids))).toMatchObject([{ outcome: 'unchanged' }, 'not-found']);
  });
});

describe('a create that is repeated', () => {
  test('has its key on the next day, too, and another one after that', async () => {
    const [desk, id] = [newDesk(), randomUUID()];
    const { values } = await engineWrite.createOnce(engine, slips, { desk }, id);
    for (const days of [0, 1])
      expect((await engineWrite.createOnce(daysLater(days), slips, { desk }, id)).values).toEqual(values);
    expect(await rowsAt(desk)).toHaveLength(1);
    await engineWrite.createOnce(daysLater(3), slips, { desk }, id);
    expect(await rowsAt(desk)).toHaveLength(2);
  });
});

describe('a put that must create', () => {
  const put = (key: Values, input: Values) =>
    engineWrite.putEntity(engine, badges, key, input, { ifNoneMatch: ' * ' }).then(
      ({ isCreated }) => isCreated,
      ({ code }: RowkeyError) => code,
    );

  test('finds an entity with its key, a row of another kind, or a value that is taken', async () => {
    const desk = newDesk();
    const key = { desk, badgeId: 'b' };
    expect(await put(key, { code: desk })).toBe(true);
    expect(await put(key, { code: desk })).toBe('etag-mismatch');
    expect(await put(key, { code: `${desk} other` })).toBe('etag-mismatch');
    expect(await put({ desk, badgeId: 'c' }, { code: desk })).toBe('duplicate-value');
    expect(await put({ desk, badgeId: 'c' }, { code: 1 })).toBe('invalid-input');
    await world.storage.table('slips').createEntity({ partitionKey: desk, rowKey: 'badge_d', EntityType: 'other' });
    expect(await put({ desk, badgeId: 'd' }, { code: `${desk}d` })).toBe('duplicate-key');
  });
});
