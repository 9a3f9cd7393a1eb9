// Imports the files in its arguments as the functions worker would, and prints what the load took and the registered functions.
import './require-core.ts';
import { pathToFileURL } from 'node:url';
import * as core from '../host/functions-core.ts';

const start = performance.now();
const cpu = process.cpuUsage();
for (const file of process.argv.slice(2)) await import(pathToFileURL(file).href);
const milliseconds = performance.now() - start;
const { user, system } = process.cpuUsage(cpu);
const megabytes = process.memoryUsage.rss() / 1_000_000;
const functions = core.sealFunctions().map(({ metadata }) => metadata.name);
// Undocumented, and the only list of the modules of Node that are loaded.
const loaded: unknown = Reflect.get(process, 'moduleLoadList');
const builtins = (Array.isArray(loaded) ? loaded : []).map((name) => String(name).replace('NativeModule ', ''));
process.stdout.write(
  JSON.stringify({ milliseconds, cpuMilliseconds: (user + system) / 1_000, megabytes, functions, builtins }),
);
