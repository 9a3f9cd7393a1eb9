import type { Values } from '../../lib/index.ts';
import type { Step } from '../../local/walk/steps.ts';
import type { Entity } from '../kit/define.ts';

/**
 * Whether a user of `ruled-model.ts` got what only members of a group or of a team may see, or changed what only its author may: from what callers did,
 * and from no code of the product.
 */
export interface RulesOracle {
  /** A write that may have let the user reach more. */
  noteWrite(step: Step, begun: number): void;
  /** A sentence if the user cannot have been allowed to read these values by then. */
  check(entity: Entity, values: Values, call: { readonly nth: number; readonly ended: number }): string | undefined;
  /** A sentence if the user cannot have been allowed to delete this by then. */
  checkDelete(step: Step, nth: number): string | undefined;
  /** True if the user may change, delete or move an entity with these values, or one that it is a child of. */
  allows(entity: Entity, change: 'update' | 'delete' | 'move', values: Values): boolean;
  /** True if the user may create all of these entities. */
  mayCreate(names: readonly string[]): boolean;
}

export function createRulesOracle(user: string): RulesOracle {
  /** When the user may have become a member of each group, and of each team. */
  const since = new Map<string, number>();
  /** The groups of which the user may have become an admin. */
  const admin = new Set<string>();
  const groupOf = ({ groupId }: Values) => `the group ${JSON.stringify(groupId)}`;
  const teamOf = ({ team }: Values) => `the team ${JSON.stringify(team)}`;
  const note = (place: string, begun: number) => void since.set(place, Math.min(begun, since.get(place) ?? begun));
  return {
    noteWrite({ of, do: write, key, values, actions = [] }, begun) {
      const made = [
        ...(write === 'create' || write === 'put' ? [{ ...values, ...key }] : []),
        ...actions.flatMap(({ create, put }) => [create, put].filter((given) => given !== undefined)),
      ] as Values[];
      if (of === 'members') for (const one of made) if (one.userId === user) note(groupOf(one), begun);
      const patched = [
        ...made,
        { ...values, ...key },
        ...actions.flatMap(({ patch }) => (patch ? [patch] : [])),
      ] as Values[];
      if (of === 'members')
        for (const one of patched) if (one.userId === user && one.role === 'admin') admin.add(groupOf(one));
      // A change of a person names neither its user nor its team, or one of them.
      const changed = [...made, ...(values ? [values] : []), ...actions.flatMap(({ patch }) => (patch ? [patch] : []))];
      if (of === 'people') for (const one of changed) if (one.team) note(teamOf(one), begun);
    },
    check(entity, values, { nth, ended }) {
      if (!['members', 'expenses', 'notes', 'boards'].includes(entity.name)) return undefined;
      if (entity.name === 'notes' && values.userId === user) return undefined;
      const place = entity.name === 'boards' ? teamOf(values) : groupOf(values);
      if (entity.name !== 'notes' && (since.get(place) ?? Number.POSITIVE_INFINITY) <= ended) return undefined;
      return `event ${nth}: ${user} is not of ${place} and reaches ${entity.name} ${JSON.stringify(values)}`;
    },
    checkDelete({ of, do: write, key = {} }, nth) {
      if (write !== 'delete' || !['members', 'expenses'].includes(of) || admin.has(groupOf(key))) return undefined;
      return `event ${nth}: ${user} is no admin of ${groupOf(key)} and deletes ${of} ${JSON.stringify(key)}`;
    },
    allows({ name }, change, { status, userId, paidBy }) {
      if (name === 'notes') return userId === user && status === 'draft';
      if (name === 'folders') return userId === user;
      if (name === 'papers') return change === 'delete' || (change === 'move' && status === 'draft');
      if (name === 'expenses' && change === 'update') return paidBy === user && status === 'draft';
      return name !== 'notices' && name !== 'boards' && name !== 'people';
    },
    mayCreate: (names) => !names.includes('notices'),
  };
}
