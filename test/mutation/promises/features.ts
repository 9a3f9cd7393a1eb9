// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the edits are texts of code
import type { Cut } from '../../model/rules.ts';

/** The rows of a series are not written in one transaction. */
const ROW_BY_ROW: Cut['edits'] = [
  [
    '  const write = () => submit(engine.storage, { table, partition, actions });',
    '  const write = async () => {\n    const etags = new Map<string, string>();\n    for (const action of actions)\n      for (const [row, etag] of await submit(engine.storage, { table, partition, actions: [action] })) etags.set(row, etag);\n    return etags;\n  };',
  ],
];

export const FEATURES: readonly Cut[] = [
  {
    without: 'An archive is compared with its table by the number of rows alone',
    file: 'lib/features/high-volume-delete/period-archive.ts',
    edits: [[' && sum === archive.hash', '']],
    test: [
      'test/protocol/archiving-periods.test.ts',
      'that has as many rows with one other value keeps its table from being dropped, and is written again',
    ],
    finds: 'promise resolved "{ created:',
  },
  {
    without: 'A series remembers only its last four writers',
    file: 'lib/features/data-series/series-counts.ts',
    edits: [['const WRITERS_KEPT = 64;', 'const WRITERS_KEPT = 4;']],
    test: ['test/lib/features/data-series/data-series.test.ts', 'remembers its last 64 writers, and no more'],
    finds: 'to have a length of 64 but got 4',
  },
  {
    without: 'Expiry does not count the entities that it could not delete',
    file: 'lib/features/expiry/expiry.ts',
    edits: [['failed: failures.length,', 'failed: 0,']],
    test: [
      'test/lib/features/expiry/expiry.test.ts',
      'is counted as failed while it cannot be deleted, and deleted by a later run',
    ],
    finds: '"failed": 0',
  },
  {
    without: 'Totals have any number of sums',
    file: 'lib/features/totals/totals.ts',
    edits: [['const MAX_FIELDS = 50;', 'const MAX_FIELDS = 250;']],
    test: ['test/protocol/verifying-totals.test.ts', 'a model with totals is rejected for many fields'],
    finds: 'to throw an error',
  },
  {
    without: 'No table is dropped',
    recommendations: ['g-drop-table', 'p-drop-table'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [['      await unlessBeingDeleted(dropTable(engine.storage, table));\n', '']],
    test: [
      'test/lib/features/high-volume-delete/high-volume-delete.test.ts',
      'creates the tables of today and tomorrow, and drops only the days past retention',
    ],
    finds: "expected [ 'login20200101', 'logins',",
  },
  {
    without: 'Tables are created when their period has begun',
    recommendations: ['p-drop-new-tables'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [['return [current, addPeriods(period.per, current, 1)].map', 'return [current].map']],
    test: [
      'test/lib/features/high-volume-delete/high-volume-delete.test.ts',
      'are created before their period begins and dropped after their retention',
    ],
    finds: "expected [ 'lpayments202401' ] to deeply equal [ Array(2) ]",
  },
  {
    without: 'A table may have the name of a period of another entity',
    recommendations: ['p-drop-names'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [
      [
        'if (isLikePeriod(entity, table) || (table === other.table && isLikePeriod(entity, withDigits(other))))',
        'if (isLikePeriod(entity, table))',
      ],
    ],
    test: ['test/lib/define/validate/options.test.ts', 'periods of two entities whose tables could have one name'],
    finds: 'expected [Function] to throw an error',
  },
  {
    without: 'A count is set by a read and a write',
    recommendations: ['p-series-merge', 'p-upsert'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [['if (!isConditional(conditions) && !slots.overflow', 'if (counts.size < 0 && !slots.overflow']],
    test: ['test/lib/features/data-series/data-series.test.ts', 'is set by one merge and read by one get'],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'Encrypted fields are stored as they are',
    recommendations: ['g-encrypt', 'g-encrypt-declare'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [['      if (fields.length === 0) return values;', '      if (fields.length >= 0) return values;']],
    test: [
      'test/protocol/encrypting.test.ts',
      'is never stored in plain text, and decrypts through the key and through each copy',
    ],
    finds: "not to contain '295847284'",
  },
  {
    without: 'Encrypted fields are stored as texts',
    recommendations: ['g-encrypt-binary'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [['.sealed === sealed.sealed ? bytes : sealed.sealed };', ".sealed === '' ? bytes : sealed.sealed };"]],
    test: [
      'test/lib/features/encrypted-properties/encrypted-properties.test.ts',
      'is binary, and gives the same text again',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A merge may change an encrypted field',
    recommendations: ['g-encrypt-no-merge'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [
      [
        '      const field = encrypted.find((each) => fields.includes(each));',
        '      const field = encrypted.find((each) => fields.includes(`${each} `));',
      ],
    ],
    test: ['test/protocol/encrypting.test.ts', 'is rejected in a PATCH, and kept by a PATCH of other fields'],
    finds: 'promise resolved "{ …(2) }" instead of rejecting',
  },
  {
    without: 'Values keep their former key',
    recommendations: ['g-encrypt-rotate'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [
      [
        '  if (toText(wrapping.keyId) === (await keys.currentKeyId())) return sealed;',
        "  if (toText(wrapping.keyId) !== '') return sealed;",
      ],
    ],
    test: [
      'test/protocol/encrypting.test.ts',
      'needs no downtime: old values decrypt, new ones use the new key, and a run rewraps the rest',
    ],
    finds: 'expected 0 to be greater than 0',
  },
  {
    without: 'A large text is not stored in a blob',
    recommendations: ['g-11-large', 'p-large-blob', 'd-fitting-store'],
    file: 'lib/features/large-entities/large-entities.ts',
    edits: [
      [
        "if (typeof text !== 'string' || fitsRow(entity, text)) continue;",
        "if (typeof text !== 'string' || text.length >= 0) continue;",
      ],
    ],
    test: ['test/protocol/large-entities.test.ts', 'is read back unchanged: %s'],
    finds: 'The field comments is longer than it can be',
  },
  {
    without: 'A child is written without its parent',
    recommendations: ['p-compound-egt', 'g-1n-same-partition'],
    file: 'lib/features/compound-key/compound-key.ts',
    edits: [['      touched.set(row, snapshot.etag);\n', '']],
    test: [
      'test/protocol/compound-key.test.ts',
      'none is left over or lost when one is written while the employee is deleted',
    ],
    finds: 'expected [ { …(12) }, { …(12) }, …(22) ] to deeply equal []',
  },
  {
    without: 'A partition may have any number of entities',
    recommendations: ['d-partition-size'],
    file: 'lib/features/maintained-count/maintained-count.ts',
    edits: [['if (change > 0 && countIn', 'if (change > 1e9 && countIn']],
    test: [
      'test/protocol/counting.test.ts',
      'is never exceeded, by concurrent creates of two processes and by a batch, and a delete makes room',
    ],
    finds: 'expected [] to have a length of 5 but got +0',
  },
  {
    without: 'A reference may name no entity',
    recommendations: ['g-11-explicit', 'd-integrity'],
    file: 'lib/features/references/references.ts',
    edits: [
      [
        '            if (!(await hasTarget(engine, reference, key, { together })))\n              throw atAction(change, danglingError(reference));',
        '            if ((await hasTarget(engine, reference, key, { together })) && !change)\n              throw atAction(change, danglingError(reference));',
      ],
    ],
    test: ['test/protocol/referring.test.ts', 'must name an existing entity, and a rejected write changes nothing'],
    finds: 'No error of the engine: undefined',
  },
  {
    without: 'A change of the source reaches no copy',
    recommendations: ['g-1n-denormalized', 'p-denorm-remote', 'd-replicate-reference'],
    file: 'lib/features/denormalization/fan-out.ts',
    edits: [
      [
        'const receiversOf = ({ dependents }: Entity) => dependents.filter((link) => link.fanOut);',
        'const receiversOf = ({ dependents }: Entity) => dependents.filter((link) => link.fanOut && !link.field);',
      ],
    ],
    test: [
      'test/protocol/fanning-out.test.ts',
      'reaches all receivers, in its partition and through an index, and their index entries',
    ],
    finds: "expected [] to deeply equal [ { by: { entity: 'players' }, …(1) } ]",
  },
  {
    without: 'A writer may set a copied field',
    recommendations: ['m-read-only'],
    file: 'lib/features/denormalization/fan-out.ts',
    edits: [['  keptFields: (entity) => linksOf(entity).flatMap(({ copies }) => Object.keys(copies)),\n', '']],
    test: ['test/protocol/fanning-out.test.ts', 'keeps the copies in a replace, and rejects other values of them'],
    finds: "expected 'done' to be 'invalid-input'",
  },
  {
    without: 'Expired entities are deleted one by one',
    recommendations: ['p-drop-batch', 'c-batching-internal'],
    file: 'lib/features/expiry/expiry.ts',
    edits: [
      [
        'Map.groupBy(due, ({ address: { partition } }) => partition).values()',
        'Map.groupBy(due, ({ address }) => address).values()',
      ],
    ],
    test: [
      'test/lib/features/expiry/expiry.test.ts',
      'deletes the entities of a partition together, unless they changed since',
    ],
    finds: 'No message of index-changes has memos in it.',
  },
  {
    without: 'A table is dropped without an archive',
    recommendations: ['p-drop-archive'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [
      ['      if (archiveTo && !(await archivePeriod', "      if (archiveTo && table === '' && !(await archivePeriod"],
    ],
    test: ['test/protocol/archiving-periods.test.ts', 'is archived in a blob of the cool tier, verified, and dropped'],
    finds: 'expected [] to match object [ { …(6) } ]',
  },
  {
    without: 'A list is kept for ever',
    file: 'lib/features/lookup/lookup.ts',
    edits: [
      [
        'if (known?.writes === writes && age >= 0 && age < maxAge) return known.list;',
        'if (known?.writes === writes && age >= 0 && maxAge > 0) return known.list;',
      ],
    ],
    test: [
      'test/lib/features/lookup/lookup.test.ts',
      'another process returns a changed list after maxAge at the latest, its own changes at once',
    ],
    finds: "expected [ 'Art' ] to deeply equal [ 'Fine art' ]",
  },
  {
    without: 'A change of an entity leaves the row that copies its fields',
    recommendations: ['p-denorm-egt', 'g-types-in-one-table'],
    file: 'lib/features/denormalization/denormalization.ts',
    edits: [
      [
        "          actions.push({ action, part: { of: 'sibling' } });\n          dependents.push(dependent);",
        '          if (!action) dependents.push(dependent);',
      ],
    ],
    test: ['test/lib/engine/write/plan.test.ts', 'of a manager and its department changes each row once'],
    finds: 'Property failed after',
  },
  {
    without: 'A series has one row',
    recommendations: ['p-series-too-long', 'p-wide-series', 'd-vertical-contention'],
    file: 'lib/features/data-series/data-series.ts',
    edits: [['  return Math.floor((slot - first) / perRow);', '  return Math.floor((slot - first) / perRow) * 0;']],
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'is stored in two rows within the limits, which are read concurrently and changed in one transaction',
    ],
    finds: 'The entity exceeds the limits of Table storage: 1 MiB,',
  },
  {
    without: 'A wide entity has one row',
    recommendations: ['p-wide-general'],
    file: 'lib/features/wide-entities/wide-entities.ts',
    edits: [
      [
        '        for (const each of left)\n          if (![own',
        '        for (const each of left)\n          if (each && ![own',
      ],
      ['put(addRow(further), each);', 'put(own, each);'],
    ],
    test: ['test/protocol/wide-entities.test.ts', 'is written in one transaction, and read by one range query'],
    finds: 'The entity takes 1983 properties; one row holds 240.',
  },
  {
    without: 'Counts are written without their ETag',
    recommendations: ['p-series-etag'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [
      [
        "return current ? { kind, row, properties, etag: current.etag } : { kind: 'insert', row, properties };",
        "return current ? { kind, row, properties, etag: '*' } : { kind: 'insert', row, properties };",
      ],
    ],
    test: ['test/lib/features/data-series/data-series.test.ts', 'keeps every increment of fifty concurrent callers'],
    finds: 'to deeply equal [ Array(50) ]',
  },
  {
    without: 'Each count has a row of its own',
    recommendations: ['p-series-properties', 'c-series', 'p-series-one-read'],
    file: 'lib/features/data-series/data-series.ts',
    edits: [['  return Math.floor((slot - first) / perRow);', '  return perRow > 0 ? slot - first : 0;']],
    test: ['test/lib/features/data-series/data-series.test.ts', 'is set by one merge and read by one get'],
    finds: 'expected [ Array(24) ] to deeply equal [ Array(24) ]',
  },
  {
    without: 'A count is changed without the ETag of its row',
    recommendations: ['g-summaries'],
    file: 'lib/features/maintained-count/maintained-count.ts',
    edits: [
      [
        "  return { kind: 'merge', row, properties, etag: found.etag };",
        "  return { kind: 'merge', row, properties, etag: '*' };",
      ],
    ],
    test: ['test/protocol/counting.test.ts', 'is correct after 32 concurrent creates and deletes'],
    finds: 'to be 16',
  },
  {
    without: 'Expiry reads the entries that are not due',
    recommendations: ['c-table-queries'],
    file: 'lib/features/expiry/expiry.ts',
    edits: [
      [
        "  if (at === undefined) return { beforePartition: addPeriods('day', today, -days) };",
        "  if (at === undefined) return { beforePartition: addPeriods('day', today, days) };",
      ],
    ],
    test: [
      'test/lib/features/expiry/expiry.test.ts',
      'takes one storage transaction if nothing is due, for any number of entities',
    ],
    finds: 'expected 48 to be 1',
  },
  {
    without: 'An entity has no copies of the fields of another one',
    recommendations: ['g-denormalize', 'p-denorm-copy', 'd-few-joins'],
    file: 'lib/features/denormalization/denormalization.ts',
    edits: [
      [
        '  return { ...kept, ...copiesOf(link, source) };',
        '  return source ? kept : { ...kept, ...copiesOf(link, source) };',
      ],
    ],
    test: [
      'test/scenarios/company-directory.test.ts',
      'has the name and email of its manager, and follows their changes',
    ],
    finds: '-     "managerName": "May',
  },
  {
    without: 'A list in another partition does not change',
    recommendations: ['p-list-remote'],
    file: 'lib/features/index-entities/index-entities.ts',
    edits: [['  if (!changed) return true;', '  if (!changed || Boolean(changed)) return true;']],
    test: ['test/protocol/keeping-indexes.test.ts', 'of one last name are all in its lists'],
    finds: 'expected [] to have a length of 12',
  },
  {
    without: 'A list may hold less than the keys of its members',
    recommendations: ['p-list-holds'],
    file: 'lib/features/index-entities/index-entities.ts',
    edits: [['      if (missing.length > 0)', '      if (missing.length > 9)']],
    test: ['test/lib/define/define-entity.test.ts', 'an inter-partition list without the partition of its members'],
    finds: 'expected [Function] to throw an error',
  },
  {
    without: 'The rows of a series change one after another',
    recommendations: ['p-wide-egt'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: ROW_BY_ROW,
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'is stored in two rows within the limits, which are read concurrently and changed in one transaction',
    ],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'The rows of a series are deleted one after another',
    recommendations: ['p-wide-delete'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: ROW_BY_ROW,
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'of several rows is deleted in one transaction or not at all',
    ],
    finds: 'expected 4 to be 3',
  },
  {
    without: 'Only the first row of a series is read',
    recommendations: ['p-wide-reads'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [
      [
        'Promise.all(addresses.map((address) => readEntityRow',
        'Promise.all(addresses.slice(0, 1).map((address) => readEntityRow',
      ],
    ],
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'is stored in two rows within the limits, which are read concurrently and changed in one transaction',
    ],
    finds: 'expected 1 to be 2',
  },
  {
    without: 'The fields of a group are in the row of their entity',
    recommendations: ['d-vertical', 'd-table-split'],
    file: 'lib/features/vertical-split/vertical-split.ts',
    edits: [
      [
        'return { own: omit(values, apartFields(entity)), further: new Map(stored) };',
        'return { own: values, further: new Map(stored.slice(stored.length)) };',
      ],
    ],
    test: [
      'test/protocol/vertical-split.test.ts',
      'leaves the groups out, and returns one that is asked for, in one transaction each',
    ],
    finds: 'to not have property "description"',
  },
  {
    without: 'A file that is stored already is written again',
    recommendations: ['c-blob-conditional'],
    file: 'lib/features/large-entities/attachment.ts',
    edits: [
      [
        'if (there && isSame(there) && (await hasBlob(there.blob))) return current;',
        'if (there && isSame(there) && !(await hasBlob(there.blob))) return current;',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'takes one blob write, one read and one write of its entity, and is not written twice',
    ],
    finds: 'expected 10 to be 2',
  },
  {
    without: 'A reference leads to its target by a second read',
    recommendations: ['s-reference'],
    file: 'lib/features/references/references.ts',
    edits: [['  if (isConfirmed(entry) && !isCheck && !fields && instant.length === 0) return true;\n', '']],
    test: ['test/protocol/referring.test.ts', 'costs one read when it is written, and none when another field changes'],
    finds: "expected { create: 3, 'another field': 2",
  },
  {
    without: 'The encrypted fields of a group are stored as they are',
    recommendations: ['d-vertical-sensitive'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [['      if (fields.length === 0) return values;', '      if (fields.length >= 0) return values;']],
    test: ['test/protocol/vertical-split.test.ts', 'encrypts, rewraps and keeps texts in blobs for a group'],
    finds: 'to match object { secret: Any<Uint8Array> }',
  },
  {
    without: 'A grant of a row opens its groups',
    recommendations: ['g-11-access'],
    file: 'lib/features/vertical-split/vertical-split.ts',
    edits: [
      [
        'return { own: omit(values, apartFields(entity)), further: new Map(stored) };',
        'return { own: values, further: new Map(stored.slice(stored.length)) };',
      ],
    ],
    test: [
      'test/rules/granting.test.ts',
      'opens a field that a rule shows to its owner, no group of split, and an encrypted field as it is stored',
    ],
    finds: 'to not have property "health"',
  },
];
