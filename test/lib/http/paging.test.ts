import { beforeAll, describe, expect, test } from 'vitest';
import { httpDoor } from '../../kit/http.ts';
import { storageSlots, storageTables } from '../../kit/storage.ts';
import { testApp, testContext } from './request.ts';

const app = testApp(import.meta.url);
beforeAll(() => storageTables.createTable(app.engine.storage, storageSlots.SYSTEM_TABLE));

const withQuery = (text: string) => testContext(app, { query: new URLSearchParams(text) });
const invalid = (field: string) => expect.objectContaining({ code: 'invalid-input', field });

describe('the page size', () => {
  test.each([
    ['', 100],
    ['top=1', 1],
    ['top=1000', 1_000],
    ['top=0007', 7],
  ])('of %j is %d', async (text, top) => {
    expect(await httpDoor.readPageQuery(withQuery(text), 'things')).toEqual({ top, after: undefined });
  });

  test.each(['0', '1001', '-1', '1.5', '1e2', '+5', ' 5', '', 'ten', '٣', '00001', '5\0'])(
    'is rejected when it is %j',
    async (top) => {
      const query = new URLSearchParams({ top }).toString();
      await expect(httpDoor.readPageQuery(withQuery(query), 'things')).rejects.toEqual(invalid('top'));
    },
  );
});

describe('the link to the next page', () => {
  const position = { row: 'empid_"<ü>' };

  async function continuationFor(bound: string) {
    const { link } = await httpDoor.toNextLink(withQuery(''), position, { path: '/api/things', bound });
    return new URL(/^<(.+)>; rel="next"$/.exec(link ?? '')?.[1] ?? '', 'http://localhost').searchParams.toString();
  }

  test('is absent on the last page', async () => {
    expect(await httpDoor.toNextLink(withQuery('top=5'), undefined, { path: '/api/things', bound: 'things' })).toEqual(
      {},
    );
  });

  test('leads to the position, and keeps the query', async () => {
    const bound = 'things of Ünïted';
    const context = withQuery('top=5&lastName=O%27Neil%3E%2C&continuation=old');
    const { link = '' } = await httpDoor.toNextLink(context, position, { path: '/api/things/a%2Fb', bound });
    const next = new URL(/^<([^<>"]+)>; rel="next"$/.exec(link)?.[1] ?? '', 'http://localhost');
    expect(next.pathname).toBe('/api/things/a%2Fb');
    expect(next.searchParams.get('lastName')).toBe("O'Neil>,");
    expect(next.searchParams.getAll('continuation')).toHaveLength(1);
    const read = await httpDoor.readPageQuery(testContext(app, { query: next.searchParams }), bound);
    expect(read).toEqual({ top: 5, after: position });
  });

  test('is valid for its own query only', async () => {
    const query = await continuationFor('things of Sales');
    await expect(httpDoor.readPageQuery(withQuery(query), 'things of Legal')).rejects.toEqual(invalid('continuation'));
  });

  test.each(['', 'x', 'a.b.c', 'eyJhbGciOiJub25lIn0.eyJyb3ciOiJhIiwiYXVkIjoidGhpbmdzIn0.', '%00'])(
    'is rejected when it is forged: %j',
    async (continuation) => {
      const query = `continuation=${continuation}`;
      await expect(httpDoor.readPageQuery(withQuery(query), 'things')).rejects.toEqual(invalid('continuation'));
    },
  );

  test('is rejected when a character of the position was changed', async () => {
    const query = await continuationFor('things');
    const [header, key, vector, encrypted = '', tag] = query.replace('continuation=', '').split('.');
    const changed = `${encrypted.startsWith('A') ? 'B' : 'A'}${encrypted.slice(1)}`;
    const token = [header, key, vector, changed, tag].join('.');
    await expect(httpDoor.readPageQuery(withQuery(`continuation=${token}`), 'things')).rejects.toEqual(
      invalid('continuation'),
    );
  });
});
