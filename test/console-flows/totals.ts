import { beforeAll, expect, test } from 'vitest';
import { type ConsoleHarness, lookAt } from '../console.ts';

interface TotalsCase {
  readonly entity: string;
  readonly totals: string;
  /** Each with its entity. Two of them are rows of different groups; the first is in `group`, with an amount of 2.5. */
  readonly rows: readonly (readonly [string, object])[];
  /** The fields of the group; the last one makes the difference. */
  readonly group: Readonly<Record<string, string>>;
}

/** Totals of any model. */
export function testTotals({ product, open }: ConsoleHarness, { entity, totals, rows, group }: TotalsCase): void {
  beforeAll(async () => {
    for (const [name, body] of rows)
      expect((await product.as('hr')('POST', `/api/${name}`, { body })).status).toBe(201);
  });

  test('reads totals by group and by a range of groups', async () => {
    const page = await open(`#/entities/${entity}/totals`, 'hr');
    const fields = Object.entries(group);
    const fill = ([name, value]: (typeof fields)[number]) => page.getByRole('textbox', { name }).fill(value);
    for (const field of fields.slice(0, -1)) await fill(field);
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByText('2 groups').waitFor();
    for (const field of fields.slice(-1)) await fill(field);
    await page.getByRole('button', { name: 'Read' }).click();
    await page.getByText('1 group').waitFor();
    const cells = page.getByRole('region', { name: `Totals ${totals}` }).getByRole('cell');
    expect((await cells.allTextContents()).slice(0, fields.length + 2)).toEqual([...Object.values(group), '1', '2.5']);
    await lookAt(page, 'totals');
    const search = fields.slice(0, -1).map(([name, value]) => `&key.${name}=${value}`);
    const unknown = await open(`#/entities/${entity}/totals?by=nothing${search.join('')}&read=true`, 'hr');
    await unknown.getByText(`${entity} has no totals “nothing”, or your roles do not see them.`).waitFor();
    expect(await unknown.getByText('2 groups').count()).toBe(0);
  });
}
