// Compiles the bundle in its argument, in a process that has loaded nothing else.
import './require-core.ts';
import { compileBundle } from './load-bundle.ts';

const [bundle] = process.argv.slice(2);
if (bundle === undefined) throw new Error('Name the bundle.');
compileBundle(bundle);
// Whatever the app has opened.
process.exit();
