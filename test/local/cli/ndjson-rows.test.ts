import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readNdjson } from '../../../local/cli/ndjson-rows.ts';
import { employees } from '../../fixtures/model.ts';

test('reads one row per line, whatever the chunks of the file', async () => {
  const bytes = Buffer.from('{"firstName":"Zoë"}\r\n\n[]\n{"firstName":"A\u2028B"}\n{"firstName":"C"}');
  const chunks = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
  const bad: number[] = [];
  const events = { onRow: () => undefined, onBad: (line: number) => bad.push(line) };
  const input = Readable.from(chunks, { objectMode: false });
  expect(await Array.fromAsync(readNdjson(employees, input, events))).toEqual([
    { line: 1, values: { firstName: 'Zoë' } },
    { line: 4, values: { firstName: 'A\u2028B' } },
    { line: 5, values: { firstName: 'C' } },
  ]);
  expect(bad).toEqual([3]);
});

const events = { onRow: () => undefined, onBad: () => undefined };

test('reads a file with a byte order mark', async () => {
  const input = Readable.from([Buffer.from('\ufeff{"firstName":"Zoë"}')]);
  expect(await Array.fromAsync(readNdjson(employees, input, events))).toEqual([
    { line: 1, values: { firstName: 'Zoë' } },
  ]);
});

test.each([
  ['of another encoding', 'Ren\xe9"}\n{}', 3],
  ['at the end of a chunk', '"}\n{"firstName":"\xe9', 4],
  ['that are cut off', '\xe2\x82', 3],
])('rejects bytes %s, and names the line', async (_, bytes, line) => {
  const chunks = ['{"firstName":"Zo\xc3', '\xab"}\n\n{"firstName":"', bytes].map((text) => Buffer.from(text, 'latin1'));
  await expect(Array.fromAsync(readNdjson(employees, Readable.from(chunks), events))).rejects.toThrow(
    new RegExp(`^Line ${line} of the file is not UTF-8: save`),
  );
});
