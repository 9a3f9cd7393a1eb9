import { beforeAll, describe, expect, test } from 'vitest';
import { fromContinuation, SYSTEM_TABLE, toContinuation } from '../../../../lib/engine/read/continuation.ts';
import { measureCost } from '../../../../lib/storage/cost.ts';
import { createTable } from '../../../../lib/storage/provision.ts';
import { openStorage } from '../../../../lib/storage/storage.ts';
import { testStorage } from '../../../storage.ts';

const connectionString = testStorage(import.meta.url);
const storage = openStorage({ connectionString });
beforeAll(() => createTable(storage, SYSTEM_TABLE));

describe('a continuation token', () => {
  test('is valid in every process, even if all created the secret concurrently', async () => {
    const processes = Array.from({ length: 6 }, () => openStorage({ connectionString }));
    const tokens = await Promise.all(
      processes.map((process, index) => toContinuation(process, 'query', { row: `row ${index}` })),
    );
    for (const process of processes)
      for (const [index, token] of tokens.entries())
        expect(await fromContinuation(process, 'query', token)).toEqual({ row: `row ${index}` });
  });

  test('reads the secret once in a process, and creates it with two calls', async () => {
    const count = async (prefix: string, tokens: number) => {
      const process = openStorage({ connectionString }, prefix);
      return measureCost(async (cost) => {
        await Promise.all(Array.from({ length: tokens }, () => toContinuation(process, 'query', { row: 'a' })));
        await fromContinuation(process, 'query', await toContinuation(process, 'query', { row: 'b' }));
        return cost.transactions;
      });
    };
    await createTable(openStorage({ connectionString }, 'fresh'), SYSTEM_TABLE);
    expect([await count('fresh', 8), await count('fresh', 8)]).toEqual([2, 1]);
  });

  test('is rejected if it was altered, belongs to another query or has another signature', async () => {
    const token = await toContinuation(storage, 'query', { row: 'a', period: '2026-11-20' });
    expect(await fromContinuation(storage, 'query', token)).toEqual({ row: 'a', period: '2026-11-20' });
    const [head = '', payload = '', signature = ''] = token.split('.');
    const forged = Buffer.from(JSON.stringify({ row: 'b', aud: 'query' })).toString('base64url');
    const unsigned = Buffer.from('{"alg":"none"}').toString('base64url');
    for (const bad of [`${head}.${forged}.${signature}`, `${unsigned}.${payload}.`, `${head}.${payload}.`, 'x', ''])
      await expect(fromContinuation(storage, 'query', bad)).rejects.toMatchObject({
        code: 'invalid-input',
        details: { field: 'continuation' },
      });
    await expect(fromContinuation(storage, 'other query', token)).rejects.toMatchObject({ code: 'invalid-input' });
  });
});
