import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** The statements at run time: a type is not loaded. */
const IMPORTS = /^(?:import|export) (?!type )[^;]*?'([^']+)';|\bimport\('([^']+)'\)/gm;
const STORAGE = join(import.meta.dirname, 'storage.ts');
/** What starts a process or a browser, and what compares with the emulator. */
const CONTRACT = join(import.meta.dirname, 'storage-contract', 'contract.ts');
const OUTSIDE = ['node:child_process', 'playwright-core', CONTRACT];

const known = new Map<string, readonly string[]>();

/**
 * True if a test file needs no emulator, no other process and no build. With `hasStorage`, the file may use the storage account
 * of a test (storage.ts), which is then one in memory.
 */
export function isInProcess(file: string, { hasStorage }: { readonly hasStorage: boolean }): boolean {
  const path = join(process.cwd(), file);
  if (readFileSync(path, 'utf8').includes("'dist/")) return false;
  const reached = reachedFrom(path);
  return !OUTSIDE.some((outside) => reached.has(outside)) && (hasStorage || !reached.has(STORAGE));
}

/** True if a test file uses the storage account of a test, and accepts one in memory, which does not check the origins of web pages. */
export function acceptsMemory(file: string): boolean {
  const path = resolve(file);
  const reached = reachedFrom(path);
  return reached.has(STORAGE) && !reached.has(CONTRACT) && !/\bcors: \[/.test(readFileSync(path, 'utf8'));
}

/** The modules of this repository that a file loads, and the names of others. */
function reachedFrom(path: string): ReadonlySet<string> {
  const reached = new Set([path]);
  // The set grows while the loop runs.
  for (const one of reached) for (const imported of importsOf(one)) reached.add(imported);
  return reached;
}

function importsOf(path: string): readonly string[] {
  const found = known.get(path);
  if (found) return found;
  const text = existsSync(path) && /\.m?tsx?$/.test(path) ? readFileSync(path, 'utf8') : '';
  const imports = [...text.matchAll(IMPORTS)].map(([, one = '', other = '']) => one || other);
  const paths = imports.map((name) => (name.startsWith('.') ? join(dirname(path), name) : name));
  known.set(path, paths);
  return paths;
}
