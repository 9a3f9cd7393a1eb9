// @module-tag long

import Papa from 'papaparse';
import { describe, expect, test } from 'vitest';
import type { EntityClient } from '../../web/src/api/entity-client.ts';
import { toModel } from '../../web/src/api/model.ts';
import { countUnreadable, toCsv } from '../../web/src/transfer/csv.ts';
import { importRows } from '../../web/src/transfer/import-rows.ts';
import { type FileRow, readRows } from '../../web/src/transfer/read-rows.ts';
import { jsonValues } from '../fixtures/json-values.ts';
import { model as declared } from '../fixtures/model.ts';
import { httpDoor } from '../kit/http.ts';

const model = toModel(httpDoor.describeModel(declared));
const CHUNK_BYTES = 256 * 1_024;
const PIECE_BYTES = 65_536;

const employees = entityOf('employees');
const logins = entityOf('logins');

function entityOf(name: string) {
  const entity = model.entities.get(name);
  if (!entity) throw new Error(name);
  return entity;
}

async function read(entity: string, text: string): Promise<FileRow[]> {
  const bytes = new TextEncoder().encode(text);
  // A browser streams a file in pieces. Node returns it whole.
  const pieces = Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, n) =>
    bytes.subarray(n * PIECE_BYTES, (n + 1) * PIECE_BYTES),
  );
  const file = Object.assign(new File([bytes], 'rows.csv'), { stream: () => ReadableStream.from(pieces) }) as File;
  const found: FileRow[] = [];
  for await (const { rows } of readRows(entityOf(entity), file)) found.push(...rows);
  return found;
}

describe('reading a CSV file of several chunks', () => {
  const HEADER = 'department,employeeId,firstName,age';
  const row = (n: number) => `Import,${String(n).padStart(6, '0')},"Ann, ${n}",30`;
  const rows = Array.from({ length: 30_000 }, (_, n) => row(n));
  const fileWith = (damaged: Readonly<Record<number, string>>) => {
    const text = [HEADER, ...rows.map((line, n) => damaged[n] ?? line)].join('\r\n');
    expect(Buffer.byteLength(text)).toBeGreaterThan(2 * CHUNK_BYTES);
    return `${text}\r\n`;
  };
  const reasonsOf = (found: readonly FileRow[]) =>
    found.flatMap(({ line, reason, values }) => (reason === undefined ? [] : [[line, reason, values]]));

  test('rejects rows with too few or too many cells, wherever they are', async () => {
    const found = await read(
      'employees',
      fileWith({ 3: 'Import,3', 25000: 'Import,25000', 29999: `${row(29_999)},more` }),
    );
    expect(found).toHaveLength(30_000);
    expect(reasonsOf(found)).toEqual([
      [5, 'The row has 2 cells; the header has 4.', undefined],
      [25_002, 'The row has 2 cells; the header has 4.', undefined],
      [30_001, 'The row has 5 cells; the header has 4.', undefined],
    ]);
  });

  test('rejects exactly the rows with malformed quotes, also after empty lines', async () => {
    const bad = (n: number) => `Import,${n},"Ann" Lee",30`;
    const found = await read('employees', fileWith({ 0: '', 1: bad(1), 25000: bad(25_000) }));
    expect(found).toHaveLength(29_999);
    expect(reasonsOf(found).map(([line]) => line)).toEqual([3, 25_002]);
  });

  test('keeps characters of several bytes, wherever a chunk ends', async () => {
    const found = await read('employees', `${HEADER}\n${'Import,1,ÅÆØ€😀,30\n'.repeat(30_000)}`);
    expect(new Set(found.map(({ values }) => values?.firstName))).toEqual(new Set(['ÅÆØ€😀']));
  });

  test('rejects bytes that are not UTF-8', async () => {
    const latin = new File([Buffer.from(`${HEADER}\nImport,1,Ren\xe9,30\n`, 'latin1')], 'rows.csv');
    await expect(Array.fromAsync(readRows(employees, latin))).rejects.toThrow(
      'The file is not UTF-8: save it as UTF-8',
    );
  });

  test('rejects a header with an unknown or a repeated column', async () => {
    await expect(read('employees', 'department,colour\n')).rejects.toThrow('not fields of employees: colour.');
    await expect(read('employees', 'department,age,age\n')).rejects.toThrow('The header repeats columns: age.');
  });
});

describe('a CSV file of the export', () => {
  const TEXTS = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '=a\nb', "'=1+1", "''@x", "'tis", 'plain', 'a,"b"'];

  test('has no cell that a spreadsheet executes', () => {
    const { data } = Papa.parse<string[]>(
      toCsv(
        employees,
        ['firstName'],
        TEXTS.map((firstName) => ({ firstName })),
      ),
    );
    expect(data.flat().filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
  });

  test('is read back by the import without a change', async () => {
    const text = toCsv(
      employees,
      ['firstName', 'age'],
      TEXTS.map((firstName) => ({ firstName, age: -5 })),
    );
    expect(text).toContain(',-5');
    const found = await read('employees', `firstName,age\r\n${text}`);
    expect(found.map(({ values }) => values)).toEqual(TEXTS.map((firstName) => ({ firstName, age: -5 })));
  });

  test('has the type of each value of a Json column', async () => {
    const values = jsonValues.map((address) => ({ address, succeeded: true }));
    const found = await read('logins', `address,succeeded\r\n${toCsv(logins, ['address', 'succeeded'], values)}`);
    expect(found.map((row) => row.values)).toEqual(values);
  });

  test('counts the values that cannot be read', () => {
    expect(countUnreadable(['a', 'b'], [{ a: null, b: null }, { a: 1 }, { a: null, c: null }])).toBe(3);
  });
});

test('reads a cell of a Json column that is no JSON as text', async () => {
  const found = await read('logins', "address\n192.0.2.1\n'=1\n[1\n");
  expect(found.map(({ values }) => values?.address)).toEqual(['192.0.2.1', '=1', '[1']);
});

test('leaves numbers to the API that a number cannot hold, or that are not decimal', async () => {
  const found = await read('employees', 'age\n9007199254740993\n0x10\nInfinity\n 30 \n');
  expect(found.map(({ values }) => values?.age)).toEqual(['9007199254740993', '0x10', 'Infinity', 30]);
});

test('an import repeats a batch without a response under its key, and rows that are busy under another one', async () => {
  const sent: (readonly [rows: number, key: string | undefined])[] = [];
  const busy = { outcome: 'failed', error: { status: 503 } };
  const replies = [undefined, [{ outcome: 'created' }, busy], [{ outcome: 'created' }]];
  const batch: EntityClient['batch'] = async (actions, { idempotencyKey } = {}) => {
    const reply = replies[sent.push([actions.length, idempotencyKey]) - 1];
    if (reply) return reply;
    throw Object.assign(new Error('lost'), { code: 'network', status: 0 });
  };
  async function* chunks() {
    yield { rows: [1, 2].map((line) => ({ line, values: { employeeId: '000001', succeeded: true } })), share: 1 };
  }
  const options = { client: { batch }, entity: logins, mode: 'put', onProgress: () => {}, pauseMs: 0 } as const;
  const { written, rejected } = await importRows(chunks() as never, {
    ...options,
    signal: new AbortController().signal,
  });
  expect([written, rejected]).toEqual([2, []]);
  const [[, first] = [], [, second] = [], [, third] = []] = sent;
  expect(sent.map(([rows]) => rows)).toEqual([2, 2, 1]);
  expect(first).toMatch(/^[\w-]+$/);
  expect([second === first, third === first]).toEqual([true, false]);
});
