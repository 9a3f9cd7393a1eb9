import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

const PROBE = fileURLToPath(new URL('load-probe.ts', import.meta.url));
const MAX_OUTPUT_BYTES = 10_000_000;
const Loaded = z.object({
  milliseconds: z.number(),
  cpuMilliseconds: z.number(),
  megabytes: z.number(),
  functions: z.array(z.string()),
  builtins: z.array(z.string()),
});

export interface Loaded {
  readonly milliseconds: number;
  readonly cpuMilliseconds: number;
  /** The resident memory of the process. */
  readonly megabytes: number;
  /** The names of the registered functions, sorted. */
  readonly functions: readonly string[];
  /** The modules of Node that the process has loaded. */
  readonly builtins: readonly string[];
}

/**
 * Loads an app in a new process, without a host. With a folder for compiled code, V8 reads and writes its code there. Throws
 * with the error of Node if the app cannot be loaded.
 */
export async function measureLoad(files: readonly string[], compileCache?: string): Promise<Loaded> {
  const env = compileCache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const { stdout } = await promisify(execFile)(process.execPath, [PROBE, ...files], {
    env,
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  const { functions, ...loaded } = Loaded.parse(JSON.parse(stdout));
  return { ...loaded, functions: functions.toSorted() };
}
