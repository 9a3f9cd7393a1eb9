import { createHash } from 'node:crypto';
import { type ExistingTable, existingRows } from '../../existing/tables.ts';
import type { Row } from '../../kit/storage.ts';

/** Rows as other programs store them, for the tests of the inspection. */

export const typed = (type: string) => (value: string) => ({ type, value });
const int64 = typed('Int64');
const double = typed('Double');
const dateTime = typed('DateTime');
const guid = typed('Guid');
const binary = typed('Binary');

const pad = (number: number, width: number) => String(number).padStart(width, '0');
/** A version 4 GUID that is the same each time. */
export function guidOf(text: string): string {
  const hex = createHash('md5').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

const MAX_TICKS = 3_155_378_975_999_999_999n;
const EPOCH_TICKS = 621_355_968_000_000_000n;
function reverseTicks(milliseconds: number, ticks = 0): string {
  return String(MAX_TICKS - (BigInt(milliseconds) * 10_000n + EPOCH_TICKS + BigInt(ticks))).padStart(19, '0');
}

/** A row with the types of its properties. Its ETag has the time of its write. */
export type StoredRow = Omit<Row, 'etag'> & { readonly etag?: string };

export function compareKeys(one: StoredRow, other: StoredRow): number {
  if (one.partition !== other.partition) return one.partition < other.partition ? -1 : 1;
  return one.row < other.row ? -1 : 1;
}

const START = Date.UTC(2026, 10, 1);

/** Customers and their orders in one table. */
export function shopRows(customers: number): StoredRow[] {
  const table = 'ShopData';
  return Array.from({ length: customers }, (_, at) => at + 1).flatMap((number) => {
    const partition = `C-${pad(number, 6)}`;
    const orders = Array.from({ length: number % 4 }, (_, at) => ({
      table,
      partition,
      row: `order-${pad(number * 10 + at, 8)}`,
      properties: {
        OrderedOn: dateTime(new Date(START + number * 1_000).toISOString()),
        TotalCents: int64(String(number * 100 + at)),
        Status: ['Open', 'Paid', 'Shipped'][(number + at) % 3],
        Lines: JSON.stringify([{ sku: 'a', count: number }]),
      },
    }));
    const customer = {
      table,
      partition,
      row: 'customer',
      properties: {
        LastName: `Name ${number % 7}`,
        Email: `person${number}@contoso.com`,
        CreatedOn: dateTime(`2026-01-02T03:04:05.${pad(number, 7)}Z`),
        ExternalId: guid(guidOf(`customer ${number}`)),
        Thumbnail: binary(Buffer.from(`picture ${number}`).toString('base64')),
        LoyaltyPoints: int64(String(9_007_199_254_740_993n + BigInt(number))),
        Discount: double(number % 2 === 0 ? '5.0' : '2.5'),
        IsActive: number % 3 !== 0,
        Visits: number % 9,
        ...(number % 5 === 0 ? { PreferredLanguage: 'de' } : {}),
      },
    };
    return [customer, ...orders];
  });
}

/** Requests of some days, the newest of a day first. */
export function logRows(days: number, perDay: number): StoredRow[] {
  return Array.from({ length: days * perDay }, (_, at) => {
    const time = START + Math.floor(at / perDay) * 86_400_000 + (at % perDay) * 1_234;
    return {
      table: 'RequestLog',
      partition: new Date(time).toISOString().slice(0, 10).replaceAll('-', ''),
      row: `${reverseTicks(time, at % 3)}_${guidOf(`request ${at}`)}`,
      properties: { Path: `/api/things/${at % 11}`, StatusCode: [200, 404][at % 2], DurationMs: double(`${at}.5`) },
    };
  });
}

/** Users with rows of several kinds, and two indexes of them that a program keeps by hand. */
export function identityRows(users: number): StoredRow[] {
  const table = 'Identity';
  return Array.from({ length: users }, (_, at) => at + 1).flatMap((number) => {
    const id = guidOf(`user ${number}`);
    const partition = `user_${id}`;
    const [email, name] = [`person${number}@contoso.com`, `person ${number}`];
    const rows: StoredRow[] = [
      {
        table,
        partition,
        row: 'profile',
        properties: { Email: email, UserName: name, LockoutEnabled: number % 2 === 0 },
      },
      {
        table,
        partition,
        row: `login_${['google', 'github', 'microsoft'][number % 3]}`,
        properties: { ProviderKey: `key${number}` },
      },
      ...Array.from({ length: number % 3 }, (_, claim) => ({
        table,
        partition,
        row: `claim_${claim + 1}`,
        properties: { ClaimName: 'role', ClaimValue: `role${claim}` },
      })),
      { table, partition: `email_${email}`, row: 'index', properties: { UserId: id } },
      { table, partition: `name_${name.toUpperCase()}`, row: 'index', properties: { UserId: id } },
    ];
    return rows;
  });
}

/** An index of the customers of `shopRows` by their last names, as lists of ids in a table of its own. */
export function nameIndexRows(customers: number): StoredRow[] {
  const byName = Map.groupBy(
    Array.from({ length: customers }, (_, at) => at + 1),
    (number) => `Name ${number % 7}`,
  );
  return [...byName].map(([name, numbers]) => ({
    table: 'CustomersByName',
    partition: 'lastname',
    row: name,
    properties: { Ids: numbers.map((number) => `C-${pad(number, 6)}`).join(',') },
  }));
}

/** The rows of a table that .NET wrote, or its first ones, with the types of their properties. */
export function existingTableRows(table: ExistingTable, most?: number): StoredRow[] {
  return existingRows(table)
    .slice(0, most)
    .map((line) => {
      const toTyped = (_: string, value: unknown, { source = '' }: { readonly source?: string }) =>
        typeof value === 'number' && /[.e]/i.test(source) ? { type: 'Double', value: source } : value;
      const { PartitionKey, RowKey, ...sent } = JSON.parse(line, toTyped as Parameters<typeof JSON.parse>[1]);
      const names = Object.keys(sent).filter((name) => !name.endsWith('@odata.type'));
      const properties = names.map((name) => {
        const type = sent[`${name}@odata.type`]?.replace('Edm.', '');
        return [name, type === undefined ? sent[name] : { type, value: sent[name] }] as const;
      });
      return { table, partition: PartitionKey, row: RowKey, properties: Object.fromEntries(properties) };
    });
}
