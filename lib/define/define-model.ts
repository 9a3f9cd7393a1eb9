import type { Entity } from './entity.ts';
import { validateModel } from './validate-model.ts';

/** Declares what a deployment stores. Throws a plain error with a sentence for everything that is wrong with the model. */
export function defineDeployment(entities: readonly Entity[]): readonly Entity[] {
  const errors = validateModel(entities);
  if (errors.length > 0) throw new Error(`The model is not valid.\n${errors.join('\n')}`);
  return entities;
}
