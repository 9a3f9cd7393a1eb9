import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runExclusive } from '../../../lib/engine/run-exclusive.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });

test('runs the work of a key in order, also after failed work', async () => {
  const done: string[] = [];
  const work = (name: string, ms: number, error?: Error) => () =>
    sleep(ms).then(() => {
      done.push(name);
      if (error) throw error;
      return name;
    });
  const results = await Promise.allSettled([
    runExclusive(storage, 'a', work('first', 20)),
    runExclusive(storage, 'a', work('second', 10, new Error('failed'))),
    runExclusive(storage, 'a', work('third', 0)),
    runExclusive(storage, 'b', work('of another key', 0)),
  ]);
  expect(done).toEqual(['of another key', 'first', 'second', 'third']);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
});

test('runs each piece of work in the async context of its caller', async () => {
  const caller = new AsyncLocalStorage<number>();
  const seen = await Promise.all(
    [1, 2, 3].map((number) =>
      caller.run(number, () => runExclusive(storage, 'a', () => sleep(1).then(() => caller.getStore()))),
    ),
  );
  expect(seen).toEqual([1, 2, 3]);
});
