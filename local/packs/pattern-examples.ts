/** The patterns of the guide as they are here, each with requests that show it and what those should cost. */
export interface Pattern {
  readonly name: string;
  readonly about: string;
  readonly modules: readonly string[];
  readonly tests: readonly string[];
  readonly examples: readonly Example[];
}

export interface Example {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  /** In storage transactions, by the guide. */
  readonly cost: string;
  readonly role?: 'operator';
}

const someone = {
  department: 'Sales',
  employeeId: '000900',
  email: 'newj@contoso.com',
  firstName: 'New',
  lastName: 'Joiner',
};
const everyDay = Object.fromEntries(Array.from({ length: 366 }, (_, day) => [day + 1, day]));

export const PATTERNS: readonly Pattern[] = [
  {
    name: 'Point query',
    about:
      'The key says where an entity is: partition and row are made from its fields by the templates of its declaration, and reading it is one lookup.',
    modules: ['lib/define/key-template.ts', 'lib/engine/read/retrieve.ts'],
    tests: ['test/lib/define/key-template.test.ts', 'test/scenarios/company-directory.test.ts'],
    examples: [{ path: 'employees/Sales/000123', cost: '1' }],
  },
  {
    name: 'Intra-partition secondary index',
    about:
      'A copy of the entity in its partition under another row key. Entity and copy change in one entity group transaction, so that they are never seen apart.',
    modules: ['lib/define/indexes.ts', 'lib/engine/write/plan.ts'],
    tests: ['test/lib/engine/write/plan.test.ts', 'test/scenarios/company-directory.test.ts'],
    examples: [{ path: 'employees/by/email/Sales/jonesj@contoso.com', cost: '1' }],
  },
  {
    name: 'Inter-partition secondary index',
    about:
      'A copy in another partition, or another table, which a queue makes to agree. With `unique` its row is claimed before the entity is written, so that two writers of one value cannot both succeed.',
    modules: [
      'lib/engine/reconcile/reconcile.ts',
      'lib/engine/write/unique-claim.ts',
      'lib/engine/read/read-through-index.ts',
    ],
    tests: ['test/scenarios/keeping-indexes.test.ts', 'test/scenarios/overtaken-reconcilers.test.ts'],
    examples: [{ path: 'employees/by/emailCompanyWide/jonesj@contoso.com', cost: '1' }],
  },
  {
    name: 'The three index-table shapes, and composite keys',
    about:
      'A copy is full, or a reference, which takes a second lookup, or has some fields. A composite key answers two questions at once; a list makes a row for each of its elements; a date is spread over buckets, so that today is no hot partition.',
    modules: ['lib/define/indexes.ts', 'lib/define/index-entries.ts', 'lib/engine/read/read-through-index.ts'],
    tests: ['test/scenarios/index-table-shapes.test.ts'],
    examples: [
      { path: 'customers/by/cityAndLastName/London/Fenn', cost: '1: a full copy' },
      { path: 'customers/by/id/HARBR', cost: '2: a reference' },
      { path: 'movies/by/actor/Charlie%20Chaplin', cost: '1: part copies' },
      { path: 'orders/by/date/2026-11-20', cost: '8 buckets, at once' },
    ],
  },
  {
    name: 'Sparse index',
    about: 'An index takes in the entities that have the fields of its key, and of which its condition holds.',
    modules: ['lib/define/index-entries.ts'],
    tests: ['test/scenarios/retrieving.test.ts'],
    examples: [{ path: 'employees/by/managers/Sales', cost: `1, and 1 for each member` }],
  },
  {
    name: 'Eventually consistent transactions',
    about:
      'What a write changes elsewhere is announced on a queue before it commits; a reconciler then makes every place agree with the entity as it is, however often and in whatever order messages come. Archive and move are the same with two entities.',
    modules: [
      'lib/engine/write/eventual-transaction.ts',
      'lib/engine/reconcile/reconcile.ts',
      'lib/engine/transfer/transfer.ts',
    ],
    tests: [
      'test/scenarios/surviving-faults.test.ts',
      'test/scenarios/racing-writers-and-messages.test.ts',
      'test/scenarios/archiving-and-moving.test.ts',
    ],
    examples: [
      {
        method: 'POST',
        path: 'employees',
        body: someone,
        cost: '10: intent, 2 claims, transaction; list (2), 2 unique rows, entity; intent',
      },
      { method: 'POST', path: 'employees/Sales/000900/archive', cost: '4: read, record, reminder, message' },
    ],
  },
  {
    name: 'Index entities',
    about:
      'One row lists who shares a value: in the partition under its ETag in the same transaction, elsewhere by the queue. A list that outgrows its row is in a blob, and comes back; readers notice nothing.',
    modules: ['lib/patterns/member-list.ts', 'lib/engine/reconcile/list-upkeep.ts'],
    tests: ['test/scenarios/long-lists.test.ts', 'test/scenarios/keeping-indexes.test.ts'],
    examples: [
      { path: 'employees/by/lastName/Sales/Jones', cost: `1, and 1 for each member, at once` },
      { path: 'employees/by/lastNameCompanyWide/Jones', cost: `1, and 1 for each member, at once` },
    ],
  },
  {
    name: 'Denormalization',
    about: 'A department has the name and the email of its manager, which change with the manager in one transaction.',
    modules: ['lib/patterns/denormalization.ts'],
    tests: ['test/scenarios/company-directory.test.ts', 'test/lib/engine/write/plan.test.ts'],
    examples: [
      { path: 'departments/Sales', cost: '1' },
      {
        method: 'PATCH',
        path: 'employees/Sales/000123',
        body: { phone: '555-0199' },
        cost: '11: read, intent, transaction; list, unique rows (3 and 2), entity; intent',
      },
    ],
  },
  {
    name: 'Maintained counts',
    about:
      'A department knows how many work in it: the count changes in the transaction of each hire and leave, under its ETag. A process plans from the row that it wrote last, so that this costs no read; where another process came between, the transaction is refused and the row is read.',
    modules: ['lib/patterns/maintained-count.ts', 'lib/engine/write/sibling-memory.ts', 'lib/engine/run-exclusive.ts'],
    tests: ['test/scenarios/counting.test.ts'],
    examples: [
      {
        method: 'POST',
        path: 'employees',
        body: { ...someone, employeeId: '000901', email: 'second@contoso.com' },
        cost: '10, as without a count',
      },
      { path: 'departments/Sales?explain=true', cost: '1' },
    ],
  },
  {
    name: 'Compound key',
    about: 'A review lies beside its employee under a key that begins with that one’s: one range query reads both.',
    modules: ['lib/patterns/compound-key.ts'],
    tests: ['test/scenarios/compound-key.test.ts'],
    examples: [
      { path: 'employees/Sales/000123?include=reviews', cost: '1' },
      { path: 'reviews/Sales/000123/2024', cost: '1' },
    ],
  },
  {
    name: 'Log tail',
    about:
      'What is left of time, in 19 digits as .NET has them, makes the newest sort first: its first rows are the last ones.',
    modules: ['lib/define/log-tail.ts'],
    tests: ['test/lib/define/log-tail.test.ts', 'test/scenarios/retrieving.test.ts'],
    examples: [{ path: 'expenses/000123?top=10', cost: '1' }],
  },
  {
    name: 'High volume delete',
    about: 'Logins are in a table for each day; a day that is no longer kept goes in one storage operation.',
    modules: ['lib/patterns/high-volume-delete.ts'],
    tests: ['test/lib/patterns/high-volume-delete.test.ts'],
    examples: [{ method: 'POST', path: 'logins', body: { employeeId: '000123', succeeded: true }, cost: '1' }],
  },
  {
    name: 'Data series',
    about: 'The counts of a day are 24 properties of one entity: one merge sets one, one get reads the chart.',
    modules: ['lib/patterns/data-series.ts'],
    tests: ['test/lib/patterns/data-series.test.ts', 'test/scenarios/retrieving.test.ts'],
    examples: [
      { method: 'PUT', path: 'messagehours/000123/2026-11-20/9', body: { count: 7 }, cost: '1' },
      { method: 'POST', path: 'messagehours/000123/2026-11-20/9/increments', body: { by: 1 }, cost: '2' },
      { path: 'messagehours/000123/2026-11-20', cost: '1' },
    ],
  },
  {
    name: 'Wide entities',
    about:
      'The counts of a year are more than one entity holds: they lie in two, read at once and changed in one transaction.',
    modules: ['lib/patterns/data-series.ts'],
    tests: ['test/lib/patterns/data-series.test.ts'],
    examples: [
      { method: 'PATCH', path: 'messageyears/000123/2024', body: { counts: everyDay }, cost: '1' },
      { path: 'messageyears/000123/2024', cost: '2, at once' },
    ],
  },
  {
    name: 'Large entities',
    about:
      'A photo is a blob of its own, written before the entity refers to it and deleted after it does not; a timer collects what a crash leaves behind. What it is, is told by its bytes. It may be uploaded past the API, under a signature for that one blob.',
    modules: ['lib/patterns/attachment.ts', 'lib/patterns/large-entities.ts', 'lib/operations/collect-orphans.ts'],
    tests: ['test/scenarios/large-entities.test.ts', 'test/scenarios/files-and-secrets.test.ts'],
    examples: [
      { path: 'employees/Sales/000123/photo', cost: '2: the entity, the blob' },
      {
        method: 'POST',
        path: 'employees/Sales/000123/photo/uploads',
        body: { type: 'image/png', bytes: 90 },
        cost: '0: a signature',
      },
      {
        method: 'DELETE',
        path: 'employees/Sales/000123/photo',
        cost: '12: read, intent, transaction; list, unique rows (3 and 2), entity; intent; blob',
      },
    ],
  },
  {
    name: 'Property size ladder',
    about: 'A text that may be large is in its property, then over several, then in a blob, by itself.',
    modules: ['lib/define/entity-codec.ts', 'lib/engine/write/stored-values.ts'],
    tests: ['test/scenarios/large-entities.test.ts'],
    examples: [
      {
        method: 'PATCH',
        path: 'reviews/Sales/000123/2024',
        body: { comments: 'Well done. '.repeat(10_000) },
        cost: '2: read, transaction',
      },
      {
        method: 'PATCH',
        path: 'reviews/Sales/000123/2023',
        body: { comments: 'Well done. '.repeat(40_000) },
        cost: '3: read, blob, transaction',
      },
      { path: 'reviews/Sales/000123/2023', cost: '2: the row, the blob' },
    ],
  },
  {
    name: 'Encrypted properties',
    about:
      'nationalId is AES-256-GCM under a data key of its entity, which is wrapped by a key in Key Vault, or in a file. It is bound to its place and its name, replaced and never merged, and left out for who lacks the role.',
    modules: ['lib/patterns/encrypted-properties.ts', 'lib/operations/rewrap.ts', 'lib/storage/key-vault-key-ring.ts'],
    tests: ['test/scenarios/encrypting.test.ts', 'test/lib/storage/key-vault-key-ring.test.ts'],
    examples: [
      { path: 'employees/Sales?select=nationalId&top=1', cost: '1' },
      { method: 'POST', path: 'operations/rewrap/formeremployees', cost: '1 a page', role: 'operator' },
    ],
  },
  {
    name: 'Heterogeneous types, inheritance',
    about:
      'Departments, employees and reviews share a table; each row says its type and version. People are of two kinds, each whole by itself, read by one query. What an earlier version stored is read through an upgrade.',
    modules: ['lib/define/inheritance.ts', 'lib/define/entity-codec.ts'],
    tests: ['test/scenarios/kinds-and-versions.test.ts'],
    examples: [{ path: 'people/UK?top=3', cost: '1' }],
  },
  {
    name: 'Append anti-pattern avoided',
    about:
      'The partition of a door event is the person’s; time is in the row alone, so that no write goes where time alone sends it.',
    modules: ['lib/define/key-template.ts'],
    tests: ['test/scenarios/retrieving.test.ts'],
    examples: [{ path: 'doorevents/Sales/000123?top=5', cost: '1' }],
  },
  {
    name: 'Log data in blobs',
    about:
      'Every change made through the API is appended to a blob of its hour before it is answered, together with those that come at the same moment; see [audit.md](audit.md). What that takes is shared, and told apart in `Server-Timing`.',
    modules: ['lib/operations/audit-log.ts', 'lib/operations/read-audit-log.ts', 'lib/engine/note-change.ts'],
    tests: ['test/lib/operations/audit-log.test.ts', 'test/scenarios/auditing.test.ts'],
    examples: [
      {
        path: `operations/audit?from=${hourFrom(0)}&to=${hourFrom(1)}&top=2`,
        cost: '1 to list, 1 for each blob of the hours',
        role: 'operator',
      },
    ],
  },
  {
    name: 'Shared access signatures',
    about:
      'A signature opens one’s own row, or the partition that is one’s own, for a quarter of an hour and for what is declared. The client then talks to storage, and no function runs.',
    modules: ['lib/access/grant.ts', 'lib/storage/table-sas-signer.ts', 'lib/storage/blob-sas.ts'],
    tests: ['test/lib/access/grant.test.ts', 'test/scenarios/writing-straight-to-storage.test.ts'],
    examples: [
      {
        method: 'POST',
        path: 'grants',
        body: { entity: 'employees', scope: 'own' },
        cost: '3: revocation, index, entity; none to use it',
      },
      {
        method: 'POST',
        path: 'grants',
        body: { entity: 'expenses', scope: 'own', permissions: 'ra' },
        cost: '3: revocation, index, entity; none to use it',
      },
    ],
  },
  {
    name: 'Retrieving',
    about:
      'A range is read by its bounds; a filter looks through a partition; a projection (`select`) reads from storage only what it names, but reads whole rows if the entity has older versions (people) or is written by clients (expenses); the response has only the named fields either way. Pages go on from the last row that was read, by a signed token. A table scan has a route of its own, for operators.',
    modules: ['lib/engine/read/retrieve.ts', 'lib/engine/read/continuation.ts'],
    tests: ['test/scenarios/retrieving.test.ts', 'test/lib/engine/read/continuation.test.ts'],
    examples: [
      { path: 'employees/Sales?from=000123&to=000125&select=employeeId,lastName', cost: '1' },
      { path: 'employees/Sales?jobTitle=Sales%20Manager', cost: '1' },
      { path: 'operations/scan/departments?top=2', cost: '1 a page', role: 'operator' },
    ],
  },
];

/** The hour that is now, or one after it, as an ISO instant. */
function hourFrom(hours: number): string {
  const HOUR_MS = 60 * 60 * 1_000;
  return new Date((Math.floor(Date.now() / HOUR_MS) + hours) * HOUR_MS).toISOString().replace('.000Z', 'Z');
}
