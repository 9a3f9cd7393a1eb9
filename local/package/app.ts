import { fileURLToPath } from 'node:url';
import { loadBundle } from './load-bundle.ts';

// dist/app.js, which the functions worker imports.
loadBundle(fileURLToPath(new URL('main.cjs', import.meta.url)));
