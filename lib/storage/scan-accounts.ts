import { z } from 'zod';
import { hasCode, type RowkeyError } from '../base/errors.ts';
import { ofAccount } from './errors.ts';
import { type Query, queryRows, type Row, type RowPage, textLength } from './row-query.ts';
import { readShares } from './slot-map.ts';
import type { Accounts } from './storage.ts';

interface Place {
  readonly partition: string;
  readonly row: string;
}

interface Scan extends Partial<Pick<Query, 'counted' | 'bound' | 'resume'>> {
  readonly limit: number;
  readonly limitOfAccount?: number | undefined;
  readonly after?: Place | undefined;
}

/**
 * Where a read of several accounts paused: the last row that it returned, and where accounts continue that paused after that row. An account
 * whose slots have changed since begins after that row, because it may have got rows from before it paused.
 */
const Resume = z.object({
  after: z.object({ partition: z.string(), row: z.string() }).optional(),
  tokens: z.record(z.string(), z.object({ slots: z.string(), token: z.string() })),
});

/**
 * Reads the rows of a table that each account owns and merges them in key order. Each account returns as many rows as are wanted, so a page
 * takes a transaction for each account. A page ends at the last row before which all accounts have been read.
 */
export async function scanAccounts<Wanted extends Scan>(
  accounts: Accounts,
  scan: Wanted,
  toQuery: (scan: Wanted) => Query,
): Promise<RowPage> {
  const paused = scan.resume === undefined ? undefined : Resume.parse(JSON.parse(scan.resume));
  const after = paused ? paused.after : scan.after;
  const { limitOfAccount = scan.limit } = scan;
  const query = { ...toQuery({ ...scan, after }), limit: limitOfAccount };
  const shared = await readShares(accounts, async ({ account, owns, etag, isWhole }) => {
    const at = paused?.tokens[account.name];
    const resume = isWhole && at?.slots === etag ? at.token : undefined;
    const reading = ofAccount(account, queryRows(account, { ...query, resume, keeps: owns }));
    const page: RowPage & { readonly missing?: RowkeyError } = await reading.catch(toMissing);
    return { ...page, name: account.name, slots: etag, isWhole };
  });
  const pages = shared.map(({ share: { owns }, result }) => ({
    ...result,
    rows: result.rows.filter(owns),
    last: result.rows.at(-1),
  }));
  const [missing] = pages.map((page) => page.missing);
  if (missing && pages.every((page) => page.missing)) throw missing;
  const page = mergePages(pages, { ...scan, after });
  if (query.mayPause || page.resume === undefined) return page;
  // Rows do not count that an account has let go meanwhile. A read that may not pause goes on until its limit.
  const { rows } = page;
  const limit = scan.limit - countRows(rows, scan);
  const rest = await scanAccounts(accounts, { ...scan, after: rows.at(-1) ?? after, limit }, toQuery);
  return { ...rest, rows: [...rows, ...rest.rows] };
}

const countRows = (rows: readonly Row[], { counted }: Scan) =>
  rows.filter(({ properties }) => counted === undefined || properties.EntityType === counted).length;

/** The rows of a page that count, and where it ended. */
interface AccountPage extends RowPage {
  readonly name: string;
  readonly slots: string;
  /** False for a page of some slots of the account: a continuation would leave out rows of the others. */
  readonly isWhole: boolean;
  readonly last: Row | undefined;
}

/** A table that the app creates itself may be in some accounts only. */
function toMissing(error: unknown): RowPage & { readonly missing: RowkeyError } {
  if (hasCode(error, 'not-provisioned')) return { rows: [], more: false, missing: error };
  throw error;
}

function mergePages(pages: readonly AccountPage[], scan: Scan): RowPage {
  const all = pages.flatMap((page) => page.rows).sort(compareKeys);
  const known = pages.filter(({ more }) => more).map((page) => page.last);
  const rows: Row[] = [];
  let [count, length] = [0, 0];
  for (const row of all) {
    // An account that has more rows may have one before this row.
    if (known.some((last) => !last || compareKeys(last, row) < 0)) break;
    rows.push(row);
    length += textLength(row.properties);
    if (scan.counted === undefined || row.properties.EntityType === scan.counted) count += 1;
    if (count >= scan.limit || (scan.bound && length >= scan.bound.length))
      return { rows, more: rows.length < all.length || known.length > 0 };
  }
  if (known.length === 0) return { rows, more: false };
  const last = rows.at(-1);
  const isReturned = ({ last: end }: AccountPage) => !end || (last !== undefined && compareKeys(end, last) <= 0);
  const tokens = pages.flatMap((page) =>
    page.resume !== undefined && page.isWhole && isReturned(page)
      ? [[page.name, { slots: page.slots, token: page.resume }] as const]
      : [],
  );
  const resume = {
    after: last ? { partition: last.partition, row: last.row } : scan.after,
    tokens: Object.fromEntries(tokens),
  };
  return { rows, more: true, resume: JSON.stringify(resume) };
}

/** Compares keys by their UTF-16 units, as storage does. */
export function compareKeys(one: Place, other: Place): number {
  if (one.partition !== other.partition) return one.partition < other.partition ? -1 : 1;
  if (one.row === other.row) return 0;
  return one.row < other.row ? -1 : 1;
}
