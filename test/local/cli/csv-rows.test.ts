// @module-tag long

import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { Values } from '../../../lib/index.ts';
import { readCsv } from '../../../local/cli/csv-rows.ts';
import { maxRowBytes } from '../../../local/cli/max-row-bytes.ts';
import { onePerKey, readKeyField } from '../../../local/cli/one-per-key.ts';
import { toModel } from '../../../web/src/api/model.ts';
import { toCsv } from '../../../web/src/transfer/csv.ts';
import { jsonValues } from '../../fixtures/json-values.ts';
import { employees, expenses, logins, model } from '../../fixtures/model.ts';
import type { Entity } from '../../kit/define.ts';
import { httpDoor } from '../../kit/http.ts';

const events = { onRow: () => undefined, onBad: () => undefined };
/** The entity as the console has it. */
function described({ name }: Entity) {
  const entity = toModel(httpDoor.describeModel(model)).entities.get(name);
  if (!entity) throw new Error(name);
  return entity;
}

const read = (...lines: string[]) =>
  Array.fromAsync(readCsv(employees, Readable.from([Buffer.from(lines.join('\n'))]), events));

test.each([
  ['42', 42],
  ['-1.50', -1.5],
  ['+.5e3', 500],
  ['0x10', '0x10'],
  ['0b1', '0b1'],
  ['Infinity', 'Infinity'],
  ['1e999', '1e999'],
  ['1,000', '1,000'],
  ['1 000', '1 000'],
  ['old', 'old'],
])('parses decimal numbers only and leaves other text for validation: %j', async (text, age) => {
  expect(await read('employeeId,age', `000001,"${text}"`)).toEqual([
    { line: 2, values: { employeeId: '000001', age } },
  ]);
});

test('reads a blank cell as text but not as a number', async () => {
  expect(await read('employeeId,age,firstName', '000001, \t , ', '000002,,')).toEqual([
    { line: 2, values: { employeeId: '000001', firstName: ' ' } },
    { line: 3, values: { employeeId: '000002' } },
  ]);
});

test('ignores a byte order mark, and rejects bytes that are not UTF-8', async () => {
  expect(await read('\ufeffemployeeId', '000001')).toEqual([{ line: 2, values: { employeeId: '000001' } }]);
  const latin = Readable.from([Buffer.from('employeeId,firstName\n000001,Zoe\n000002,Ren\xe9\n', 'latin1')]);
  await expect(Array.fromAsync(readCsv(employees, latin, events))).rejects.toThrow(
    'Line 3 of the file is not UTF-8: save the file as UTF-8 and import it again.',
  );
});

test('rejects a row whose key an earlier row has, within a limited number of rows', async () => {
  const keys = ['1', '2', '1', '3', '', '', 'x', '4', '2', '4'];
  const text = ['department,employeeId', ...keys.map((key) => `Sales,${key === '' ? '' : key.padStart(6, '0')}`)].join(
    '\n',
  );
  const rows = readCsv(employees, Readable.from([Buffer.from(text)]), events);
  const bad: [number, string][] = [];
  const kept = await Array.fromAsync(onePerKey(employees, rows, (line, reason) => bad.push([line, reason]), 3));
  expect(bad).toEqual([
    [4, 'the key is that of line 2, and a key must be on one line only'],
    [11, 'the key is that of line 9, and a key must be on one line only'],
  ]);
  expect(kept.map(({ line }) => line)).toEqual([2, 3, 5, 6, 7, 8, 9, 10]);
});

test('rejects a header with a duplicate column', async () => {
  await expect(read('employeeId,age,firstName,age,employeeId', '000001,20,Ann,21,000001')).rejects.toThrow(
    /^The header has duplicate columns: age, employeeId\.$/,
  );
});

test.each(['constructor', 'toString', '__proto__'])('rejects a header with %s, which is not a field', async (name) => {
  await expect(read(`employeeId,${name}`, '000001,x')).rejects.toThrow(
    `The header has columns that are not fields of employees: ${name}.`,
  );
});

test.each([
  ...['=1+1', '+1', '-1', '@sum', '\tx', '\rx', "'=1+1", "''@x", "'", "'quoted'", "it's", "''"],
  ...[' = 1', 'a,b', 'a "b"', 'a\nb', 'a\r\nb', ' a ', '\ufeffa', 'true', '007', '[1]', 'Ünïcode 🚲'],
])('reads the text %j as the console exports it', async (firstName) => {
  const values = { employeeId: '000001', firstName, age: -3 };
  const file = `employeeId,firstName,age\r\n${toCsv(described(employees), ['employeeId', 'firstName', 'age'], [values])}`;
  expect(await read(file)).toMatchObject([{ values }]);
});

