import { requireRole } from '../access/token.ts';
import type { Entity, Values } from '../define/entity.ts';
import { validateTexts } from '../define/validation.ts';
import { indexFields, readByReference } from '../engine/read/read-through-index.ts';
import { RowkeyError } from '../errors.ts';
import type { RequestContext } from './route.ts';

/**
 * The entity that is the caller's own: its field has the value of the claim that the declaration names. The index only leads
 * to the entity, which decides. Two storage transactions. Throws `forbidden`, `not-found`.
 */
export async function readOwn({ app, caller }: RequestContext, entity: Entity): Promise<Values> {
  const { own } = entity.access;
  const index = own && 'index' in own ? entity.indexes[own.index] : undefined;
  if (!own || !('claim' in own) || !index || index.kind === 'index-entity')
    throw new Error(`No claim of a token says whose ${entity.name} are.`);
  const claim = caller.claims[own.claim];
  if (claim === undefined)
    throw new RowkeyError('forbidden', `The token has no claim "${own.claim}" that is known to be the caller's.`, {
      field: own.claim,
      accepted:
        own.claim === 'email' ? 'email with email_verified: true, or with xms_edov' : `a token with ${own.claim}`,
    });
  return readByReference(app.engine, entity, index, normalizeClaim(entity, indexFields(entity, index), claim));
}

/** The claim in the form in which the entity stores its field. Throws `forbidden` where no entity can have the value. */
function normalizeClaim(entity: Entity, fields: readonly string[], claim: string): Values {
  try {
    return validateTexts(entity, Object.fromEntries(fields.map((field) => [field, claim])), fields);
  } catch (error) {
    if (!(error instanceof RowkeyError && error.code === 'invalid-input')) throw error;
    throw new RowkeyError(
      'forbidden',
      `The claim of the token is no ${fields.join(', ')} that ${entity.name} can have.`,
    );
  }
}

/** Lets through who may write the entity, and whose own it is. Throws `forbidden`. */
export async function requireWriterOrOwner(call: RequestContext, entity: Entity, key: Values): Promise<void> {
  if (entity.access.write.some((role) => call.caller.roles.includes(role))) return;
  if (!entity.access.own) requireRole(call.caller, entity.access.write);
  const own = await readOwn(call, entity).catch((error: unknown) => {
    if (error instanceof RowkeyError && error.code === 'not-found') return undefined;
    throw error;
  });
  if (own && entity.keyFields.every((field) => own[field] === key[field])) return;
  throw new RowkeyError('forbidden', 'It is neither yours nor yours to change.');
}
