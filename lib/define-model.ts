import { PLACEHOLDER, TOMBSTONE } from './define/codec/entity-codec.ts';
import type { DeclaredEntity } from './define/declaration/declaration.ts';
import { linkModel, type Model, type ModelDeclaration } from './define/define-model.ts';
import type { DeclaredOperation } from './define/define-operation.ts';
import type { Reserved } from './define/validate/validate-model.ts';
import { POISON_TABLE } from './engine/consume/poison.ts';
import { LIST } from './engine/read/member-list.ts';
import { features } from './features/features.ts';
import { OWN_ENTITIES, resourcesOf } from './operations/resources.ts';
import { PERIOD_ARCHIVES_CONTAINER } from './storage/blob-owner.ts';
import { BACKUP_CONTAINER } from './storage/row-journal.ts';

/** Supplies what a model needs from rooms that lib/define cannot import. */
const { tables, containers } = resourcesOf([]);
const RESERVED: Reserved = {
  // The routes are created later, by an instance, and reject these names too.
  routes: ['grants', 'health', 'me', 'model', 'operations', 'problems', 'query', 'transact'],
  tables,
  containers: [...containers, PERIOD_ARCHIVES_CONTAINER, BACKUP_CONTAINER],
  entities: OWN_ENTITIES,
  storeMembers: ['as', 'transact'],
  rowTypes: [LIST, TOMBSTONE, PLACEHOLDER, POISON_TABLE],
};

/**
 * Declares everything that an app stores. Validates and links the model. Throws an error that lists everything that is
 * wrong.
 *
 * @example
 * const model = defineModel({ roles: ['reader', 'editor', 'operator'], operatorRole: 'operator', entities: [vehicles] });
 */
export function defineModel<
  const Declared extends readonly DeclaredEntity[],
  const Roles extends readonly string[],
  const Own extends readonly DeclaredOperation[] = readonly [],
  const Steward extends string | undefined = undefined,
>(declaration: ModelDeclaration<Declared, Roles, Own> & { readonly steward?: Steward }): Model<Declared, Own, Steward> {
  return linkModel<Declared, Own, Steward>(declaration, { reserved: RESERVED, features });
}
