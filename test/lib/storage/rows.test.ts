import { createDefaultHttpClient, createHttpHeaders, type PipelineRequest } from '@azure/core-rest-pipeline';
import { beforeAll, describe, expect, test } from 'vitest';
import { deleteUnchanged, type ReadBound, readRange, scanTable, submit } from '../../../lib/storage/rows.ts';
import { type Storage, storageAccounts } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const TABLE = 'things';
const PARTITIONS = 6;
const ROWS = 10;
const TOTAL = PARTITIONS * ROWS;

/** The sent filters in order, and the number of rows that each call requested. */
const filters: string[] = [];
const tops: number[] = [];
let storage: Storage;

beforeAll(async () => {
  const inner = createDefaultHttpClient();
  const httpClient = {
    sendRequest(request: PipelineRequest) {
      const { searchParams } = new URL(request.url);
      if (request.method === 'GET') tops.push(Number(searchParams.get('$top')));
      if (request.method === 'GET') filters.push(searchParams.get('$filter') ?? '');
      return inner.sendRequest(request);
    },
  };
  storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient });
  await storage.table(TABLE).createTable();
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const actions = Array.from({ length: ROWS }, (_, row) => {
      return { kind: 'insert', row: `row'${row}`, properties: { EntityType: row % 2 ? 'odd' : 'even' } } as const;
    });
    await submit(storage, { table: TABLE, partition: `o'${partition}`, actions });
  }
});

/**
 * Returns the conditions on keys that bound the scan of the service: those that every row must meet. The service
 * evaluates an `or` row by row. https://learn.microsoft.com/azure/storage/tables/table-storage-design-for-query
 */
function lowerBound(filter: string): { partition: string; row: string } {
  let depth = 0;
  let text = '';
  for (const character of filter) {
    if (character === '(') depth += 1;
    if (depth === 0) text += character;
    if (character === ')') depth -= 1;
  }
  if (/ or /.test(text)) return { partition: '', row: '' };
  const bound = (key: string) =>
    new RegExp(`${key} (?:ge|gt|eq) '((?:[^']|'')*)'`).exec(text)?.[1]?.replaceAll("''", "'") ?? '';
  return { partition: bound('PartitionKey'), row: bound('RowKey') };
}

const keys = Array.from({ length: TOTAL }, (_, index) => {
  return { partition: `o'${Math.floor(index / ROWS)}`, row: `row'${index % ROWS}` };
});

describe('a table scan', () => {
  test.each([1, 7, 10, 25])('scans few rows more than once, with pages of %d', async (limit) => {
    filters.length = 0;
    const read: { partition: string; row: string }[] = [];
    let lookedAt = 0;
    for (let more = true; more; ) {
      const page = await scanTable(storage, { table: TABLE, after: read.at(-1), limit });
      read.push(...page.rows.map(({ partition, row }) => ({ partition, row })));
      more = page.more;
      const { partition } = lowerBound(filters.at(-1) ?? '');
      lookedAt += read.filter((key) => key.partition >= partition).length;
    }
    expect(read).toEqual(keys);
    // Each page begins at the first row of a partition at the latest.
    expect(lookedAt).toBeLessThanOrEqual(TOTAL + filters.length * ROWS);
  });

  test('returns each row of a type once, with pages of 7', async () => {
    const rows: string[] = [];
    let after: { partition: string; row: string } | undefined;
    for (let more = true; more; ) {
      const page = await scanTable(storage, { table: TABLE, type: 'odd', after, limit: 7 });
      rows.push(...page.rows.map(({ partition, row }) => partition + row));
      after = page.rows.at(-1);
      more = page.more;
    }
    expect(rows).toEqual(keys.filter((_, index) => index % 2).map(({ partition, row }) => partition + row));
  });

  test('returns only rows between two row keys, of each partition', async () => {
    const rowKeys = { from: "row'3", before: "row'5" };
    const { rows, more } = await scanTable(storage, { table: TABLE, rowKeys, limit: 2 * PARTITIONS + 1 });
    expect([rows.map(({ row }) => row), more]).toEqual([Array(PARTITIONS).fill(["row'3", "row'4"]).flat(), false]);
  });
});

test.each([
  { from: "row'2", before: "row'7", type: 'odd' },
  { from: '', after: "row'4", where: [{ name: 'EntityType', operator: 'eq', values: ['odd'] }] },
  { from: '', after: "row'4", where: [{ name: 'EntityType', operator: 'eq', values: ['odd'] }], orVersionBefore: 2 },
] as const)('starts a range of rows at its first row: %o', async (range) => {
  filters.length = 0;
  await readRange(storage, { table: TABLE, partition: "o'3", ...range });
  expect(filters.map(lowerBound)).toEqual([{ partition: "o'3", row: range.after ?? range.from }]);
});

