import { expect, test } from 'vitest';
import { accessChecks } from '../../kit/access.ts';
import { openWorld } from '../../world.ts';

const NOON = Date.parse('2026-11-20T12:00:00Z');
const HOUR = 3_600_000;

test('a grant admitted just before a revocation ends by the instant that the revocation returns, even for a slow request', async () => {
  const { engine } = await openWorld(import.meta.url);
  const clock = [NOON];
  // The request reads the revocations at noon, and its clock is an hour later when it signs.
  const slow = { ...engine, now: () => clock.shift() ?? NOON + HOUR };
  const admitted = await accessChecks.admitGrant(slow, 'ann');
  const grantsEndAt = await accessChecks.revokeGrants({ ...engine, now: () => NOON + 1 }, 'ann');
  expect(accessChecks.validityAt(admitted).expiresAt.getTime()).toBeLessThanOrEqual(grantsEndAt);
});

test('accepts any text as the subject of an identity', async () => {
  const { engine } = await openWorld(import.meta.url);
  for (const subject of ['a/b#c?', 'x'.repeat(5_000), '\u0000', 'Bob']) {
    await accessChecks.revokeGrants(engine, subject);
    await expect(accessChecks.admitGrant(engine, subject)).rejects.toMatchObject({ code: 'forbidden' });
  }
  await expect(accessChecks.admitGrant(engine, 'bob')).resolves.toBeTypeOf('number');
});
