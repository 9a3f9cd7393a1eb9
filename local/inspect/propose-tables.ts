import { findKinds, type RowGroup } from './find-kinds.ts';
import { type Followed, findHandMadeIndexes, type HandMadeIndex } from './find-links.ts';
import { measurePartitions, type PartitionSizes } from './partition-sizes.ts';
import { type ProposedKind, proposeKind } from './propose-kind.ts';
import type { Sample } from './sample-table.ts';

/** What is proposed for a table. */
export interface ProposedTable {
  readonly table: string;
  readonly sample: Sample;
  readonly sizes: PartitionSizes;
  readonly kinds: readonly ProposedKind[];
}

export interface Proposal {
  readonly tables: readonly ProposedTable[];
  readonly indexes: readonly HandMadeIndex[];
}

/** Proposes declarations for the rows of several tables. */
export function proposeTables(samples: readonly Sample[]): ProposedTable[] {
  const taken = new Set<string>();
  return samples.map((sample): ProposedTable => {
    const groups = findKinds(sample.rows);
    const ofPartition = new Map<string, string>();
    const named = groups.map((group) => ({ group, kind: nameKind(group, { sample, groups, taken }) }));
    // The row with a constant key is the parent, whose name its partition has.
    const inOrder = named.toSorted((one, other) => Number(isConstant(other.group)) - Number(isConstant(one.group)));
    const proposed = new Map(
      inOrder.map(({ group, kind }) => {
        const one = singular(groups.length === 1 ? sample.table : kind);
        return [group, proposeKind(sample.table, group, { kind, one, ofPartition })];
      }),
    );
    const kinds = [...proposed.values()];
    return { table: sample.table, sample, sizes: measurePartitions(sample.rows), kinds };
  });
}

/** Adds the indexes that another program keeps by hand. */
export function addIndexes(tables: readonly ProposedTable[], followed: readonly Followed[] = []): Proposal {
  const usable = tables.flatMap(({ kinds }) => kinds).filter(({ problem }) => problem === undefined);
  const partial = new Set(tables.filter(({ sample }) => !sample.isWhole).map(({ table }) => table));
  return { tables, indexes: findHandMadeIndexes(usable, { followed, partial }) };
}

function isConstant({ rows, rowHead }: RowGroup): boolean {
  return rows.every(({ row }) => row === rowHead);
}

interface Naming {
  readonly sample: Sample;
  readonly groups: readonly RowGroup[];
  readonly taken: Set<string>;
}

/** A name of lower-case letters and digits that no other kind has. */
function nameKind({ where, partitionHead, rowHead }: RowGroup, { sample, groups, taken }: Naming): string {
  const words = [partitionHead, rowHead].map((head) => head.toLowerCase().replace(/[^a-z0-9]/g, ''));
  const [ofPartition = '', ofRow = ''] = words;
  const ofWhere = where && typeof where.value === 'string' ? where.value.toLowerCase().replace(/[^a-z0-9]/g, '') : '';
  const table = sample.table.toLowerCase();
  const candidates =
    groups.length === 1
      ? [table]
      : [ofWhere, ofRow, ofPartition + ofRow, ofPartition, table]
          .filter((word) => /^[a-z].{2,50}$/.test(word))
          .map((word) => (word === table ? word : plural(word)));
  const name = [...candidates, ...candidates.map((one) => `${table}${one}`)].find((one) => !taken.has(one));
  let free = name ?? table;
  for (let number = 2; taken.has(free) || RESERVED_WORDS.has(free); number += 1) free = `${name ?? table}${number}`;
  taken.add(free);
  return free;
}

/** A declaration is exported under the name of its kind. */
const RESERVED_WORDS = new Set([
  'class',
  'default',
  'delete',
  'export',
  'import',
  'model',
  'new',
  'static',
  'this',
  'void',
]);

function singular(word: string): string {
  return word.endsWith('ies') ? `${word.slice(0, -3)}y` : word.replace(/(?<=[^s])s$/, '');
}

function plural(word: string): string {
  if (word.endsWith('s')) return word;
  if (/(x|ch|sh)$/.test(word)) return `${word}es`;
  return /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`;
}
