// @module-tag long

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { hashOfRows, rowsAfter } from './replay.ts';
import { type ExistingTable, existingRows } from './tables.ts';

const KINDS: Readonly<Record<string, RegExp>> = {
  Customer: /"RowKey":"customer"/,
  Order: /"RowKey":"order-/,
  OrderLine: /"RowKey":"line-/,
  Profile: /"RowKey":"profile"/,
  Login: /"RowKey":"login_/,
  Claim: /"RowKey":"claim_/,
  UserIndex: /"RowKey":"index"/,
};

test('the classes of .NET read every row of the dumps as it is', () => {
  const printed = readFileSync(new URL('data/read-back.ndjson', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');
  expect(printed).toHaveLength(10);
  for (const line of printed) {
    const { table, kind, rows, sha256 } = JSON.parse(line) as Record<string, string>;
    const ofKind = existingRows(table as ExistingTable).filter((row) => KINDS[String(kind)]?.test(row) ?? true);
    expect({ kind, rows: ofKind.length, sha256: hashOfRows(ofKind) }).toEqual({ kind, rows, sha256 });
  }
});

const changed = (op: string, status: number, row: string) =>
  `{"at":"2026-01-02T03:04:05.0000000+00:00","op":"${op}","status":${status},"etag":null,"row":{"PartitionKey":"C-1","RowKey":${row}}}`;

test('a log of changes gives the rows that it leaves', () => {
  const rows = [
    '{"PartitionKey":"C-1","RowKey":"customer","Name":"Ann","Discount":3.0}',
    '{"PartitionKey":"C-1","RowKey":"order-1","TotalCents@odata.type":"Edm.Int64","TotalCents":"1"}',
    '{"PartitionKey":"C-1","RowKey":"order-2","Note":"old","ItemCount":2}',
  ];
  const log = [
    changed('merge', 204, '"customer","Discount":4.0,"Tier":"Gold"'),
    changed('replace', 204, '"order-2","ItemCount":1'),
    changed('replace', 412, '"order-2","ItemCount":9'),
    changed('delete', 204, '"order-1"'),
    changed('insert', 204, '"order-3","ItemCount":7'),
  ];
  expect([...rowsAfter(rows, log)]).toEqual([
    ['C-1/customer', '{"Discount":4.0,"Name":"Ann","PartitionKey":"C-1","RowKey":"customer","Tier":"Gold"}'],
    ['C-1/order-2', '{"ItemCount":1,"PartitionKey":"C-1","RowKey":"order-2"}'],
    ['C-1/order-3', '{"ItemCount":7,"PartitionKey":"C-1","RowKey":"order-3"}'],
  ]);
  expect(() => rowsAfter(rows, [changed('delete', 0, '"order-1"')])).toThrow('The outcome is unknown');
});
