import { expect, test } from 'vitest';
import { baseValues } from '../../kit/base.ts';
import { operationsMove } from '../../kit/operations.ts';
import { storageJournal, storageRows } from '../../kit/storage.ts';
import { accountNamed, RESOURCES, TABLE } from '../storage/several-accounts.ts';
import { at, put, quick, storageToMove, write } from './storage-to-move.ts';

/** The clock of the target is so far behind. */
const BEHIND_MS = 2_000;
const withBackup = {
  ...quick,
  resources: { ...RESOURCES, containers: [...RESOURCES.containers, storageJournal.BACKUP_CONTAINER] },
};
const timeOf = (etag: string | undefined) => storageJournal.timeOf(etag) ?? '';

test('rows get later times where they move to, and where they move back to', { tags: ['slow'] }, async () => {
  const { open, storage, slots } = await storageToMove(2, ['first', 'second'], [0, -BEHIND_MS]);
  const timesIn = async (name: string) => {
    const { rows } = await storageRows.scanTable(accountNamed(storage, name), { table: TABLE, limit: 100 });
    return rows.filter(({ row }) => row === 'a').map(({ etag }) => timeOf(etag));
  };
  const before = await timesIn('first');
  await operationsMove.moveSlots(open(), [{ slots, to: 'second' }], withBackup);
  const moved = await timesIn('second');
  expect(moved).toHaveLength(2);
  expect(moved.every((time, index) => time >= (before[index] ?? ''))).toBe(true);
  await operationsMove.moveBack(open(), undefined, withBackup);
  const back = await timesIn('first');
  expect(back.every((time, index) => time >= (moved[index] ?? ''))).toBe(true);
});

test.each(['its mover', 'another mover', 'a writer'])(
  'a row that is created after a move, which %s has ended, is later than one that was deleted before',
  {
    tags: ['slow'],
  },
  async (by) => {
    const { open, slots, memoryOf } = await storageToMove(1, ['first', 'second'], [0, -BEHIND_MS]);
    let isSwitching = false;
    let isDead = by === 'its mover';
    let deleted = '';
    const isOwned = ({ method, url }: { readonly method: string; readonly url: string }) =>
      method === 'PUT' && decodeURIComponent(url).includes(`RowKey='${baseValues.SYSTEM_ROWS.owned}'`);
    // In the last moment that the source allows.
    memoryOf('first').intercept = async (request, send) => {
      if (isSwitching && isOwned(request)) {
        isSwitching = false;
        const other = open();
        deleted = timeOf((await put(other, 'p0', 'b', 1)).get('b'));
        await write(other, 'p0', { kind: 'delete', row: 'b' });
      }
      const response = await send();
      if (isDead || !isOwned(request) || !/"Slots":"[^"]*g/.test(String(request.body))) return response;
      isDead = true;
      throw new Error('This process is dead.');
    };
    const onProgress = ({ what }: { readonly what: string }) => {
      isSwitching ||= what === 'switch' && deleted === '';
    };
    const moving = operationsMove.moveSlots(open(), [{ slots, to: 'second' }], { ...withBackup, onProgress });
    if (by === 'its mover') await moving;
    else await expect(moving).rejects.toThrow('dead');
    if (by === 'another mover') await operationsMove.resumeMoves(open(), withBackup);
    expect(deleted).not.toBe('');
    await put(open(), 'p0', 'b', 2);
    const created = await storageRows.readRow(open(), { ...at('p0'), row: 'b' });
    expect(timeOf(created?.etag) > deleted).toBe(true);
  },
);
