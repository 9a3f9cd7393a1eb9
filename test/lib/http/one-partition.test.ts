import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, subject } from '../../../lib/index.ts';
import { openAccessApp } from '../../access-app.ts';
import { httpDoor } from '../../kit/http.ts';

/** An entity whose partition key has no field: all rows are in one partition, and its list has the path of the entity. */

const schema = z.object({ pageId: z.string(), ownerId: z.string() });
const pages = defineEntity('pages', {
  schema,
  table: 'pages',
  key: { partition: 'pages', row: '{pageId}' },
  access: { read: ['reader'], write: ['reader'] },
});
const model = defineModel({ roles: ['reader', 'operator'], operatorRole: 'operator', entities: [pages] });
const app = await openAccessApp(import.meta.url, model);
const ask = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
  app.ask({ roles: ['reader'] }, method, path, body);

describe('the list of an entity with one partition', () => {
  test('is at the path of the entity, by pages and ranges', async () => {
    for (const pageId of ['a', 'b', 'c']) await ask('POST', 'pages', { pageId, ownerId: 'x' });
    const idsOf = async (path: string) =>
      (await ask('GET', path)).body.items.map(({ pageId }: { pageId: string }) => pageId);
    expect(await idsOf('pages')).toEqual(['a', 'b', 'c']);
    expect(await idsOf('pages?from=b')).toEqual(['b', 'c']);
    const first = await ask('GET', 'pages?top=2');
    const [, next = ''] = /<\/api\/(.*)>/.exec(first.headers.get('link') ?? '') ?? [];
    expect(await idsOf(next)).toEqual(['c']);
  });

  test('is deleted there, by a range alone', async () => {
    expect((await ask('DELETE', 'pages')).status).toBe(400);
    expect((await ask('DELETE', 'pages?from=a&to=b')).body).toMatchObject({ deleted: 2 });
    expect((await ask('GET', 'pages')).body.items).toHaveLength(1);
  });

  test('leaves the path to the rows of the caller, if rules name them', () => {
    const ruled = defineEntity('pages', {
      schema,
      table: 'pages',
      key: { partition: 'pages', row: '{pageId}' },
      indexes: { ownerId: interPartitionIndex({ table: 'pagesbyowner', partition: '{ownerId}', row: '{pageId}' }) },
      access: { read: [{ role: 'reader', where: { ownerId: subject() } }], write: [] },
    });
    const routes = httpDoor.createRoutes(
      defineModel({ roles: ['reader', 'operator'], operatorRole: 'operator', entities: [ruled] }),
    );
    expect(routes.filter(({ method, path }) => method === 'GET' && path === 'pages').map(({ name }) => name)).toEqual([
      'pages-mine',
    ]);
  });
});
