import { expect, test } from 'vitest';
import { groupIntoBatches } from '../../../local/cli/import-batches.ts';
import { employees } from '../../fixtures/model.ts';

/** Groups rows of a department each, and returns the batches and the most rows that waited. */
async function group(count: number, values: object, files: boolean) {
  let [read, sent, most] = [0, 0, 0];
  async function* rows() {
    for (; read < count; read += 1) {
      most = Math.max(most, read - sent);
      const content = new Blob([]);
      yield {
        line: read + 1,
        values: { department: `D${read}`, employeeId: '000001', ...values },
        files: files ? [{ field: 'photo', name: 'photo', content }] : [],
      };
    }
  }
  const lines: number[] = [];
  for await (const batch of groupIntoBatches(employees, rows())) {
    sent += batch.length;
    lines.push(...batch.map(({ line }) => line));
  }
  expect(lines).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  return most;
}

test.each([
  ['small rows', 6_000, {}, false, 5_000],
  ['large rows', 120, { jobTitle: 'x'.repeat(1_000_000) }, false, 49],
  ['rows with files', 120, { photo: { base64: 'A'.repeat(1_000_000) } }, true, 49],
])(
  'keeps a bounded number of %s waiting for others of their partition',
  { tags: ['slow'] },
  async (_, count, values, files, most) => {
    expect(await group(count, values, files)).toBe(most);
  },
);
