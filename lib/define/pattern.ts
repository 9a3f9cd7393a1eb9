import type { BlobAddress } from '../storage/blobs.ts';
import type { Action, Address, Properties, Row } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';
import type { CarriedRows, Change, PlanDraft } from './change.ts';
import type { Live } from './codec/snapshot.ts';
import type { Engine } from './engine.ts';
import type { Suspicion } from './finding.ts';
import type { RemoteIndex } from './remote-index.ts';
import type { Values } from './values.ts';

/**
 * One pattern of the design guide. The engine, the codec and the consistency check know no pattern by name: they call
 * the members below for each pattern that an entity uses, in the order of lib/patterns/patterns.ts. A new pattern is one
 * file in lib/patterns, one line in that list and one key of the declaration.
 *
 * All members but `isUsed` are called only for entities that use the pattern. `Entity` is always that of entity.ts, which lists its
 * patterns; it is a parameter because the two files must not import each other.
 */
export interface Pattern<Entity> {
  /** As the guide names it. */
  readonly name: string;
  /** True if the declaration of the entity uses the pattern, on whichever side of a relation the entity is. */
  isUsed(entity: Entity): boolean;

  /** When the model is defined: everything that is wrong with the declaration, a sentence each. */
  validate?(entity: Entity): Iterable<string>;
  /** Fields that the pattern sets. Callers cannot write them, and a write keeps them. */
  keptFields?(entity: Entity): readonly string[];

  /** How the codec stores fields that are not one property of their type. Pure. */
  readonly columns?: ColumnForm<Entity>;
  /** Fields whose stored value may be a reference: see `store` and `load`. */
  references?(entity: Entity): readonly string[];
  /** Called for each write, before it is planned: replaces values by references. `current` is what is stored now. */
  store?(engine: Engine, entity: Entity, values: Values, current: Values): Promise<Values>;
  /** Called for each read: the text that a reference stands for. Throws `ReferenceBroken` if there is none. */
  load?(engine: Engine, entity: Entity, values: Values, field: string): Promise<string | undefined>;
  /** Called before an entity is created. Throws `invalid-input` for values that cannot be stored now (milliseconds). */
  check?(entity: Entity, values: Values, now: number): void;
  /** Why a merge cannot change these fields, as an error to throw. */
  refusePatch?(entity: Entity, fields: readonly string[]): Error | undefined;
  /** The blobs that a state of the entity refers to. The engine deletes those that a write no longer refers to. */
  blobs?(entity: Entity, values: Values): readonly BlobAddress[];
  /** Called when an entity is copied to another address: values that are to be different there. */
  copy?(engine: Engine, entity: Entity, values: Values, to: Address): Promise<Values>;

  /** Row keys, in the entity's partition, of the rows that `complete` and `plan` need. Pure. */
  siblings?(entity: Entity, change: Change): Iterable<string>;
  /** Sibling rows that have to be read as a range, for a change that deletes the entity. */
  readSiblings?(engine: Engine, entity: Entity, address: Address): Promise<readonly Row[]>;
  /** How sibling rows are read and written if they may be longer than a row. At most one pattern has this member. */
  readonly siblingForm?: SiblingForm;
  /** Pure: the values of a changed entity with the fields that the pattern sets. Throws if there can be no such entity. */
  complete?(entity: Entity, change: Change & { readonly after: Values }, draft: PlanDraft): Values;
  /** Pure: appends the pattern's actions for all changes of one partition. They commit together, or none does. */
  plan?(entity: Entity, changes: readonly Change[], draft: PlanDraft): void;
  /** Properties of the row that stays under the key of a deleted entity, in place of a tombstone. */
  remains?(entity: Entity, before: Live): Properties | undefined;
  /** True if an entity has rows beside its own. Its delete leaves a tombstone until the reconciler has settled them. */
  readonly leavesTombstone?: true;
  /** Rows that go with an entity to another partition or table. */
  carry?(
    engine: Engine,
    entity: Entity,
    from: Address,
    there: { readonly entity: Entity; readonly address: Address; readonly to: Values },
  ): Promise<CarriedRows>;

