import { AsyncLocalStorage } from 'node:async_hooks';
import { type ErrorCode, hasCode, RowkeyError } from '../base/errors.ts';
import { recentFor } from '../base/once.ts';
import { pick, type Values } from '../base/values.ts';
import { isChangeWithin, isWithin } from '../define/codec/limit.ts';
import { type Filter, toComparison } from '../define/codec/query.ts';
import { validateTexts } from '../define/codec/validation.ts';
import { type Action, type Alternative, hasTerms, type Scalar, type Term } from '../define/declaration/access.ts';
import type { Comparison, Limit, Transition } from '../define/declaration/comparison.ts';
import type { Guard } from '../define/declaration/engine.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Index } from '../define/declaration/indexes.ts';
import { buildKey, rangeOfPrefix } from '../define/keys/key-template.ts';
import { hasRowRules, listingAlternatives, membershipsIn } from '../define/places/reach.ts';
import type { Engine } from '../engine/engine.ts';
import { notFound } from '../engine/read/entity-rows.ts';
import { readByCopies } from '../engine/read/read-through-index.ts';
import { readEntities } from '../engine/read/retrieve.ts';
import { hideCost } from '../storage/cost.ts';
import { isExplaining } from '../storage/explain.ts';
import { countPartitionWrites } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';
import { ownKeyOf, readOwn } from './own.ts';
import type { Caller } from './token.ts';

/**
 * The rules on rows, resolved for one caller: alternatives of comparisons, with which storage filters a list and the app compares an
 * entity. Resolving takes no storage transaction but for terms of the caller's own entity and of memberships, which are remembered.
 */

interface Subject {
  readonly engine: Engine;
  /** Undefined for the app itself, which nothing limits. */
  readonly caller: Caller | undefined;
}

/** What the caller reaches of an entity by an action, without transitions; undefined for every row. */
export async function limitOf(subject: Subject, entity: Entity, action: Action): Promise<Limit | undefined> {
  const rule = entity.access.rules?.[action].filter(({ transition }) => !transition);
  return resolveRule(subject, entity, rule, { action });
}

/** The updates of an entity that the caller may make; undefined for every one. */
async function transitionsOf(subject: Subject, entity: Entity): Promise<readonly Transition[] | undefined> {
  const always = await limitOf(subject, entity, 'update');
  if (!always) return undefined;
  const sides = (entity.access.rules?.update ?? []).filter(({ transition }) => transition);
  const pairs = [...Map.groupBy(sides, ({ transition }) => transition?.number).values()];
  const resolve = (pair: typeof sides, side: 'before' | 'after') => {
    const rule = pair.filter(({ transition }) => transition?.side === side);
    return resolveRule(subject, entity, rule, { action: 'update' });
  };
  const transitions = pairs.map(async (pair): Promise<Transition> => {
    const [before, after] = await Promise.all([resolve(pair, 'before'), resolve(pair, 'after')]);
    return { before, after };
  });
  return [{ before: always, after: always }, ...(await Promise.all(transitions))];
}

/** What the caller reaches by a list of the entity, or of one of its indexes; undefined for every row. */
export async function listLimitOf(subject: Subject, entity: Entity, index?: Index): Promise<Limit | undefined> {
  const rule = entity.access.rules && listingAlternatives(entity, index);
  return resolveRule(subject, entity, rule, { action: 'read', index: index ?? 'key' });
}

/** Runs work on one row for a caller whom this limits: an error that there is no such row has no cost, as if storage had not been asked. */
export function hideAbsent<Result>(limit: unknown, work: () => Promise<Result>): Promise<Result> {
  return limit === undefined ? work() : hideCost(work, (error) => hasCode(error, 'not-found'));
}

/** The limit as a condition on the rows of a list, which has at least one alternative. */
export function toFilter(limit: Limit | undefined): Filter {
  return limit ? [{ anyOf: limit }] : [];
}

