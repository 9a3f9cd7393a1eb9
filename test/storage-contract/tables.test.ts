import type { TableClient, TableTransaction } from '@azure/data-tables';
import { storageKeys, type TableSasRequest } from '../kit/storage.ts';
import { type Account, type Case, compareWithAzurite, outcome } from './contract.ts';
import { TABLE_DIFFERENCES } from './differences.ts';

const row = (rowKey: string, more: object = {}, partitionKey = 'p') => ({ partitionKey, rowKey, ...more });
const VALUES = {
  text: "O'Hara \u00e9\u{1f600}",
  empty: '',
  yes: true,
  whole: 7,
  fraction: 1.5,
  double: { type: 'Double', value: '3' },
  huge: { type: 'Double', value: '1e300' },
  infinite: { type: 'Double', value: 'Infinity' },
  long: { type: 'Int64', value: '9007199254740993' },
  day: new Date('2001-02-03T04:05:06.789Z'),
  precise: { type: 'DateTime', value: '2001-02-03T04:05:06.7891234Z' },
  guid: { type: 'Guid', value: '0f8fad5b-d9cb-469f-a165-70867728950e' },
  bytes: new Uint8Array([0, 1, 255]),
};

async function pages(table: TableClient, queryOptions: { filter?: string; select?: string[] }, maxPageSize?: number) {
  const found: unknown[] = [];
  for await (const page of table.listEntities({ queryOptions }).byPage(maxPageSize ? { maxPageSize } : {}))
    found.push(page.map(({ partitionKey, rowKey }) => `${partitionKey}/${rowKey}`));
  return found;
}

/** The keys of the rows that a filter finds. */
async function keys(table: TableClient, filter: string) {
  return (await pages(table, { filter })).flat();
}

const HOUR_MS = 3_600_000;

/** Returns a function that sends requests with a signature of a table, and returns the status and the error code. */
async function withSignature(account: Account, table: string, more: Partial<TableSasRequest>) {
  const { connectionString, tables } = account;
  const signed = await storageKeys.accountKeySigner({ connectionString, endpoint: tables.url }).sign({
    ...{ table, partition: 'b', permissions: 'raud' },
    ...{ startsAt: new Date(Date.now() - HOUR_MS), expiresAt: new Date(Date.now() + HOUR_MS) },
    ...more,
  });
  return async (method: string, path: string, options: Parameters<Account['send']>[2] = {}) => {
    const headers = { 'content-type': 'application/json', ...options.headers };
    const response = await account.send(method, `${tables.url}/${path}?${signed}`, { ...options, headers });
    return `${response.status} ${response.headers.get('x-ms-error-code') ?? ''}`.trim();
  };
}
const keyOf = (partition: string, rowKey: string) => `(PartitionKey='${partition}',RowKey='${rowKey}')`;
const entity = (PartitionKey: string, RowKey: string) => JSON.stringify({ PartitionKey, RowKey });

async function filled(account: Account, name: string) {
  const table = await account.createTable(name);
  for (const partition of ['a', 'b', 'c'])
    await table.submitTransaction(
      ['1', '2', '3', 'x'].map((key, index) => ['create', row(key, { ...VALUES, index }, partition)]),
    );
  await table.createEntity(row('other', { yes: 'text', whole: 8.5 }, 'd'));
  return table;
}

const FILTERS = [
  "PartitionKey eq 'b'",
  "PartitionKey eq 'b' and RowKey ge '2' and RowKey lt 'x'",
  "PartitionKey gt 'a' and PartitionKey le 'b'",
  "PartitionKey eq 'a' and (RowKey le '1' or RowKey ge '3')",
  "PartitionKey ge 'b' and (PartitionKey gt 'b' or RowKey gt '2')",
  "RowKey eq '2'",
  "not (RowKey eq '2')",
  "not (index lt 3) and PartitionKey ne 'a'",
  "index eq 1 or index eq 2 and PartitionKey eq 'a'",
  "text eq 'O''Hara \u00e9\u{1f600}'",
  "text ne 'O''Hara'",
  "empty eq ''",
  'yes eq true',
  'yes ne true',
  'missing eq 1',
  'missing ne 1',
  'not (missing eq 1)',
  'whole eq 7',
  'whole gt 7',
  'whole ge 7.0',
  'double eq 3.0',
  'double lt 3.5',
  'fraction eq 1.5',
  'long eq 9007199254740993L',
  'long gt 9007199254740992L',
  'long eq 5',
  "day eq datetime'2001-02-03T04:05:06.789Z'",
  "day lt datetime'2001-02-04T00:00:00Z'",
  "guid eq guid'0f8fad5b-d9cb-469f-a165-70867728950e'",
  "bytes eq X'0001ff'",
  "Timestamp gt datetime'2001-01-01T00:00:00Z'",
  "text ge 'O' and text lt 'P'",
  "((index eq 1)) and (PartitionKey eq 'a')",
];
const WRONG_FILTERS = ['index eq', "PartitionKey = 'a'", "(RowKey eq '1'", 'index xx 1', "RowKey eq 'open", 'and'];

