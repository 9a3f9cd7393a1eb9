import { type Entity, omit, type Values } from '../define/entity.ts';

/**
 * Denormalization pattern: an entity carries copies of fields of another one in its partition, so that one read has
 * both; they change in one entity group transaction. The entity copied from remembers the row that copies it
 * (`DenormalizedTo`), so that only those that are copied pay for it.
 */
export interface Denormalized {
  /** Copied from. */
  readonly source: Entity;
  /** Copied to: known once that entity is defined. */
  readonly target: () => Entity;
  /** The field of the target that refers to the source, and the key field of the source that it holds. */
  readonly reference: { readonly field: string; readonly keyField: string };
  readonly copies: Readonly<Record<string, (source: Values) => unknown>>;
}

export interface DenormalizedDeclaration<Field extends string = string> {
  readonly source: Entity;
  readonly reference: { readonly field: Field; readonly keyField: string };
  readonly copies: Partial<Readonly<Record<Field, (source: Values) => unknown>>>;
}

/** The fields that nobody writes but the engine, and that a write keeps: copies, counts and what describes attachments. */
export function keptFields(entity: Entity): string[] {
  const copies = entity.denormalized.flatMap((link) => Object.keys(link.copies));
  return [...copies, ...Object.keys(entity.counts), ...Object.keys(entity.attachments)];
}

/** Those, and the ones that follow from other fields of the same entity. */
export function decidedFields(entity: Entity): string[] {
  return [...keptFields(entity), ...Object.keys(entity.derived)];
}

/** The target with its copies taken from `source`, or without them and the reference where there is no source. */
export function withCopies(link: Denormalized, target: Values, source: Values | undefined): Values {
  const kept = omit(target, Object.keys(link.copies));
  if (!source) return omit(kept, [link.reference.field]);
  return { ...kept, ...Object.fromEntries(Object.entries(link.copies).map(([field, copy]) => [field, copy(source)])) };
}

/** The key values of the source that `target` refers to. */
export function referredTo(link: Denormalized, target: Values | undefined): Values | undefined {
  const id = target?.[link.reference.field];
  return id === undefined ? undefined : { ...target, [link.reference.keyField]: id };
}