/** The engine, with which the writes of a request on these entities follow the rules of the caller. */
export async function guardedEngine(subject: Subject, ...entities: readonly Entity[]): Promise<Engine> {
  const { engine, caller } = subject;
  const referredTo = [...new Set(entities.flatMap(entitiesReferredTo))];
  const isRuled =
    entities.some(({ access }) => access.rules || access.set) || referredTo.some((to) => hasRowRules(to, 'read'));
  if (!caller || !isRuled) return engine;
  const limitsOf = new Map(
    await Promise.all(entities.map(async (entity) => [entity.name, await writeLimits(subject, entity)] as const)),
  );
  const toRefer = new Map(
    await Promise.all(referredTo.map(async (to) => [to.name, await limitOf(subject, to, 'read')] as const)),
  );
  const setOf = new Map(
    await Promise.all(entities.map(async (entity) => [entity.name, await fieldsToSet(subject, entity)] as const)),
  );
  const guard: Guard = {
    isLimited(of) {
      const limits = limitsOf.get(of);
      return (
        setOf.get(of) !== undefined ||
        [limits?.create, limits?.update, limits?.delete].some((limit) => limit !== undefined)
      );
    },
    isHidden(of, write, before) {
      const limits = limitsOf.get(of);
      return limits !== undefined && !mayBegin(limits, write, before) && !isWithin(limits.read, before);
    },
    checkBefore(of, key, write, before) {
      const limits = limitsOf.get(of);
      if (!limits || mayBegin(limits, write, before)) return;
      const { entity } = limits;
      throw guard.isHidden(of, write, before) ? notFound(entity, key) : refusedByRules(entity, write);
    },
    checkAfter(of, after, before) {
      const limits = limitsOf.get(of);
      const isAllowed = before ? isChangeWithin(limits?.update, { before, after }) : isWithin(limits?.create, after);
      if (limits && !isAllowed) throw refusedByRules(limits.entity, before ? 'update' : 'create');
      for (const [field, value] of Object.entries(setOf.get(of) ?? {}))
        if (after[field] !== (before ? before[field] : value))
          throw new RowkeyError('forbidden', `"${field}" is taken from the caller who creates the entity.`, {
            field,
            accepted: before ? 'the stored value, or none' : 'the value of the caller, or none',
          });
    },
    canHaveLeft: (of, values) => limitsOf.get(of)?.update?.some(({ after }) => isWithin(after, values)) ?? true,
    limitOf: (of, write) => limitsOf.get(of)?.[write],
    transitionsOf: (of) => limitsOf.get(of)?.update,
    setFields: (of) => setOf.get(of),
    fieldsToRefer: (to) => toRefer.get(to)?.flatMap((each) => each.map(({ field }) => field)),
    canRefer: (to, values) => isWithin(toRefer.get(to), values),
  };
  return { ...engine, guard };
}

/** The entities that a caller must be able to read to write one that depends on them. */
function entitiesReferredTo({ references, denormalized, childOf }: Entity): Entity[] {
  return [
    ...Object.values(references).flatMap(({ to, unseen }) => (unseen ? [] : [to])),
    ...Object.values(denormalized).map(({ source }) => source),
    ...(childOf ? [childOf] : []),
  ];
}

/** The fields that a create takes from the caller. One for which the token has no value, or several, is undefined. */
async function fieldsToSet(subject: Subject, entity: Entity): Promise<Values | undefined> {
  const { engine, caller } = subject;
  const { set } = entity.access;
  if (!set || !caller) return undefined;
  const fields = Object.entries(set).map(async ([field, term]) => {
    const [value, ...others] = await valuesOf({ engine, caller }, entity, field, term);
    return [field, others.length > 0 ? undefined : value] as const;
  });
  return Object.fromEntries(await Promise.all(fields));
}

/** What the caller reaches by reads and writes. */
interface WriteLimits {
  readonly entity: Entity;
  readonly read: Limit | undefined;
  readonly create: Limit | undefined;
  readonly update: readonly Transition[] | undefined;
  readonly delete: Limit | undefined;
}

async function writeLimits(subject: Subject, entity: Entity): Promise<WriteLimits> {
  const [update, read, create, remove] = await Promise.all([
    transitionsOf(subject, entity),
    ...(['read', 'create', 'delete'] as const).map((action) => limitOf(subject, entity, action)),
  ]);
  return { entity, read, create, update, delete: remove };
}

function mayBegin(limits: WriteLimits, write: 'update' | 'delete', before: Values): boolean {
  return write === 'update' ? isChangeWithin(limits.update, { before }) : isWithin(limits.delete, before);
}

/** The error of a write that the rules on rows do not allow, of a row that the caller can read or makes. */
export function refusedByRules({ name }: Entity, write: Exclude<Action, 'read'>): RowkeyError {
  return new RowkeyError('forbidden', `The rules of ${name} do not let the caller ${write} this entity.`);
}

