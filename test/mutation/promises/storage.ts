// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the edits are texts of code
import type { Cut } from '../../model/rules.ts';

export const STORAGE: readonly Cut[] = [
  {
    without: 'A range is read from the beginning of its partition',
    recommendations: ['c-density', 'g-range-queries', 'p-filter-row', 'c-partition-queries', 'i-contiguous'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        'conditions.push(after === undefined ? `RowKey ge ${literal(from)}` : `RowKey gt ${literal(after)}`);',
        "conditions.push(`RowKey ge '' and not (RowKey lt ${literal(after ?? from)})`);",
      ],
    ],
    test: ['test/lib/storage/rows.test.ts', 'starts a range of rows at its first row: %o'],
    finds: "expected [ { partition: 'o\\'3', row: '' } ] to deeply equal",
  },
  {
    without: 'A range is read from the first partition of its table',
    recommendations: ['p-filter-partition', 'd-select-partition'],
    file: 'lib/storage/rows.ts',
    edits: [['[`PartitionKey eq ${literal(partition)}`]', '[`PartitionKey le ${literal(partition)}`]']],
    test: ['test/lib/storage/rows.test.ts', 'starts a range of rows at its first row: %o'],
    finds: "expected [ { partition: '', row: 'row\\'2' } ] to deeply equal",
  },
  {
    without: 'A scan begins each page at the first row of the table',
    recommendations: ['g-no-table-scans'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        '`PartitionKey ge ${partition} and (PartitionKey gt ${partition} or RowKey gt ${row})`',
        '`(PartitionKey gt ${partition} or PartitionKey eq ${partition} and RowKey gt ${row})`',
      ],
    ],
    test: ['test/lib/storage/rows.test.ts', 'scans few rows more than once, with pages of %d'],
    finds: 'expected 1830 to be less than or equal to 660',
  },
  {
    without: 'Storage is asked once',
    recommendations: ['p-evt-retry', 'c-retry', 'c-backoff-targets'],
    file: 'lib/storage/storage.ts',
    edits: [['const RETRIES = 3;', 'const RETRIES = 0;']],
    test: ['test/lib/storage/storage.test.ts', 'retries a 429 without Retry-After three times like a 503: %s'],
    finds: '429: expected 1 to be 4',
  },
  {
    without: 'A load near the target is in no metric',
    recommendations: ['p-append-detect', 'd-shard-limits', 'd-monitor'],
    file: 'lib/storage/heat.ts',
    edits: [['PARTITION_TARGET * 0.6', 'PARTITION_TARGET * 600']],
    test: [
      'test/lib/storage/heat.test.ts',
      'names a partition above a hundredth of the target in metrics by its slot, once a minute, and no other',
    ],
    finds: "expected undefined to deeply equal { resource: 'logins', slot: '297' }",
  },
  {
    without: 'The current key is asked for each time',
    recommendations: ['c-cache-keys'],
    file: 'lib/storage/key-vault-key-ring.ts',
    edits: [['    if (kept && Date.now() < kept.until) return kept;\n', '']],
    test: [
      'test/lib/storage/key-vault-key-ring.test.ts',
      'requests the current key once, and makes one request for each unwrapping',
    ],
    finds: 'expected [ …(3) ] to deeply equal [ …(2) ]',
  },
  {
    without: 'All slots are in the first account',
    recommendations: ['d-more-accounts', 'd-next-level', 'c-many-accounts', 's-virtual'],
    file: 'lib/storage/slot-row.ts',
    edits: [
      [
        'const [from, before] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / spread)) as [number, number];',
        'const [from, before] = index === 0 ? [0, SLOTS] : [0, 0];',
      ],
    ],
    test: [
      'test/lib/storage/accounts.test.ts',
      'spreads the slots of empty storage over the accounts, the same for every process',
    ],
    finds: "expected Set{ 'first' } to deeply equal",
  },
  {
    without: 'The map is read for each request',
    recommendations: ['d-map'],
    file: 'lib/storage/slot-map.ts',
    edits: [['export const LEASE_MS = 5_000;', 'export const LEASE_MS = 0;']],
    test: [
      'test/lib/storage/accounts.test.ts',
      'sends each request to the account of its partition, and reads the map once in five seconds',
    ],
    finds: 'takes more than 0 seconds to',
  },
  {
    without: 'Rows of several accounts come one account after another',
    recommendations: ['d-multi-shard'],
    file: 'lib/storage/scan-accounts.ts',
    edits: [
      [
        '  const all = pages.flatMap((page) => page.rows).sort(compareKeys);',
        '  const all = pages.flatMap((page) => page.rows);',
      ],
    ],
    test: ['test/lib/storage/accounts.test.ts', 'merges a scan in the order of keys, with pages of any size'],
    finds: "expected [ 'p0/r0', 'p0/r23', 'p11/r11', …(37) ] to deeply equal",
  },
  {
    without: 'A slot is that of the first letter',
    recommendations: ['d-shard-resize', 's-small'],
    file: 'lib/storage/slots.ts',
    edits: [
      [
        "return hash('sha256', text, 'hex').slice(0, DIGITS);",
        "return hash('sha256', text.slice(0, 1), 'hex').slice(0, DIGITS);",
      ],
    ],
    test: ['test/lib/storage/slots.test.ts', 'spreads texts that are alike, and never changes'],
    finds: "expected [ '8de', 'a9f', 'e3b' ] to deeply equal",
  },
  {
    without: 'A layer has every partition of its tables',
    recommendations: ['d-map-list', 'd-map-range', 's-tenant'],
    file: 'lib/storage/slots.ts',
    edits: [['const hasKeys = keys !== undefined || isRange;', 'const hasKeys = keys !== undefined && isRange;']],
    test: ['test/lib/storage/slots.test.ts', 'has the partitions of a layer: %j'],
    finds: 'acm: expected true to be false',
  },
  {
    without: 'A read counts though its slot was moved meanwhile',
    recommendations: ['s-caches', 'i-failover', 'd-online'],
    file: 'lib/storage/slot-map.ts',
    edits: [
      [
        '    if (await isStillOwner(accounts, owner)) return result;',
        '    if ((await isStillOwner(accounts, owner)) || result !== undefined) return result;',
      ],
    ],
    test: ['test/lib/storage/fence.test.ts', 'reads at the new owner if the slot was moved during the read'],
    finds: 'expected 1 to be 2',
  },
  {
    without: 'A query ends at an empty page',
    recommendations: ['p-continue'],
    file: 'lib/storage/row-query.ts',
    edits: [
      [
        '    if (continuationToken === undefined) return { rows, more: false };',
        '    if (continuationToken === undefined || read.length === 0) return { rows, more: false };',
      ],
    ],
    test: ['test/lib/storage/rows.test.ts', 'continues after an empty page'],
    finds: "expected [] to match object [ { partition: 'one', row: '2' } ]",
  },
  {
    without: 'A page may have any length',
    recommendations: ['p-page-size'],
    file: 'lib/storage/row-query.ts',
    edits: [['if (count < limit && (!bound || length < bound.length)) continue;', 'if (count < limit) continue;']],
    test: [
      'test/lib/storage/rows.test.ts',
      'reads %s of long rows in parts and ends with the row that reaches the limit',
    ],
    finds: "expected [ '0', '1', '2', '3', '4', '5', …(3) ] to deeply equal",
  },
  {
    without: 'Tables have no prefix',
    recommendations: ['c-accounts', 'd-functional'],
    file: 'lib/storage/storage.ts',
    edits: [
      [
        'table: onceByName((name) => clients.openTable(prefixTable(prefix, name))),',
        'table: onceByName((name) => clients.openTable(name)),',
      ],
    ],
    test: [
      'test/protocol/sharing-an-account.test.ts',
      'the same entity in each app has its own values, unique index rows and messages',
    ],
    finds: 'Missing in the storage account: table a0employeesbyemail.',
  },
  {
    without: 'A signature needs a request for a key each time',
    recommendations: ['p-sas-overhead'],
    file: 'lib/storage/table-sas.ts',
    edits: [['    if (kept && isValidFor(kept, request)) return kept;\n', '']],
    test: [
      'test/lib/storage/user-delegation-signer.test.ts',
      'requests the key once for concurrent callers and renews it before a signature would outlive it',
    ],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'A data key is stored as it is',
    recommendations: ['g-encrypt-vault'],
    file: 'lib/storage/key-vault-key-ring.ts',
    edits: [
      [
        "wrapped: publicEncrypt({ key: publicKey, padding, oaepHash: 'sha256' }, dataKey) };",
        'wrapped: publicKey && padding ? dataKey : publicEncrypt({ key: publicKey, padding }, dataKey) };',
      ],
    ],
    test: ['test/lib/storage/key-vault-key-ring.test.ts', 'unwraps every data key that it wrapped'],
    finds: 'Property failed after',
  },
  {
    without: 'A scan counts though slots were moved meanwhile',
    recommendations: ['d-online'],
    file: 'lib/storage/slot-map.ts',
    edits: [['        if (!hasStayed) return;\n', '        if (!hasStayed || accounts) return;\n']],
    test: [
      'test/lib/operations/backup/snapshot.test.ts',
      'are read again where a slot has moved, and its rows are deleted, during the read',
    ],
    finds: "expected [ 'p4', 'p5', 'p6', 'p7' ] to deeply equal",
  },
  {
    without: 'An account that is away stops the slots of the others',
    recommendations: ['d-available', 'd-map-available'],
    file: 'lib/storage/slot-map.ts',
    edits: [
      [
        '    if (known) await lookAt(accounts, known);',
        '    await Promise.all(accounts.list.map((account) => lookAt(accounts, account)));',
      ],
    ],
    test: [
      'test/lib/storage/accounts.test.ts',
      'serves the slots of the other accounts while one is away, and names it',
    ],
    finds: 'Storage is unavailable: the account second does not respond.',
  },
  {
    without: 'An account that is added gets slots',
    file: 'lib/storage/slot-row.ts',
    edits: [["  if (index >= spread) return '-'.repeat(SLOTS);", "  if (index >= spread) return 'o'.repeat(SLOTS);"]],
    test: ['test/lib/storage/accounts.test.ts', 'gives no slot to an account that is added to others'],
    finds: "expected [ [ 'first', 2048 ], …(2) ] to deeply equal",
  },
  {
    without: 'A range combines row keys by "or"',
    recommendations: ['g-no-or'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        '  if (before !== undefined) conditions.push(`RowKey lt ${literal(before)}`);\n  const filter',
        '  if (before !== undefined)\n    conditions.push(`RowKey lt ${literal(before)}`, `(RowKey eq ${literal(from)} or RowKey gt ${literal(from)})`);\n  const filter',
      ],
    ],
    test: [
      'test/protocol/compound-key.test.ts',
      'are read without the rows between them, and without an "or" of row keys',
    ],
    finds: 'not to match /RowKey le',
  },
  {
    without: 'An entity group transaction is not counted',
    recommendations: ['g-cost-transactions', 'i-storage-cost'],
    file: 'lib/storage/cost.ts',
    edits: [['          meter.transactions += 1;\n', '          if (named !== BATCH) meter.transactions += 1;\n']],
    test: [
      'test/scenarios/costing-what-the-docs-say.test.ts',
      'a create costs the transactions that docs/reference/http.md states',
    ],
    finds: '+   "employees": 9,',
  },
  {
    without: 'A replace keeps the properties that it does not send',
    recommendations: ['p-replace'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        "  return ['update', entity, action.kind === 'merge' ? 'Merge' : 'Replace', { etag: action.etag }];",
        "  return ['update', entity, 'Merge', { etag: action.etag }];",
      ],
    ],
    test: ['test/scenarios/company-directory.test.ts', 'is replaced and patched only with its current ETag'],
    finds: '+   "phone": "1",',
  },
  {
    without: 'A signature is not that of the delegated key',
    recommendations: ['p-sas-no-key', 'p-sas-server'],
    file: 'lib/storage/table-sas.ts',
    edits: [["Buffer.from(key.Value, 'base64')", "Buffer.from(key.Value, 'utf8')"]],
    test: ['test/lib/storage/user-delegation-signer.test.ts', 'the signature equals the documented one'],
    finds: "expected { sp: 'r', …(16) } to deeply equal { sp: 'r', …(16) }",
  },
  {
    without: 'A signature allows no client to add rows',
    recommendations: ['p-sas-offload', 'c-sas'],
    file: 'lib/storage/table-sas.ts',
    edits: [["          add: permissions.includes('a'),", '          add: false,']],
    test: [
      'test/scenarios/writing-straight-to-storage.test.ts',
      'are added and read directly in storage, and the API lists the valid ones',
    ],
    finds: 'expected 403 to be 201',
  },
  {
    without: 'A blob stays when its row refers to another one',
    recommendations: ['p-evt-blobs', 'p-large-eventual'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        '    await deleteBlob(storage, blob);\n  } catch',
        "    if (blob.name === '') await deleteBlob(storage, blob);\n  } catch",
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'moves from the row to a blob and back as it grows and shrinks, and leaves no blob behind',
    ],
    finds: 'to deeply equal []',
  },
  {
    without: 'A file is an append blob',
    recommendations: ['d-blob-block', 'c-blob-type'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        '    const client = to.container(container).getBlockBlobClient(name);\n    return storageCall(client.upload(bytes, bytes.byteLength, options), container);',
        '    const client = to.container(container).getAppendBlobClient(name);\n    const { blobHTTPHeaders, metadata: ofBlob } = options;\n    const created = client.create({ blobHTTPHeaders, metadata: ofBlob });\n    return storageCall(created.then(() => client.appendBlock(bytes, bytes.byteLength)), container);',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'is written, replaced, read and deleted; the entity and the blob agree',
    ],
    finds: "expected 'AppendBlob' to be 'BlockBlob'",
  },
  {
    without: 'A signature is valid for each blob of a container',
    recommendations: ['d-blob-containers'],
    file: 'lib/storage/blobs.ts',
    edits: [['    containerName,\n    blobName: name,', '    containerName,']],
    test: [
      'test/protocol/large-entities.test.ts',
      'can be written once and not read, and its signature is valid for no other blob',
    ],
    finds: 'expected 201 to be 403',
  },
  {
    without: 'The bytes of a blob that is copied pass through the app',
    recommendations: ['c-blob-copy'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        '  const copied = await readInAccount(storage, from, async (account) => {\n',
        '  const copied = await readInAccount(storage, from, async (account) => {\n    await account.container(from.container).getBlobClient(from.name).downloadToBuffer();\n',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'lets storage copy files and texts; no byte of them passes through the app',
    ],
    finds: 'to be +0',
  },
  {
    without: 'The signature of a file does not let a client read',
    recommendations: ['c-sas-download'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        'permissions: BlobSASPermissions.parse(permissions),',
        "permissions: BlobSASPermissions.parse(permissions === READ_PERMISSIONS ? 'c' : permissions),",
      ],
    ],
    test: [
      'test/scenarios/files-and-secrets.test.ts',
      'opens the file directly in storage for the roles that read it, with two transactions and none for the file',
    ],
    finds: 'to deeply equal Buffer[ 137, 80, 78, 71',
  },
  {
    without: 'A connection error is not retried',
    recommendations: ['c-retry-connection'],
    file: 'lib/storage/storage.ts',
    edits: [['const RETRIES = 3;', 'const RETRIES = 0;']],
    test: ['test/lib/storage/storage.test.ts', 'sends an insert again if the connection ends before its handshake'],
    finds: 'expected 1 to be 4',
  },
  {
    without: 'Requests are not counted by their pattern',
    recommendations: ['g-count-operations'],
    file: 'lib/storage/cost.ts',
    edits: [
      [
        '      count.transaction({ pattern: currentPattern(), operation });',
        '      count.transaction({ pattern: currentPattern().slice(0, 0), operation });',
      ],
    ],
    test: ['test/lib/storage/cost.test.ts', 'counts each attempt of a request by its pattern and its operation'],
    finds: 'to deep equally contain',
  },
  {
    without: 'The first action is named for every conflict',
    recommendations: ['p-batch-index'],
    file: 'lib/storage/errors.ts',
    edits: [['    this.action = action;', '    this.action = action * 0;']],
    test: ['test/protocol/copies-in-the-partition.test.ts', 'is given to exactly one of many concurrent writers'],
    finds: 'Other requests keep changing',
  },
];
