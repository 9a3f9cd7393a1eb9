import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const COMPILER = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));

/** Compiles a project, and returns what the compiler reports: nothing without an error. */
export async function checkTypes(project: string): Promise<string> {
  // By default there are four checkers, which repeat a part of their work. Other tests need the cores.
  const checked = promisify(execFile)(process.execPath, [COMPILER, '--project', project, '--checkers', '1']);
  const { stdout, stderr } = await checked.catch((error: { stdout: string; stderr: string }) => error);
  return stdout + stderr;
}