test.each(jsonValues)('reads the value %j of a Json column as the console exports it', async (address) => {
  const values = { employeeId: '000001', address };
  const file = `employeeId,address\r\n${toCsv(described(logins), ['employeeId', 'address'], [values])}`;
  expect(await Array.fromAsync(readCsv(logins, Readable.from([Buffer.from(file)]), events))).toMatchObject([
    { values },
  ]);
});

test('reads a cell of a Json column that is no JSON as text', async () => {
  const file = "address\n192.0.2.1\n'=1\n[1\n";
  const rows = await Array.fromAsync(readCsv(logins, Readable.from([Buffer.from(file)]), events));
  expect(rows.map(({ values }) => values.address)).toEqual(['192.0.2.1', '=1', '[1']);
});

test('reads a Boolean as a spreadsheet writes it', async () => {
  const file = 'succeeded\ntrue\nTRUE\nFalse\nyes\n';
  const rows = await Array.fromAsync(readCsv(logins, Readable.from([Buffer.from(file)]), events));
  expect(rows.map(({ values }) => values.succeeded)).toEqual([true, true, false, 'yes']);
});

test.each([
  ['a space before a quotation mark', '000001, "Ann"'],
  ['a text after a quoted value', '000001,"Ann"x'],
  ['a quotation mark within a value', '000001,An"n'],
  ['a comma in a value with a misplaced quotation mark', '000001, "Ann, jr"'],
])('rejects only the row with %s', async (_, row) => {
  const bad: number[] = [];
  const good: string[] = [];
  const seen = { onRow: () => void good.push('row'), onBad: (line: number) => void bad.push(line) };
  const text = ['employeeId,firstName', '000000,"a ""b"", c\nd"', row, '000002,Bob', '"000003","Cy"', ''].join('\r\n');
  const rows = await Array.fromAsync(readCsv(employees, Readable.from([Buffer.from(text)]), seen));
  expect(rows.map(({ values }) => values)).toEqual([
    { employeeId: '000000', firstName: 'a "b", c\nd' },
    { employeeId: '000002', firstName: 'Bob' },
    { employeeId: '000003', firstName: 'Cy' },
  ]);
  expect([good.length, bad]).toEqual([3, [4]]);
});

test('says which format is accepted instead of a JSON array', async () => {
  await expect(read('[', '{"employeeId":"000001"}', ']')).rejects.toThrow('one JSON object on each line');
  await expect(read('[{"employeeId":"000001"}]')).rejects.toThrow('one JSON object on each line');
});

test('rejects a row that is too large while it is read, and names its line', { tags: ['slow'] }, async () => {
  let chunks = 0;
  async function* input() {
    yield Buffer.from('address\n192.0.2.1\n"192.0.2.2\n');
    for (const chunk = Buffer.alloc(65_536, 'x\n'); chunks < 1_000; chunks += 1) yield chunk;
  }
  const limit = maxRowBytes(logins);
  await expect(Array.fromAsync(readCsv(logins, input(), events))).rejects.toThrow(
    new RegExp(`^Line \\d+: the row has more than ${limit} bytes. A quotation mark may be missing before this line.$`),
  );
  expect(chunks).toBeLessThan(2 * (limit / 65_536));
});

test('leaves a row to the API whose derived key cannot be computed', async () => {
  const shouting = {
    ...employees,
    derived: { department: ({ lastName }: Values) => (lastName as string).toUpperCase() },
  };
  const rows = [
    { line: 1, values: { employeeId: '000001' } },
    { line: 2, values: { employeeId: '000001', lastName: 'A' } },
  ];
  const all = Readable.from(rows);
  const kept = await Array.fromAsync(onePerKey(shouting, all, (_, reason) => expect.fail(reason)));
  expect(kept).toMatchObject(rows);
  expect(rows.map(({ values }) => readKeyField(shouting, 'department', values))).toEqual([undefined, 'A']);
});

test('counts equal rows without a whole key, and begins again after the most that it remembers', async () => {
  const row = (amount: number, claimId?: string) => ({
    employeeId: '000001',
    at: '2026-11-20T08:00:00Z',
    amount,
    claimId,
  });
  const given = [row(1), row(2), row(1), row(3, 'a0000000-0000-4000-8000-000000000000'), row(1), row(3), row(1)];
  const rows = Readable.from(given.map((values, index) => ({ line: index + 1, values })));
  const copies = await Array.fromAsync(
    onePerKey(expenses, rows, () => {}, 2),
    ({ copy }) => copy,
  );
  expect(copies).toEqual(['0-0', '0-0', '0-1', undefined, '0-2', '1-0', '1-0']);
});

test('counts a row that is deep, which the import rejects later', async () => {
  const values = { description: JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`) };
  const rows = Readable.from([{ line: 1, values }]);
  expect(
    await Array.fromAsync(
      onePerKey(expenses, rows, () => {}),
      ({ copy }) => copy,
    ),
  ).toEqual(['0-0']);
});
