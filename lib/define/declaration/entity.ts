import { onceFor } from '../../base/once.ts';
import type { Compiled, Copied, DeclaredEntity, DeclaredReference, OptionsWith } from './declaration.ts';
import type { Feature } from './feature.ts';

/** What a linked entity refers to, in place of declarations. */
interface ToEntities {
  readonly archive: Entity;
  readonly copied: Denormalized;
  readonly reference: Reference;
  readonly counted: Entity;
  readonly other: Entity;
}

/** References to the other entities of the model, in both directions. `defineModel` adds them. */
interface Links extends Pick<Compiled<ToEntities>, keyof OptionsWith<'isLinked'>> {
  /** The features that the entity uses, in the order of lib/features/features.ts. */
  readonly features: readonly Feature<Entity>[];
  /** True for an archive itself, whose rows arrive by transfers. An archive can only be read and deleted. */
  readonly isArchive: boolean;
  /** The entities that copy fields from this one. */
  readonly dependents: readonly Denormalized[];
  /** The references of other entities, and its own, to this one. */
  readonly referencedBy: readonly Reference[];
  /** The entities that count this one. */
  readonly countedBy: readonly Counted[];
  readonly children: readonly Entity[];
}

/** The linked form of a declaration, typed by it. */
export type Linked<Declared extends DeclaredEntity> = Omit<Declared, keyof Links> & Links;

/** An entity of a model. The engine accepts only linked entities; the types reject a bare declaration. */
export interface Entity extends Linked<DeclaredEntity> {}

/** The entities and their archives. */
export function withArchives(entities: readonly Entity[]): Entity[] {
  return entities.flatMap((entity) => (entity.archive ? [entity, entity.archive] : [entity]));
}

/** The facets of a feature that take no part in a write once its values are valid. */
const APART_FROM_WRITES: ReadonlySet<string> = new Set<keyof Feature<Entity>>([
  'name',
  'isUsed',
  'validate',
  'layout',
  'memory',
  'timer',
]);

/**
 * True if nothing follows from a write but the row of the entity: no feature has further rows, blobs or fields, and no transfer
 * closes the row to writers. Such a row can be written without a read.
 */
export function isOneRow({ archive, isArchive, movable, features, series }: Entity): boolean {
  const isApart = features.every(
    (feature) => !feature.layout?.further && Object.keys(feature).every((facet) => APART_FROM_WRITES.has(facet)),
  );
  return isApart && !series && !archive && !isArchive && movable.length === 0;
}

/** True if the entity is its row alone, so that a write past the API leaves nothing stale behind. */
export function canWriteThroughGrant(entity: Entity): boolean {
  return !entity.archive && keptByEngine(entity).length === 0;
}

/**
 * The features that have rows beside the entity, set its fields, or store values by reference. A client could refer to the
 * blob of another row, which the app would then serve and delete with its own.
 */
export function keptByEngine(entity: Entity): readonly Feature<Entity>[] {
  return entity.features.filter(
    (feature) =>
      hasRowsBeside(feature) || feature.layout?.further || feature.stored || feature.keptFields?.(entity).length,
  );
}

/** True if an entity has rows besides its own, which its tombstone outlives. */
export function hasRowsBeside({ projections, write }: Feature<Entity>): boolean {
  return projections !== undefined || write?.leavesTombstone === true;
}

/** True if clients may write it directly to storage, where nothing validates their rows. */
export function isWrittenByClients({ access: { own } }: Pick<DeclaredEntity, 'access'>): boolean {
  return own !== undefined && 'through' in own && /[aud]/.test(own.permissions);
}

export interface Denormalized extends Copied {
  readonly source: Entity;
  /** The field of the target that refers to the source. */
  readonly field: string;
  readonly by: string;
  /** Copied to. */
  readonly target: () => Entity;
}

export interface Reference extends DeclaredReference {
  /** The referring entity. */
  readonly from: () => Entity;
  readonly field: string;
  readonly to: Entity;
  readonly by: string;
}

/** A maintained count of an entity. */
interface Counted {
  /** The entity that has the count. */
  readonly target: () => Entity;
  readonly field: string;
}

/** Fields that only the engine sets. A write keeps them. */
export const keptFields = onceFor((entity: Entity): readonly string[] =>
  entity.features.flatMap(({ keptFields }) => keptFields?.(entity) ?? []),
);

/** Fields that callers cannot write: the kept fields and the derived fields. */
export const decidedFields = onceFor((entity: Entity): readonly string[] => [
  ...keptFields(entity),
  ...Object.keys(entity.derived),
]);

/** Fields whose stored value may be a reference. */
export const referenceFields = onceFor((entity: Entity): readonly string[] =>
  entity.features.flatMap(({ stored }) => stored?.references(entity) ?? []),
);
