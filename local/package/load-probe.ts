// Imports the files in its arguments as the functions worker would, and prints the load time and the registered functions.
import Module from 'node:module';
import { pathToFileURL } from 'node:url';
import * as core from '../host/functions-core.ts';

// The worker provides its module only through require; an import fails, there and here.
Module.prototype.require = new Proxy(Module.prototype.require, {
  apply: (target, caller, args) => (args[0] === '@azure/functions-core' ? core : Reflect.apply(target, caller, args)),
});

const start = performance.now();
for (const file of process.argv.slice(2)) await import(pathToFileURL(file).href);
const milliseconds = performance.now() - start;
const functions = core.sealFunctions().map(({ metadata }) => metadata.name);
process.stdout.write(JSON.stringify({ milliseconds, functions }));
