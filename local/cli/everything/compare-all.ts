import { pMapIterable } from 'p-map';
import { z } from 'zod';
import { omit, type Values } from '../../../lib/base/values.ts';
import { Attachment } from '../../../lib/define/declaration/attachment.ts';
import { startProgress } from '../progress.ts';
import { ask, formatProblem, readNextPage, readProblem, type Target } from '../target.ts';
import { toSparse } from './export-all.ts';
import {
  computedFields,
  expectRow,
  formatRow,
  incomparableFields,
  isPast,
  type Kind,
  rowPath,
  scanPath,
  upgradeRow,
} from './kinds.ts';
import { canonicalText, FILES, filesOf, type Manifest, parseMemberName, sha256, toLines } from './manifest.ts';
import { bucketOf, Sums } from './sums.ts';
import { readTar } from './tar-file.ts';

/**
 * Compares what is stored with the file. The two may be in different orders, so each side is added up by buckets of keys, in constant
 * memory. Only the rows of buckets that differ are then read again, and compared one by one.
 */

const PAGE = 200;
const FILES_CONCURRENCY = 8;
const MAX_PRINTED = 20;

interface Comparison {
  readonly target: Target;
  readonly file: string;
  readonly manifest: Manifest;
  readonly kinds: ReadonlyMap<string, Kind>;
}

/** Prints each difference, the first ones of each kind, and returns their number. */
export async function compareAll(comparison: Comparison): Promise<number> {
  const { target, manifest, kinds } = comparison;
  const compared = [...kinds.values()].filter(({ name }) => manifest.kinds[name]);
  let count = 0;
  const progress = startProgress({ rows: () => count, describe: () => 'compared' });
  try {
    const expected = new Map(compared.map(({ name }) => [name, new Sums()]));
    for await (const { kind, row } of readExpected(comparison)) expected.get(kind.name)?.add(keyOf(kind, row), row);
    const differing = new Map<string, ReadonlySet<number>>();
    for (const kind of compared) {
      const actual = new Sums();
      for await (const row of readActual(target, kind, manifest)) {
        actual.add(keyOf(kind, row), row);
        count += 1;
      }
      const buckets = expected.get(kind.name)?.differences(actual);
      if (buckets && buckets.size > 0) differing.set(kind.name, buckets);
    }
    const differences = await listDifferences(comparison, differing);
    const archives = await compareArchives(comparison);
    progress.stop();
    for (const one of [...differences.printed, ...archives]) console.error(one);
    const all = differences.count + archives.length;
    console.log(
      all === 0
        ? `Compared ${count} rows with the file: no difference.`
        : `Compared ${count} rows with the file: ${all} differences.`,
    );
    return all;
  } finally {
    progress.stop();
  }
}

function keyOf({ entity }: Kind, row: Values): string {
  return JSON.stringify(entity.keyFields.map((field) => row[field]));
}

interface Differences {
  readonly count: number;
  readonly printed: readonly string[];
}

async function listDifferences(
  comparison: Comparison,
  differing: ReadonlyMap<string, ReadonlySet<number>>,
): Promise<Differences> {
  if (differing.size === 0) return { count: 0, printed: [] };
  const { target, kinds, manifest } = comparison;
  const isIn = (kind: Kind, row: Values) => differing.get(kind.name)?.has(bucketOf(keyOf(kind, row))) ?? false;
  const expected = new Map([...differing.keys()].map((name) => [name, new Map<string, Values>()]));
  for await (const { kind, row } of readExpected(comparison))
    if (isIn(kind, row)) expected.get(kind.name)?.set(keyOf(kind, row), row);
  let count = 0;
  const printed: string[] = [];
  for (const [name, rows] of expected) {
    const kind = kinds.get(name);
    if (!kind) continue;
    const found: string[] = [];
    const note = (text: string) => {
      count += 1;
      if (found.length < MAX_PRINTED) found.push(text);
    };
    const before = count;
    for await (const row of readActual(target, kind, manifest)) {
      if (!isIn(kind, row)) continue;
      const key = keyOf(kind, row);
      const wanted = rows.get(key);
      rows.delete(key);
      if (!wanted) note(`${formatRow(kind, row)} is stored, and not in the file.`);
      else {
        const fields = [...new Set([...Object.keys(wanted), ...Object.keys(row)])].filter(
          (field) => canonicalText(wanted[field]) !== canonicalText(row[field]),
        );
        if (fields.length > 0) note(`${formatRow(kind, row)} differs in ${fields.join(', ')}.`);
      }
    }
    for (const row of rows.values()) note(`${formatRow(kind, row)} is in the file, and not stored.`);
    printed.push(...found);
    const more = count - before - found.length;
    if (more > 0) printed.push(`And ${more} more of ${name}.`);
  }
  return { count, printed };
}

