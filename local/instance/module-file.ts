import { extname } from 'node:path';

/**
 * Returns the address of a module beside another, for a process that runs it: `moduleFile('../host/main', import.meta.url)`. The compiler
 * rewrites the extensions of imports, and not those of other paths: the modules of the package end with `.js`.
 */
export function moduleFile(path: string, from: string): URL {
  return new URL(`${path}${extname(new URL(from).pathname)}`, from);
}
