import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { open, seal } from '../../../../lib/features/encrypted-properties/encrypted-properties.ts';
import { employees } from '../../../fixtures/model.ts';
import { defineCodec } from '../../../kit/define.ts';
import type { Internal } from '../../../kit/internal.ts';
import type { KeyRing } from '../../../kit/storage.ts';

describe('the stored form of a ciphertext', () => {
  const base64url = (least: number) =>
    fc.uint8Array({ minLength: least, maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('base64url'));
  const nonces = fc
    .uint8Array({ minLength: 12, maxLength: 12 })
    .map((bytes) => Buffer.from(bytes).toString('base64url'));
  const stored = (sealed: string) => defineCodec.fieldsToProperties(employees, { nationalId: { sealed } }).nationalId;
  const read = (nationalId: unknown) =>
    (defineCodec.toValues(employees, { nationalId }).nationalId as Internal['Sealed']).sealed;

  test('is binary, and gives the same text again', () => {
    const texts = fc
      .tuple(base64url(0), base64url(0), nonces, base64url(16))
      .map((parts) => ['v1', ...parts].join('.'));
    fc.assert(
      fc.property(texts, (text) => {
        const bytes = stored(text);
        expect(bytes).toBeInstanceOf(Uint8Array);
        expect(read(bytes)).toBe(text);
      }),
    );
  });

  test('is any text of an earlier release, or of another form', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(read(text)).toBe(text);
      }),
    );
    for (const text of ['v1.broken', `v1.AB.AA.${'A'.repeat(16)}.${'A'.repeat(32)}`]) expect(stored(text)).toBe(text);
  });

  test('reads any bytes without throwing', () => {
    const bytes = fc
      .tuple(fc.constantFrom(0, 1, 2), fc.uint8Array())
      .map(([form, rest]) => Uint8Array.of(form, ...rest));
    fc.assert(
      fc.property(bytes, (given) => {
        expect(read(given)).toBeTypeOf('string');
      }),
    );
    expect(read(new Uint8Array())).toBe('');
  });

  test('rejects a ciphertext that one property cannot hold', () => {
    const text = `v1.AA.AA.${'A'.repeat(16)}.`;
    const most = Buffer.alloc(65_536 - 19).toString('base64url');
    expect(stored(text + most)).toHaveLength(65_536);
    expect(() => stored(`${text}${most}AA`)).toThrow(
      expect.objectContaining({ code: 'too-large', field: 'nationalId', accepted: 'at most 65501 bytes in UTF-8' }),
    );
  });
});

test('cached data keys retain no larger buffers', { tags: ['slow'] }, async () => {
  const SECRETS = 300;
  const pools: WeakRef<ArrayBufferLike>[] = [];
  const keys: KeyRing = {
    wrap: async (dataKey) => ({ keyId: '1', wrapped: Uint8Array.from(dataKey) }),
    // Key rings return slices of the pool for small buffers.
    unwrap: async (_, wrapped) => {
      const pool = Buffer.alloc(65_536);
      pools.push(new WeakRef(pool.buffer));
      pool.set(wrapped);
      return pool.subarray(0, wrapped.length);
    },
    currentKeyId: async () => '1',
  };
  for (let count = 0; count < SECRETS; count += 1) {
    const key = { department: 'Sales', employeeId: String(count).padStart(6, '0') };
    const { nationalId } = await seal({ keys }, employees, key, { nationalId: '123' });
    if (nationalId) await open({ keys }, employees, key, { field: 'nationalId', sealed: nationalId });
  }
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  // Counts reachable pools and not allocated bytes: V8 returns buffers some time after it collected them.
  const reachable = () => {
    collectGarbage();
    return pools.filter((pool) => pool.deref()).length;
  };
  await expect.poll(reachable).toBeLessThan(SECRETS / 10);
  expect(pools).toHaveLength(SECRETS);
  // Keeps the ring and its cache reachable up to this line.
  expect(await keys.currentKeyId()).toBe('1');
});

test('forgets a data key five minutes after it was unwrapped, however often it is used', async () => {
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  let unwrapped = 0;
  const keys: KeyRing = {
    wrap: async (dataKey) => ({ keyId: '1', wrapped: Uint8Array.from(dataKey) }),
    unwrap: async (_, wrapped) => {
      unwrapped += 1;
      return wrapped;
    },
    currentKeyId: async () => '1',
  };
  const key = { department: 'Sales', employeeId: '000001' };
  const { nationalId = { sealed: '' } } = await seal({ keys }, employees, key, { nationalId: '123' });
  for (let minute = 0; minute < 10; minute += 1) {
    expect(await open({ keys }, employees, key, { field: 'nationalId', sealed: nationalId })).toBe('123');
    now += 60_000;
    // The cache reads its clock once in a millisecond.
    await sleep(5);
  }
  // At minutes 0 and 5, or 6 if the last one counts.
  expect(unwrapped).toBe(2);
});
