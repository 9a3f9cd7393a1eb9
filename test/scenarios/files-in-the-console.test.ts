import { useConsole } from '../console.ts';
import { testFiles } from '../console-flows/files.ts';

/** Files of the tests' model. */

testFiles(await useConsole(import.meta.url));
