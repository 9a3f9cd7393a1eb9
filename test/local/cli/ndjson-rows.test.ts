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
