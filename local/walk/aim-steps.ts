import { isDeepStrictEqual } from 'node:util';
import { pick, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { addComputed } from '../packs/example-values.ts';
import type { BatchAction, Step } from './steps.ts';
import { targetOf } from './values.ts';

/** An entity that an earlier step may have written. */
interface Target {
  readonly of: string;
  readonly key: Values;
}

/** Returns an element of a list, always the same of the same list. */
type Choose = <Element>(all: readonly Element[]) => Element | undefined;

/**
 * Lets three of four steps concern an entity of an earlier step, by their key or by a reference: random keys seldom do. The numbers
 * decide, so that a seed always has the same steps.
 */
export function aimSteps(entities: readonly Entity[], steps: readonly (readonly [Step, number])[]): Step[] {
  let targets: readonly Target[] = [];
  return steps.map(([step, number]) => {
    const entity = entities.find(({ name }) => name === step.of);
    if (!entity) return step;
    const choose: Choose = (all) => all[Math.floor(number / 4) % all.length];
    const aimed = number % 4 === 0 ? step : aimStep(entity, step, { targets, choose });
    targets = targetsAfter(entity, aimed, targets);
    return aimed;
  });
}

interface Aim {
  readonly targets: readonly Target[];
  readonly choose: Choose;
}

function aimStep(entity: Entity, step: Step, { targets, choose }: Aim): Step {
  const { do: write, key = {}, values = {}, actions = [] } = step;
  const possible = targets.filter(({ of }) => concerns(entity, write, of));
  const target = choose(possible)?.key ?? {};
  const aimedKey = aimKey(entity, key, target);
  // The values of a move are its destination.
  const aimedValues = write === 'move' ? values : aimKey(entity, values, target);
  const partition = write === 'atomic' ? pick(target, entity.partition.fields) : {};
  const aimedActions = actions.map((action, index) => {
    const aimed = Object.entries(action).map(([kind, each]) => {
      const own = aimKey(entity, each, index === 0 && kind !== 'create' ? target : partition);
      return [kind, aimReferences(entity, own, { targets, choose })];
    });
    return Object.fromEntries(aimed) as BatchAction;
  });
  return {
    ...step,
    ...(step.key && { key: aimedKey }),
    ...(step.values && {
      values: pick(aimReferences(entity, { ...aimedKey, ...aimedValues }, { targets, choose }), Object.keys(values)),
    }),
    ...(step.actions && { actions: aimedActions }),
  };
}

/** True if a step may concern an entity of the declaration `of`. */
function concerns({ name, childOf, archive }: Entity, write: Step['do'], of: string): boolean {
  if (write === 'deleteArchived') return of === archive?.name;
  if (write !== 'create' && write !== 'put') return of === name;
  // A create of a key that exists is rejected, and so is a child without its parent.
  return of === name ? write === 'put' : childOf === undefined || of === childOf.name;
}

/** Key fields of one name mean the same in all entities of a group, as in `valuesOf`. */
function aimKey({ keyFields }: Entity, values: Values, target: Values): Values {
  return {
    ...values,
    ...pick(
      target,
      keyFields.filter((field) => Object.hasOwn(values, field)),
    ),
  };
}

/** Lets references name an entity that has the same other key fields, and removes those that no entity has. */
function aimReferences(entity: Entity, values: Values, { targets, choose }: Aim): Values {
  const aimed = Object.entries(values).flatMap(([field, value]) => {
    const { to, by } = targetOf(entity, field) ?? {};
    if (!to || !by || value === null || entity.keyFields.includes(field)) return [[field, value]];
    const others = Object.keys(values).filter((name) => name !== by && name !== field);
    const found = targets.filter(
      ({ of, key }) => of === to.name && others.every((name) => !(name in key) || key[name] === values[name]),
    );
    const target = choose(found);
    return target ? [[field, target.key[by]]] : [];
  });
  return Object.fromEntries(aimed);
}

/** The entities that exist after a step that succeeded. */
function targetsAfter(entity: Entity, step: Step, targets: readonly Target[]): readonly Target[] {
  const { do: write, key = {}, values = {}, actions = [] } = step;
  const own = (given: Values) => ({ of: entity.name, key: pick(given, entity.keyFields) });
  const created = (given: Values) => own(addComputed(entity, given));
  const without = () => targets.filter((target) => !isDeepStrictEqual(target, own(key)));
  switch (write) {
    case 'create':
      return [...targets, created(values)];
    case 'put':
      return [...targets, own(key)];
    case 'move':
      return [...without(), own({ ...key, ...values })];
    case 'delete':
      return without();
    case 'archive':
      return [...without(), { of: entity.archive?.name ?? '', key }];
    case 'batch':
    case 'atomic':
      return [
        ...targets,
        ...actions.flatMap(({ create, put }) => [create, put].flatMap((given) => (given ? [created(given)] : []))),
      ];
    default:
      return entity.series ? [...targets, own(key)] : targets;
  }
}
