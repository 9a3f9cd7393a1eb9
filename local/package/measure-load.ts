import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
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

/** Loads an app in a new process, without a host. Throws with the error of Node if the app cannot be loaded. */
export async function measureLoad(files: readonly string[]): Promise<Loaded> {
  probe ??= bundleProbe();
  const code = await probe;
  const running = promisify(execFile)(process.execPath, ['--input-type=module', '-', ...files], {
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  running.child.stdin?.end(code);
  const { functions, ...loaded } = Loaded.parse(JSON.parse((await running).stdout));
  return { ...loaded, functions: functions.toSorted() };
}

let probe: Promise<string> | undefined;

/** Bundles the probe as JavaScript: for TypeScript, Node would load its compiler, in 20 MB that no app takes. */
async function bundleProbe(): Promise<string> {
  const bundle = await rolldown({ input: PROBE, platform: 'node' });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  return output[0].code;
}
