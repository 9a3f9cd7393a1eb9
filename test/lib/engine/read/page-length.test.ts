import { createDefaultHttpClient, type PipelineRequest } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { employees, expenses, reviews } from '../../../fixtures/model.ts';
import { engineRead } from '../../../kit/engine.ts';
import { operationsCheck } from '../../../kit/operations.ts';
import { openWorld, somebody } from '../../../world.ts';

test('reads no more rows in a storage call than 32 million characters allow at maximum row length', async () => {
  const world = await openWorld(import.meta.url);
  const inner = createDefaultHttpClient();
  const asked: number[] = [];
  const sendRequest = (request: PipelineRequest) => {
    const top = new URL(request.url).searchParams.get('$top');
    if (top !== null) asked.push(Number(top));
    return inner.sendRequest(request);
  };
  const engine = world.engineThrough({ sendRequest });
  const one = somebody();
  const top = 1_000;
  const select = ['year', 'comments'];
  await engineRead.readEntities(engine, reviews, one, { top, select });
  await engineRead.scanEntities(engine, reviews, { top });
  await engineRead.readWithChildren(engine, employees, one, [reviews]).catch(() => undefined);
  // The row of a large text holds 262,144 of its characters.
  expect(asked.map((rows) => rows <= 128 && rows > 64)).toEqual([true, true, true]);
  // Clients may write rows of 524,288 characters.
  await engineRead.readEntities(engine, expenses, one, { top });
  await operationsCheck.verifyPage(engine, expenses, { top, repair: false });
  expect(asked.slice(3)).toEqual([64, 64]);
  await engineRead.readEntities(engine, reviews, one, { top, select: ['year', 'rating'] });
  expect(asked.at(-1)).toBe(1_000);
});
