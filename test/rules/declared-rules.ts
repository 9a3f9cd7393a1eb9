import type { Index, Values } from '../../lib/index.ts';
import { baseValues } from '../kit/base.ts';
import type { Term as Declared, Entity } from '../kit/define.ts';
import { type Caller, type List, listed, may } from './evaluator.ts';
import type { Action, Given, Rules, Term } from './random-model.ts';

/** The naive evaluator on the rules that a model declares. */

/** An entity that is stored. */
export interface Stored {
  readonly entity: Entity;
  readonly values: Values;
}

/** The entities with which terms are resolved: one term at a time, by looking at every entity. */
export class DeclaredRules {
  readonly #stored: readonly Stored[];

  constructor(stored: readonly Stored[]) {
    this.#stored = stored;
  }

  /** True if the caller may do this with the entity. */
  may(caller: Caller, action: Action, { entity, values }: Stored): boolean {
    return may(NOBODY_ELSE, caller, this.#rulesOf(caller, entity), action, values);
  }

  /** The entities of a list that the caller reads; undefined if the caller may not read the list. */
  listed(caller: Caller, entity: Entity, index: Index | undefined, all: readonly Values[]) {
    return listed(NOBODY_ELSE, caller, this.#rulesOf(caller, entity), listOf(entity, index), all);
  }

  #rulesOf(caller: Caller, { access: { rules, read, write } }: Entity): Rules {
    const bare = (roles: readonly string[]): Given[] => roles.map((role) => ({ role, where: {}, lists: 'bounded' }));
    if (!rules) return { read: bare(read), create: bare(write), update: bare(write), delete: bare(write) };
    const resolve = (rule: (typeof rules)[Action]): Given[] =>
      rule.map(({ role, where = {}, lists = 'bounded' }) => {
        const terms = Object.entries(where).map(
          ([field, term]) => [field, this.#resolve(caller, field, term)] as const,
        );
        return { role, lists, where: Object.fromEntries(terms) };
      });
    const sides = rules.update.filter(({ transition }) => transition);
    const pairs = [...Map.groupBy(sides, ({ transition }) => transition?.number).values()];
    const resolveSide = (pair: typeof sides, side: string) =>
      resolve(pair.filter(({ transition }) => transition?.side === side));
    return {
      read: resolve(rules.read),
      create: resolve(rules.create),
      update: resolve(rules.update.filter(({ transition }) => !transition)),
      transitions: pairs.map((pair) => ({ before: resolveSide(pair, 'before'), after: resolveSide(pair, 'after') })),
      delete: resolve(rules.delete),
    };
  }

  #resolve(caller: Caller, field: string, term: Declared<Entity>): Term {
    if (typeof term !== 'object') return { is: 'equal', value: term };
    if (term.is === 'claim') return oneOf([caller.claims[term.claim] ?? []].flat());
    if (term.is === 'own') {
      const { of, field: by = field } = term;
      const mine = of ? this.#ownOf(caller, of) : [];
      return oneOf(mine.map((values) => values[by]));
    }
    if (term.is === 'member') {
      const { of, field: by, where } = term;
      const user = of.keyFields.find((name) => name !== by) ?? '';
      const counted = Object.entries({ ...where, [user]: caller.subject });
      const mine = this.#all(of).filter((values) => counted.every(([name, value]) => values[name] === value));
      return oneOf(mine.map((values) => values[by]));
    }
    if (term.is === 'one of') return oneOf(term.values);
    return term.is === 'subject' ? { is: 'equal', value: caller.subject } : (term as Term);
  }

  #ownOf({ claims }: Caller, of: Entity): Values[] {
    const { own } = of.access;
    if (!own || !('claim' in own)) return [];
    const [by = ''] = of.indexes[own.index]?.row.fields ?? [];
    return this.#all(of).filter((values) => values[by] !== undefined && values[by] === claims[own.claim]);
  }

  #all(of: Entity): Values[] {
    return this.#stored.filter(({ entity }) => entity === of).map(({ values }) => values);
  }
}

/** Terms are resolved before the evaluator sees them. */
const NOBODY_ELSE = { people: [], members: [] };

function oneOf(values: readonly unknown[]): Term {
  return { is: 'one of', values: values as never };
}

/** A list in the order of keys: of the entity, or of an index. */
function listOf(entity: Entity, index: Index | undefined): List {
  const partition = index?.remote?.partition ?? entity.partition;
  const [first] = (index?.row ?? entity.row).parts;
  const looksUp = index !== undefined && (index.kind === 'index-entity' || index.copies === 'keys');
  const copied = index && 'copies' in index && Array.isArray(index.copies) ? index.copies : undefined;
  return {
    inPartition: partition.fields,
    isWhole: true,
    first: first && !first.hash && !first.each ? first.field : undefined,
    fields: copied && [...copied, ...entity.keyFields],
    looksUp,
  };
}

/**
 * One caller for each role with rules and all of them together, each as nobody in particular, and as somebody whom the entities know by
 * a subject or by the claim of an own entity.
 */
export function callersOf(entities: readonly Entity[], stored: readonly Stored[]): Caller[] {
  const alternatives = entities.flatMap(({ access }) => Object.values(access.rules ?? {}).flat());
  const limited = [
    ...new Set(alternatives.filter(({ where = {} }) => Object.keys(where).length > 0).map(({ role }) => role)),
  ];
  const valuesOf = (of: Entity, field: string) =>
    stored.flatMap(({ entity, values }) => (entity === of && typeof values[field] === 'string' ? [values[field]] : []));
  const subjects = entities.flatMap((entity) =>
    Object.values(entity.access.rules ?? {})
      .flat()
      .flatMap(({ where = {} }) =>
        Object.entries(where).flatMap(([field, term]) => {
          if (typeof term !== 'object') return [];
          if (term.is === 'subject') return valuesOf(entity, field);
          if (term.is !== 'member') return [];
          return valuesOf(term.of, term.of.keyFields.find((name) => name !== term.field) ?? '');
        }),
      ),
  );
  const owners = entities.flatMap((entity) => {
    const { own } = entity.access;
    if (!own || !('claim' in own)) return [];
    const [field = ''] = entity.indexes[own.index]?.row.fields ?? [];
    return valuesOf(entity, field).map((value) => ({ subject: value, claims: { [own.claim]: value } }));
  });
  const known = [...new Set(subjects)].map((subject) => ({ subject, claims: {} }));
  const identities = [{ subject: 'a stranger', claims: {} }, ...known.slice(0, 2), ...owners.slice(0, 2)];
  const roles = [...limited.map((role) => [role]), ...(limited.length > 1 ? [limited] : [])];
  return roles.flatMap((some) => identities.map((identity) => ({ ...identity, roles: some })));
}

/** The key of an entity as a path. */
export function pathOf({ entity, values }: Stored, name: string = entity.name): string {
  const key = baseValues.pick(values, entity.keyFields);
  return [name, ...entity.keyFields.map((field) => encodeURIComponent(String(key[field])))].join('/');
}
