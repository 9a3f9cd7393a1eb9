import type { Cut } from '../../model/rules.ts';

export const API: readonly Cut[] = [
  {
    without: 'An entry of an index that was left behind erases the row of another user',
    file: 'lib/api/user-data.ts',
    edits: [['isOwn = current[field] === subject;', 'isOwn = true;']],
    test: [
      'test/rules/erasing-users.test.ts',
      'an entry of an index that was left behind erases nothing of its present user',
    ],
    finds: '"changed": 2',
  },
  {
    without: 'What is erased of a user may have changed since it was read',
    file: 'lib/api/user-data.ts',
    edits: [['{ delete: key, ifMatch: own.etag }', '{ delete: key }']],
    test: [
      'test/rules/erasing-users.test.ts',
      'a row that changes while it is deleted stays, until the request is repeated',
    ],
    finds: '"failed": 0',
  },
  {
    without: 'Any role may use an action of a transaction if it may use another one',
    file: 'lib/api/transact.ts',
    edits: [
      ['parts: ({ actions }) => actions.map(partOf),', 'parts: ({ actions }) => actions.slice(0, 1).map(partOf),'],
    ],
    test: ['test/rules/transacting.test.ts', 'needs the role of each action also where no rule limits rows'],
    finds: '"status": 200',
  },
  {
    without: 'Children are read with each entity',
    recommendations: ['p-compound-frequency'],
    file: 'lib/api/get.ts',
    edits: [
      [
        'include ? includedOf(entity, include) : NOTHING_INCLUDED;',
        'include ? includedOf(entity, include) : { ...NOTHING_INCLUDED, kinds: entity.children };',
      ],
    ],
    test: ['test/scenarios/retrieving.test.ts', 'are included in an employee for callers who may read them'],
    finds: '+   "reviews": [',
  },
  {
    without: 'Another room than that of storage opens a client of tables',
    recommendations: ['s-transparent'],
    file: 'lib/api/operation.ts',
    edits: [
      [
        "import type { z } from 'zod';\n",
        "import type { z } from 'zod';\n\nexport { TableClient } from '@azure/data-tables';\n\n",
      ],
    ],
    test: ['test/lib/storage/storage.test.ts', 'no other room knows the SDKs of tables, queues and blobs'],
    finds: "expected [ 'lib/api/operation.ts' ] to deeply equal []",
  },
];
