import { describe, expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { useConsole } from '../../test/console.ts';
import { testBrowsing } from '../../test/console-flows/browsing.ts';
import { testCharts } from '../../test/console-flows/charts.ts';
import { testFiles } from '../../test/console-flows/files.ts';
import { testOperating } from '../../test/console-flows/operating.ts';
import { testRows } from '../../test/console-flows/rows.ts';
import { testTransfers } from '../../test/console-flows/transfers.ts';
import { sampleItems } from '../../test/points.ts';

/** The flows of the console on the model of the packs. The tests' own model has them, too, so that a usual run takes one of the flows. */

const harness = await useConsole(import.meta.url, { app: deployedApp });
const FLOWS = {
  lists: testBrowsing,
  'forms and actions': testRows,
  'charts and logs': testCharts,
  files: testFiles,
  'import and export': testTransfers,
  'an operator': testOperating,
};

test('offers the departments to choose whose employees are listed', async () => {
  const body = { department: 'Archives', name: 'Archives department' };
  expect((await harness.product.as('hr')('POST', '/api/departments', { body })).status).toBe(201);
  const page = await harness.open('#/entities/employees', 'reader');
  await page.getByRole('region', { name: 'Choose department' }).getByRole('link', { name: 'Archives' }).click();
  await page.getByText('No row matches.').waitFor();
});

describe.each(sampleItems(Object.entries(FLOWS), 'flow'))('%s', (_, testFlow) => void testFlow(harness));
