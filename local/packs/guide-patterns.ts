/** A pattern of the design guide and where it is implemented. */
interface GuidePattern {
  readonly name: string;
  readonly about: string;
  readonly modules: readonly string[];
  readonly tests: readonly string[];
}

/** The patterns in the order of docs/internals/patterns.md. The requests that show them are in `pattern-examples.ts` of each pack. */
export const GUIDE_PATTERNS: readonly GuidePattern[] = [
  {
    name: 'Point query',
    about:
      'The key template turns the key fields into a partition key and a row key. Reading an entity by its key is one lookup.',
    modules: ['lib/define/keys/key-template.ts', 'lib/engine/read/retrieve.ts'],
    tests: ['test/lib/define/keys/key-template.test.ts', 'test/scenarios/company-directory.test.ts'],
  },
  {
    name: 'Intra-partition secondary index',
    about:
      'The entity is copied within its partition under another row key. The entity and its copy change in one entity group transaction, so readers always see both in the same version. One query reads a [range](../reference/http.md#ranges-of-an-index) of the index, in its order.',
    modules: ['lib/features/intra-partition-index/intra-partition-index.ts', 'lib/engine/write/plan.ts'],
    tests: ['test/lib/engine/write/plan.test.ts', 'test/scenarios/company-directory.test.ts'],
  },
  {
    name: 'Inter-partition secondary index',
    about:
      'The entity is copied to another partition or table, which is updated after the entity. With `unique`, the writer claims the row before it writes the entity, so two writers of one value cannot both succeed. See [consistency.md](consistency.md#how-a-write-works).',
    modules: [
      'lib/features/inter-partition-index/inter-partition-index.ts',
      'lib/engine/reconcile/unique-claim.ts',
      'lib/engine/read/read-through-index.ts',
    ],
    tests: ['test/protocol/keeping-indexes.test.ts', 'test/protocol/overtaken-reconcilers.test.ts'],
  },
  {
    name: 'The three index-table shapes, and composite keys',
    about:
      'An index holds full copies, references (a second lookup per read), or some fields. A composite key supports a lookup by two values, or by the first and a [range](../reference/http.md#ranges-of-an-index) of the second. A list produces one row per element. A date is spread over buckets, so that no partition receives all writes of a day.',
    modules: [
      'lib/define/declaration/indexes.ts',
      'lib/define/places/index-entries.ts',
      'lib/engine/read/read-through-index.ts',
    ],
    tests: ['test/protocol/index-table-shapes.test.ts', 'test/scenarios/ranging-over-indexes.test.ts'],
  },
  {
    name: 'Sparse index',
    about: 'An index contains only the entities that have every field of its key and for which `when` is true.',
    modules: ['lib/define/places/index-entries.ts'],
    tests: ['test/scenarios/retrieving.test.ts'],
  },
  {
    name: 'Eventually consistent transactions',
    about:
      'A write announces its changes in other partitions on a queue before it commits. A reconciler then updates these rows from the entity, and tolerates crashes and repeated or late messages. Archive and move do the same for two entities. See [consistency.md](consistency.md).',
    modules: [
      'lib/engine/write/eventual-transaction.ts',
      'lib/engine/reconcile/reconcile.ts',
      'lib/engine/transfer/transfer.ts',
    ],
    tests: [
      'test/protocol/surviving-faults.test.ts',
      'test/protocol/racing-writers-and-messages.test.ts',
      'test/protocol/archiving-and-moving.test.ts',
    ],
  },
  {
    name: 'Entity group transactions',
    about:
      'A batch of creates, puts, patches and deletes takes as few transactions as its rows fit into, 100 each, or exactly one (`atomic`). A range of a partition is deleted in the same way. See [http.md](../reference/http.md#batches).',
    modules: ['lib/engine/write/entity-batch.ts'],
    tests: ['test/lib/engine/write/entity-batch.test.ts', 'test/scenarios/deleting-a-range.test.ts'],
  },
  {
    name: 'Index entities',
    about:
      'One row lists the entities that share a value. In the partition of the entity, the row changes in the same transaction; in another partition, it changes afterwards. A list that is too long for its row moves to a blob, and back when it shrinks. Readers get the same result.',
    modules: ['lib/features/index-entities/index-entities.ts', 'lib/engine/read/member-list.ts'],
    tests: ['test/protocol/long-lists.test.ts', 'test/protocol/keeping-indexes.test.ts'],
  },
  {
    name: 'Denormalization',
    about:
      'An entity has copies of fields of another entity. A department has the name of its manager, and both change in one transaction. Each product has the tax rate of its category, and a queue updates all of them after a change, a hundred in a transaction. See [model.md](../reference/model.md#copied-fields).',
    modules: ['lib/features/denormalization/denormalization.ts', 'lib/features/denormalization/fan-out.ts'],
    tests: [
      'test/scenarios/company-directory.test.ts',
      'test/lib/engine/write/plan.test.ts',
      'test/protocol/fanning-out.test.ts',
    ],
  },
  {
    name: 'One-to-many relationships',
    about:
      "A field refers to an entity of any partition, which must exist when the field is written. With `onDelete: 'refuse'`, an entity cannot be deleted while others refer to it. See [model.md](../reference/model.md#references).",
    modules: ['lib/features/references/references.ts', 'lib/define/places/relation.ts'],
    tests: ['test/protocol/referring.test.ts'],
  },
  {
    name: 'Maintained counts',
    about:
      'An entity stores the number of entities of one kind in its partition. The count changes in the same transaction as each of these entities, conditional on its ETag. A process remembers the row that it wrote last, so the count costs no read. If another process changed the row meanwhile, storage rejects the transaction, and the process reads the row and retries. Totals are numbers, sums and extremes of a group of entities in any partitions. See [model.md](../reference/model.md#totals).',
    modules: [
      'lib/features/maintained-count/maintained-count.ts',
      'lib/engine/write/siblings.ts',
      'lib/engine/run-exclusive.ts',
      'lib/features/totals/totals.ts',
    ],
    tests: ['test/protocol/counting.test.ts', 'test/protocol/keeping-totals.test.ts'],
  },
  {
    name: 'Compound key',
    about:
      'A child is stored in the partition of its parent, and its row key begins with that of the parent. One range query reads both.',
    modules: ['lib/features/compound-key/compound-key.ts'],
    tests: ['test/protocol/compound-key.test.ts'],
  },
  {
    name: 'Log tail',
    about: 'The row key begins with the time left until the end of the calendar, so the newest row is the first.',
    modules: ['lib/define/keys/key-template.ts'],
    tests: ['test/lib/define/keys/log-tail.test.ts', 'test/scenarios/retrieving.test.ts'],
  },
  {
    name: 'High volume delete',
    about:
      'Each day, month or year has a table. A table past retention is deleted in one storage operation, however many rows it has. Its rows may be archived in a blob before. See [model.md](../reference/model.md#periods).',
    modules: [
      'lib/features/high-volume-delete/high-volume-delete.ts',
      'lib/features/high-volume-delete/period-archive.ts',
    ],
    tests: [
      'test/lib/features/high-volume-delete/high-volume-delete.test.ts',
      'test/protocol/archiving-periods.test.ts',
    ],
  },
  {
    name: 'Data series',
    about:
      'Counts of one key, such as the 24 hours of a day, are properties of one row. One merge sets a count, one get reads all of them, and one range query the last 24 hours of two days.',
    modules: ['lib/features/data-series/series-counts.ts', 'lib/features/data-series/series-span.ts'],
    tests: [
      'test/lib/features/data-series/data-series.test.ts',
      'test/lib/features/data-series/series-span.test.ts',
      'test/scenarios/charting.test.ts',
    ],
  },
  {
    name: 'Wide entities',
    about:
      'Counts that do not fit into one row are spread over several rows, which are read concurrently and changed in one transaction. With `wide`, an entity has up to 2,000 fields or 3.5 MiB over several rows: one range query reads it, and one transaction changes it. See [model.md](../reference/model.md#wide-entities).',
    modules: ['lib/features/data-series/series-counts.ts', 'lib/features/wide-entities/wide-entities.ts'],
    tests: [
      'test/lib/features/data-series/data-series.test.ts',
      'test/lib/features/wide-entities/wide-entities.test.ts',
      'test/protocol/wide-entities.test.ts',
    ],
  },
  {
    name: 'Vertical split',
    about:
      'Groups of rarely read fields are in rows of their own beside the entity. A read leaves them out, and a write of other fields neither reads nor writes them. Both rows change in one transaction, and the ETag of the entity covers both. See [model.md](../reference/model.md#vertical-split).',
    modules: [
      'lib/features/vertical-split/vertical-split.ts',
      'lib/engine/read/entity-rows.ts',
      'lib/engine/write/further-rows.ts',
    ],
    tests: ['test/protocol/vertical-split.test.ts'],
  },
  {
    name: 'Large entities',
    about:
      'A file is stored as a blob. The blob is written before the entity refers to it, and deleted after the reference is removed. A timer deletes blobs that a crash left behind. The type is detected from the bytes. A client may [upload it directly to storage](../grants.md#upload-a-file). A data series that outgrows its row is stored the same way.',
    modules: [
      'lib/features/large-entities/attachment.ts',
      'lib/features/large-entities/large-entities.ts',
      'lib/features/data-series/data-series.ts',
      'lib/operations/collect-orphans.ts',
    ],
    tests: [
      'test/protocol/large-entities.test.ts',
      'test/scenarios/files-and-secrets.test.ts',
      'test/lib/features/data-series/large-series.test.ts',
    ],
  },
  {
    name: 'Property size ladder',
    about: 'A large text is stored in one property, in several properties, or in a blob, depending on its length.',
    modules: ['lib/define/codec/entity-codec.ts', 'lib/engine/write/stored-values.ts'],
    tests: ['test/protocol/large-entities.test.ts'],
  },
  {
    name: 'Encrypted properties',
    about:
      'A field is encrypted with AES-256-GCM under a data key of its entity, which is wrapped by a key in Key Vault or in a file. The ciphertext is bound to its row and field. A write replaces the field and never merges it. Callers without the role do not see it.',
    modules: [
      'lib/features/encrypted-properties/encrypted-properties.ts',
      'lib/operations/rewrap.ts',
      'lib/storage/key-vault-key-ring.ts',
    ],
    tests: ['test/protocol/encrypting.test.ts', 'test/lib/storage/key-vault-key-ring.test.ts'],
  },
  {
    name: 'Heterogeneous types, inheritance',
    about:
      'Several kinds of entities share a table, and one query reads them all. Each row has its type and version. Rows of an earlier version are upgraded when they are read.',
    modules: ['lib/define/inheritance.ts', 'lib/define/codec/entity-codec.ts'],
    tests: ['test/scenarios/kinds-and-versions.test.ts'],
  },
  {
    name: 'Append anti-pattern avoided',
    about:
      'The partition key is the subject of an event, and the time is in the row key. So writes at the same time are spread over partitions.',
    modules: ['lib/define/keys/key-template.ts'],
    tests: ['test/scenarios/retrieving.test.ts'],
  },
  {
    name: 'Log data in blobs',
    about:
      'Every change made through the API is appended to a blob of its hour before the response. Concurrent requests share an append, which `Server-Timing` reports separately. See [audit.md](../reference/audit.md).',
    modules: ['lib/operations/audit-log.ts', 'lib/engine/note-change.ts'],
    tests: ['test/lib/operations/audit-log.test.ts', 'test/scenarios/auditing.test.ts'],
  },
  {
    name: 'Shared access signatures',
    about:
      "A signature gives the caller access to the caller's own row or partition for fifteen minutes, with the declared permissions. The client then uses storage directly, and no function runs. See [grants.md](../grants.md).",
    modules: ['lib/access/grant.ts', 'lib/storage/table-sas.ts', 'lib/storage/blobs.ts'],
    tests: ['test/lib/access/grant.test.ts', 'test/scenarios/writing-straight-to-storage.test.ts'],
  },
  {
    name: 'Lookup tables',
    about:
      'Each process keeps the list of a small entity in memory. See [model.md](../reference/model.md#lookup-tables) for what bounds its age and its size.',
    modules: ['lib/features/lookup/lookup.ts'],
    tests: ['test/scenarios/looking-up.test.ts'],
  },
  {
    name: 'Retrieving',
    about:
      'A range is read by its bounds. A filter reads the whole range. A projection (`select`) reads only the selected fields from storage, unless rows may have an older version or were written by clients. A page continues after the last row by an encrypted token. A table scan has a route of its own, for operators.',
    modules: ['lib/engine/read/retrieve.ts', 'lib/engine/read/continuation.ts'],
    tests: ['test/scenarios/retrieving.test.ts', 'test/lib/engine/read/continuation.test.ts'],
  },
];
