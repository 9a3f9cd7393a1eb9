import { expect, test } from 'vitest';
import { noteBuilt, noteUnbuilt, requireBuilt } from '../../../../lib/engine/read/unbuilt-indexes.ts';
import { employees as entity } from '../../../fixtures/model.ts';
import { engineCore } from '../../../kit/engine.ts';
import { storageAccounts } from '../../../kit/storage.ts';
import { testStorage } from '../../../storage.ts';

/** An engine with a memory of its own, and an index that is not built. The record is read by `isBuilt`. */
function unbuilt(isBuilt: () => Promise<boolean>) {
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url) });
  const clock = { now: 1_000_000, looks: 0 };
  const engine = engineCore.createEngine(storage, { now: () => clock.now });
  const look = () => {
    clock.looks += 1;
    return isBuilt();
  };
  noteUnbuilt(engine, entity, { index: 'email', command: 'npm run reindex', isBuilt: look });
  const read = (index = 'email') =>
    requireBuilt(engine, entity, index).then(
      () => 'built',
      ({ code, message }) => `${code}: ${message}`,
    );
  return { engine, clock, read };
}

test('a read of an index that is not built fails, names the command, and looks at the record once in a second', async () => {
  const { clock, read } = unbuilt(async () => false);
  expect(await read()).toMatch(/^not-built: The index email of employees .* npm run reindex$/);
  clock.now += 999;
  expect(await read()).toMatch('not-built');
  expect(clock.looks).toBe(0);
  clock.now += 1;
  expect([await read(), await read()]).toEqual([
    expect.stringMatching('not-built'),
    expect.stringMatching('not-built'),
  ]);
  expect(clock.looks).toBe(1);
  clock.now += 999;
  expect(await read()).toMatch('not-built');
  expect(clock.looks).toBe(1);
  expect(await read('lastName')).toBe('built');
});

test('an index that another process has built is read from then on, without another look', async () => {
  let isBuilt = false;
  const { clock, read } = unbuilt(async () => isBuilt);
  isBuilt = true;
  expect(await read()).toMatch('not-built');
  clock.now += 1_000;
  expect(await read()).toBe('built');
  isBuilt = false;
  clock.now += 10_000;
  expect(await read()).toBe('built');
  expect(clock.looks).toBe(1);
});

test('an index counts as not built while its record cannot be read', async () => {
  const { clock, read } = unbuilt(() => Promise.reject(new Error('The storage account does not respond.')));
  clock.now += 1_000;
  expect(await read()).toMatch('not-built');
  expect(clock.looks).toBe(1);
});

test('an index that this process has built is read immediately', async () => {
  const { engine, read, clock } = unbuilt(async () => false);
  noteBuilt(engine, entity, 'lastName');
  expect(await read()).toMatch('not-built');
  noteBuilt(engine, entity, 'email');
  expect(await read()).toBe('built');
  expect(clock.looks).toBe(0);
});
