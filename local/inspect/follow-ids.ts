import { buildKey, compileTemplate, parseKey } from '../../lib/define/keys/key-template.ts';
import { type Address, type Row, readRange } from '../../lib/storage/rows.ts';
import type { Storage } from '../../lib/storage/storage.ts';
import { type Followed, readValues, toIds } from './find-links.ts';
import { formOf } from './key-shape.ts';
import type { ProposedKind } from './propose-kind.ts';
import type { ProposedTable } from './propose-tables.ts';

/** Rows that are an index have few properties. */
const MAX_OWN = 3;
const ROWS = 30;
/** If none of so many ids exists, the field has other values. */
const FIRST = 3;
const LEAST_FOUND = 0.5;

/** A field whose values may be the ids of rows. */
interface Candidate {
  readonly index: ProposedKind;
  readonly target: ProposedKind;
  readonly addresses: readonly { readonly row: Row; readonly address: Address }[];
  readonly found: Row[];
}

/**
 * Reads the rows to which others may lead, each by its key: samples of two large tables hardly have a row and the row with its id. `reads` is
 * the most of them in each table. All fields that lead to rows get the same part of it: ids, such as numbers, may also be those of another table.
 */
export async function followIds(
  tables: readonly ProposedTable[],
  reads: number,
  find: (at: Address) => Promise<Row | undefined>,
): Promise<Followed[]> {
  const kinds = tables.flatMap((each) => each.kinds).filter(({ problem }) => problem === undefined);
  const partial = tables.filter(({ sample }) => !sample.isWhole).map(({ table }) => table);
  const followed: Followed[] = [];
  for (const table of partial) {
    const targets = kinds.filter((kind) => kind.table === table && kind.keyFields.length === 1);
    const candidates = targets.flatMap((target) => candidatesFor(target, kinds));
    let left = reads;
    const read = async ({ addresses, found }: Candidate, from: number, to: number) => {
      for (const { address } of addresses.slice(from, Math.min(to, from + left))) {
        left -= 1;
        found.push(...[(await find(address)) ?? []].flat());
      }
    };
    for (const candidate of candidates) await read(candidate, 0, FIRST);
    const likely = candidates.filter(({ found }) => found.length > 0);
    const length = Math.min(ROWS, FIRST + Math.floor(left / likely.length));
    for (const candidate of likely) {
      await read(candidate, FIRST, length);
      const rows = candidate.addresses.slice(0, length).map(({ row }) => row);
      if (candidate.found.length >= Math.max(FIRST, rows.length * LEAST_FOUND)) followed.push({ ...candidate, rows });
    }
  }
  return followed;
}

function candidatesFor(target: ProposedKind, kinds: readonly ProposedKind[]): Candidate[] {
  return kinds.flatMap((index) => {
    const own = index.fields.length - index.keyFields.length;
    const isChild = index.table === target.table && index.partition === target.partition;
    if (index === target || isChild || own > MAX_OWN) return [];
    const step = Math.ceil(index.rows.length / ROWS);
    const some = index.rows.filter((_, at) => at % step === 0);
    return index.fields.map(({ field }) => {
      return { index, target, addresses: addressesIn(index, target, some, field), found: [] };
    });
  });
}

/** Reads a row with the types of its properties. */
export async function findTyped(storage: Storage, { table, partition, row }: Address): Promise<Row | undefined> {
  const page = await readRange(storage, { table, partition, from: row, before: `${row} `, limit: 1, isTyped: true });
  return page.rows.find((found) => found.row === row);
}

/** Where the rows are whose ids a field has. Empty if its values are of another form than ids. */
function addressesIn(index: ProposedKind, target: ProposedKind, rows: readonly Row[], field: string) {
  const [keyField = ''] = target.keyFields;
  const [known] = readValues(target, target.rows.slice(0, 1));
  const [partition, row] = [compileTemplate(target.partition), compileTemplate(target.row)];
  const form = formOf(known?.byName.get(keyField) ?? '');
  const isNumber = [...partition.parts, ...row.parts].some(({ width }) => width !== undefined);
  return readValues(index, rows).flatMap(({ byName, row: ofIndex }) => {
    const [id = ''] = toIds(byName.get(field) ?? '');
    const value =
      parseKey(partition, id)?.[keyField] ??
      (partition.parts.length === 0 ? parseKey(row, id)?.[keyField] : undefined) ??
      id;
    if (value === '' || formOf(String(value)) !== form) return [];
    try {
      const values = { [keyField]: isNumber ? Number(value) : value };
      const address = { table: target.table, partition: buildKey(partition, values), row: buildKey(row, values) };
      return [{ row: ofIndex, address }];
    } catch {
      return [];
    }
  });
}