test('sends at most 15 comparisons, which is the limit of the service', async () => {
  const where = Array.from({ length: 8 }, (_, at) => {
    return { name: `p${at}`, operator: 'in', values: Array.from({ length: at + 1 }, String) } as const;
  });
  const range = { table: TABLE, partition: "o'3", from: '', before: 'z', orVersionBefore: 2 };
  const type = [{ type: 'odd', where, orVersionBefore: 2 }, 'even'];
  for (const filter of [
    { type: 'odd', where },
    { type, where },
    { type: Array.from({ length: 12 }, (_, at) => `type${at}`) },
  ]) {
    filters.length = 0;
    await readRange(storage, { ...range, ...filter });
    const rowKeys = { from: "row'", before: 'rox' };
    await scanTable(storage, { table: TABLE, after: { partition: "o'3", row: '' }, rowKeys, limit: 10, ...filter });
    for (const sent of filters) expect(sent.match(/ (eq|ne|gt|ge|lt|le) /g)?.length).toSatisfy((count) => count <= 15);
  }
});

test.each([
  [
    'a range',
    (bound: ReadBound, limit: number) =>
      readRange(storage, { table: 'long', partition: 'one', from: '', bound, limit }),
  ],
  ['a scan', (bound: ReadBound, limit: number) => scanTable(storage, { table: 'long', bound, limit })],
])('reads %s of long rows in parts and ends with the row that reaches the limit', async (_, read) => {
  await storage.table('long').createTable();
  const actions = Array.from({ length: 9 }, (_, row) => {
    return { kind: 'upsert', row: `${row}`, properties: { text: 'x'.repeat(10_000) } } as const;
  });
  await submit(storage, { table: 'long', partition: 'one', actions });
  for (const [length, limit, rows, more, asked] of [
    [45_000, 1_000, 5, true, [3, 3]],
    [90_000, 1_000, 9, false, [3, 3, 3]],
    [1_000_000, 1_000, 9, false, [3, 3, 3]],
    [1_000_000, 8, 8, true, [3, 3, 2]],
    [1, 1_000, 1, true, [3]],
  ] as const) {
    tops.length = 0;
    const found = await read({ length, rowsPerCall: 3 }, limit);
    expect(found.rows.map(({ row }) => row)).toEqual(actions.slice(0, rows).map(({ row }) => row));
    expect(found.more).toBe(more);
    expect(tops).toEqual(asked);
  }
});

test('continues after an empty page', async () => {
  const row = { PartitionKey: 'one', RowKey: '2', 'odata.etag': 'W/"1"' };
  const next = { 'x-ms-continuation-nextpartitionkey': 'one', 'x-ms-continuation-nextrowkey': '2' };
  const httpClient = {
    async sendRequest(request: PipelineRequest) {
      const isFirst = !new URL(request.url).searchParams.has('NextRowKey');
      const headers = createHttpHeaders({ 'content-type': 'application/json', ...(isFirst ? next : {}) });
      return { request, status: 200, headers, bodyAsText: JSON.stringify({ value: isFirst ? [] : [row] }) };
    },
  };
  const paged = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient });
  const { rows, more } = await readRange(paged, { table: TABLE, partition: 'one', from: '' });
  expect(rows).toMatchObject([{ partition: 'one', row: '2' }]);
  expect(more).toBe(false);
});

test('asks for a whole number of rows, also if a bound is shared among several reads', async () => {
  tops.length = 0;
  await readRange(storage, {
    ...{ table: TABLE, partition: "o'3", from: '', before: 'z' },
    bound: { length: 10_000, rowsPerCall: 20 / 3 },
  });
  expect(tops).toEqual([6, 6]);
});

test('deletes rows of a partition together, and none of a transaction in which one has changed', async () => {
  const at = { table: TABLE, partition: 'deleted' };
  const names = Array.from({ length: 101 }, (_, index) => `r${String(index).padStart(3, '0')}`);
  for (const some of [names.slice(0, 100), names.slice(100)])
    await submit(storage, { ...at, actions: some.map((row) => ({ kind: 'insert', row, properties: {} })) });
  const { rows } = await readRange(storage, { ...at, from: '' });
  await submit(storage, { ...at, actions: [{ kind: 'upsert', row: 'r050', properties: { changed: 'yes' } }] });
  expect(await deleteUnchanged(storage, at, rows)).toEqual(rows.slice(0, 100));
  const left = await readRange(storage, { ...at, from: '' });
  expect(left.rows.map(({ row }) => row)).toEqual(names.slice(0, 100));
  expect(await deleteUnchanged(storage, at, left.rows)).toEqual([]);
  expect(await readRange(storage, { ...at, from: '' })).toEqual({ rows: [], more: false });
});
