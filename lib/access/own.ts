import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { validateTexts } from '../define/codec/validation.ts';
import type { ClaimOwner } from '../define/declaration/access.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { InterPartitionIndex } from '../define/declaration/indexes.ts';
import { isUnique } from '../define/places/index-entries.ts';
import { indexFields } from '../define/places/index-range.ts';
import type { Engine } from '../engine/engine.ts';
import { readByReference } from '../engine/read/read-through-index.ts';
import type { Caller } from './token.ts';

/**
 * Reads the caller's own entity, whose field equals the claim that the declaration names. An index entry may be stale, so
 * the entity itself is compared. Two storage transactions. `onFound` is as for `readByReference`. Throws `forbidden`, `not-found`.
 */
export async function readOwn(
  engine: Engine,
  caller: Caller,
  entity: Entity,
  onFound?: Parameters<typeof readByReference>[4],
): Promise<Values> {
  const { index, given } = ownKeyOf(entity, caller);
  return readByReference(engine, entity, index, given, onFound);
}

/** The index and the value by which the caller's own entity is found. Throws `forbidden`. */
export function ownKeyOf(entity: Entity, caller: Caller): { index: InterPartitionIndex; given: Values } {
  const { own } = entity.access;
  const index = own && 'index' in own ? entity.indexes[own.index] : undefined;
  if (!own || !('claim' in own) || !index || !isUnique(index))
    throw new Error(`${entity.name} declares no claim that identifies the owner.`);
  const claim = caller.claims[own.claim];
  if (typeof claim !== 'string')
    throw new RowkeyError('forbidden', `The token has no verified claim "${own.claim}".`, {
      field: own.claim,
      accepted: `a token with ${own.claim}${verifiedBy(own)}`,
    });
  return { index, given: normalizeClaim(entity, indexFields(entity, index), claim) };
}

/** ` and email_verified: true, or xms_edov: true or 1`, or nothing. */
function verifiedBy({ verifiedBy: claims = {} }: ClaimOwner): string {
  const said = Object.entries(claims).map(([claim, values]) => `${claim}: ${values.join(' or ')}`);
  return said.length > 0 ? ` and ${said.join(', or ')}` : '';
}

/** The claim in the form in which the entity stores its field. Throws `forbidden` if no entity can have the value. */
function normalizeClaim(entity: Entity, fields: readonly string[], claim: string): Values {
  try {
    return validateTexts(entity, Object.fromEntries(fields.map((field) => [field, claim])), fields);
  } catch (error) {
    if (!(error instanceof RowkeyError && error.code === 'invalid-input')) throw error;
    throw new RowkeyError(
      'forbidden',
      `The claim of the token is not a valid ${fields.map((field) => `"${field}"`).join(', ')} of ${entity.name}.`,
    );
  }
}