  /** The pattern's rows in other partitions or tables, which the engine's protocol keeps in step with the entity. */
  remoteIndexes?(entity: Entity): readonly RemoteIndex[];

  /** Consistency check of one entity: the pattern's rows in its partition, and its fields. */
  verify?(engine: Engine, entity: Entity, subject: VerifySubject): Promise<readonly Suspicion[]>;
  /** Consistency check of a row in a table of the entity that is no entity; undefined for a row that is not the pattern's. */
  verifyRow?(
    engine: Engine,
    entity: Entity,
    row: Row,
    members?: readonly string[],
  ): Promise<readonly Suspicion[] | undefined>;
  /** Consistency check of a partition, called once if it has a row of one of these types. */
  readonly verifyPartition?: {
    types(entity: Entity): readonly string[];
    check(engine: Engine, entity: Entity, partition: Pick<Row, 'table' | 'partition'>): Promise<readonly Suspicion[]>;
  };

  /** Work that a timer of the app does for all entities that use the pattern. */
  readonly timer?: PatternTimer<Entity>;

  /** How rows are judged that clients write straight to storage, if an entity is not one row of its fields. */
  readonly rowForm?: RowForm<Entity>;
}

/** How the rows of an entity are judged. */
export interface RowForm<Entity> {
  /** The row key of the entity that a row belongs to. */
  entityRow(entity: Entity, row: string): string;
  /** Why a row is refused, or undefined for a row whose values are those of its keys. */
  reasonToRefuse(entity: Entity, row: Row): string | undefined;
}

/** How the codec stores some fields. */
export interface ColumnForm<Entity> {
  /** The names of the properties that a field may be stored in; undefined for a field that the pattern leaves alone. */
  names(entity: Entity, field: string): readonly string[] | undefined;
  /** The properties of a value, or undefined for a value that the pattern leaves alone. Throws `too-large`. */
  encode(entity: Entity, field: string, value: unknown): readonly (readonly [string, unknown])[] | undefined;
  /** The value in the properties of a field that `names` accepts; undefined if there is none. */
  decode(entity: Entity, field: string, properties: Properties): unknown;
  /** How many characters a row may take for the field. */
  longest(entity: Entity, field: string): number;
}

/** How sibling rows are stored that may be longer than a row. */
export interface SiblingForm {
  /** Reads a row as a whole. Throws `needs-repair` if a part of it is lost. */
  read(storage: Storage, address: Address): Promise<Row | undefined>;
  /** The same for a check: a row may lack a lost part. */
  readAny(storage: Storage, address: Address): Promise<Row | undefined>;
  /** A row that was read by a scan, with its part that is stored elsewhere. Reads nothing else. */
  complete(storage: Storage, row: Row): Promise<Row | undefined>;
  /** What a row holds of several entities, so that a check can work through it in parts. */
  members(row: Row): readonly string[];
  /** The same action as storage can hold it. */
  write(storage: Storage, address: Address, action: Action): Promise<Action>;
  /** Deletes what a row that was replaced or never written has beside it. */
  drop(storage: Storage, row: Pick<Row, 'properties'>): Promise<void>;
}

/** What is checked: an entity, or, with `only`, its entries of this index alone. */
export interface VerifySubject {
  readonly address: Address;
  readonly snapshot: Live;
  readonly only: string | undefined;
}

export interface PatternTimer<Entity> {
  /** Unique within the app. */
  readonly name: string;
  /** Six fields, as Azure Functions reads them, in UTC. */
  readonly schedule: string;
  /**
   * Must be safe to run late, twice or beside itself. A run begins nothing after `until`, in milliseconds; the next run
   * continues.
   */
  run(
    engine: Engine,
    entities: readonly Entity[],
    options: { readonly until: number; log(text: string): void },
  ): Promise<void>;
}
