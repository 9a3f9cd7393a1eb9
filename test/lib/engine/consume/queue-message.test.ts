import type { InvocationContext } from '@azure/functions';
import { expect, test } from 'vitest';
import { engineConsume } from '../../../kit/engine.ts';

const inserted = '2026-11-20T08:00:00.000Z';
const given = { id: 'host', dequeueCount: 2, insertionTime: inserted };
const contextOf = (triggerMetadata: Record<string, unknown>) => ({ triggerMetadata }) as unknown as InvocationContext;

test('reads the trigger metadata that the body does not replace', () => {
  const body = { intent: 'one', key: { id: 'nested' } };
  expect(engineConsume.toMessage('index-changes', body, contextOf(given))).toEqual({
    queue: 'index-changes',
    id: 'host',
    attempts: 2,
    insertedAt: Date.parse(inserted),
    body,
  });
});

test('ignores trigger metadata that the body replaces', () => {
  const body = { ID: '../x', DequeueCount: -1_000, insertiontime: '+275760-09-13T00:00:00Z' };
  const replaced = { id: body.ID, dequeueCount: body.DequeueCount, insertionTime: body.insertiontime };
  const { id, attempts, insertedAt } = engineConsume.toMessage('index-changes', body, contextOf(replaced));
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(engineConsume.toMessage('index-changes', body, contextOf(replaced)).id).toBe(id);
  expect(attempts).toBe(engineConsume.MAX_ATTEMPTS);
  expect(Math.abs(insertedAt - Date.now())).toBeLessThan(60_000);
});
