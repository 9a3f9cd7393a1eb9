import { useConsole } from '../console.ts';
import { testTransfers } from '../console-flows/transfers.ts';

/** Import and export of the tests' model. */

testTransfers(await useConsole(import.meta.url));
