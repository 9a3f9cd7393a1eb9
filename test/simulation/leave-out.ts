import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { removeRule } from '../model/rules.ts';
import { MUTANTS } from './mutants.ts';

/** Loads the code without a rule, whose name is in `MUTANT`: `node --import ./test/simulation/leave-out.ts`. */
const rule = MUTANTS.find(({ without }) => without === process.env.MUTANT);
if (!rule) throw new Error(`There is no mutant "${process.env.MUTANT}".`);
const url = pathToFileURL(resolve(rule.file)).href;
registerHooks({
  load(loaded, context, next) {
    const result = next(loaded, context);
    return loaded === url ? { ...result, source: removeRule(rule, String(result.source)) } : result;
  },
});
