import { isDeepStrictEqual } from 'node:util';
import { omit, pick, type Values } from '../base/values.ts';
import { fieldsToProperties } from '../define/codec/entity-codec.ts';
import { withDerived } from '../define/codec/validation.ts';
import type { Entity, VerifySubject } from '../define/declaration/entity.ts';
import type { Suspicion } from '../define/declaration/finding.ts';
import type { Engine } from '../engine/engine.ts';
import { toPlain } from '../engine/write/stored-values.ts';

/**
 * Finds derived fields that are not what their functions return. Nothing is repaired: the row may have been stored by another function, or
 * changed by hand. An archive keeps what was. A function that throws has no value.
 */
export async function checkDerived(
  engine: Engine,
  entity: Entity,
  { address, snapshot: { values } }: Pick<VerifySubject, 'address' | 'snapshot'>,
): Promise<Suspicion[]> {
  const fields = Object.keys(entity.derived).filter((field) => !entity.encrypted.includes(field));
  if (fields.length === 0 || entity.isArchive) return [];
  let isLost = false;
  const plain = await toPlain(engine, entity, omit(values, entity.encrypted), () => {
    isLost = true;
    return undefined;
  });
  // The blob is a finding of its own.
  if (isLost) return [];
  const derived = derive(entity, plain);
  const stored = (all: Values, field: string) => fieldsToProperties(entity, pick(all, [field]));
  return fields
    .filter((field) => !isDeepStrictEqual(stored(plain, field), stored(derived, field)))
    .map((of) => ({ kind: 'not-derived', of, ...address }));
}

function derive(entity: Entity, values: Values): Values {
  try {
    return withDerived(entity, values);
  } catch {
    return {};
  }
}
