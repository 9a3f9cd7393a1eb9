import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { PATIENCE_MS } from '../../test/patience.ts';
import { IS_EVERY_POINT } from '../../test/points.ts';
import { useStartProcess } from '../../test/start-process.ts';

const ADVENTURE_WORKS = '../shared/data/adventureworks-employees.csv';

const started = useStartProcess({ deployed: true });

test('npm start loads the sample company', { tags: ['slow'] }, async () => {
  const { process: running } = started;
  expect(running.said()).toContain('has loaded the sample data');
  const ask = await running.as('hr');
  const sales = await (await ask('GET', 'departments/Sales')).json();
  expect(sales).toMatchObject({ managerId: '000123', managerName: 'June Jones', employeeCount: 6 });
  const june = (await (await ask('GET', 'employees/Sales/000123')).json()) as { birthDate: string; age: number };
  const yearsSinceBirth = (Date.now() - Date.parse(june.birthDate)) / (365.2425 * 86_400_000);
  // The calendar and the mean year differ by less than a week.
  expect(Math.abs(yearsSinceBirth - 0.5 - june.age)).toBeLessThan(0.52);
  expect((await ask('GET', 'employees/Sales/000123/photo')).headers.get('content-type')).toBe('image/png');
});

test.runIf(IS_EVERY_POINT)('npm start loads the sample company once', async () => {
  const { process: running } = started;
  const ask = await running.as('hr');
  expect((await ask('DELETE', 'employees/Sales/000124')).status).toBe(204);
  await running.end();
  await started.startAgain();
  expect(started.process.said()).not.toContain('sample data');
  expect((await (await started.process.as('hr'))('GET', 'employees/Sales/000124')).status).toBe(404);
});

test.runIf(IS_EVERY_POINT && existsSync(ADVENTURE_WORKS))(
  `npm run import loads the employees of AdventureWorks (needs ${ADVENTURE_WORKS})`,
  async () => {
    // The sample company has employees of some of these numbers.
    const file = join(started.folder, 'adventure-works.csv');
    await writeFile(file, (await readFile(ADVENTURE_WORKS, 'utf8')).replace(/^0/gm, '7'));
    const { run } = started.process;
    expect(await run('import', 'employees', file)).toEqual({
      code: 0,
      said: expect.stringMatching(/^290 read: 290 created, 0 stored, 0 unchanged, 0 rejected/),
    });
    expect(await run('import', 'employees', file)).toEqual({
      code: 0,
      said: expect.stringContaining('all 290'),
    });
    const ask = await started.process.as('reader');
    const francois = await ask('GET', 'employees/by/emailCompanyWide/fran%C3%A7ois0@adventure-works.com');
    expect(await francois.json()).toMatchObject({ firstName: 'François' });
    const johnsons = async () => {
      const response = await ask('GET', 'employees/by/lastNameCompanyWide/Johnson');
      const { items } = (await response.json()) as { items: { firstName: string }[] };
      return items.map(({ firstName }) => firstName).sort();
    };
    await vi.waitFor(async () => expect(await johnsons()).toEqual(['Barry', 'David', 'Willis']), {
      timeout: PATIENCE_MS,
    });
  },
);
