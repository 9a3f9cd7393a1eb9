const someone = {
  department: 'Sales',
  employeeId: '000900',
  email: 'newj@contoso.com',
  firstName: 'New',
  lastName: 'Joiner',
};
const everyMinute = Object.fromEntries(Array.from({ length: 1_440 }, (_, minute) => [minute, minute % 60]));
const everyDay = Object.fromEntries(Array.from({ length: 366 }, (_, day) => [day + 1, day]));

const doorEvent = (number: number) => ({
  department: 'Sales',
  employeeId: '000123',
  hour: '2026112009',
  eventId: `00000000-0000-4000-8000-00000000090${number}`,
});

/** Requests on the sample data for each pattern of the guide, with the storage transactions that the guide predicts. */
export const patternExamples = {
  'Point query': [{ path: 'employees/Sales/000123', cost: '1', naive: '1' }],
  'Intra-partition secondary index': [
    {
      path: 'employees/by/email/Sales/jonesj@contoso.com',
      cost: '1',
      naive: 'the partition is read: 1 per 1,000 employees of Sales',
    },
    {
      path: 'employees/by/hireDate/Sales?from=2012-06-01&to=2014',
      cost: '1',
      naive: '1 per 1,000 employees of Sales: the partition is read and sorted',
    },
  ],
  'Inter-partition secondary index': [
    {
      path: 'employees/by/emailCompanyWide/jonesj@contoso.com',
      cost: '1',
      naive: 'the table is scanned: 1 per 1,000 employees',
    },
  ],
  'Sparse index': [
    {
      path: 'employees/by/managers/Sales',
      cost: '1, and 1 per member',
      naive: 'the partition is read: 1 per 1,000 employees of Sales',
    },
  ],
  'Eventually consistent transactions': [
    {
      method: 'POST',
      path: 'employees',
      body: someone,
      naive: '5: the entity, its copy, 3 index rows; a crash leaves them different, and two writers can have one email',
      cost: '10: intent, 2 claims, transaction; list (2), 2 unique rows, entity; intent',
    },
    {
      method: 'POST',
      path: 'employees/Sales/000900/archive',
      cost: '4: read, record, reminder, message',
      naive: '3: read, insert, delete; a crash leaves two or, in the other order, none',
    },
  ],
  'Entity group transactions': [
    {
      method: 'POST',
      path: 'doorevents/batch',
      body: { actions: [1, 2, 3, 4].map((number) => ({ put: { ...doorEvent(number), door: 'Garage' } })) },
      cost: '1, for up to 100 entities of one row in a partition',
      naive: '4: one for each',
    },
    {
      method: 'POST',
      path: 'doorevents/batch',
      body: {
        actions: [
          { put: { ...doorEvent(5), door: 'Garage' } },
          { patch: { ...doorEvent(1), door: 'Archive' } },
          { delete: doorEvent(2) },
        ],
      },
      cost: '1: entities of one row are changed and deleted without a read',
      naive: '5: a read and a write for the patch and for the delete, a write for the put',
    },
    {
      method: 'POST',
      path: 'doorevents/batch',
      body: {
        atomic: true,
        actions: [{ put: { ...doorEvent(6), door: 'Garage' } }, { put: { ...doorEvent(7), door: 'Garage' } }],
      },
      cost: '1: all or nothing',
      naive: '2, and a crash between them leaves one',
    },
    {
      method: 'POST',
      path: 'reviews/batch',
      body: {
        actions: [2020, 2021, 2022].map((year) => ({
          create: { department: 'Sales', employeeId: '000123', year, rating: 4 },
        })),
      },
      cost: '1: the transaction; 1 more to read the parent, unless this process wrote it last',
      naive: '6: the parent and the review, three times',
    },
    {
      method: 'DELETE',
      path: 'doorevents/Sales/000123?from=2026112009&to=2026112009',
      cost: '2: query, transaction; 11 for 1,000 entities of one row',
      naive: '1 query, and 1 for each entity',
    },
  ],
  'Lookup tables': [
    {
      path: 'departments',
      cost: '1: the list, for all requests to the process until it changes or is too old',
      naive: 'the table of the employees is scanned: 1 per 1,000 rows; or 1 for each department',
    },
    { path: 'departments?select=department', cost: '0: from memory', naive: 'the same for each request' },
  ],
  'Index entities': [
    {
      path: 'employees/by/lastName/Sales/Jones',
      cost: '1, and 1 per member, concurrently',
      naive: 'the partition is read: 1 per 1,000 employees of Sales',
    },
    {
      path: 'employees/by/lastName/Sales?from=A&to=M&top=3',
      cost: '1, and 1 per member, concurrently',
      naive: '1 per 1,000 employees of Sales: the partition is read and sorted',
    },
    {
      path: 'employees/by/lastNameCompanyWide/Jones',
      cost: '1, and 1 per member, concurrently',
      naive: 'the table is scanned: 1 per 1,000 employees',
    },
  ],
  Denormalization: [
    { path: 'departments/Sales', cost: '1', naive: '2: the department, its manager' },
    {
      method: 'PATCH',
      path: 'employees/Sales/000123',
      body: { phone: '555-0199' },
      naive: '2: read, write; the copies, the unique rows and the department keep the old values',
      cost: '7: read, intent, transaction; unique row (2), entity; intent',
    },
    {
      method: 'PATCH',
      path: 'departments/Sales',
      body: { name: 'Sales and service' },
      naive: '2 for each employee, read and write; a crash leaves some with the old name',
      cost: '7: read, intent, transaction; copy in the list (2), entity; message; the queue then copies the name to all employees',
    },
  ],
  'Maintained counts': [
    {
      method: 'POST',
      path: 'employees',
      body: { ...someone, employeeId: '000901', email: 'second@contoso.com' },
      naive: '1 more to read the count, 1 to write it; concurrent writers lose changes',
      cost: '10: the count costs nothing',
    },
    {
      path: 'departments/Sales?explain=true',
      cost: '1',
      naive: 'the partition is read: 1 per 1,000 employees of Sales',
    },
  ],
  'Compound key': [
    { path: 'employees/Sales/000123?include=reviews', cost: '1', naive: '2: the employee, the reviews' },
    { path: 'reviews/Sales/000123/2024', cost: '1', naive: '1' },
  ],
  'Log tail': [
    {
      path: 'expenses/000123?top=10',
      cost: '1',
      naive: '1 per 1,000 expenses of the employee, which are all read and sorted',
    },
  ],
  'High volume delete': [
    {
      method: 'POST',
      path: 'logins',
      body: { employeeId: '000123', succeeded: true },
      cost: '1; the table of a day is dropped by 1, however many rows it has',
      naive: '1, and 1 more to delete the row later; with batches 11 for 1,000 rows of a partition',
    },
    {
      path: 'operations/period-archives',
      cost: '1 to list; before a table of 100,000 rows is dropped by 1, at least 122: 100 queries, 20 for 10 blocks, 2 to verify',
      naive: '200,000: a read and a delete of each row; 1,100 with pages of 1,000 and batches of 100 in one partition',
      role: 'operator',
    },
  ],
  'Data series': [
    { method: 'PUT', path: 'messagehours/000123/2026-11-20/9', body: { count: 7 }, cost: '1', naive: '1' },
    {
      method: 'POST',
      path: 'messagehours/000123/2026-11-20/9/increments',
      body: { by: 1 },
      cost: '2: read, write',
      naive: '2; a repeated request counts twice',
    },
    { path: 'messagehours/000123/2026-11-20', cost: '1', naive: '24: a row for each hour; 1 as a range' },
    {
      path: 'messagehours/000123?from=2026-11-19T11&to=2026-11-20T10',
      cost: '1; a read of each day: 2',
      naive: '24: a row for each hour; 2 as ranges',
    },
  ],
  'Wide entities': [
    {
      method: 'PATCH',
      path: 'messageyears/000123/2024',
      body: { counts: everyDay },
      cost: '1',
      naive: '4, with 366 rows in batches of 100',
    },
    { path: 'messageyears/000123/2024', cost: '2, concurrently', naive: '1: a range of 366 rows' },
  ],
  'Large entities': [
    {
      method: 'PATCH',
      path: 'doorminutes/Sales/2026-11-20',
      body: { counts: everyMinute },
      cost: '3: the row, a blob, the row',
      naive: '15, with 1,440 rows in batches of 100',
    },
    { path: 'doorminutes/Sales/2026-11-20', cost: '2: the row, the blob', naive: '2: a range of 1,440 rows' },
    {
      method: 'POST',
      path: 'doorminutes/Sales/2026-11-20/540/increments',
      body: { by: 1 },
      cost: '3: the row, the blob, the row',
      naive: '2; a repeated request counts twice',
    },
    {
      path: 'employees/Sales/000123/photo',
      cost: '2: the entity, the blob',
      naive: '1; a photo above 64 KB does not fit into a property',
    },
    {
      method: 'POST',
      path: 'employees/Sales/000123/photo/grants',
      cost: '2: revocation, the entity; the file then costs 1, without the app',
      naive: '2 for each download, through the app',
    },
    {
      method: 'POST',
      path: 'employees/Sales/000123/photo/uploads',
      body: { type: 'image/png', bytes: 90 },
      cost: '1: revocation; signing costs nothing',
      naive: '3: read, blob, write; all bytes go through the app',
    },
    {
      method: 'DELETE',
      path: 'employees/Sales/000123/photo',
      cost: '8: read, intent, transaction; unique row (2), entity; intent; blob',
      naive: '3: read, write, blob; copies keep a photo that is gone',
    },
    {
      method: 'POST',
      path: 'employees/Marketing/000224/move',
      body: { department: 'Finance' },
      cost: '4: read, record, reminder, message; storage then copies the photo with 1 call, without its bytes in the app',
      naive: '5: read, insert, delete; the photo is read and written through the app',
    },
  ],
  'Property size ladder': [
    {
      method: 'PATCH',
      path: 'reviews/Sales/000123/2024',
      body: { comments: 'Well done. '.repeat(10_000) },
      cost: '2: read, transaction',
      naive: 'rejected: a property has at most 64 KB',
    },
    {
      method: 'PATCH',
      path: 'reviews/Sales/000123/2023',
      body: { comments: 'Well done. '.repeat(40_000) },
      cost: '3: read, blob, transaction',
      naive: 'rejected: a property has at most 64 KB',
    },
    {
      path: 'reviews/Sales/000123/2023',
      cost: '2: the row, the blob',
      naive: '1; but no text above 64 KB can be stored',
    },
  ],
  'Encrypted properties': [
    { path: 'employees/Sales?select=nationalId&top=1', cost: '1', naive: '1, stored as plain text' },
    {
      method: 'POST',
      path: 'operations/rewrap/formeremployees',
      cost: '1 per page',
      naive: '1 per page, and 1 for each entity, which is encrypted again',
      role: 'operator',
    },
  ],
  'Heterogeneous types, inheritance': [{ path: 'people/UK?top=3', cost: '1', naive: '2: a table for each kind' }],
  'Append anti-pattern avoided': [
    {
      path: 'doorevents/Sales/000123?top=5',
      cost: '1',
      naive: '1 per 1,000 events of the hour, with time as the partition',
    },
  ],
  'Shared access signatures': [
    {
      method: 'POST',
      path: 'grants',
      body: { entity: 'employees', scope: 'own' },
      cost: '3: revocation, index, entity; using it costs 1, without the app',
      naive: '1 request to the app for each read',
    },
    {
      method: 'POST',
      path: 'grants',
      body: { entity: 'messagehours', scope: 'own', permissions: 'rau' },
      cost: '3: revocation, index, entity; using it costs 1, without the app',
      naive: '1 request to the app for each hour',
    },
  ],
  Retrieving: [
    {
      path: 'employees/Sales?from=000123&to=000125&select=employeeId,lastName',
      cost: '1',
      naive: '3: one for each employee',
    },
    {
      path: 'employees/Sales?jobTitle=Sales%20Manager',
      cost: '1',
      naive: '1 per 1,000 employees of Sales, all of which are sent',
    },
    {
      path: 'employees/Sales?hireDate=ge:2012&hireDate=lt:2015&select=lastName,hireDate',
      cost: '1',
      naive: '1, with all properties of all rows',
    },
    {
      path: 'employees/Sales/000123?select=firstName,email',
      cost: '1: two properties, none decrypted',
      naive: '1, with all properties sent and decrypted',
    },
    {
      method: 'POST',
      path: 'query',
      body: {
        reads: {
          me: { get: 'employees', key: { department: 'Sales', employeeId: '000123' }, select: ['firstName'] },
          team: { range: 'employees', partition: { department: 'Sales' }, select: ['lastName'], top: 3 },
          department: { get: 'departments', key: { department: 'Sales' } },
        },
      },
      cost: '3: 1 for each read, in one request instead of 3',
      naive: '3 requests',
    },
    { path: 'operations/scan/departments?top=2', cost: '1 per page', naive: '1 per page', role: 'operator' },
  ],
};
