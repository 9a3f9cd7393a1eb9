import Module from 'node:module';
import * as core from '../host/functions-core.ts';

// The worker provides its module only through require; an import fails, there and here.
Module.prototype.require = new Proxy(Module.prototype.require, {
  apply: (target, caller, args) => (args[0] === '@azure/functions-core' ? core : Reflect.apply(target, caller, args)),
});
