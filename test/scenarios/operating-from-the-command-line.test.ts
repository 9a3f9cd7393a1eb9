import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { PATIENCE_MS } from '../patience.ts';
import { IS_EVERY_POINT, sampleItems } from '../points.ts';
import { useProduct } from '../product.ts';
import { runScript, spawnCommand } from '../start-process.ts';

/** More than one page of a consistency check. */
const MORE = Array.from(
  { length: 60 },
  (_, index) =>
    `${800_000 + index},José,Reátegui ${index % 7},josé${index}@contoso.com,${index % 3 ? 'Tool Design' : 'Small'}\n`,
);

const product = useProduct(import.meta.url);

describe('npm run verify and reindex', () => {
  test('find manual damage, repair it, and rebuild an index', async () => {
    const { folder, run, storage } = product;
    const file = join(folder, 'more.csv');
    await writeFile(file, `employeeId,firstName,lastName,email,department\n${MORE.join('')}`);
    expect(await run('import', 'employees', file)).toMatchObject({ code: 0 });
    const { said: clean, code } = await run('verify', 'departments');
    expect({ clean, code }).toEqual({
      clean: expect.stringMatching(/^\d+ rows checked: 0 do not agree\.\n$/),
      code: 0,
    });
    // The queues update the company-wide lists after the import, and a check waits only seconds for them.
    const left = async () => (await storage.queue('index-changes').getProperties()).approximateMessagesCount;
    await expect.poll(left).toBe(0);
    const [row] = await Array.fromAsync(storage.table('employeesbyemail').listEntities());
    await storage.table('employeesbyemail').deleteEntity(row?.partitionKey ?? '', row?.rowKey ?? '');
    const broken = await run('verify', 'employees');
    expect(broken.code).toBe(1);
    expect(broken.said).toContain(
      `missing: emailCompanyWide of employeesbyemail/${row?.partitionKey}/${row?.rowKey}\n`,
    );
    // The output is no terminal.
    expect(broken.said).not.toContain('\u001b');
    const built = await run('reindex', 'employees', 'emailCompanyWide');
    expect(built).toMatchObject({
      code: 0,
      said: expect.stringContaining('1 of 1 missing rows added to the index'),
    });
    expect(await run('verify', 'employees', '--repair')).toMatchObject({
      code: 0,
      // Three digits are more than one page.
      said: expect.stringMatching(/^\d{3,} rows checked: 0 do not agree/),
    });
    expect(await run('verify', 'employees', '--path', '../employees')).toEqual({
      code: 1,
      said: expect.stringContaining('The path "../employees" is not accepted. Use 1 to 60 lower-case letters'),
    });
    expect(await run('verify', 'nothing')).toEqual({
      code: 1,
      said: expect.stringContaining('returned 404: there is no entity of this name to check. Archives are checked'),
    });
    expect(await run('reindex', 'employees', 'nothing')).toEqual({
      code: 1,
      said: expect.stringMatching(/employees has no index "nothing" to build\. Accepted: .*emailCompanyWide/),
    });
    expect(await run('reindex', 'employees', 'emailCompanyWide', '--clean-up')).toEqual({
      code: 1,
      said: expect.stringContaining('Former index "emailCompanyWide" of employees not found'),
    });
  });
});

