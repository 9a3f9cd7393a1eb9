import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { open, seal } from '../../../lib/patterns/encrypted-properties.ts';
import type { KeyRing } from '../../../lib/storage/key-ring.ts';
import { employees } from '../../fixtures/model.ts';

test('cached data keys retain no larger buffers', async () => {
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
