// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the edits are texts of code
import type { Cut } from '../../model/rules.ts';

export const ENGINE_READ: readonly Cut[] = [
  {
    without: 'The tables of periods are read one after another',
    file: 'lib/engine/read/retrieve.ts',
    edits: [['const PERIODS_CONCURRENCY = 8;', 'const PERIODS_CONCURRENCY = 1;']],
    test: ['test/lib/engine/concurrent-requests.test.ts', 'reads the tables of eight periods at a time'],
    finds: 'expected 1 to be 8',
  },
  {
    without: 'The entities of a keys-only index are read one after another',
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const POINT_READS_CONCURRENCY = 16;', 'const POINT_READS_CONCURRENCY = 1;']],
    test: ['test/lib/engine/concurrent-requests.test.ts', 'reads the entities of a keys-only index sixteen at a time'],
    finds: 'expected 1 to be 16',
  },
  {
    without: 'A continuation is valid for any query',
    file: 'lib/engine/read/continuation.ts',
    edits: [['      audience: digestOf(query),\n', '']],
    test: [
      'test/lib/engine/read/continuation.test.ts',
      'is rejected if it was altered, belongs to another query or was not encrypted',
    ],
    finds: `promise resolved "{ row: 'a', period: '2026-11-20' }" instead of`,
  },
  {
    without: 'Each process has a secret of its own',
    recommendations: ['p-continue-stored'],
    file: 'lib/engine/read/continuation.ts',
    edits: [
      [
        "if (await tryAction(storage, where, { kind: 'insert', row: SECRET_ADDRESS.row, properties })) return secret;",
        "if (where) return tryAction(storage, where, { kind: 'insert', row: SECRET_ADDRESS.row, properties }).then(() => secret);",
      ],
    ],
    test: [
      'test/lib/engine/read/continuation.test.ts',
      'is valid in every process, even if all created the secret concurrently',
    ],
    finds: 'The continuation is not valid for this query.',
  },
  {
    without: 'A long list stays in its row',
    recommendations: ['p-list-blob', 'p-list-size'],
    file: 'lib/engine/read/member-list.ts',
    edits: [['const MAX_LIST_LENGTH = 32_768;', 'const MAX_LIST_LENGTH = 32_768_000;']],
    test: [
      'test/protocol/long-lists.test.ts',
      'moves to a blob and back as it grows and shrinks, in the partition and in another',
    ],
    finds: 'expected [ false, false ] to deeply equal [ true, true ]',
  },
  {
    without: 'A page has any number of lookups',
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const MAX_LOOKUPS = 256;', 'const MAX_LOOKUPS = 2_560;']],
    test: ['test/lib/engine/read/read-through-index.test.ts', 'ends after 256 lookups'],
    finds: 'expected [ 300 ] to deeply equal [ 256, 44 ]',
  },
  {
    without: 'Another value with the same hash is returned',
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['stored === undefined || stored === value;', 'stored === undefined || value !== undefined;']],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'another value with the same hash is not returned from %s',
    ],
    finds: "expected [ { shelf: 'everything', …(2) }, …(1) ] to deeply equal",
  },
  {
    without: 'An index is read one partition after another',
    recommendations: ['p-parallel', 'd-parallel-queries', 'd-parallel-across'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const PARTITIONS_CONCURRENCY = 16;', 'const PARTITIONS_CONCURRENCY = 1;']],
    test: ['test/protocol/index-table-shapes.test.ts', 'reads its partitions concurrently'],
    finds: 'expected 1 to be 8',
  },
  {
    without: 'Each copy leads to a second read',
    recommendations: ['p-inter-one-read', 'p-intra-one-read'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [["const isToFollow = index.copies === 'keys' || ", 'const isToFollow = index.copies.length > 0 || ']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'returns all of a city and last name in one transaction, and none with a longer name',
    ],
    finds: 'expected 3 to be 1',
  },
  {
    without: 'Children are read one by one',
    recommendations: ['p-compound-one-query', 'g-partition-by-owner', 's-together', 'd-few-partitions'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      ['const beginning = isBeside ? await readRange', "const beginning = isBeside && row === '' ? await readRange"],
    ],
    test: ['test/protocol/compound-key.test.ts', 'are read in one query, and one review by its key'],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'An index entry that is stale leads to its entity',
    recommendations: ['p-evt-isolation', 'd-query-inconsistent', 'p-sas-own'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [
      ['  return isHere ? found?.values : undefined;', '  return isHere || found ? found?.values : undefined;'],
      [
        'if (!found || Object.entries(given).some(([field, value]) => found[field] !== value)) throw',
        'if (!found) throw',
      ],
    ],
    test: ['test/lib/access/own.test.ts', 'finds nothing by a former email, even while its index entry exists'],
    finds: 'promise resolved',
  },
  {
    without: 'A read by key asks for a range',
    recommendations: ['g-point-queries', 'p-point', 'c-point-queries'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [
      [
        '  const reading = readRow(engine.storage, address);',
        '  const range = { ...address, from: address.row, before: `${address.row} ` };\n  const reading = readRange(engine.storage, range).then(({ rows }) => rows[0]);',
      ],
    ],
    test: ['test/scenarios/projecting.test.ts', 'are read from a blob only if they are selected'],
    finds: "expected [ 'rows', 'blob' ] to deeply equal [ 'row', 'blob' ]",
  },
  {
    without: 'A range asks for all properties',
    recommendations: ['g-projection', 'p-project', 'c-projection'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      [
        'return { wanted, read, select: read && storedNames(entity, read) };',
        'return { wanted, read, select: undefined };',
      ],
    ],
    test: [
      'test/scenarios/explaining.test.ts',
      'a range and included children ask storage for the selected fields only',
    ],
    finds: "expected [ 'everything' ] to deeply equal",
  },
  {
    without: 'Included children come with all properties',
    recommendations: ['p-compound-select'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      [
        'const read = isWhole ? undefined : [...new Set(stored)];',
        'const read = isWhole || stored.length > 0 ? undefined : [];',
      ],
    ],
    test: [
      'test/scenarios/explaining.test.ts',
      'a range and included children ask storage for the selected fields only',
    ],
    finds: "expected [ 'everything' ] to include 'year'",
  },
  {
    without: 'A partition is not filtered',
    recommendations: ['g-partition-scans'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      ['          ...rowFilterOf(entity, where),\n          ...common', '          ...common'],
      ['matches(where, values) && !hasExpired(entity, values, now())', '!hasExpired(entity, values, now())'],
    ],
    test: ['test/scenarios/retrieving.test.ts', 'compares any property of a partition, of any type'],
    finds: 'expected [ …(2) ] to deeply equal [ { department:',
  },
  {
    without: 'The app alone filters a partition',
    recommendations: ['c-filter'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [['          ...rowFilterOf(entity, where),\n          ...common', '          ...common']],
    test: ['test/scenarios/explaining.test.ts', 'a range sends its filter to storage'],
    finds: '+     "filter": "PartitionKey eq \'Projected\' and RowKey ge',
  },
  {
    without: 'A copy is read as an entity by its key',
    recommendations: ['p-type-known'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [
      ['(row.properties.EntityType === entity.name && !isCopy(row))', 'row.properties.EntityType === entity.name'],
    ],
    test: ['test/protocol/index-table-shapes.test.ts', 'is not read, written or deleted by its key'],
    finds: 'promise resolved "{ …(2) }" instead of rejecting',
  },
  {
    without: 'A write replaces a row of any type',
    recommendations: ['p-type-check'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [['(row.properties.EntityType === entity.name && !isCopy(row))', '!isCopy(row)']],
    test: [
      'test/lib/engine/write/entity-batch.test.ts',
      'rejects an item that would replace another kind of entity under the same key',
    ],
    finds: "expected { outcome: 'stored', …(1) } to match object { code: 'duplicate-key' }",
  },
  {
    without: 'A query returns rows of one type',
    recommendations: ['p-type-several'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [['      type: [...filters, ...further],', '      type: [...filters.slice(0, 1), ...further],']],
    test: ['test/protocol/compound-key.test.ts', 'are read in one query, and one review by its key'],
    finds: '+   "reviews": [],',
  },
  {
    without: 'A page of a list reads any number of entities',
    recommendations: ['p-list-two-queries'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const MAX_LOOKUPS = 256;', 'const MAX_LOOKUPS = 25_600;']],
    test: ['test/lib/engine/read/read-through-index.test.ts', 'ends after 256 lookups'],
    finds: 'expected [ 300 ] to deeply equal [ 256, 44 ]',
  },
  {
    without: 'A page has more entities than were asked for',
    recommendations: ['p-tail-top'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      ['const common = { partition, select, limit: top,', 'const common = { partition, select, limit: 1_000 + top,'],
    ],
    test: [
      'test/scenarios/retrieving.test.ts',
      'returns the newest first, in one transaction, and continues where it stopped',
    ],
    finds: "expected [ '2026-11-25T08:00:00.000Z', …(25) ] to deeply equal",
  },
  {
    without: 'A page has no link to the next one',
    recommendations: ['p-continue-pages'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      [
        'return { rows: page, next: last && toPosition(entity, last) };',
        'return { rows: page, next: last && undefined };',
      ],
    ],
    test: ['test/scenarios/company-directory.test.ts', 'is bounded, projected and paged'],
    finds: "00003' ] to deeply equal [ '",
  },
  {
    without: 'A page of an index has more entities than were asked for',
    recommendations: ['p-large-test'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [
      [
        'const limit = hasLookups ? Math.min(top, MAX_LOOKUPS) : top;',
        'const limit = hasLookups ? MAX_LOOKUPS : 100 * top;',
      ],
    ],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'a page takes as many transactions with 5,000 entities as with 100',
    ],
    finds: 'to deeply equal { copies: [ 1, 1, 1, 1 ]',
  },
  {
    without: 'A reference is returned in place of its entity',
    recommendations: ['i-two-lookups', 'm-consistent'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [["      : index.copies === 'everything';", '      : index.copies.length > 0;']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'holds only the key, takes two lookups, and never returns stale fields',
    ],
    finds: "expected { city: 'London', customerId: 'C1' } to deeply equal",
  },
  {
    without: 'A blob is written again under its name',
    recommendations: ['d-blob-atomic'],
    file: 'lib/engine/read/text-blobs.ts',
    edits: [
      [
        '${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}',
        '${time.slice(0, 0)}${randomUUID().slice(99)}',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'is written, replaced, read and deleted; the entity and the blob agree',
    ],
    finds: 'to not match object { Object (blob) }',
  },
  {
    without: 'A read of a large text also asks for its length',
    recommendations: ['p-large-reads'],
    file: 'lib/engine/read/text-blobs.ts',
    edits: [
      [
        '  const bytes = range ? (await',
        "  if ((await blobLength(storage, address)) === undefined) throw new BlobGone('The blob is missing.');\n  const bytes = range ? (await",
      ],
    ],
    test: ['test/protocol/large-entities.test.ts', 'is read back unchanged: %s'],
    finds: 'expected 3 to be 2',
  },
  {
    without: 'A large text is stored as it is',
    recommendations: ['c-compress'],
    file: 'lib/engine/read/text-blobs.ts',
    edits: [
      [
        'const bytes = isCompressed ? await deflate(plain) : plain;',
        'const bytes = isCompressed && plain.length === 0 ? await deflate(plain) : plain;',
      ],
    ],
    test: [
      'test/lib/features/large-entities/compressed-texts.test.ts',
      'is a blob with Content-Encoding, is read back unchanged, and stays so when its entity is moved',
    ],
    finds: '-   "encoding": "br",',
  },
  {
    without: 'A write looks for its row in a range',
    recommendations: ['g-modify-by-key'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [
      [
        '  const reading = readRow(engine.storage, address);',
        '  const range = { ...address, from: address.row, before: `${address.row} ` };\n  const reading = readRange(engine.storage, range).then(({ rows }) => rows[0]);',
      ],
    ],
    test: ['test/scenarios/splitting-products.test.ts', 'change their price and stock without their texts'],
    finds: '+       "read": "rows",',
  },
  {
    without: 'A list is written without its ETag',
    recommendations: ['p-list-again'],
    file: 'lib/engine/read/member-list.ts',
    edits: [
      [
        "return { kind: 'replace', row: rowKey, properties, etag: row.etag };",
        "return { kind: 'replace', row: rowKey, properties, etag: '*' };",
      ],
    ],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'of several changes in a partition updates copies and lists in one transaction',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A list returns its members without a read of them',
    recommendations: ['p-list-read'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [
      [
        'const found = address && (await readWanted(engine, entity, index, address, { select, where, given }));',
        'const found = address && { values: { ...given, ...inList } };',
      ],
    ],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'of lists are omitted, at most 256 on a page, and a page continues within a list',
    ],
    finds: 'expected [ …(601) ] to deeply equal [ Array(4) ]',
  },
];
