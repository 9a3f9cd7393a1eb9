import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { maxRowBytes } from '../../../local/cli/max-row-bytes.ts';
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

test('says which format is accepted instead of a JSON array', async () => {
  const input = Readable.from([Buffer.from('\n[\n{"firstName":"Zoë"}\n]\n')]);
  await expect(Array.fromAsync(readNdjson(employees, input, events))).rejects.toThrow('one JSON object on each line');
});

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

test('reports a line that is too long while it is read, keeps nothing of it, and reads the next one', async () => {
  const bad: string[] = [];
  const read: string[] = [];
  // A compressed file of half a megabyte may have such a line.
  async function* input() {
    yield Buffer.from('{"firstName":"Ann"}\n{"firstName":"');
    const chunk = Buffer.alloc(65_536, 'x');
    for (let bytes = 0; bytes < 100_000_000; bytes += chunk.length) {
      yield chunk;
      read.push(`${bad.length}`);
    }
    yield Buffer.from('"}\n{"firstName":"Bo"}');
  }
  const events = { onRow: () => undefined, onBad: (line: number, reason: string) => bad.push(`${line}: ${reason}`) };
  expect(await Array.fromAsync(readNdjson(employees, input(), events))).toEqual([
    { line: 1, values: { firstName: 'Ann' } },
    { line: 3, values: { firstName: 'Bo' } },
  ]);
  const limit = maxRowBytes(employees);
  expect(bad).toEqual([`2: the line has more than ${limit} bytes`]);
  expect(limit).toBeLessThan(10_000_000);
  // Reported with the chunk that passes the limit.
  expect(read.indexOf('1')).toBe(Math.floor(limit / 65_536));
});

test('accepts a row with the largest body and files that the API accepts, also in ASCII', () => {
  const bodies = maxRowBytes({ ...employees, attachments: {} });
  expect(bodies).toBe(3 * 1_048_576);
  const files = Object.values(employees.attachments).reduce((sum, { maxBytes }) => sum + maxBytes, 0);
  expect(maxRowBytes(employees)).toBeGreaterThanOrEqual(
    bodies + Buffer.from(new Uint8Array(files)).toString('base64').length - 4,
  );
});
