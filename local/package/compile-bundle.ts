// Compiles the bundle in its argument, in a process that has loaded nothing else.
import './require-core.ts';
import { compileBundle } from './load-bundle.ts';

const [bundle] = process.argv.slice(2);
if (bundle === undefined) throw new Error('Name the bundle.');
try {
  compileBundle(bundle);
} catch (error) {
  // Node would print the whole line, which is the bundle.
  console.error(error);
  process.exit(1);
}
// Whatever the app has opened.
process.exit();