/** What the caller reaches by a rule; undefined for every row. */
export async function resolveRule(
  { engine, caller }: Subject,
  entity: Entity,
  rule: readonly Alternative<string, Entity>[] | undefined,
  use?: Pick<AppliedRule, 'action' | 'index'>,
): Promise<Limit | undefined> {
  if (!caller || !rule) return undefined;
  const mine = rule.filter(({ role }) => caller.roles.includes(role));
  const unlimited = mine.filter((alternative) => !hasTerms(alternative));
  const alternatives = await Promise.all(
    (unlimited.length > 0 ? unlimited : mine).map(async (alternative) => ({
      role: alternative.role,
      ...(alternative.transition ? { transition: alternative.transition } : {}),
      terms: await resolveTerms({ engine, caller }, entity, alternative),
    })),
  );
  if (use) appliedRules.getStore()?.push({ ...use, entity, alternatives });
  return unlimited.length > 0 ? undefined : toLimit(alternatives);
}

/** A rule that decided what a request reaches. */
export interface AppliedRule {
  readonly entity: Entity;
  readonly action: Action;
  /** The list that it bounds: that of the key, or of an index; undefined for a single row. */
  readonly index?: Index | 'key';
  /** Those of the caller's roles. */
  readonly alternatives: readonly ResolvedAlternative[];
}

const appliedRules = new AsyncLocalStorage<AppliedRule[]>();

/** Runs work, and returns the rules that it applied besides its result. */
export async function collectRules<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly rules: readonly AppliedRule[] }> {
  const rules: AppliedRule[] = [];
  return { result: await appliedRules.run(rules, work), rules };
}

export interface ResolvedAlternative extends Pick<Alternative, 'role' | 'transition'> {
  readonly terms: readonly ResolvedTerm[];
}

/** A term with what it compares for a caller. */
export interface ResolvedTerm {
  readonly field: string;
  readonly term: Term<Entity>;
  /** Undefined if the term holds for no row. */
  readonly comparisons: readonly Comparison[] | undefined;
}

/** The terms of an alternative, for a caller who has its role. */
export function resolveTerms(
  known: Known,
  entity: Entity,
  { where = {} }: Alternative<string, Entity>,
): Promise<ResolvedTerm[]> {
  return Promise.all(
    Object.entries(where).map(async ([field, term]) => ({
      field,
      term,
      comparisons: await compare(known, entity, field, term),
    })),
  );
}

/** Without the alternatives that reach no row. */
export function toLimit(alternatives: readonly ResolvedAlternative[]): Limit {
  return alternatives
    .filter(({ terms }) => terms.every(({ comparisons }) => comparisons !== undefined))
    .map(({ terms }) => terms.flatMap(({ comparisons }) => comparisons ?? []));
}

type Known = Subject & { readonly caller: Caller };

/** The comparisons of a term; undefined if it holds for no row. */
async function compare(
  known: Known,
  entity: Entity,
  field: string,
  term: Term<Entity>,
): Promise<Comparison[] | undefined> {
  if (typeof term === 'object' && term.is === 'prefix') {
    const { before } = rangeOfPrefix(term.prefix);
    const end = before === undefined ? [] : [{ field, operator: 'lt' as const, values: [before] }];
    return [{ field, operator: 'ge', values: [term.prefix] }, ...end];
  }
  if (typeof term === 'object' && term.is === 'between')
    return [
      toComparison(entity, { field, operator: 'ge', values: [term.from] }),
      toComparison(entity, { field, operator: 'le', values: [term.to] }),
    ];
  const values = await valuesOf(known, entity, field, term);
  return values.length === 0 ? undefined : [{ field, operator: values.length > 1 ? 'in' : 'eq', values }];
}

type Equality = Exclude<Term<Entity>, { is: 'prefix' | 'between' }>;

async function valuesOf(known: Known, entity: Entity, field: string, term: Equality): Promise<readonly Scalar[]> {
  const { caller } = known;
  if (typeof term !== 'object') return [term];
  if (term.is === 'one of') return term.values;
  // As it is: no two subjects become one value.
  if (term.is === 'subject') return [caller.subject];
  if (term.is === 'claim')
    return [caller.claims[term.claim] ?? []].flat().flatMap((text) => toValue(entity, field, text));
  return term.is === 'own' ? ownValue(known, term.of ?? entity, term.field ?? field) : memberships(known, term);
}

