import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

const PROBE = fileURLToPath(new URL('load-probe.ts', import.meta.url));
const Loaded = z.object({
  milliseconds: z.number(),
  cpuMilliseconds: z.number(),
  megabytes: z.number(),
  functions: z.array(z.string()),
});

export interface Loaded {
  readonly milliseconds: number;
  readonly cpuMilliseconds: number;
  /** The resident memory of the process. */
  readonly megabytes: number;
  /** The names of the registered functions, sorted. */
  readonly functions: readonly string[];
}

/** Loads an app in a new process, without a host. Throws with the error of Node if the app cannot be loaded. */
export async function measureLoad(files: readonly string[]): Promise<Loaded> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROBE, ...files]);
  const { functions, ...loaded } = Loaded.parse(JSON.parse(stdout));
  return { ...loaded, functions: functions.toSorted() };
}
