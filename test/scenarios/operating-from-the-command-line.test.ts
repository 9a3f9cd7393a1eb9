import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openStorage } from '../../lib/storage/storage.ts';
import { EMULATOR_ACCOUNT } from '../../local/azurite.ts';
import { runCommand, useStartProcess } from '../start-process.ts';

/** With the sample, more than one page of an audit. */
const MORE = Array.from(
  { length: 150 },
  (_, index) =>
    `${800_000 + index},José,Reátegui ${index % 7},josé${index}@contoso.com,${index % 3 ? 'Tool Design' : 'Small'}\n`,
);

const started = useStartProcess();

describe('npm run audit and reindex', () => {
  test('find what was broken by hand, repair it, and build an index anew', async () => {
    const { folder } = started;
    const { run } = started.process;
    const file = join(folder, 'more.csv');
    await writeFile(file, `employeeId,firstName,lastName,email,department\n${MORE.join('')}`);
    expect(await run('import', 'employees', file)).toMatchObject({ code: 0 });
    const { said: clean, code } = await run('audit', 'departments');
    expect({ clean, code }).toEqual({
      clean: expect.stringMatching(/^\d+ rows looked at: 0 do not agree\.\n$/),
      code: 0,
    });
    const { tables } = JSON.parse(await readFile(join(folder, 'instance.json'), 'utf8'));
    const { name, key } = EMULATOR_ACCOUNT;
    const account = `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${key}`;
    const storage = openStorage({
      connectionString: `${account};TableEndpoint=${tables};QueueEndpoint=${tables};BlobEndpoint=${tables}`,
    });
    const [row] = await Array.fromAsync(storage.table('employeesbyemail').listEntities());
    await storage.table('employeesbyemail').deleteEntity(row?.partitionKey ?? '', row?.rowKey ?? '');
    const broken = await run('audit', 'employees');
    expect(broken.code).toBe(1);
    expect(broken.said).toContain(
      `missing: emailCompanyWide of employeesbyemail/${row?.partitionKey}/${row?.rowKey}\n`,
    );
    const built = await run('reindex', 'employees', 'emailCompanyWide');
    expect(built).toMatchObject({
      code: 0,
      said: expect.stringContaining('1 of 1 that were missing are in the index'),
    });
    expect(await run('audit', 'employees', '--repair')).toMatchObject({
      code: 0,
      // Three digits are more than one page.
      said: expect.stringMatching(/^\d{3,} rows looked at: 0 do not agree/),
    });
    expect(await run('audit', 'nothing')).toEqual({
      code: 1,
      said: expect.stringContaining('answered 404: no entity, or no index of it, has that name.'),
    });
    expect(await run('reindex', 'employees', 'emailCompanyWide', '--clean-up')).toEqual({
      code: 1,
      said: expect.stringContaining('employees has no former index emailCompanyWide of which anything is left.'),
    });
  });
});

describe('npm run soak', () => {
  test('has nothing to complain of after some seconds', async () => {
    const { code, said } = await runCommand('soak', '--seconds', '8', '--callers', '8');
    expect({ code, said }).toEqual({ code: 0, said: expect.stringMatching(/drift {9}0\nviolations {4}0\n$/) });
    expect(Number(/requests +(\d+)/.exec(said)?.[1])).toBeGreaterThan(20);
  });
});