const cases: Record<string, Case> = {
  async 'creates, lists and deletes tables'(account) {
    const names = ['listb', 'lista', 'listc', 'other'];
    for (const name of names) await account.tables.createTable(name);
    const queryOptions = { filter: "TableName ge 'list' and TableName lt 'list~'" };
    const found = [];
    for await (const { name } of account.tables.listTables({ queryOptions })) found.push(name);
    await account.tables.deleteTable('lista');
    return [
      found,
      await outcome(account.table('lista').getEntity('p', 'r')),
      await outcome(account.tables.deleteTable('lista')),
    ];
  },
  async 'creates a table once'(account) {
    await account.tables.createTable('twice');
    await account.tables.createTable('twice');
    await account.tables.createTable('TWICE');
  },
  async 'rejects a table name'(account) {
    return Promise.all(
      ['a', 'a-b', '1ab', 'tables', 'a'.repeat(64)].map((name) => outcome(account.tables.createTable(name))),
    );
  },
  async 'reports a table that does not exist'(account) {
    const table = account.table('absent');
    return [
      await outcome(table.getEntity('p', 'r')),
      await outcome(table.createEntity(row('r'))),
      await outcome(table.upsertEntity(row('r'))),
      await outcome(table.deleteEntity('p', 'r')),
      await outcome(table.listEntities().next()),
    ];
  },
  async 'keeps a value of every type'(account) {
    const table = await account.createTable('types');
    await table.createEntity(row('r', VALUES));
    return [
      await table.getEntity('p', 'r'),
      await table.getEntity('p', 'r', { queryOptions: { select: ['text', 'long', 'missing'] } }),
    ];
  },
  async 'lists values of every type'(account) {
    const table = await account.createTable('listtypes');
    await table.createEntity(row('r', VALUES));
    const found = [];
    for await (const entity of table.listEntities()) found.push(entity);
    for await (const entity of table.listEntities({ queryOptions: { select: ['RowKey', 'day', 'double'] } }))
      found.push(entity);
    return found;
  },
  async 'inserts a row once'(account) {
    const table = await account.createTable('inserting');
    const { etag } = await table.createEntity(row('r', { a: 1 }));
    return [etag, await outcome(table.createEntity(row('r', { a: 2 }))), await table.getEntity('p', 'r')];
  },
  async 'replaces, merges and upserts'(account) {
    const table = await account.createTable('changing');
    const seen = [];
    seen.push(await outcome(table.updateEntity(row('r', { a: 1 }), 'Replace')));
    seen.push(await table.upsertEntity(row('r', { a: 1, b: 1 }), 'Merge'));
    seen.push(await table.upsertEntity(row('r', { b: 2, c: 2 }), 'Merge'), await table.getEntity('p', 'r'));
    seen.push(await table.updateEntity(row('r', { c: 'three', d: null }), 'Merge'), await table.getEntity('p', 'r'));
    seen.push(await table.updateEntity(row('r', { e: 5 }), 'Replace'), await table.getEntity('p', 'r'));
    seen.push(await table.upsertEntity(row('r', { f: 6 }), 'Replace'), await table.getEntity('p', 'r'));
    seen.push(await table.upsertEntity(row('new', { g: 6 }), 'Replace'), await table.getEntity('p', 'new'));
    return seen;
  },
  async 'writes under an ETag'(account) {
    const table = await account.createTable('etags');
    const { etag: first = '' } = await table.createEntity(row('r', { a: 1 }));
    // Azurite has one ETag for the writes of a millisecond.
    await new Promise((resolve) => setTimeout(resolve, 5));
    const { etag: second = '' } = await table.updateEntity(row('r', { a: 2 }), 'Replace', { etag: first });
    return [
      first === second,
      await outcome(table.updateEntity(row('r', { a: 3 }), 'Replace', { etag: first })),
      await outcome(table.updateEntity(row('r', { a: 3 }), 'Merge', { etag: first })),
      await outcome(table.deleteEntity('p', 'r', { etag: first })),
      await outcome(table.updateEntity(row('absent'), 'Replace', { etag: second })),
      await outcome(table.updateEntity(row('absent'), 'Merge', { etag: second })),
      await outcome(table.deleteEntity('p', 'absent', { etag: second })),
      await outcome(table.deleteEntity('p', 'absent')),
      await outcome(table.deleteEntity('p', 'r', { etag: second })),
      await outcome(table.getEntity('p', 'r')),
    ];
  },
  async 'ignores the type of the ETag condition of a read'(account) {
    const table = await account.createTable('reading');
    const { etag = '' } = await table.createEntity(row('r', { a: 1 }));
    return table.getEntity('p', 'r', { requestOptions: { customHeaders: { 'if-none-match': etag } } });
  },
  async 'executes a transaction'(account) {
    const table = await account.createTable('transactions');
    const { etag = '' } = await table.createEntity(row('b', { a: 1, kept: 1 }));
    await table.createEntity(row('d'));
    const { status, subResponses } = await table.submitTransaction([
      ['create', row('a', { text: 'O\'Hara "\u00e9"' })],
      ['update', row('b', { a: 2 }), 'Merge', { etag }],
      ['upsert', row('c', { a: 2 }), 'Replace'],
      ['delete', row('d')],
    ]);
    const rest = subResponses.map(({ status, etag }) => [status, etag]);
    return [
      status,
      rest,
      await table.getEntity('p', 'a'),
      await table.getEntity('p', 'b'),
      await keys(table, "PartitionKey eq 'p'"),
    ];
  },
  async 'changes nothing in a rejected transaction'(account) {
    const table = await account.createTable('rejected');
    const { etag = '' } = await table.createEntity(row('b', { a: 1 }));
    await new Promise((resolve) => setTimeout(resolve, 5));
    await table.updateEntity(row('b', { a: 2 }), 'Replace');
    const before = await table.getEntity('p', 'b');
    const attempts: ConstructorParameters<typeof TableTransaction>[0][] = [
      [
        ['create', row('a')],
        ['update', row('b', { a: 3 }), 'Replace', { etag }],
      ],
      [
        ['create', row('a')],
        ['create', row('b')],
      ],
      [
        ['upsert', row('b', { a: 4 }), 'Replace'],
        ['delete', row('a')],
      ],
      [
        ['delete', row('b')],
        ['update', row('a', {}), 'Merge', { etag: '*' }],
      ],
      [
        ['create', row('a')],
        ['create', row('a')],
      ],
    ];
    const seen = [];
    for (const actions of attempts)
      seen.push(
        await table
          .submitTransaction(actions ?? [])
          .catch(({ message, statusCode, code }) => [statusCode, code, Number.parseInt(message, 10)]),
      );
    return [seen, before, await table.getEntity('p', 'b'), await keys(table, "PartitionKey eq 'p'")];
  },
  async 'limits a transaction to 100 actions'(account) {
    const table = await account.createTable('manyactions');
    const actions = (count: number) =>
      Array.from({ length: count }, (_, index) => ['create', row(`${index}`)] as ['create', ReturnType<typeof row>]);
    const most = await outcome(table.submitTransaction(actions(100)));
    const over = await outcome(table.submitTransaction(actions(101)));
    return [most, over.slice(0, 3)];
  },
  async 'limits a transaction to 4 MiB'(account) {
    const table = await account.createTable('largeactions');
    const text = 'x'.repeat(30_000);
    const actions = Array.from(
      { length: 71 },
      (_, index) => ['create', row(`${index}`, { a: text, b: text })] as ['create', ReturnType<typeof row>],
    );
    return [
      await outcome(table.submitTransaction(actions.slice(0, 60))),
      (await outcome(table.submitTransaction(actions))).slice(0, 3),
    ];
  },
  async 'limits a transaction to one partition'(account) {
    const table = await account.createTable('twopartitions');
    const sent = (partition: string) =>
      `--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST ${account.tables.url}/twopartitions HTTP/1.1\r\nAccept: application/json\r\nContent-Type: application/json\r\n\r\n{"PartitionKey":"${partition}","RowKey":"r"}\r\n`;
    const body = `--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n${sent('p')}${sent('q')}--changeset_1--\r\n--batch_1--\r\n`;
    const headers = { 'content-type': 'multipart/mixed; boundary=batch_1', 'x-ms-version': '2019-02-02' };
    const { status, bodyAsText } = await account.sendWithKey('POST', `${account.tables.url}/$batch`, { headers, body });
    return [status, /HTTP\/1.1 \d+/.exec(bodyAsText ?? '')?.[0], await keys(table, '')];
  },
  async 'pages a listing at 1,000 rows'(account) {
    const table = await account.createTable('paging');
    for (let batch = 0; batch < 11; batch += 1)
      await table.submitTransaction(
        Array.from(
          { length: 100 },
          (_, index) =>
            ['create', row(String(batch * 100 + index).padStart(5, '0'))] as ['create', ReturnType<typeof row>],
        ),
      );
    const lengths = (await pages(table, {})).map((page) => (page as unknown[]).length);
    const first = (await pages(table, { filter: "RowKey ge '00995'" }, 40)) as string[][];
    return [lengths, first.map((page) => [page[0], page.length])];
  },
  async 'continues a listing'(account) {
    const table = await filled(account, 'continuing');
    const whole = await pages(table, {}, 3);
    const exact = await pages(table, { filter: "PartitionKey eq 'a'" }, 2);
    return [whole, exact, await pages(table, { filter: "RowKey eq '2'" }, 1)];
  },
  async 'rejects a page size'(account) {
    const table = await account.createTable('pagesize');
    const list = (maxPageSize: number) => outcome(table.listEntities().byPage({ maxPageSize }).next());
    return [await list(1_000), await list(1_001), await list(1.5)];
  },
  async filters(account) {
    const table = await filled(account, 'filtering');
    const found: Record<string, unknown> = {};
    for (const filter of FILTERS) found[filter] = await keys(table, filter);
    return found;
  },
  async 'rejects a filter'(account) {
    const table = await filled(account, 'wrongfilter');
    return Promise.all(WRONG_FILTERS.map((filter) => outcome(keys(table, filter))));
  },
  async 'accepts 15 comparisons'(account) {
    const table = await filled(account, 'comparisons');
    return keys(table, Array.from({ length: 15 }, () => 'index eq 1').join(' or '));
  },
  async 'rejects more than 15 comparisons'(account) {
    const table = await filled(account, 'toomanycomparisons');
    return outcome(keys(table, Array.from({ length: 16 }, () => 'index eq 1').join(' or ')));
  },
  async 'keeps keys with special characters'(account) {
    const table = await account.createTable('keys');
    const special = ["O'Hara", 'a b', '100%', 'é\u{1f600}', 'a+b', 'a&b=c', '(x)', 'a,b', '~!@$^*;:"<>|', ''];
    for (const key of special) await table.createEntity(row(key, {}, key));
    const found = [];
    for (const key of special)
      found.push(await outcome(table.getEntity(key, key)), await outcome(table.updateEntity(row(key, { a: 1 }, key))));
    return [found, await pages(table, {}), await outcome(table.deleteEntity("O'Hara", "O'Hara"))];
  },
  async 'rejects a character of a key'(account) {
    const table = await account.createTable('wrongkeys');
    return Promise.all(
      ['a/b', 'a\\b', 'a#b', 'a?b', 'a\u0001', 'a\u007f', 'a\u0085'].map(async (key) =>
        outcome(table.createEntity(row(key))),
      ),
    );
  },
  async 'limits a key to 512 units'(account) {
    const table = await account.createTable('longkeys');
    return [
      await outcome(table.createEntity(row('k'.repeat(512)))),
      await outcome(table.createEntity(row('k'.repeat(513)))),
    ];
  },
  async 'limits a text to 32,768 units and a binary to 64 KiB'(account) {
    const table = await account.createTable('longvalues');
    return [
      await outcome(table.createEntity(row('1', { a: 'x'.repeat(32_768) }))),
      await outcome(table.createEntity(row('2', { a: 'x'.repeat(32_769) }))),
      await outcome(table.createEntity(row('3', { a: new Uint8Array(65_536) }))),
      await outcome(table.createEntity(row('4', { a: new Uint8Array(65_537) }))),
    ];
  },
  async 'limits an entity to 252 properties'(account) {
    const table = await account.createTable('manyproperties');
    const properties = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, index]));
    return [
      await outcome(table.createEntity(row('1', properties(252)))),
      await outcome(table.createEntity(row('2', properties(253)))),
    ];
  },
  async 'limits an entity to 1 MiB'(account) {
    const table = await account.createTable('largeentity');
    const properties = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, 'x'.repeat(32_000)]));
    return [
      await outcome(table.createEntity(row('1', properties(16)))),
      await outcome(table.createEntity(row('2', properties(17)))),
    ];
  },
  async 'rejects a value that does not have its type'(account) {
    const table = await account.createTable('wrongvalues');
    const wrong = [
      { type: 'Guid', value: 'x' },
      { type: 'DateTime', value: 'yesterday' },
      { type: 'Int32', value: '3000000000' },
    ];
    return Promise.all(wrong.map((value, index) => outcome(table.createEntity(row(String(index), { value })))));
  },
  async 'accepts a signature inside its range'(account) {
    await filled(account, 'signed');
    const send = await withSignature(account, 'signed', { firstRow: '2', lastRow: '4' });
    return [
      await send('GET', `signed${keyOf('b', '2')}`),
      await send('POST', 'signed', { body: entity('b', '4') }),
      await send('PUT', `signed${keyOf('b', '25')}`, { body: entity('b', '25') }),
      await send('PATCH', `signed${keyOf('b', '25')}`, { body: entity('b', '25'), headers: { 'if-match': '*' } }),
      await send('DELETE', `signed${keyOf('b', '25')}`, { headers: { 'if-match': '*' } }),
      await send('GET', `signed${keyOf('b', '25')}`),
    ];
  },
  async 'rejects a signature outside its range'(account) {
    await filled(account, 'outside');
    const send = await withSignature(account, 'outside', { firstRow: '2', lastRow: '3' });
    return [
      await send('GET', `outside${keyOf('b', '1')}`),
      await send('GET', `outside${keyOf('a', '2')}`),
      await send('POST', 'outside', { body: entity('b', '4') }),
      await send('PUT', `outside${keyOf('b', 'x')}`, { body: entity('b', 'x') }),
      await send('PATCH', `outside${keyOf('c', '2')}`, { body: entity('c', '2') }),
      await send('DELETE', `outside${keyOf('b', '1')}`, { headers: { 'if-match': '*' } }),
    ];
  },
  async 'lists only the rows of the range of a signature'(account) {
    const table = await filled(account, 'listsigned');
    const { connectionString, tables } = account;
    const [startsAt, expiresAt] = [new Date(Date.now() - HOUR_MS), new Date(Date.now() + HOUR_MS)];
    const grant = {
      table: 'listsigned',
      partition: 'b',
      firstRow: '2',
      lastRow: '3',
      permissions: 'r',
      startsAt,
      expiresAt,
    };
    const signed = await storageKeys.accountKeySigner({ connectionString, endpoint: tables.url }).sign(grant);
    const response = await account.send('GET', `${tables.url}/${table.tableName}()?${signed}`);
    return JSON.parse(response.bodyAsText ?? '').value.map(
      ({ PartitionKey, RowKey }: Record<string, string>) => `${PartitionKey}/${RowKey}`,
    );
  },
  async 'rejects a signature that does not permit an operation'(account) {
    await filled(account, 'permitted');
    const read = await withSignature(account, 'permitted', { permissions: 'r' });
    const add = await withSignature(account, 'permitted', { permissions: 'a' });
    return [
      await read('POST', 'permitted', { body: entity('b', '9') }),
      await read('PUT', `permitted${keyOf('b', '1')}`, { body: entity('b', '1') }),
      await read('DELETE', `permitted${keyOf('b', '1')}`, { headers: { 'if-match': '*' } }),
      await add('GET', `permitted${keyOf('b', '1')}`),
      await add('PUT', `permitted${keyOf('b', '1')}`, { body: entity('b', '1'), headers: { 'if-match': '*' } }),
      await add('POST', 'permitted', { body: entity('b', '9') }),
    ];
  },
  async 'requires two permissions for an upsert'(account) {
    await filled(account, 'upserting');
    const update = await withSignature(account, 'upserting', { permissions: 'u' });
    return update('PUT', `upserting${keyOf('b', '1')}`, { body: entity('b', '1') });
  },
  async 'rejects an expired, an early and a forged signature'(account) {
    await filled(account, 'timed');
    const [past, future] = [new Date(Date.now() - HOUR_MS), new Date(Date.now() + HOUR_MS)];
    const expired = await withSignature(account, 'timed', { expiresAt: past });
    const early = await withSignature(account, 'timed', { startsAt: future });
    const other = await withSignature(account, 'another', {});
    const path = `timed${keyOf('b', '1')}`;
    return [
      await expired('GET', path),
      await early('GET', path),
      await other('GET', path),
      await account.send('GET', `${account.tables.url}/${path}`).then(({ status }) => status),
    ];
  },
};

compareWithAzurite(import.meta.url, cases, TABLE_DIFFERENCES);
