import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GrantRequest, grantFor, requireGrantable } from '../../../lib/access/grant.ts';
import { anyText } from '../../any-text.ts';
import { departments, employees as employee, expenses, logins } from '../../fixtures/model.ts';
import { modelParts } from '../../kit/define.ts';
import { covers } from './covers.ts';

const NOW = Date.parse('2026-11-20T10:00:00.400Z');
const MINUTES = 60_000;
const own = { table: 'employees', partition: 'Sales', row: 'empid_000123' };
const grant = grantFor(employee, own, { now: NOW });

describe('a grant for one row', () => {
  test('allows reading for fifteen minutes, with tolerance for slow clocks', () => {
    expect(grant).toEqual({
      table: 'employees',
      partition: 'Sales',
      firstRow: 'empid_000123',
      lastRow: 'empid_000123',
      permissions: 'r',
      startsAt: new Date('2026-11-20T09:45:00Z'),
      expiresAt: new Date('2026-11-20T10:15:00Z'),
    });
    expect(covers(grant, own, 'r', NOW)).toBe(true);
    expect(covers(grant, { ...own, table: 'Employees' }, 'r', NOW)).toBe(true);
  });

  test('allows no other operation', () => {
    for (const permission of ['a', 'u', 'd'] as const) expect(covers(grant, own, permission, NOW)).toBe(false);
  });

  test('allows nothing before it begins or after it ends', () => {
    expect(covers(grant, own, 'r', NOW + 14 * MINUTES)).toBe(true);
    expect(covers(grant, own, 'r', NOW + 15 * MINUTES)).toBe(false);
    expect(covers(grant, own, 'r', NOW - 15 * MINUTES - 1000)).toBe(false);
  });

  test('covers no other row, for any keys', () => {
    // An alphabet of few characters yields many keys that are prefixes of one another or differ only in case.
    const near = fc.string({
      unit: fc.constantFrom('a', 'b', 'A', '!', '_', '0', '\u00e9', '\u{1f600}'),
      maxLength: 4,
    });
    const key = fc.oneof(near, anyText({ maxLength: 6 }));
    const address = fc.record({ table: fc.constantFrom('one', 'two', 'one1'), partition: key, row: key });
    fc.assert(
      fc.property(address, address, (mine, other) => {
        fc.pre(mine.partition !== '' && mine.row !== '');
        const given = grantFor(employee, mine, { now: NOW });
        const same = mine.table === other.table && mine.partition === other.partition && mine.row === other.row;
        return covers(given, mine, 'r', NOW) && covers(given, other, 'r', NOW) === same;
      }),
      { numRuns: 5_000 },
    );
  });

  test.each([
    ['the next row', { ...own, row: 'empid_000124' }],
    ['the previous row', { ...own, row: 'empid_000122' }],
    ['a row whose key begins with the key of the row', { ...own, row: 'empid_0001230' }],
    ['a row whose key is a prefix of the key of the row', { ...own, row: 'empid_00012' }],
    ['a row whose key differs in case', { ...own, row: 'Empid_000123' }],
    ['a copy of another row', { ...own, row: 'email_ann@contoso.com' }],
    ['the same row key in another partition', { ...own, partition: 'Sales2' }],
    ['the same keys in the archive table', { ...own, table: 'formeremployees' }],
  ])('does not cover %s', (_, other) => expect(covers(grant, other, 'r', NOW)).toBe(false));

  test('is rejected for an empty part of the key, which storage would read as no bound', () => {
    for (const address of [
      { ...own, partition: '' },
      { ...own, row: '' },
    ])
      expect(() => grantFor(employee, address, { now: NOW })).toThrow(expect.objectContaining({ code: 'forbidden' }));
  });
});

describe('a grant for a partition', () => {
  const mine = { table: 'expenses', partition: '000123' };
  const given = grantFor(expenses, mine, { permissions: 'ar', now: NOW });

  test('is bounded by the first text of the row key', () => {
    const { firstRow, lastRow } = grantFor(employee, { table: 'employees', partition: 'Sales' }, { now: NOW });
    expect({ firstRow, lastRow }).toEqual({ firstRow: 'empid_', lastRow: 'empid`' });
  });

  test('has no row bounds without such a text, and allows the requested operations on every row of the partition', () => {
    expect(given).toMatchObject({ ...mine, permissions: 'ra' });
    expect(Object.keys(given)).not.toContain('firstRow');
    fc.assert(
      fc.property(anyText({ minLength: 1, maxLength: 8 }), (row) => {
        expect(covers(given, { ...mine, row }, 'r', NOW) && covers(given, { ...mine, row }, 'a', NOW)).toBe(true);
        expect(covers(given, { ...mine, row }, 'u', NOW)).toBe(false);
        expect(covers(given, { ...mine, row }, 'd', NOW)).toBe(false);
      }),
    );
  });

  test('covers no row of another partition', () => {
    const digits = fc.string({ unit: fc.constantFrom('0', '1', '2', '3', '~', ' '), maxLength: 7 });
    fc.assert(
      fc.property(digits, digits, (partition, row) => {
        fc.pre(partition !== mine.partition);
        expect(covers(given, { ...mine, partition, row }, 'r', NOW)).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  test('allows only declared permissions', () => {
    for (const permissions of ['r', 'a', 'ra', 'ar']) expect(requireGrantable(expenses, permissions)).toBeUndefined();
    for (const permissions of ['u', 'd', 'rau'])
      expect(() => requireGrantable(expenses, permissions)).toThrow(
        expect.objectContaining({ code: 'forbidden', field: 'permissions', accepted: 'ra' }),
      );
  });
});

describe('write permissions of a grant', () => {
  test('are possible only for an entity without indexes, copies or other dependents', () => {
    expect(modelParts.canWriteThroughGrant(employee)).toBe(false);
    expect(modelParts.canWriteThroughGrant(departments)).toBe(false);
    expect(modelParts.canWriteThroughGrant(logins)).toBe(true);
    const archived = { ...logins, archive: logins };
    expect(modelParts.canWriteThroughGrant(archived)).toBe(false);
  });

  test.each(['u', 'ru', 'ra', 'd', 'raud'])('are rejected with the reason: %s', (permissions) => {
    expect(() => requireGrantable(employee, permissions)).toThrow(
      expect.objectContaining({
        code: 'forbidden',
        message: expect.stringMatching(/employees cannot have the permissions "\w+": its/),
      }),
    );
    expect(() => requireGrantable(logins, permissions)).toThrow(
      expect.objectContaining({ code: 'forbidden', field: 'permissions', accepted: 'r' }),
    );
  });

  test('are not needed to read', () => expect(requireGrantable(employee, 'r')).toBeUndefined());
});

test('validates the entity, scope and permissions of a request for a grant', () => {
  const request = { entity: 'employees', scope: 'own' };
  expect(GrantRequest.parse(request)).toEqual({ ...request, permissions: 'r' });
  expect(GrantRequest.parse({ ...request, permissions: 'ru' })).toMatchObject({ permissions: 'ru' });
  expect(GrantRequest.parse({ ...request, renew: true })).toMatchObject({ renew: true });
  for (const wrong of [
    { entity: 'employees' },
    { ...request, renew: 'yes' },
    { ...request, scope: 'all' },
    { ...request, permissions: 'x' },
  ])
    expect(GrantRequest.safeParse(wrong).success).toBe(false);
  expect(GrantRequest.safeParse({ ...request, table: 'logins' }).success).toBe(false);
});