describe('npm run verify', () => {
  test('continues where it was killed, and reports all findings', async () => {
    const { folder, run, storage } = product;
    const whole = await run('verify', 'employees', '--rate', '5000');
    const [, rows] = /^(\d{3,}) rows/.exec(whole.said) ?? [];
    const rowsThere = await Array.fromAsync(storage.table('employees').listEntities());
    const early = rowsThere.find(({ rowKey }) => rowKey?.startsWith('email_'));
    await storage.table('employees').deleteEntity(early?.partitionKey ?? '', early?.rowKey ?? '');

    // At this rate, the pause after the first page takes minutes.
    const { child } = spawnCommand('verify', ['employees', '--rate', '1', '--data', folder]);
    const bookmark = join(folder, 'verify-employees-look');
    await vi.waitFor(() => expect(existsSync(bookmark)).toBe(true), { timeout: PATIENCE_MS, interval: 20 });
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { code, said } = await run('verify', 'employees', '--rate', '5000');
    const [, before] = /^Resuming after (\d+) rows/.exec(said) ?? [];
    expect(said).toMatch(
      new RegExp(
        `\n${Number(rows) - 1} rows checked: 1 do not agree\\. The interrupted run before has ${before} of the rows and [01] of the findings\\.$`,
        'm',
      ),
    );
    expect(code).toBe(1);
    expect(existsSync(bookmark)).toBe(false);
    expect(await run('verify', 'employees', '--repair', '--rate', '5000')).toMatchObject({ code: 0 });
  });

  test('rejects a rate that is not a number from 1', async () => {
    for (const rate of sampleItems(['0', '-5', 'fast', 'Infinity'], 'rate'))
      expect(await product.run('verify', 'departments', `--rate=${rate}`)).toEqual({
        code: 1,
        said: expect.stringContaining('A rate must be a number of at least 1.'),
      });
  });
});

describe('npm run replay', () => {
  test('sends the failed messages with a reason again', async () => {
    const { run, storage, runTimer } = product;
    for (const queue of ['index-changes', 'transfers']) await storage.queue(`${queue}-poison`).sendMessage('nonsense');
    expect(await runTimer('poison')).toBe(202);
    const left = async () => {
      const listed = await product.as('operator')('GET', '/api/operations/poison');
      return listed.body.items.map(({ queue }: { queue: string }) => queue).sort();
    };
    await expect.poll(left).toEqual(['index-changes', 'transfers']);
    const none = { said: '0 messages sent again.\n', code: 0 };
    expect(await run('replay', '--reason', 'the account second does not respond')).toEqual(none);
    expect(await run('replay', '--queue', 'transfers', '--reason', 'it is not JSON')).toEqual({
      said: '1 messages sent again.\n',
      code: 0,
    });
  });
});

describe('npm run purge', () => {
  test('counts entities, and deletes them with their index entries before it ends', async () => {
    const { folder, run, storage } = product;
    const file = join(folder, 'films.ndjson');
    const films = Array.from({ length: 12 }, (_, index) => ({
      title: `Purged ${index}`,
      year: 1900 + (index % 90),
      genres: [index % 2 ? 'Purged' : 'Comedy'],
      cast: ['Nobody'],
    }));
    await writeFile(file, films.map((film) => `${JSON.stringify(film)}\n`).join(''));
    expect(await run('import', 'movies', file)).toMatchObject({ code: 0 });
    expect(await run('purge', 'movies')).toEqual({
      code: 0,
      said: expect.stringMatching(/^\d+ movies would be deleted, .*Nothing is deleted without --yes\.\n$/),
    });
    const { said, code } = await run('purge', 'movies', '--yes');
    const [, deleted, found] = /^(\d+) of (\d+) movies deleted\.\n$/.exec(said) ?? [];
    expect({ code, deleted }).toEqual({ code: 0, deleted: found });
    const isLive = ({ EntityType }: Record<string, unknown>) => EntityType === 'movies';
    expect((await Array.fromAsync(storage.table('movies').listEntities())).filter(isLive)).toEqual([]);
    expect(await Array.fromAsync(storage.table('moviesbyactor').listEntities())).toEqual([]);
  });
});

describe('npm run soak', () => {
  test.runIf(IS_EVERY_POINT)('reports no error after some seconds', async () => {
    const { code, said } = await runScript('test/soak.ts', ['--seconds', '2', '--callers', '8', '--no-build']);
    expect({ code, said }).toEqual({ code: 0, said: expect.stringMatching(/findings {6}0\nviolations {4}0\n$/) });
    // At least one of each caller.
    expect(Number(/requests +(\d+)/.exec(said)?.[1])).toBeGreaterThanOrEqual(8);
  });
});
