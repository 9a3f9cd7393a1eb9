import type { Values } from '../../lib/index.ts';
import type { Step } from '../../local/walk/steps.ts';
import type { Entity } from '../kit/define.ts';

/**
 * Whether a user of `test/rules/groups-model.ts` got what only members of a group may see or write: from what callers did, and from no code of
 * the product.
 */
export interface RulesOracle {
  /** A write that may have made somebody a member. */
  noteWrite(step: Step, begun: number): void;
  /** A sentence if the user cannot have been a member of the group of these values by then. */
  check(entity: Entity, values: Values, call: { readonly nth: number; readonly ended: number }): string | undefined;
}

export function createRulesOracle(user: string): RulesOracle {
  /** When the user may have become a member of each group. */
  const since = new Map<unknown, number>();
  return {
    noteWrite({ of, do: write, key, values, actions = [] }, begun) {
      if (of !== 'members') return;
      const made = [
        ...(write === 'create' || write === 'put' ? [{ ...values, ...key }] : []),
        ...actions.flatMap(({ create, put }) => [create, put].filter((given) => given !== undefined)),
      ];
      for (const { groupId, userId } of made as Values[])
        if (userId === user) since.set(groupId, Math.min(begun, since.get(groupId) ?? begun));
    },
    check({ name }, values, { nth, ended }) {
      if ((since.get(values.groupId) ?? Number.POSITIVE_INFINITY) <= ended) return undefined;
      return `event ${nth}: ${user} is no member of the group ${JSON.stringify(values.groupId)} and reaches ${name} ${JSON.stringify(values)}`;
    },
  };
}
