import { onceFor } from '../../base/once.ts';
import type { Values } from '../../base/values.ts';
import type { BlobAddress } from '../../storage/blobs.ts';
import type { Address, Properties, Row } from '../../storage/rows.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import type { Access } from './access.ts';
import type { CarriedRows, Change, Live, PlanDraft } from './change.ts';
import {
  absentOptions,
  type Compiled,
  type Copied,
  type DeclaredEntity,
  type DeclaredReference,
  type OptionsWith,
} from './declaration.ts';
import type { Engine, Hold } from './engine.ts';
import type { Suspicion } from './finding.ts';
import type { Index } from './indexes.ts';
import type { IndexShape, Projection } from './projection.ts';
import type { Total } from './totals.ts';

/** What a linked entity refers to, in place of declarations. */
interface ToEntities {
  readonly archive: Entity;
  readonly copied: Denormalized;
  readonly reference: Reference;
  readonly counted: Entity;
  readonly other: Entity;
}

/** References to the other entities of the model, in both directions. `defineModel` adds them. */
interface Links extends Omit<Pick<Compiled<ToEntities>, keyof OptionsWith<'isLinked'>>, 'access'>, Facts {
  readonly access: Access<string, string, Entity, Entity>;
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

/** What follows from the features that an entity uses. */
interface Facts {
  /** In the order of lib/features/features.ts. */
  readonly features: readonly Feature[];
  /** Fields that only the engine sets. A write keeps them. */
  readonly keptFields: readonly string[];
  /** Fields that callers cannot write: the kept fields and the derived fields. */
  readonly decidedFields: readonly string[];
  /** Fields whose stored value may be a reference. */
  readonly referenceFields: readonly string[];
  /** How the entity is stored in further rows; undefined if it has none. */
  readonly furtherRows: FurtherRowForm | undefined;
  /** The fields in further rows that only a read which asks for them includes. */
  readonly apartFields: readonly string[];
  /** True if clients may write it directly to storage, where nothing validates their rows. */
  readonly isWrittenByClients: boolean;
}

/** Returns the entity with the features that it uses, of these. */
export function withFeatures(entity: Omit<Entity, keyof Facts>, all: readonly Feature[]): Entity {
  const { derived, access } = entity;
  const linked = entity as Entity;
  const features = Object.freeze(all.filter((feature) => feature.isUsed(linked)));
  const keptFields = Object.freeze(features.flatMap((feature) => feature.keptFields?.(linked) ?? []));
  const furtherRows = features.find(({ layout }) => layout?.further)?.layout?.further;
  return {
    ...entity,
    features,
    keptFields,
    decidedFields: Object.freeze([...keptFields, ...Object.keys(derived)]),
    referenceFields: Object.freeze(features.flatMap(({ stored }) => stored?.references(linked) ?? [])),
    furtherRows,
    apartFields: Object.freeze(furtherRows?.apartFields(linked) ?? []),
    isWrittenByClients: access.own !== undefined && 'through' in access.own && /[aud]/.test(access.own.permissions),
  };
}

/** The entity as it is stored under its former key; undefined if the declaration names none. */
export const formerOf = onceFor((entity: Entity): Entity | undefined => {
  const { formerKey, features } = entity;
  if (!formerKey) return undefined;
  const { partition, row } = formerKey;
  const keyFields = [...new Set([...partition.fields, ...row.fields])];
  const archive = entity.archive && formerOf(entity.archive);
  return Object.freeze(withFeatures({ ...entity, partition, row, keyFields, archive, formerKey: undefined }, features));
});

/** The linked form of a declaration, typed by it. */
export type Linked<Declared extends DeclaredEntity> = Omit<Declared, keyof Links> & Links;

/** An entity of a model. The engine accepts only linked entities; the types reject a bare declaration. */
export interface Entity extends Linked<DeclaredEntity> {}

/** The kinds of children in an archive. They are read and imported like the archive itself, beside which their rows are. */
export const archivedChildren = onceFor((archive: Entity): readonly Entity[] =>
  archive.children.map((child) =>
    Object.freeze(withFeatures({ ...child, ...absentOptions('notInArchive'), childOf: archive }, child.features)),
  ),
);

/** The name of an entity in paths of operations: that of a child in an archive is below the archive. */
export function nameOfKind({ name, childOf }: Entity): string {
  return childOf?.isArchive ? `${childOf.name}/${name}` : name;
}

/** The entities and their archives. */
export function withArchives(entities: readonly Entity[]): Entity[] {
  return entities.flatMap((entity) => (entity.archive ? [entity, entity.archive] : [entity]));
}

/** The facets of a feature that take no part in a write once its values are valid. */
const APART_FROM_WRITES: ReadonlySet<string> = new Set<keyof Feature>([
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
export function keptByEngine(entity: Entity): readonly Feature[] {
  return entity.features.filter(
    (feature) =>
      hasRowsBeside(feature) || feature.layout?.further || feature.stored || feature.keptFields?.(entity).length,
  );
}

/** True if an entity has rows besides its own, which its tombstone outlives. */
export function hasRowsBeside({ projections, write }: Feature): boolean {
  return projections !== undefined || write?.leavesTombstone === true;
}

export interface Denormalized extends Copied {
  readonly source: Entity;
  /** The field of the target that refers to the source. */
  readonly field: string;
  readonly by: string;
  /** Copied to. */
  readonly target: () => Entity;
}

export interface Reference extends Required<DeclaredReference> {
  /** The referring entity. */
  readonly from: () => Entity;
  readonly field: string;
  readonly to: Entity;
  readonly by: string;
}

/** A change in a transaction, which may have changes of several entities. */
export interface EntityChange extends Change {
  readonly entity: Entity;
  /** With `isRekey`: the entity under the key that it also has, and its values there. What it has under both keys stays. */
  readonly other?: { readonly entity: Entity; readonly values: Values };
}

/** A maintained count of an entity. */
interface Counted {
  /** The entity that has the count. */
  readonly target: () => Entity;
  readonly field: string;
}

/**
 * What one option of a declaration does, such as a pattern of the design guide. The engine, the codec and the consistency check know no
 * feature by name. Each stage of the engine knows one facet below and calls it for each feature that an entity uses, in the order of
 * lib/features/features.ts. A new feature is one folder in lib/features, one line in that list and one key of the declaration.
 *
 * All members but `isUsed` are called only for entities that use the feature.
 */
export interface Feature {
  /** The guide's name of the pattern. */
  readonly name: string;
  /** True if the entity uses the feature, on either side of a relation. */
  isUsed(entity: Entity): boolean;
  /**
   * Called when the model is defined. Yields a sentence for each error of the declaration. The entity is linked, so it refers to
   * the entities of its relations; `model` is for what unrelated entities must not share.
   */
  validate?(entity: Entity, model: WholeModel): Iterable<string>;
  /**
   * Fields that the feature sets. Callers cannot write them; a write keeps them. They cannot be in the key, be set by another
   * feature or be stored by reference.
   */
  keptFields?(entity: Entity): readonly string[];
  /** The codec: values that a row holds in another form. */
  readonly stored?: StoredForm;
  /** The rows and tables of an entity, if they are not one row in one table. */
  readonly layout?: RowLayout;
  /** The plan of a write: rows of the partition that depend on several entities. */
  readonly write?: WriteStage;
  /** Rows that follow from one entity. The engine keeps them consistent with the entity. */
  readonly projections?: ProjectionSource;
  /** The queue: entities of any partition that have copies of fields of this one. */
  readonly fanOut?: FanOut;
  /** The model guard: what a deployment remembers for the next one. */
  readonly memory?: FeatureMemory;
  /** The consistency check of rows and fields that do not follow from one entity alone. */
  readonly check?: SpecialCheck;
  /** A timer of the app for each entity that uses the feature. */
  readonly timer?: FeatureTimer;
}

/** Rows that follow from one entity, such as copies and members of lists. */
interface ProjectionSource {
  of(entity: Entity): readonly Projection[];
  /** A former index without entities, so that its rows are left over; undefined for an index of another feature. */
  former?(shape: IndexShape, name: string): Former | undefined;
}

/** How the codec and the engine store some fields: as several properties, or as a reference to a text or a blob elsewhere. */
interface StoredForm {
  readonly columns: ColumnForm;
  /** Fields whose stored value may be a reference: see `store` and `load`. */
  references(entity: Entity): readonly string[];
  /** Fields that lists leave out unless a caller selects them. */
  unlistedFields?(entity: Entity): readonly string[];
  /** Called for each write before it is planned. Replaces values with references. `current` is the stored entity. */
  store(engine: Engine, entity: Entity, values: Values, current: Values): Promise<Values>;
  /** Called for each read. Resolves a reference to its text. Throws `ReferenceBroken` if that is impossible. */
  load(engine: Engine, entity: Entity, values: Values, field: string): Promise<string | undefined>;
  /** Returns an error if a merge cannot change these fields. */
  refusePatch?(entity: Entity, fields: readonly string[]): Error | undefined;
  readonly blobs?: StoredBlobs;
}

/** Values that are stored in blobs. */
interface StoredBlobs {
  /** The containers of the blobs, besides that of large texts. */
  containers(entity: Entity): readonly string[];
  /** The properties of the row that name them. */
  properties(entity: Entity): readonly string[];
  /** The blobs that an entity refers to. The engine deletes blobs to which a write removes the last reference. */
  of(entity: Entity, values: Values): readonly BlobAddress[];
  /** Called when an entity is copied to another address. Returns the values that differ there. */
  copy(engine: Engine, entity: Entity, values: Values, to: Address): Promise<Values>;
}

/** Where the rows of an entity are. A feature has one of the members, and an entity at most one feature for each. */
interface RowLayout {
  /** An entity is stored in further rows beside its own. */
  readonly further?: FurtherRowForm;
  /** An entity is nothing but numbered rows, which clients may write. */
  readonly numbered?: NumberedRows;
  /** Each period has a table. */
  readonly periods?: PeriodTables;
}

/** The tables in place of the one table of an entity. The consistency check skips the entity. */
interface PeriodTables {
  /** The tables to create, now (milliseconds); none without `now`. */
  tables(entity: Entity, now: number | undefined): readonly string[];
  /**
   * Called with the values of an entity before it is created, and with its key before it is changed or deleted. Throws
   * `invalid-input` if no table accepts it at `now` (milliseconds).
   */
  check(entity: Entity, values: Values, now: number): void;
}

/** What a feature adds to the plan of a write. The members are called in this order. */
interface WriteStage {
  /**
   * Row keys, in the entity's partition, of the rows that `complete` and `plan` need. Pure. A create is first planned as if the
   * rows that are not remembered were absent: `complete` throws or `plan` inserts a row if that may be wrong.
   */
  siblings?(entity: Entity, change: Change): Iterable<string>;
  /**
   * Addresses of rows that `complete` needs and the transaction does not include. Pure. They are read within the time limit of the
   * write, and no ETag protects them.
   */
  related?(entity: Entity, change: Change): Iterable<Address>;
  /** Returns the values with the fields that the feature sets. Throws if such an entity cannot exist. Pure. */
  complete?(entity: Entity, change: Change & { readonly after: Values }, draft: PlanDraft): Values;
  /** Appends the feature's actions for all changes of one partition, which commit atomically. Pure. */
  plan?(entity: Entity, changes: readonly Change[], draft: PlanDraft): void;
  /**
   * Called before the changes of one partition are committed. Reads entities of other partitions on which they depend. Throws
   * if the changes must be rejected. `together` are the changes of all entities that are committed with them.
   */
  checkRelated?(
    engine: Engine,
    entity: Entity,
    changes: readonly Change[],
    together: readonly EntityChange[],
  ): Promise<void>;
  /** True if rows of other entities change with an entity. Its delete leaves a tombstone until the reconciler has settled them. */
  readonly leavesTombstone?: true;
  readonly remains?: Remains;
  readonly carried?: CarriedWith;
}

/** A row that stays under the key of a deleted entity, instead of a tombstone. */
interface Remains {
  /** True if such a row is likely for an entity that does not exist. A create then reads it: that costs less than a conflict. */
  isLikely(entity: Entity): boolean;
  /** The properties of the row; undefined for none. */
  properties(entity: Entity, before: Live): Properties | undefined;
}

/** Rows that go where an entity goes: they are deleted with it, or move with it to another partition or table. */
interface CarriedWith {
  /** Reads the rows for a change that deletes the entity: all of them, or the keys of the first ones. */
  read(engine: Engine, entity: Entity, address: Address, limit?: number): Promise<readonly Row[]>;
  /** Returns the rows for the destination. `to` has the key fields that a move changes. */
  move(
    engine: Engine,
    entity: Entity,
    from: Address,
    there: { readonly entity: Entity; readonly address: Address; readonly to: Values | undefined },
  ): Promise<CarriedRows>;
}

/** Copies of fields in entities of any partition, which the queue updates. */
interface FanOut {
  /** True if other entities must be updated after the change. Pure. */
  isNeeded(entity: Entity, change: Change): boolean;
  /**
   * Updates the next of the entities that depend on `sources`, from the current state of the sources. Called for a queue message,
   * which may be late, a duplicate, or out of order. Returns where to continue; undefined at the end.
   */
  run(engine: Engine, entity: Entity, step: FanOutStep): Promise<FanOutPosition | undefined>;
  /** Called when a queue function, instead of the writer, has settled the index entries of an entity. */
  afterSettled(engine: Engine, entity: Entity, address: Address): Promise<void>;
  /** The copies by the name by which they are built, as the model guard remembers them. */
  shapes(entity: Entity): Readonly<Record<string, IndexShape>>;
}

/** A check whose repair differs from that of a projection: it restores what does not follow from one entity alone, or only reports it. */
interface SpecialCheck {
  /** The fields whose stored form cannot be read, as far as the row tells. */
  unreadable?(entity: Entity, values: Values): readonly string[];
  /** Checks the feature's rows in the partition of one entity, and its fields. Not called for an index of another feature alone. */
  entity?(engine: Engine, entity: Entity, subject: VerifySubject): Promise<readonly Suspicion[]>;
  /** Checks a row of the entity's tables that is not an entity. Returns undefined for a row of another feature. */
  row?(engine: Engine, entity: Entity, row: Row): Promise<readonly Suspicion[] | undefined>;
  /** Checks a partition, once, if it contains a row of one of these types. */
  readonly partition?: {
    types(entity: Entity): readonly string[];
    check(engine: Engine, entity: Entity, partition: Pick<Row, 'table' | 'partition'>): Promise<readonly Suspicion[]>;
  };
}

/** The position of a fan-out: the receiving entities of one source, by the name of their relation, after a row. */
interface FanOutPosition {
  readonly source: number;
  readonly relation: string;
  readonly after?: string | undefined;
}

export interface FanOutStep {
  readonly sources: readonly Address[];
  readonly position: FanOutPosition | undefined;
  readonly hold: Hold;
  /** Logs an entity that cannot be updated. The others are. */
  fail(why: string): void;
}

/** The declaration of a former index or of former totals. */
interface Former {
  readonly indexes?: Readonly<Record<string, Index>>;
  readonly totals?: Readonly<Record<string, Total>>;
}

/** What the model guard stores of an entity: JSON. Each feature has members of its own in it. */
export type Remembered = Readonly<Record<string, unknown>>;

/** What a feature compares between two deployments. Called for all entities, because an entity may have used the feature before. */
interface FeatureMemory {
  /** The feature's members. `before` is what the previous deployment stored, `{}` for a new entity. */
  remember(entity: Entity, before: Remembered): Remembered;
  /** Yields a sentence for each change that makes stored data unreachable or loses it: an operator must agree to it. */
  refuse?(entity: Entity, before: Remembered): Iterable<string>;
  /**
   * Tells which tables earlier declarations have left, which nothing reads or drops; undefined if they left none. The entity is
   * undefined if it is no longer declared.
   */
  leftTables?(remembered: Remembered, entity: Entity | undefined): ((table: string) => boolean) | undefined;
}

/** The parts of the model with which a feature may compare an entity. */
interface WholeModel {
  /** The entities of the model, and the engine's own. */
  readonly entities: readonly Entity[];
  /** The containers that the engine reserves. */
  readonly containers: readonly string[];
}

/** Keys that rows may have in the partitions of an entity. */
export interface RowKeys {
  /** The rows in an error message, such as `its further rows`. */
  readonly what: string;
  readonly row: KeyTemplate;
  /** True if `_2` and further numbers follow the template. */
  readonly isNumbered?: boolean;
}

/** An entity that is numbered rows, beginning with that of its key. */
export interface NumberedRows {
  /** Their keys besides that of the first; none if one row is enough. */
  keys(entity: Entity): readonly RowKeys[];
  /** The row key of the entity that a row belongs to. */
  entityRow(entity: Entity, row: string): string;
  /** The reason to reject a row that a client wrote, or undefined if its values match its keys. */
  reasonToRefuse(entity: Entity, row: Row): string | undefined;
}

/** How the codec stores some fields. */
export interface ColumnForm {
  /** The names of the properties that may store a field. Undefined for a field that the feature does not store. */
  names(entity: Entity, field: string): readonly string[] | undefined;
  /** The properties of a value. Undefined for a value that the feature does not store. Throws `too-large`. */
  encode(entity: Entity, field: string, value: unknown): readonly (readonly [string, unknown])[] | undefined;
  /** The value in the properties of a field for which `names` returns names. Undefined if there is no value. */
  decode(entity: Entity, field: string, properties: Properties): unknown;
  /** The maximum length of the field in a row, in characters. */
  longest(entity: Entity, field: string): number;
}

/** How an entity is stored in further rows of its partition: see codec/further-rows.ts. */
interface FurtherRowForm {
  /** The fields that are read only if a caller asks for them. Keys, indexes, copies and derived fields cannot use them. */
  apartFields(entity: Entity): readonly string[];
  /** The groups of further rows that a read of these fields needs; without fields, those that every read needs. */
  groupsOf(entity: Entity, fields: readonly string[] | undefined): readonly string[];
  /** Distributes the fields over rows. `current` is the stored entity with the further rows that were read. Pure. */
  divide(entity: Entity, values: Values, current: Live | undefined): DividedValues;
}

interface DividedValues {
  /** The fields in the entity's own row. */
  readonly own: Values;
  /** The fields in each further row, by its name: see codec/further-rows.ts. A row without fields is left out. */
  readonly further: ReadonlyMap<string, Values>;
}

/** The subject of a check: an entity, or with `only` its entries of this index. */
export interface VerifySubject {
  readonly address: Address;
  readonly snapshot: Live;
  readonly only: string | undefined;
}

interface FeatureTimer {
  /** Unique within the app. */
  readonly name: string;
  /** Six fields, as Azure Functions expects them, in UTC. */
  readonly schedule: string;
  /**
   * Must be safe to run late, twice or concurrently. A run starts nothing after `until` (milliseconds); the next run
   * continues.
   */
  run(engine: Engine, entity: Entity, options: { readonly until: number; log(text: string): void }): Promise<void>;
}
