import { requireRole } from '../access/token.ts';
import { RowkeyError } from '../errors.ts';
import type { Entity, Values } from '../patterns/entity.ts';
import { indexFields, readByCopy } from '../patterns/read-through-index.ts';
import { validateTexts } from '../patterns/validation.ts';
import type { Call } from './route.ts';

/** The entity that is the caller's own, by the claim that its declaration names. Throws `forbidden`, `not-found`. */
export async function readOwn({ app, caller }: Call, entity: Entity): Promise<Values> {
  const { own } = entity.access;
  const index = own && 'index' in own ? entity.indexes[own.index] : undefined;
  if (!caller.email || !index || index.kind === 'index-entity')
    throw new RowkeyError('forbidden', 'The token does not say whose own entity is meant: it has no email.');
  return readByCopy(
    app.engine,
    entity,
    index,
    validateTexts(entity, { email: caller.email }, indexFields(entity, index)),
  );
}

/** Lets through who may write the entity, and whose own it is. Throws `forbidden`. */
export async function requireWriterOrOwner(call: Call, entity: Entity, key: Values): Promise<void> {
  if (entity.access.write.some((role) => call.caller.roles.includes(role))) return;
  if (!entity.access.own) requireRole(call.caller, entity.access.write);
  const own = await readOwn(call, entity).catch((error: unknown) => {
    if (error instanceof RowkeyError && error.code === 'not-found') return undefined;
    throw error;
  });
  if (own && entity.keyFields.every((field) => own[field] === key[field])) return;
  throw new RowkeyError('forbidden', 'It is neither yours nor yours to change.');
}
