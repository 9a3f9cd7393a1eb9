import { hasTerms } from '../declaration/access.ts';
import type { Entity } from '../declaration/entity.ts';
import type { Index } from '../declaration/indexes.ts';
import { copiedFields, isOfMany } from './index-range.ts';
import { rolesToList, rolesToListThrough } from './reach.ts';
import { rolesToReadIndex, withoutSteward } from './readers.ts';
import { fieldsOfUser, userListOf } from './user-rows.ts';

/** Says why no role but the steward may list an index and what to change; undefined if one may. The app itself always may. */
export function closedIndexReason(entity: Entity, name: string, index: Index): string | undefined {
  if (ofUsers(entity, rolesToListThrough(entity, index)).length > 0) return undefined;
  return `No role${butSteward(entity)} may list ${entity.name} by "${name}": ${reasonOf(entity, index)} ${openLists(entity)}`;
}

/** Says why no role but the steward may list a partition of the entity and which lists are open; undefined if a role may. */
export function closedListReason(entity: Entity): string | undefined {
  const isClosed = ofUsers(entity, rolesToList(entity)).length === 0;
  if (!isClosed || ofUsers(entity, entity.access.read).length === 0) return undefined;
  const compared = `the rules to read compare ${comparedFields(entity).join(', ')}, with which its key does not begin.`;
  return `No role${butSteward(entity)} may list ${entity.name} ${ownList(entity)}: ${compared} ${openLists(entity)}`;
}

/** Says why no list has all that the rules let a caller read. */
export function noListOfMine(entity: Entity): string {
  return `No list has all ${entity.name} of a caller: mine() needs a partition key that every rule to read compares. ${openLists(entity)}`;
}

function butSteward({ access: { steward } }: Entity): string {
  return steward === undefined ? '' : ` but ${steward}`;
}

/** The steward lists everything, and so tells nothing of the rules. */
function ofUsers({ access }: Entity, roles: readonly string[]): readonly string[] {
  return withoutSteward(roles, access.steward);
}

function reasonOf(entity: Entity, index: Index): string {
  if (ofUsers(entity, rolesToReadIndex(entity, index)).length === 0)
    return 'no role may read all fields of its keys (restricted). Leave the restricted fields out of its keys.';
  const compared = comparedFields(entity);
  const copied = copiedFields(entity, index);
  const missing = compared.filter((field) => copied && !copied.includes(field));
  if (missing.length > 0)
    return `its rows do not have ${missing.join(', ')}, which the rules to read compare. Add ${missing.length > 1 ? 'these' : 'it'} to its copies.`;
  const filtered =
    index.kind === 'index-entity' || index.copies === 'keys' ? '' : `, or say lists: 'filtered' in a rule`;
  return `the rules to read compare ${compared.join(', ')}, with which its key does not begin. Let its partition key be {${compared[0]}}${filtered}.`;
}

/** The fields that the rules to read compare. */
function comparedFields({ access }: Entity): string[] {
  const limited = access.rules?.read.filter(hasTerms) ?? [];
  return [...new Set(limited.flatMap(({ where = {} }) => Object.keys(where)))];
}

function ownList({ partition: { fields } }: Entity): string {
  return fields.length > 0 ? `of one ${fields.join(', ')}` : 'of all';
}

/** The lists that a role may read. */
function openLists(entity: Entity): string {
  const open = Object.entries(entity.indexes)
    .filter(([, index]) => isOfMany(entity, index) && ofUsers(entity, rolesToListThrough(entity, index)).length > 0)
    .map(([name]) => `by ${name}`);
  const own = ofUsers(entity, rolesToList(entity)).length > 0 ? [ownList(entity)] : [];
  const lists = [...own, ...open];
  return lists.length > 0 ? `Roles may list it ${lists.join(', ')}.` : 'Roles may list it in no way.';
}

/** Why some indexes of a model can be read by no role, one sentence for each. */
export function closedIndexReasons(entities: readonly Entity[]): string[] {
  return entities
    .filter((entity) => ofUsers(entity, entity.access.read).length > 0)
    .flatMap((entity) =>
      Object.entries(entity.indexes).flatMap(([name, index]) =>
        // A unique index is read by its values, whatever the rules.
        listsUsers(entity, name) || !isOfMany(entity, index) ? [] : (closedIndexReason(entity, name, index) ?? []),
      ),
    );
}

/** True for an index that the app reads to find the rows of a user. */
function listsUsers(entity: Entity, name: string): boolean {
  return fieldsOfUser(entity).some(([field]) => userListOf(entity, field)?.index === name);
}
