import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createExportCommand } from '../../../local/cli/export-command.ts';
import { log, shop } from '../../existing/models.ts';
import { existingRows, loadRows, openTable, parseExact, readRows } from '../../existing/tables.ts';
import { employees, model as fixtures } from '../../fixtures/model.ts';
import { SAMPLES } from '../../fixtures/samples.ts';
import { baseValues } from '../../kit/base.ts';
import type { Entity } from '../../kit/define.ts';
import { engineCore, engineWrite } from '../../kit/engine.ts';
import { operationsModel } from '../../kit/operations.ts';
import { storageAccounts, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });

type AnyModel = typeof shop | typeof log | typeof fixtures;

/** Runs the command, and returns the content of the file that it writes. */
async function exportStored(model: AnyModel, entity: string, name: string, ...more: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-stored-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  vi.spyOn(console, 'log').mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  const open = async () => storageAccounts.withShapes(storage, model.list as readonly Entity[]);
  const app = { model, folder, packs: undefined } as never;
  const given = [entity, join(folder, name), '--stored', '--data', folder, ...more];
  await createExportCommand(app, open)
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parseAsync(given, { from: 'user' });
  // Nothing of the way there is left.
  expect(await readdir(folder)).toEqual([name]);
  const bytes = await readFile(join(folder, name));
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
}

