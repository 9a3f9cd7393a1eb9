import { randomBytes } from 'node:crypto';
import { EncryptJWT, SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { fromContinuation, startOf, toContinuation } from '../../../../lib/engine/read/continuation.ts';
import { storageAccounts, storageSlots, storageTables } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';
import { provisionAccounts } from '../../storage/several-accounts.ts';

const connectionString = testStorage(import.meta.url);
const storage = storageAccounts.openStorage({ connectionString });
beforeAll(() => storageTables.createTable(storage, storageSlots.SYSTEM_TABLE));

describe('a continuation token', () => {
  test('is valid in every process, even if all created the secret concurrently', async () => {
    const processes = Array.from({ length: 6 }, () => storageAccounts.openStorage({ connectionString }));
    const tokens = await Promise.all(
      processes.map((process, index) => toContinuation(process, 'query', { row: `row ${index}` })),
    );
    for (const process of processes)
      for (const [index, token] of tokens.entries())
        expect(await fromContinuation(process, 'query', token)).toEqual({ row: `row ${index}` });
  });

  test('reads the secret once in a process, and creates it with two calls', async () => {
    const count = async (prefix: string, tokens: number) => {
      const process = storageAccounts.openStorage({ connectionString }, prefix);
      return storageAccounts.measureCost(async (cost) => {
        await Promise.all(Array.from({ length: tokens }, () => toContinuation(process, 'query', { row: 'a' })));
        await fromContinuation(process, 'query', await toContinuation(process, 'query', { row: 'b' }));
        return cost.transactions;
      });
    };
    await storageTables.createTable(
      storageAccounts.openStorage({ connectionString }, 'fresh'),
      storageSlots.SYSTEM_TABLE,
    );
    expect([await count('fresh', 8), await count('fresh', 8)]).toEqual([2, 1]);
  });

  test('reveals neither the position nor the query', async () => {
    const token = await toContinuation(storage, 'of-a-caller', { row: 'secret row', partition: 'secret partition' });
    const decoded = token.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
    expect(decoded.join()).not.toMatch(/secret|row|partition|of-a-caller/);
  });

  test('is rejected if it was altered, belongs to another query or was not encrypted', async () => {
    const token = await toContinuation(storage, 'query', { row: 'a', period: '2026-11-20' });
    expect(await fromContinuation(storage, 'query', token)).toEqual({ row: 'a', period: '2026-11-20' });
    const [head = '', key = '', iv = '', content = '', tag = ''] = token.split('.');
    const claims = Buffer.from(JSON.stringify({ row: 'b', aud: 'query' })).toString('base64url');
    const unsigned = Buffer.from('{"alg":"none"}').toString('base64url');
    const other = `${content.startsWith('A') ? 'B' : 'A'}${content.slice(1)}`;
    const signed = new SignJWT({ row: 'b' }).setProtectedHeader({ alg: 'HS256' }).setAudience('query');
    const encrypted = new EncryptJWT({ row: 'b' })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setAudience('query');
    const forged = [
      [head, key, iv, claims, tag],
      [head, key, iv, other, tag],
      [head, key, iv, content, ''],
      [unsigned, claims, ''],
    ].map((parts) => parts.join('.'));
    const keyed = [await signed.sign(randomBytes(32)), await encrypted.encrypt(randomBytes(32))];
    for (const bad of [...forged, ...keyed, 'x', ''])
      await expect(fromContinuation(storage, 'query', bad)).rejects.toMatchObject({
        code: 'invalid-input',
        field: 'continuation',
      });
    await expect(fromContinuation(storage, 'other query', token)).rejects.toMatchObject({ code: 'invalid-input' });
  });

  test('is valid in a process that starts while the account of the secret does not respond', async () => {
    const { open, stopped } = await provisionAccounts();
    const token = await toContinuation(open(), 'query', { row: 'a' });
    stopped.add('first');
    const later = open();
    expect(await fromContinuation(later, 'query', token)).toEqual({ row: 'a' });
    const another = await toContinuation(later, 'query', { row: 'b' });
    stopped.delete('first');
    expect(await fromContinuation(open(), 'query', another)).toEqual({ row: 'b' });
  });

  test('cannot be made before the first secret while its account does not respond', async () => {
    const { open, stopped } = await provisionAccounts();
    stopped.add('first');
    await expect(toContinuation(open(), 'query', { row: 'a' })).rejects.toMatchObject({ code: 'storage-unavailable' });
  });
});

test('a read continues after the row of its position, or from the beginning where storage paused before any row', () => {
  expect(startOf(undefined)).toBeUndefined();
  expect(startOf({ row: 'a' })).toBe('a');
  expect(startOf({ row: 'a', resume: 'x' })).toBe('a');
  expect(startOf({ row: '', resume: 'x' })).toBeUndefined();
  expect(startOf({ row: '' })).toBe('');
});
