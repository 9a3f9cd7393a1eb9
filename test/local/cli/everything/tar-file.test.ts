// @module-tag long

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  canonicalText,
  FILES,
  filesOf,
  fromLines,
  parseMemberName,
  toLines,
} from '../../../../local/cli/everything/manifest.ts';
import { type Member, readTar, writeTar } from '../../../../local/cli/everything/tar-file.ts';
import { anyText } from '../../../any-text.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-tar-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const { signal } = new AbortController();
async function* inOrder(members: readonly Member[]): AsyncGenerator<Member> {
  yield* members;
}

const value = fc.oneof(
  anyText({ maxLength: 200 }),
  fc.jsonValue({ maxDepth: 4 }),
  fc.constantFrom(2 ** 53, -(2 ** 53), 5e-324, 1e308, '', null, '$files', '{"sealed":"v1"}', 'a\u2028b\rc\nd'),
);
const row = fc.dictionary(fc.constantFrom('id', 'name', 'toJSON', 'constructor', 'a.b', 'é'), value);
const member = fc.oneof(
  fc.record({
    name: fc.nat(999).map((number) => `rows/formeremployees/reviews/${number}.ndjson`),
    bytes: fc.array(row, { maxLength: 20 }).map((rows) => fromLines(rows.map((one) => JSON.stringify(one)))),
  }),
  fc.record({
    name: fc
      .tuple(fc.stringMatching(/^[a-z]{1,60}$/), fc.nat(99_999_999))
      .map(([kind, number]) => `files/${kind}/${kind}/${number}`),
    bytes: fc.oneof(
      fc.uint8Array({ maxLength: 2_000 }),
      fc.constantFrom(0, 511, 512, 513, 1_024).map((length) => new Uint8Array(length)),
    ),
  }),
);

test.each(['all.tar', 'all.tar.gz'])('%s has every member as it was written', async (name) => {
  const file = join(folder, name);
  await fc.assert(
    fc.asyncProperty(fc.noShrink(fc.array(member, { maxLength: 12 })), async (members) => {
      await writeTar(file, inOrder(members), { signal, isZipped: name.endsWith('.gz') });
      const read = await Array.fromAsync(readTar(file));
      expect(read.map((one) => ({ name: one.name, bytes: Buffer.from(one.bytes) }))).toEqual(
        members.map((one) => ({ name: one.name, bytes: Buffer.from(one.bytes) })),
      );
    }),
    { numRuns: 20 },
  );
});

test('rows have the same values after they were lines, whatever they are', () => {
  fc.assert(
    fc.property(fc.array(row, { minLength: 1 }), (rows) => {
      const lines = toLines(fromLines(rows.map((one) => JSON.stringify(one))));
      const read = lines.map((line) => JSON.parse(line));
      expect(read.map(canonicalText)).toEqual(rows.map(canonicalText));
      // The order of the members is that of whoever has written them.
      expect(canonicalText(Object.fromEntries(Object.entries(rows[0] ?? {}).reverse()))).toBe(canonicalText(rows[0]));
    }),
  );
});

test('two rows with another value have another text, also within a list or an object', () => {
  fc.assert(
    fc.property(row, row, (one, other) => {
      const areEqual = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
      expect(canonicalText(one) === canonicalText(other)).toBe(areEqual);
    }),
  );
  expect(canonicalText({ a: null })).not.toBe(canonicalText({}));
  expect(canonicalText({ a: [1, 2] })).not.toBe(canonicalText({ a: [2, 1] }));
  expect(canonicalText({ a: '' })).not.toBe(canonicalText({}));
});

/** Another way to sort the members. */
function sorted(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given;
  if (Array.isArray(given)) return given.map(sorted);
  return Object.keys(given)
    .sort()
    .map((name) => [name, sorted((given as Record<string, unknown>)[name])]);
}

test('a text of a row that spells a reference to a file is no reference', () => {
  const reference = { file: 'files/employees/1', type: 'image/png', bytes: 1, sha256: 'x' };
  expect(filesOf({ free: reference, name: JSON.stringify({ [FILES]: reference }) })).toEqual({});
  expect(filesOf({ [FILES]: { photo: reference } })).toEqual({ photo: reference });
});

test('members of other folders have no rows', () => {
  expect(parseMemberName('rows/formeremployees/reviews/000001.ndjson')).toEqual({ kind: 'formeremployees/reviews' });
  expect(parseMemberName('period-archives/logins/2026-09-20/1.ndjson.gz/000001.ndjson')).toEqual({
    periodArchive: 'logins/2026-09-20/1.ndjson.gz',
  });
  for (const name of ['files/employees/00000001', 'manifest.json', 'rows/1.ndjson'])
    expect(parseMemberName(name), name).toBeUndefined();
});

test('a writer that fails, or is interrupted, leaves no promise behind', async () => {
  async function* failing(): AsyncGenerator<Member> {
    yield { name: 'files/a/1', bytes: new Uint8Array(100_000) };
    throw new Error('The API is away.');
  }
  const file = join(folder, 'failed.tar');
  await expect(writeTar(file, failing(), { signal, isZipped: true })).rejects.toThrow('The API is away.');
  await expect(writeTar(file, inOrder([]), { signal: AbortSignal.abort(), isZipped: false })).rejects.toThrow(/abort/i);
  const nowhere = join(folder, 'none', 'x.tar');
  const large = { name: 'files/a/1', bytes: new Uint8Array(20_000_000) };
  await expect(writeTar(nowhere, inOrder([large, large]), { signal, isZipped: false })).rejects.toThrow(/ENOENT/);
  await expect(Array.fromAsync(readTar(join(folder, 'nowhere.tar')))).rejects.toThrow(/cannot be read: ENOENT/);
});