async function* readExpected({ file, manifest, kinds }: Comparison): AsyncGenerator<{ kind: Kind; row: Values }> {
  for await (const { name, bytes } of readTar(file)) {
    const member = parseMemberName(name);
    const kind = member && 'kind' in member ? kinds.get(member.kind) : undefined;
    const exported = kind && manifest.kinds[kind.name];
    if (!kind || !exported) continue;
    const left = incomparableFields(kind, exported.fields);
    for (const line of toLines(bytes)) {
      const row: Values = JSON.parse(line);
      if (isPast(kind.entity, row)) continue;
      const expected = expectRow(kind, upgradeOrAsIs(kind, row, exported.version));
      const files = Object.entries(filesOf(expected)).map(([field, { file: _, ...rest }]) => [field, rest]);
      yield { kind, row: omit({ ...expected, [FILES]: Object.fromEntries(files) }, left) };
    }
  }
}

function upgradeOrAsIs(kind: Kind, row: Values, version: number): Values {
  try {
    return upgradeRow(kind, row, version);
  } catch {
    return row;
  }
}

const Page = z.object({ items: z.array(z.record(z.string(), z.unknown())) });

async function* readActual(target: Target, kind: Kind, manifest: Manifest): AsyncGenerator<Values> {
  const left = incomparableFields(kind, manifest.kinds[kind.name]?.fields ?? []);
  for (let next: string | undefined = scanPath(target.root, kind, PAGE); next; ) {
    const response: Response = await ask(target, next);
    if (!response.ok)
      throw new Error(
        `${next.split('?')[0]} returned ${response.status}: ${formatProblem(await readProblem(response))}`,
      );
    const { items } = Page.parse(await response.json());
    const rows = items.filter((row) => !isPast(kind.entity, row));
    for await (const row of pMapIterable(rows, (values) => toComparable(target, kind, values), {
      concurrency: FILES_CONCURRENCY,
    }))
      yield omit(row, left);
    next = readNextPage(response);
  }
}

async function toComparable(target: Target, kind: Kind, values: Values): Promise<Values> {
  const { entity } = kind;
  if (entity.series) return { ...toSparse(entity.series.first, values), [FILES]: {} };
  const stored = Object.keys(entity.attachments).filter((field) => Attachment.safeParse(values[field]).success);
  const files = stored.map(async (field) => {
    const { type, bytes, sha256: hash } = Attachment.parse(values[field]);
    return [field, { type, bytes, sha256: hash ? toHex(hash) : await hashFile(target, kind, values, field) }];
  });
  return {
    ...omit(values, [...stored, ...computedFields(kind)]),
    [FILES]: Object.fromEntries(await Promise.all(files)),
  };
}

function toHex(hash: string): string {
  return Buffer.from(hash, 'base64url').toString('hex');
}

/** Of a file that was uploaded to storage directly, the API knows another hash. */
async function hashFile(target: Target, kind: Kind, row: Values, field: string): Promise<string> {
  const response = await ask(target, `${rowPath(target.root, kind, row)}/${field}`);
  return response.ok ? sha256(await response.bytes()) : `status ${response.status}`;
}

const Archives = z.object({
  items: z.array(z.object({ name: z.string(), rows: z.int(), hash: z.string(), state: z.string() })),
});

/** Archives of periods that were never exported may be there: the API adds them. */
async function compareArchives({ target, manifest, kinds }: Comparison): Promise<string[]> {
  const names = Object.keys(manifest.periodArchives).filter(
    (name) => kinds.get(name.split('/')[0] ?? '')?.entity.period?.archiveTo,
  );
  if (names.length === 0) return [];
  const response = await ask(target, `${target.root}/operations/period-archives`);
  if (!response.ok)
    throw new Error(`The archives of periods cannot be read: ${formatProblem(await readProblem(response))}`);
  const { items } = Archives.parse(await response.json());
  return names.flatMap((name) => {
    const wanted = manifest.periodArchives[name];
    const stored = items.find((one) => one.name === name);
    if (!stored) return [`The archive ${name} is in the file, and not stored.`];
    const isSame = stored.rows === wanted?.rows && stored.hash === wanted.hash && stored.state === 'verified';
    return isSame ? [] : [`The archive ${name} differs: ${stored.rows} rows, ${stored.state}.`];
  });
}
