// @module-tag long

import { expect, test, vi } from 'vitest';
import { createRestoreCommand } from '../../../local/cli/restore-command.ts';
import { openBackedUp } from '../../backed-up.ts';
import { model, reservations } from '../../fixtures/model.ts';
import { apiCalls } from '../../kit/api.ts';
import { engineRead, engineWrite } from '../../kit/engine.ts';

test('restores, says what is equal to the backup and what is left out, and changes nothing the next time', async () => {
  const app = await openBackedUp(model);
  const one = { office: 'Porto', reservationId: 'R1', kind: 'desk', storey: 2 };
  await engineWrite.createEntity(app.engine, reservations, one);
  await app.snapshot();
  const at = app.cut();
  const target = await app.openTarget({ accounts: 1, prefix: '' });
  const places: (readonly string[])[] = [];
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {});
  const restore = async (...given: string[]) => {
    printed.mockClear();
    const open = async () => ({
      model,
      source: { backup: app.backup, storage: app.storage, days: 35 },
      openTarget: async (to: readonly string[]) => {
        places.push(to);
        return target.engine;
      },
      erase: (engine: typeof target.engine, subject: string) => apiCalls.eraseAll(engine, model, subject),
    });
    await createRestoreCommand(open)
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .parseAsync(given, { from: 'user' });
    return printed.mock.calls.map(([line]) => String(line));
  };
  const lines = await restore(
    '--at',
    at,
    '--to',
    'first=UseDevelopmentStorage=true',
    'second=https://b.table.core.windows.net',
  );
  expect(lines).toContainEqual(
    expect.stringMatching(/^reservations: 1 rows, 1 written; equal to the backup, SHA-256 /),
  );
  expect(lines).toContain('The consistency check found nothing.');
  expect(lines[lines.indexOf('Not restored:') + 1]).toMatch(/^- Messages in queues/);
  expect(places).toEqual([['first=UseDevelopmentStorage=true', 'second=https://b.table.core.windows.net']]);
  expect((await engineRead.readEntity(target.engine, reservations, one)).values.storey).toBe(2);
  const again = await restore('--at', at, '--to', 'other');
  expect(again[0]).toBe(`An earlier run has restored everything to ${at}. Nothing was changed.`);
  await expect(restore('--at', 'yesterday', '--to', 'other')).rejects.toThrow('An instant in UTC is needed');
  for (const where of [[], ['--to', 'other', '--in-place']])
    await expect(restore('--at', at, ...where)).rejects.toThrow('Where to?');
  await expect(restore('--at', at, '--to', 'other', '--row', 'x')).rejects.toThrow('--row needs --partition');
  expect(process.exitCode).toBeUndefined();
});
