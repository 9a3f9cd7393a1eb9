import { RULES, type Rule } from '../model/rules.ts';

/** The code without a rule or a mending, which the simulation has to find. */
export type Mutant = Pick<Rule, 'without' | 'file' | 'edits'>;

export const MUTANTS: readonly Mutant[] = [...RULES];
