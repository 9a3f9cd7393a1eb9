import type { z } from 'zod';
import { mapValues } from '../../base/values.ts';
import type { Action, Alternative, RulesDescription, Scalar, Term } from '../declaration/access.ts';
import type { Entity } from '../declaration/entity.ts';
import type { Index } from '../declaration/indexes.ts';
import { isOfMany } from './index-range.ts';
import { listingAlternatives, rolesToReadThrough } from './reach.ts';

/** Rules on rows in words, for the description of the model and for explanations to operators. */

type Words = z.infer<typeof RulesDescription>;
type LinkedAlternative = Alternative<string, Entity>;

/** `groupId is one of the caller's memberships in members` */
export function describeTerm(entity: Entity, field: string, term: Term<Entity>): string {
  if (typeof term !== 'object') return `${field} is ${quote(term)}`;
  switch (term.is) {
    case 'one of':
      return `${field} is ${term.values.map(quote).join(' or ')}`;
    case 'prefix':
      return `${field} begins with ${quote(term.prefix)}`;
    case 'between':
      return `${field} is ${quote(term.from)} to ${quote(term.to)}`;
    case 'subject':
      return `${field} is the caller`;
    case 'claim':
      return `${field} is in the caller's claim ${term.claim}`;
    case 'own': {
      const { name } = term.of ?? entity;
      return `${field} is ${term.field === undefined || term.field === field ? 'that' : `the ${term.field}`} of the caller's own row of ${name}`;
    }
    case 'member': {
      const by = term.field === field ? '' : ` by ${term.field}`;
      const only = Object.entries(term.where).map(([name, value]) => `${name} ${quote(value)}`);
      const where = only.length > 0 ? ` with ${only.join(' and ')}` : '';
      return `${field} is one of the caller's memberships in ${term.of.name}${by}${where}`;
    }
  }
}

function quote(value: Scalar): string {
  return JSON.stringify(value);
}

function describeAlternative(
  entity: Entity,
  { role, where = {}, transition }: LinkedAlternative,
): Words['create'][number] {
  const terms = Object.entries(where).map(([field, term]) => describeTerm(entity, field, term));
  return { role, terms, ...(transition ? { transition } : {}) };
}

/** The alternatives of an action. A role without terms reaches every row. An archive is written only by archiving. */
export function alternativesOf({ access, isArchive }: Entity, action: Action): LinkedAlternative[] {
  const { rules, read, write } = access;
  if (isArchive && (action === 'create' || action === 'update')) return [];
  return rules ? [...rules[action]] : (action === 'read' ? read : write).map((role) => ({ role }));
}

/** Who may do what, under which terms. */
export function describeRules(entity: Entity): Words {
  const { restricted = {}, unveiled = {} } = entity.access;
  const all = (alternatives: readonly LinkedAlternative[]) =>
    alternatives.map((alternative) => describeAlternative(entity, alternative));
  return {
    read: alternativesOf(entity, 'read').map((alternative) => ({
      ...describeAlternative(entity, alternative),
      lists: listsOf(entity, alternative),
    })),
    create: all(alternativesOf(entity, 'create')),
    update: all(alternativesOf(entity, 'update')),
    delete: all(alternativesOf(entity, 'delete')),
    fields: mapValues(restricted, (roles = [], field) =>
      all([...roles.map((role) => ({ role })), ...(unveiled[field] ?? [])]),
    ),
  };
}

/** The lists that an alternative opens. */
function listsOf(entity: Entity, alternative: LinkedAlternative): Words['read'][number]['lists'] {
  if (entity.series) return { key: false, indexes: [] };
  const { rules, read } = entity.access;
  const isOpen = (index?: Index) =>
    rules ? listingAlternatives(entity, index).includes(alternative) : read.includes(alternative.role);
  const lists = Object.entries(entity.indexes).filter(
    ([, index]) =>
      isOfMany(entity, index) && rolesToReadThrough(entity, index).includes(alternative.role) && isOpen(index),
  );
  return {
    key: entity.partition.fields.length < entity.keyFields.length && isOpen(),
    indexes: lists.map(([name]) => name),
  };
}
