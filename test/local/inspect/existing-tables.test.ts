import { expect, test } from 'vitest';
import { describe, propose } from './samples.ts';
import { existingTableRows } from './shapes.ts';

/** What is proposed for the tables that .NET wrote, beside what a person would declare. */

/** The declarations in a text, without comments and without what is the same in all. */
function declarationsIn(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^ *(\/\/|$|import|existing: \{|readOnly|access)/.test(line))
    .join('\n')
    .replace(/export const model[\s\S]*/, '')
    .trim();
}

test('proposes for customers, orders and lines in one table what a person would declare', { tags: ['slow'] }, () => {
  const text = describe(existingTableRows('ShopData', 4_000));
  const byHand = `
export const customers = defineEntity('customers', {
  schema: z.object({
    customerId: z.int().min(0),
    name: z.string(),
    email: z.string(),
    tier: z.enum(['Gold', 'Silver', 'Standard']),
    loyaltyPoints: z.string().regex(/^-?\\d+$/),
    discount: z.number(),
    isActive: z.boolean(),
    orderCount: z.int32(),
    createdOn: z.iso.datetime(),
    lastLoginOn: z.iso.datetime().optional(),
    externalId: z.uuid(),
    thumbnail: z.base64().optional(),
    preferences: z.string(),
    phone: z.string().optional(),
    rating: z.number().optional(),
    legacyFlag: z.boolean().optional(),
  }),
  table: 'ShopData',
  key: { partition: 'C-{customerId:6}', row: 'customer' },
    properties: {
      name: 'Name',
      email: 'Email',
      tier: 'Tier',
      loyaltyPoints: { name: 'LoyaltyPoints', type: 'Int64' },
      discount: 'Discount',
      isActive: 'IsActive',
      orderCount: 'OrderCount',
      createdOn: { name: 'CreatedOn', type: 'DateTime' },
      lastLoginOn: { name: 'LastLoginOn', type: 'DateTime' },
      externalId: { name: 'ExternalId', type: 'Guid' },
      thumbnail: { name: 'Thumbnail', type: 'Binary' },
      preferences: 'Preferences',
      phone: 'Phone',
      rating: 'Rating',
      legacyFlag: 'LegacyFlag',
    },
  },
});`;
  expect(declarationsIn(text)).toContain(byHand.trim());
  expect(text).toContain("key: { partition: 'C-{customerId:6}', row: 'order-{orderNo:8}' },");
  expect(text).toContain("key: { partition: 'C-{customerId:6}', row: 'line-{orderNo:8}-{lineNo:2}' },");
  expect(text).toContain("orderNo: { name: 'OrderNo', type: 'Int32' },");
  expect(text).toContain("totalCents: { name: 'TotalCents', type: 'Int64' },");
  expect(text).toMatch(/\/\/ rating: has values of several types \(\d+ Double, 1 NaN\)/);
});

test('proposes for a log of requests what a person would declare', { tags: ['slow'] }, () => {
  expect(declarationsIn(describe(existingTableRows('RequestLog')))).toBe(
    `
export const requestlog = defineEntity('requestlog', {
  schema: z.object({
    day: z.string().regex(/^\\d{8}$/),
    loggedOn: z.iso.datetime(),
    requestId: z.uuid(),
    level: z.enum(['Error', 'Information', 'Warning']),
    message: z.string(),
    path: z.string(),
    statusCode: z.int32(),
    durationMs: z.number(),
    userId: z.string().optional(),
  }),
  table: 'RequestLog',
  key: { partition: '{day}', row: '{loggedOn~}_{requestId}' },
    properties: {
      loggedOn: { name: 'LoggedOn', type: 'DateTime' },
      requestId: { name: 'RequestId', type: 'Guid' },
      level: 'Level',
      message: 'Message',
      path: 'Path',
      statusCode: 'StatusCode',
      durationMs: 'DurationMs',
      userId: 'UserId',
    },
  },
});`.trim(),
  );
});

test('proposes for users with rows of five kinds what a person would declare', { tags: ['slow'] }, () => {
  const rows = existingTableRows('Identity');
  const text = describe(rows);
  const keys = text.match(/^ {2}key: .*$/gm);
  expect(keys).toEqual([
    "  key: { partition: 'user_{userId}', row: 'profile' },",
    "  key: { partition: 'user_{userId}', row: 'claim_{number}' },",
    "  key: { partition: 'user_{userId}', row: 'login_{provider}' },",
  ]);
  expect(text).toContain('    userId: z.string().regex(/^\\d{6}$/),');
  expect(text).toContain("      number: { name: 'Number', type: 'Int32' },");
  const { indexes } = propose(rows);
  expect(indexes).toMatchObject([
    {
      index: { partition: 'email_{email}' },
      from: 'userId',
      by: [{ field: 'normalizedEmail' }],
      dangling: 1,
      missing: 1,
      stale: 0,
    },
    {
      index: { partition: 'name_{name}' },
      from: 'userId',
      by: [{ field: 'normalizedUserName' }],
      dangling: 0,
      missing: 0,
      stale: 0,
    },
  ]);
});

test('proposes indexes in place of a table with lists of ids', () => {
  const text = describe([...existingTableRows('Employees'), ...existingTableRows('EmployeeIndex')]);
  const declared = text.split('\n').filter((line) => line.includes('indexEntity('));
  expect(declared.map((line) => line.trim())).toEqual([
    "//   lastName: indexEntity({ table: 'employeesbylastname', partition: 'lastname_{lastName#}', row: '{lastName}', holds: '{department}|{employeeId}' }),",
    "//   lastNameInDepartment: indexEntity({ table: 'employeesbydepartmentlastname', partition: '{department}', row: '{lastName}', holds: '{department}|{employeeId}' }),",
  ]);
  expect(text).toContain('entities: [employees],');
});
