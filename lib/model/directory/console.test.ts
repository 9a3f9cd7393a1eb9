import { describe } from 'vitest';
import { deployedApp } from '../../../local/instance/deployed-app.ts';
import { useConsole } from '../../../test/console.ts';
import { testCharts } from '../../../test/console-flows/charts.ts';
import { testFiles } from '../../../test/console-flows/files.ts';
import { testTransfers } from '../../../test/console-flows/transfers.ts';

/** The flows of the console on the model of the packs. The tests' own model has them, too. */

const harness = await useConsole(import.meta.url, { app: deployedApp });

describe('charts and logs', () => testCharts(harness));
describe('files', () => testFiles(harness));
describe('import and export', () => testTransfers(harness));
