import { rm } from 'node:fs/promises';

// tsc leaves the output of deleted sources behind, and the functions host would still load it.
await rm('dist', { recursive: true, force: true });
