import { createDefaultHttpClient, type PipelineRequest } from '@azure/core-rest-pipeline';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { toProperties } from '../../../../lib/define/codec/entity-codec.ts';
import {
  type IndexEntity,
  type IntraPartitionIndex,
  indexEntity,
  intraPartitionIndex,
} from '../../../../lib/define/declaration/indexes.ts';
import { defineEntity } from '../../../../lib/define/define-entity.ts';
import type { Engine } from '../../../../lib/engine/engine.ts';
import { type IndexPageOptions, readByCopies, readByList } from '../../../../lib/engine/read/read-through-index.ts';
import type { Page } from '../../../../lib/engine/read/retrieve.ts';
import { createEntity } from '../../../../lib/engine/write/entity-store.ts';
import { submit } from '../../../../lib/storage/rows.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { openWorld } from '../../../world.ts';

test.each(['everything', 'keys'] as const)(
  'an entity whose key looks like the key of a copy of %s is not returned as a copy',
  async (copies) => {
    const { things } = deploy(
      defineEntity('things', {
        schema: z.object({ a: z.string(), b: z.string(), c: z.string() }),
        table: 'things',
        key: { partition: '{a}', row: '{b}' },
        indexes: { c: intraPartitionIndex({ row: 'c_{c}_{b}', copies }) },
        access: { read: ['hr'], write: ['hr'] },
      }),
    );
    const { engine } = await openWorld(import.meta.url, [things]);
    const found = { a: copies, b: '2', c: 'x' };
    for (const values of [found, { a: copies, b: 'c_x_1', c: 'another' }]) await createEntity(engine, things, values);
    const index = things.indexes.c as IntraPartitionIndex;
    const { items } = await readByCopies(engine, things, index, { a: copies, c: 'x' }, { top: 10 });
    expect(items).toEqual([found]);
  },
);

describe.each(['list', 'keys'] as const)('a page through an index of %s', (kind) => {
  const { texts } = deploy(
    defineEntity('texts', {
      schema: z.object({ a: z.string(), b: z.string(), c: z.string(), text: z.string() }),
      table: 'texts',
      key: { partition: '{a}', row: '{b}' },
      indexes: {
        keys: intraPartitionIndex({ row: 'c_{c}_{b}', copies: 'keys' }),
        list: indexEntity({ row: 'list_{c}', holds: '{b}' }),
      },
      large: ['text'],
      access: { read: ['hr'], write: ['hr'] },
    }),
  );

  async function readAll(engine: Engine, c: string, options: Partial<IndexPageOptions>): Promise<Page[]> {
    const given = { a: kind, c };
    const pages: Page[] = [];
    for (let isFirst = true; isFirst || pages.at(-1)?.next; isFirst = false) {
      const asked = { top: 1_000, after: pages.at(-1)?.next, ...options };
      pages.push(
        kind === 'list'
          ? await readByList(engine, texts, texts.indexes.list as IndexEntity, given, asked)
          : await readByCopies(engine, texts, texts.indexes.keys as IntraPartitionIndex, given, asked),
      );
    }
    return pages;
  }
  const sizes = (pages: readonly Page[]) => pages.map(({ items }) => items.length);

  test('ends at about 4 million characters and omits large fields unless they are selected', async () => {
    const world = await openWorld(import.meta.url, [texts]);
    for (const b of ['1', '2', '3', '4', '5']) {
      // The large text is stored in a blob and in the row.
      const text = 'x'.repeat(b < '4' ? 3_000_000 : 200_000);
      await createEntity(world.engine, texts, { a: kind, b, c: 'long', text });
    }
    const projected: boolean[] = [];
    const inner = createDefaultHttpClient();
    const sendRequest = (request: PipelineRequest) => {
      if (/RowKey='\d'/.test(decodeURIComponent(request.url))) projected.push(request.url.includes('select='));
      return inner.sendRequest(request);
    };
    const engine = world.engineThrough({ sendRequest });
    const small = await readAll(engine, 'long', { select: ['a', 'b', 'c'] });
    expect(small.flatMap(({ items }) => items)).toEqual(
      ['1', '2', '3', '4', '5'].map((b) => ({ a: kind, b, c: 'long' })),
    );
    expect(sizes(small)).toEqual([5]);
    expect(projected).toEqual([true, true, true, true, true]);
    const whole = await readAll(engine, 'long', { select: ['b', 'text'] });
    expect(sizes(whole)).toEqual([2, 3]);
    expect(whole.flatMap(({ items }) => items).every(({ text }) => text !== undefined)).toBe(true);
  });

  test('ends after 256 lookups', async () => {
    const { engine, storage } = await openWorld(import.meta.url, [texts]);
    const ids = Array.from({ length: 300 }, (_, index) => String(1000 + index));
    const put = (rows: readonly { row: string; properties: Record<string, unknown> }[]) =>
      submit(storage, {
        table: 'texts',
        partition: kind,
        actions: rows.map((row) => ({ kind: 'upsert', ...row }) as const),
      });
    for (let at = 0; at < ids.length; at += 50)
      await put(
        ids.slice(at, at + 50).flatMap((b) => {
          const source = { EntityType: 'texts', SourcePartition: kind, SourceRow: b };
          const values = { a: kind, b, c: 'many', text: '' };
          return [
            { row: b, properties: toProperties(texts, values, { WriteId: '1', Incarnation: '1' }) },
            { row: `c_many_${b}`, properties: source },
          ];
        }),
      );
    await put([{ row: 'list_many', properties: { EntityType: 'list', Members: JSON.stringify(ids) } }]);
    const pages = await readAll(engine, 'many', {});
    expect(sizes(pages)).toEqual([256, 44]);
    expect(pages.flatMap(({ items }) => items.map(({ b }) => b))).toEqual(ids);
    expect(sizes(await readAll(engine, 'many', { top: 200 }))).toEqual([200, 100]);
  });
});
