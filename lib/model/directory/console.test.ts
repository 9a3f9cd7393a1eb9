import { describe } from 'vitest';
import { deployedApp } from '../../../local/instance/deployed-app.ts';
import { useConsole } from '../../../test/console.ts';
import { testBrowsing } from '../../../test/console-flows/browsing.ts';
import { testCharts } from '../../../test/console-flows/charts.ts';
import { testFiles } from '../../../test/console-flows/files.ts';
import { testOperating } from '../../../test/console-flows/operating.ts';
import { testRows } from '../../../test/console-flows/rows.ts';
import { testTransfers } from '../../../test/console-flows/transfers.ts';

/** The flows of the console on the model of the packs. The tests' own model has them, too. */

const harness = await useConsole(import.meta.url, { app: deployedApp });

describe('lists', () => testBrowsing(harness));
describe('forms and actions', () => {
  testRows(harness);
});
describe('charts and logs', () => testCharts(harness));
describe('files', () => testFiles(harness));
describe('import and export', () => testTransfers(harness));
describe('an operator', () => {
  testOperating(harness);
});
