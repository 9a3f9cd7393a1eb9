import { Command } from 'commander';
import { expect, test, vi } from 'vitest';
import { addAccountsCommands, describeReport } from '../../../local/cli/accounts-command.ts';
import type { OpenAccounts } from '../../../local/cli/open-accounts.ts';
import { type MoveTiming, operationsMove } from '../../kit/operations.ts';
import { storageRows, storageSlots } from '../../kit/storage.ts';
import { accountNamed, provisionAccounts, RESOURCES, type Several, TABLE } from '../../lib/storage/several-accounts.ts';
import { countTurns } from '../../patient-clock.ts';

countTurns();

const timing: MoveTiming = {
  ...operationsMove.MOVE_TIMING,
  leaseMs: 100,
  lateMs: 50,
  holdMs: 5_000,
  keepMs: 0,
};

test('moves slots, spreads them, returns them and cleans up', { tags: ['slow'] }, async () => {
  const { open, stopped, requests } = await provisionAccounts();
  const actions = [{ kind: 'insert', row: 'r', properties: { EntityType: 'thing' } }] as const;
  await storageRows.submit(open(), { table: TABLE, partition: 'Engineering', actions });
  let placed: OpenAccounts['placed'] = [];
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {});
  /** Runs a command and returns what it prints. */
  const accounts = async (...given: string[]) => {
    printed.mockClear();
    const program = new Command().option('--data <folder>', '', '.').exitOverride();
    await addAccountsCommands(program, {
      open: async () => ({ storage: open(), resources: RESOURCES, grantedForMs: 0, placed }),
      timing,
    }).parseAsync(given, { from: 'user' });
    return printed.mock.calls.map(([line]) => String(line));
  };
  expect(await accounts('status')).toEqual([
    'first: 1366 of 4096 slots',
    'second: 1365 of 4096 slots',
    'third: 1365 of 4096 slots',
  ]);
  expect(await accounts('balance')).toEqual(['The slots are spread evenly.']);
  const [moved, waited] = await accounts('move', '--key', 'Engineering', '--to', 'third');
  expect(moved).toBe('1 slots moved: 1 rows compared, 1 written, 0 deleted; 0 blobs copied.');
  expect(waited).toMatch(/^Writes to a slot waited \d+ ms \(median\)/);
  const status = await accounts('status');
  expect(status.slice(0, 3)).toEqual([
    'first: 1366 of 4096 slots',
    'second: 1364 of 4096 slots',
    'third: 1366 of 4096 slots',
  ]);
  const [, move] = /^move (\w+): 1 of 1 slots have left second for third$/.exec(status[3] ?? '') ?? [];
  await expect(accounts('back', 'none')).rejects.toThrow('Move "none" not found');
  expect((await accounts('back', move ?? ''))[0]).toBe(
    '1 slots moved: 1 rows compared, 0 written, 0 deleted; 0 blobs copied.',
  );
  expect(await accounts('clean-up')).toEqual(['1 slots cleaned up, 1 rows and 0 blobs deleted.']);
  expect((await accounts('move', '--share', '0.0008', '--to', 'second'))[0]).toMatch(/^3 slots moved/);
  expect((await accounts('balance'))[0]).toMatch(/^[12] slots to (first|third)\.$/);
  expect((await accounts('resume'))[0]).toMatch(/^0 slots moved/);
  expect((await accounts('abort'))[0]).toMatch(/^0 slots moved/);
  const begun = { phase: 'fencing', move: 'begun', to: 'second', turn: 9 } as const;
  await storageSlots.changeSlots(accountNamed(open() as Several, 'first'), ['000'], () => begun);
  expect((await accounts('abort'))[1]).toBe('1 slots stay where they are: 000.');
  expect(process.exitCode).toBeUndefined();
  await expect(accounts('move', '--to', 'third')).rejects.toThrow('--slots, --key or --share');
  requests.length = 0;
  await expect(accounts('move', '--key', 'a', '--to', 'fifth')).rejects.toThrow('Storage account "fifth" not found.');
  // The next command need not wait for this one.
  expect(new Set(requests.map(({ method }) => method))).toEqual(new Set(['GET']));

  placed = [{ layer: { name: 'engineering', keys: ['Engineering'], separator: '_' }, account: 'first' }];
  const run = 'run npm run accounts --';
  expect((await accounts('status'))[3]).toBe(
    `engineering: with all others. The model places it in first: ${run} balance`,
  );
  expect((await accounts('balance'))[0]).toMatch(/^27\d\d slots to first\.$/);
  expect((await accounts('status')).slice(3, 4)).toEqual(['engineering: first']);
  expect((await accounts('move', '--key', 'Engineering', '--to', 'third'))[0]).toMatch(
    /^1 slots moved: 1 rows compared/,
  );
  expect((await accounts('status'))[3]).toBe(
    `engineering: 4095 slots in first, 1 slots in third. The model places it in first: ${run} balance`,
  );
  expect((await accounts('balance'))[0]).toBe('1 slots to first.');
  placed = [{ layer: { name: 'engineering', keys: ['Engineering', 'Sales'], separator: '_' }, account: 'first' }];
  expect((await accounts('status'))[3]).toBe(
    `engineering: first. The model has changed what it places: ${run} balance`,
  );
  await expect(accounts('remove', 'engineering')).rejects.toThrow('Remove it from placement first.');
  placed = [{ layer: { name: 'sales', keys: ['Sales'], separator: '_' }, account: 'fifth' }];
  await expect(accounts('balance')).rejects.toThrow('"sales" in the storage account "fifth", which STORAGE_ACCOUNTS');
  placed = [];
  expect((await accounts('status'))[3]).toBe(
    `engineering: first. The model does not place it: ${run} remove engineering`,
  );
  expect((await accounts('remove', 'engineering')).at(-1)).toBe(
    'The name goes with what its slots have left: run npm run accounts -- clean-up.',
  );
  expect((await accounts('status'))[3]).toBe(`engineering (former): with all others. To forget it, ${run} clean-up`);
  expect((await accounts('clean-up')).at(-1)).toBe('"engineering" is removed.');
  await expect(accounts('remove', 'engineering')).rejects.toThrow(
    'The accounts have no placement "engineering"; they have none.',
  );
  await accounts('move', '--key', 'Engineering', '--to', 'third');
  for (const [away, ...others] of [
    ['first', 'second: 136', 'third: 136'],
    ['third', 'first: 136', 'second: 136'],
  ] as const) {
    stopped.add(away);
    const told = await accounts('status');
    for (const command of ['balance', 'clean-up'])
      await expect(accounts(command)).rejects.toThrow(`the account ${away} does not respond`);
    stopped.clear();
    expect(process.exitCode).toBe(1);
    process.exitCode = undefined;
    expect(told.slice(0, 3)).toEqual([
      expect.stringContaining(others[0]),
      expect.stringContaining(others[1]),
      `${away}: does not respond. What it owns is not known`,
    ]);
    expect(told[3]).toMatch(/^move \w+: 1 of 1 slots have left \w+ for third$/);
    // The first account has the row of the command that moves slots.
    expect(told.slice(4).join()).toMatch(away === 'first' ? /^$/ : /accounts -- back/);
  }
});

test('says that writes to slots which were closed for long have failed', () => {
  const report = { slots: 2, rows: 1, written: 1, deleted: 0, blobs: 0, left: [] };
  const waited = (...pauses: number[]) => describeReport({ ...report, pauses }).slice(1);
  expect(waited(20, 14_000)).toEqual(['Writes to a slot waited 20 ms (median), 14000 ms (99 %), 14000 ms (longest).']);
  expect(waited(41_000, 52_000)).toEqual([
    'Writes to a slot waited 41000 ms (median), 52000 ms (99 %), 52000 ms (longest).',
    'A write that had waited for 15 s failed with 503, and can be repeated.',
  ]);
  const program = addAccountsCommands(new Command(), { open: () => Promise.reject(new Error('Not opened.')) });
  const move = program.commands.find((command) => command.name() === 'move');
  expect(move?.helpInformation().replaceAll(/\s+/g, ' ')).toContain('a write fails with 503 after 15 s');
});
