import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readCsv } from '../../../local/cli/csv-rows.ts';
import { toCsv } from '../../../web/src/transfer/csv.ts';
import { employees } from '../../fixtures/model.ts';

const events = { onRow: () => undefined, onBad: () => undefined };
const read = (...lines: string[]) => Array.fromAsync(readCsv(employees, Readable.from([lines.join('\n')]), events));

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
  const file = `employeeId,firstName,age\r\n${toCsv(['employeeId', 'firstName', 'age'], [values])}`;
  expect(await read(file)).toMatchObject([{ values }]);
});