/** The claim in the form in which the entity stores the field; nothing if no entity can have the value. */
function toValue(entity: Entity, field: string, text: string): Scalar[] {
  // No key is empty, and storage cannot compare a text that is not Unicode.
  if (!text.isWellFormed() || (text === '' && entity.keyFields.includes(field))) return [];
  try {
    return [validateTexts(entity, { [field]: text }, [field])[field] as Scalar];
  } catch (error) {
    if (hasCode(error, 'invalid-input')) return [];
    throw error;
  }
}

async function ownValue({ engine: used, caller }: Known, of: Entity, field: string): Promise<readonly Scalar[]> {
  const engine = used.present ?? used;
  const key = ownKeyIfAny(of, caller);
  if (!key) return [];
  const { index, given } = key;
  const { table, partition } = index.remote;
  const place = { table, partition: buildKey(partition, given) };
  return remembered(engine, ['own', of.name, field, given], async (dependOn) => {
    dependOn(place);
    // The row of the index may have only keys, which stay as they are when the field changes.
    const own = await readOwn(engine, caller, of, dependOn).catch(undefinedIf('not-found'));
    const value = own?.[field];
    return value === undefined ? [] : [value as Scalar];
  });
}

/** Undefined if no claim of the token is that of an entity. */
function ownKeyIfAny(of: Entity, caller: Caller) {
  try {
    return ownKeyOf(of, caller);
  } catch (error) {
    return undefinedIf('forbidden')(error);
  }
}

function undefinedIf(code: ErrorCode): (error: unknown) => undefined {
  return (error) => {
    if (!hasCode(error, code)) throw error;
    return undefined;
  };
}

/** The most memberships of a caller in one entity. */
const MAX_MEMBERSHIPS = 100;

async function memberships(
  { engine: used, caller }: Known,
  { of, field, where }: Extract<Term<Entity>, { is: 'member' }>,
): Promise<readonly Scalar[]> {
  const engine = used.present ?? used;
  const needed = [field, ...Object.keys(where)];
  const found = membershipsIn(of, field, needed);
  if (!found) throw new Error(`No list of ${of.name} has the memberships of a caller.`);
  const given = { [found.of]: caller.subject };
  const { table, partition } = found.index?.remote ?? of;
  const place = { table, partition: buildKey(partition, given) };
  return remembered(engine, ['member', of.name, field, where, caller.subject], async (dependOn) => {
    dependOn(place);
    const options = { select: needed, top: MAX_MEMBERSHIPS };
    const { items, next } = found.index
      ? await readByCopies(engine, of, found.index, given, options)
      : await readEntities(engine, of, given, options);
    if (next)
      throw new RowkeyError('forbidden', `The caller has more than ${MAX_MEMBERSHIPS} rows in ${of.name}.`, {
        accepted: `at most ${MAX_MEMBERSHIPS} memberships`,
      });
    const isCounted = (values: Values) => Object.entries(where).every(([name, value]) => values[name] === value);
    return items.filter(isCounted).map((values) => pick(values, [field])[field] as Scalar);
  });
}

const MAX_REMEMBERED = 10_000;

interface Place {
  readonly table: string;
  readonly partition: string;
}

interface Remembered {
  readonly at: number;
  /** The partitions that were read, each with the count of writes before. */
  readonly read: (Place & { readonly writes: number })[];
  readonly values: Promise<readonly Scalar[]>;
}

const memoryOf = recentFor<Storage, Remembered>(MAX_REMEMBERED);

/**
 * What a term has read, for as long as the model says, unless this process writes to one of the partitions. `read` names each partition before
 * it reads there.
 */
function remembered(
  { storage, now, rulesMaxAge }: Engine,
  key: unknown,
  read: (dependOn: (place: Place) => void) => Promise<readonly Scalar[]>,
): Promise<readonly Scalar[]> {
  // An explanation shows the steps of a first request.
  if (isExplaining()) return read(() => undefined);
  const memory = memoryOf(storage);
  const id = JSON.stringify(key);
  const known = memory.get(id);
  const isCurrent = known?.read.every(({ writes, ...place }) => countPartitionWrites(storage, place) === writes);
  const age = known ? now() - known.at : Number.POSITIVE_INFINITY;
  if (known && isCurrent && age >= 0 && age < rulesMaxAge * 1_000) return known.values;
  const places: Remembered['read'] = [];
  const values = read((place) => places.push({ ...place, writes: countPartitionWrites(storage, place) }));
  const kept = { at: now(), read: places, values };
  memory.set(id, kept);
  values.catch(() => {
    if (memory.get(id) === kept) memory.delete(id);
  });
  return values;
}