/** The rows of a typed CSV, in the form of `existingRows`: a property whose type is empty is none. */
function fromCsv(text: string): string[] {
  const [header = [], ...records] = parse(text) as string[][];
  expect(header.slice(0, 3)).toEqual(['PartitionKey', 'RowKey', 'Timestamp']);
  return records.map((cells) => {
    expect(cells[2]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    const sent: Record<string, unknown> = { PartitionKey: cells[0], RowKey: cells[1] };
    for (let at = 3; at < header.length; at += 2) {
      const [name = '', type = '', value = ''] = [header[at], cells[at + 1], cells[at]];
      expect(header[at + 1]).toBe(`${name}@type`);
      if (type === '') expect(value).toBe('');
      else sent[name] = type === 'Edm.String' ? value : toSent(type, value);
      if (type !== '' && type !== 'Edm.String' && typeof sent[name] === 'string') sent[`${name}@odata.type`] = type;
    }
    return JSON.stringify(sent);
  });
}

const toSent = (type: string, value: string) =>
  type === 'Edm.Boolean' || type === 'Edm.Int32' || (type === 'Edm.Double' && Number.isFinite(Number(value)))
    ? parseExact(value)
    : value;

function fromJson(text: string): string[] {
  const { value } = parseExact(text) as { readonly value: readonly Record<string, unknown>[] };
  return value.map((row) => JSON.stringify(baseValues.omit(row, ['Timestamp', 'Timestamp@odata.type'])));
}

let tables = 0;

/** What a table with these rows has. */
async function storedAgain(rows: readonly string[]): Promise<string[]> {
  tables += 1;
  const client = openTable(connectionString, `again${tables}`);
  await loadRows(client, rows);
  return sorted(await readRows(client));
}

/** The order of properties is none of the promises of storage. */
const sorted = (rows: readonly string[]) =>
  rows.map((row) =>
    JSON.stringify(Object.fromEntries(Object.entries(parseExact(row) as object).sort(([a], [b]) => (a < b ? -1 : 1)))),
  );

/** Values that a reader of the file may take for something else. */
const ODD = [
  '=SUM(A1:A9)',
  '+1',
  '@x',
  "'=1",
  '',
  ' ',
  '"',
  '""',
  ',',
  'a,"b"\r\nc\nd\re',
  'a\rb',
  'a\nb',
  'null',
  'Edm.String',
  '007',
  '\ufeffä😀',
  '\tx\t',
].map((name, index) =>
  JSON.stringify({
    PartitionKey: `C-9${String(index).padStart(5, '0')}`,
    RowKey: 'customer',
    Name: name,
    Email: '-1',
    'LoyaltyPoints@odata.type': 'Edm.Int64',
    LoyaltyPoints: index % 2 ? '9223372036854775807' : '-9223372036854775808',
    Discount: 0.1 + index,
    'Thumbnail@odata.type': 'Edm.Binary',
    Thumbnail: index % 2 ? '' : 'AAECAw==',
    OrderCount: -2147483648,
    IsActive: index % 2 === 0,
    'Extra@odata.type': 'Edm.DateTime',
    Extra: '1601-01-01T00:00:00.0000001Z',
  }),
);

test.each(['csv', 'json', 'csv.gz'])(
  'the stored rows of another program come back byte for byte from .%s',
  async (ending) => {
    const table = openTable(connectionString, 'ShopData');
    await table.deleteTable();
    const some = existingRows('ShopData').filter((row, index) => index < 120 || row.includes('"NaN"'));
    await loadRows(table, [...some, ...ODD]);
    const all = sorted(await readRows(table));
    const parseFile = ending === 'json' ? fromJson : fromCsv;
    for (const [entity, key] of [
      ['customers', /"RowKey":"customer"/],
      ['orders', /"RowKey":"order-/],
    ] as const) {
      const wanted = all.filter((row) => key.test(row));
      expect(wanted.length).toBeGreaterThan(10);
      const text = await exportStored(shop, entity, `rows.${ending}`);
      expect(await storedAgain(parseFile(text)), entity).toEqual(wanted);
    }
  },
);

test('an entity of the app is exported with the properties of the engine, without its index entries', async () => {
  const list = fixtures.list as readonly Entity[];
  await storageTables.provision(storage, operationsModel.resourcesOf(list, Date.now()));
  const engine = engineCore.createEngine(storage);
  const entity = employees as never as Entity;
  for (const n of [1, 2, 3])
    await engineWrite.createEntity(
      engine,
      entity,
      baseValues.omit(SAMPLES.employees?.(n) ?? {}, [...entity.decidedFields, ...entity.encrypted]),
    );
  const there = sorted(await readRows(storage.table(entity.table)));
  const wanted = there.filter((row) => /"EntityType":"employees/.test(row) && !row.includes('"SourceRow"'));
  expect(wanted.length).toBeLessThan(there.length);
  expect(await storedAgain(fromCsv(await exportStored(fixtures, 'employees', 'rows.csv')))).toEqual(wanted);
  expect(await storedAgain(fromJson(await exportStored(fixtures, 'employees', 'rows.json')))).toEqual(wanted);
});

test('the rows of all periods are exported', async () => {
  const list = fixtures.list as readonly Entity[];
  await storageTables.provision(storage, operationsModel.resourcesOf(list, Date.now()));
  const engine = engineCore.createEngine(storage);
  const logins = list.find(({ name }) => name === 'logins') as Entity;
  const hour = 3_600_000;
  for (const ago of [0, 30, 60]) {
    const at = new Date(Date.now() - ago * hour).toISOString();
    await engineWrite.createEntity(engine, logins, { ...SAMPLES.logins?.(ago + 1), at });
  }
  const names = await storageTables.listTables(storage, 'logins');
  const all = await Promise.all(names.toSorted().map((name) => readRows(storage.table(name))));
  const wanted = sorted(all.flat().filter((row) => row.includes('"EntityType":"logins"')));
  expect(wanted).toHaveLength(3);
  expect(sorted(fromCsv(await exportStored(fixtures, 'logins', 'rows.csv'))).toSorted()).toEqual(wanted.toSorted());
});

test('no rows make a file with the columns of keys, and an empty list', async () => {
  await openTable(connectionString, 'RequestLog').createTable();
  expect(await exportStored(log, 'requests', 'rows.csv')).toBe('PartitionKey,RowKey,Timestamp\r\n');
  expect(JSON.parse(await exportStored(log, 'requests', 'rows.json'))).toEqual({ value: [] });
});

test('another ending, and a remote API, are rejected', async () => {
  await expect(exportStored(log, 'requests', 'rows.ndjson')).rejects.toThrow(
    /rows\.ndjson must end with \.csv, \.json, \.csv\.gz or \.json\.gz\./,
  );
  await expect(exportStored(log, 'requests', 'rows.csv', '--url', 'https://a.example')).rejects.toThrow(/--stored/);
});
