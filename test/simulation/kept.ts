import type { Values } from '../../lib/index.ts';
import type { Step } from '../../local/walk/steps.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity } from '../kit/define.ts';
import type { Outcome } from './caller.ts';

/**
 * What a caller has created, and nobody removes, is somewhere at the end: an order of what happened to one key explains that an entity is gone after a
 * move, and not that it arrived nowhere.
 */

interface Placed {
  readonly entity: Entity;
  readonly key: Values;
}

/** Where operations cannot move an entity: the fields of its key without those that a move changes. */
function unmovedFields({ keyFields, movable, childOf }: Entity): readonly string[] {
  return keyFields.filter((field) => !movable.includes(field) && !childOf?.movable.includes(field));
}

const isMovable = (entity: Entity) => unmovedFields(entity).length < entity.keyFields.length;

const agree = (fields: readonly string[], one: Values, other: Values) =>
  fields.every((field) => String(one[field]) === String(other[field]));

/** True for two keys of which moves make one. */
const isSame = (one: Placed, other: Placed) =>
  one.entity === other.entity && agree(unmovedFields(one.entity), one.key, other.key);

export function createKept() {
  const created: (Placed & { readonly nth: number })[] = [];
  const removals: ((placed: Placed) => boolean)[] = [];

  const create = (entity: Entity, key: Values, nth: number) => {
    if (isMovable(entity)) created.push({ entity, key: baseValues.pick(key, entity.keyFields), nth });
  };
  const remove = (entity: Entity, key: Values) =>
    void removals.push(
      (placed) =>
        isSame(placed, { entity, key }) ||
        (placed.entity.childOf === entity && agree(unmovedFields(entity), placed.key, key)),
    );

  return {
    noteWrite(entity: Entity, step: Step, { nth, outcome }: { readonly nth: number; readonly outcome: Outcome }): void {
      const { key = {}, values = {}, actions = [] } = step;
      const isDone = outcome.code === 'ok';
      if (['create', 'put'].includes(step.do) && isDone) create(entity, { ...values, ...key }, nth);
      if (['delete', 'archive'].includes(step.do)) remove(entity, key);
      if (step.do === 'deleteRange') removals.push(({ entity: other }) => other === entity || other.childOf === entity);
      actions.forEach((action, index) => {
        const isWritten = outcome.parts ? outcome.parts[index] === 'ok' : isDone;
        const written = action.create ?? action.put;
        if (written && isWritten) create(entity, written as Values, nth);
        if (action.delete) remove(entity, action.delete as Values);
      });
    },

    /** The keys at which a child may be after moves to `parents`. */
    placesOf({ entity, key }: Placed, parents: readonly Placed[]): Values[] {
      const { childOf: parent } = entity;
      if (!parent || parent.movable.length === 0) return [];
      return parents
        .filter((one) => one.entity === parent && agree(unmovedFields(parent), one.key, key))
        .map((one) => ({ ...key, ...baseValues.pick(one.key, parent.keyFields) }));
    },

    /** A sentence for each entity that was lost. `found` are those that the last reads found. */
    check(found: readonly Placed[]): string[] {
      return created
        .filter((one) => !removals.some((isRemoved) => isRemoved(one)) && !found.some((other) => isSame(one, other)))
        .map(
          ({ entity, key, nth }) => `${entity.name} ${JSON.stringify(key)}, which event ${nth} has created, is nowhere`,
        );
    },
  };
}
