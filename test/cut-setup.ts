import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { resolve } from 'node:path';
import { inject } from 'vitest';

/** A test that reads the file of a cut and does not import it, such as a file of Bicep, reads it without what is cut. */
const { path, source } = inject('cut');
const { readFileSync } = fs;
const { readFile } = fs.promises;
const isCut = (file: unknown) => typeof file === 'string' && resolve(file) === path;
Object.assign(fs, {
  readFileSync: (...args: Parameters<typeof readFileSync>) => (isCut(args[0]) ? source : readFileSync(...args)),
});
Object.assign(fs.promises, {
  readFile: async (...args: Parameters<typeof readFile>) => (isCut(args[0]) ? source : readFile(...args)),
});
syncBuiltinESMExports();
