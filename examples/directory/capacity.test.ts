import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { costOfEntity } from '../../local/capacity/entity-cost.ts';
import { readMeasured } from '../../local/capacity/format-plan.ts';
import { model } from '../../model/model.ts';

const run = promisify(execFile);
const costs = new Map(
  model.list.map((entity) => {
    const { tables, queues } = costOfEntity(entity);
    return [entity.name, { cost: tables + queues, isChild: entity.childOf !== undefined }] as const;
  }),
);

test('the counted transactions of a create are those that docs/internals/patterns.md and docs/reference/http.md have measured', async () => {
  const measured = [...readMeasured(await readFile('docs/internals/patterns.md', 'utf8'))];
  const rows = (await readFile('docs/reference/http.md', 'utf8')).matchAll(/^\| Create one of `(\w+)`[^|]*\| (\d+)/gm);
  const stated = [...rows].map(([, entity = '', cost]) => [entity, Number(cost)] as const);
  const all = [...measured, ...stated].filter(([entity]) => costs.has(entity));
  expect(all.map(([entity]) => entity)).toContain('employees');
  for (const [entity, transactions] of all) {
    const { cost, isChild } = costs.get(entity) ?? { cost: 0, isChild: false };
    // A process that wrote the parent last does not read it again.
    if (isChild) expect([cost - 1, cost], entity).toContain(transactions);
    else expect(transactions, entity).toBe(cost);
  }
});

test('npm run capacity rejects what it cannot size', { tags: ['slow'] }, async () => {
  const refused = async (...options: string[]) =>
    run(process.execPath, ['local/commands/capacity.ts', ...options]).catch(({ stderr }) => String(stderr));
  expect(await refused('--reads', '5')).toContain('Name an entity and its number');
  expect(await refused('--employees', 'many')).toContain('A number from 0 is needed');
  expect(await refused('--salaries', '5')).toContain("unknown option '--salaries'");
});
