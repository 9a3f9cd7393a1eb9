import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type BackedUp, openBackedUp } from '../../../backed-up.ts';
import { employees, logins, model, people, reservations } from '../../../fixtures/model.ts';
import { engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { storageBlobs, storageRows, storageTables } from '../../../kit/storage.ts';
import { somebody } from '../../../world.ts';

/** The script of the page, with the standard library alone. */
async function readScript(): Promise<string> {
  const [, script = ''] = /```python\n([^`]*)```/.exec(await readFile('docs/backup.md', 'utf8')) ?? [];
  return script;
}

function findPython(): string | undefined {
  for (const name of ['python3', 'python'])
    try {
      if (/^Python 3/.test(execFileSync(name, ['--version'], { encoding: 'utf8' }))) return name;
    } catch {
      // Another name may exist.
    }
  return undefined;
}

async function download({ backup }: BackedUp): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'backup-'));
  for (const name of await storageBlobs.listBlobs(backup, { container: 'backup', prefix: '' })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), (await storageBlobs.readBlob(backup, { container: 'backup', name })) ?? '');
  }
  return folder;
}

const python = findPython();

test('is read by a script of another language as the app reads it', { tags: ['slow'] }, async ({ skip }) => {
  if (python === undefined) return skip('There is no Python 3 on this machine.');
  const app = await openBackedUp(model);
  const { engine } = app;
  const staff = ['Ä', 'Ben', '雪'].map((firstName) => somebody({ department: 'Ops', firstName, vacationHours: 2.5 }));
  for (const one of staff) await engineWrite.createEntity(engine, employees, one);
  const [first, second, third] = staff;
  await engineWrite.createEntity(engine, logins, { employeeId: '000001', succeeded: true });
  const person = { country: 'PT', personId: 'p', firstName: 'Rita', kind: 'customer', companyName: 'R', discount: 1 };
  await engineWrite.createEntity(engine, people, person);
  await app.settle();
  await app.snapshot();
  const cuts = [app.cut()];
  // A row that is only in the journal, one that is changed in part, deleted, and created again, and a table that is dropped.
  await engineWrite.createEntity(engine, reservations, {
    office: 'Porto',
    reservationId: 'R1',
    kind: 'desk',
    storey: 2,
  });
  await engineWrite.patchEntity(engine, employees, first ?? {}, { lastName: 'Later' });
  cuts.push(app.cut());
  await engineWrite.deleteEntity(engine, employees, second ?? {});
  await engineTransfer.requestMove(engine, employees, third ?? {}, { department: 'Sales' });
  await app.settle();
  cuts.push(app.cut());
  await engineWrite.createEntity(engine, employees, second ?? {});
  const change = { kind: 'upsert-merge', row: 'p', properties: { firstName: 'Ana' } } as const;
  await storageRows.submit(app.storage, { table: 'people', partition: 'PT', actions: [change] });
  for (const table of await storageTables.listTables(app.storage, 'logins'))
    await storageTables.dropTable(app.storage, table);
  cuts.push(app.cut());
  const folder = await download(app);
  const script = join(folder, 'read.py');
  await writeFile(script, await readScript());
  for (const at of cuts) {
    const { rows } = await operationsBackup.readState({ backup: app.backup }, at);
    const expected = await Array.fromAsync(rows, ({ time: _, ...row }) => row);
    const { stdout } = await promisify(execFile)(python, [script, folder, at], { maxBuffer: 64 * 1_048_576 });
    const printed = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const byKey = (all: readonly { table: string; partition: string; row: string }[]) =>
      Object.fromEntries(all.map((row) => [JSON.stringify([row.table, row.partition, row.row]), row]));
    expect(printed.length).toBe(expected.length);
    expect(byKey(printed)).toEqual(byKey(expected));
  }
  await rm(folder, { recursive: true });
});
