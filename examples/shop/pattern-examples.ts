/** Requests on the sample data for each pattern of the guide, with the storage transactions that the guide predicts. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    {
      path: 'customers/by/cityAndLastName/London/Fenn',
      cost: '1: full copies',
      naive: 'the partition is read: 1 per 1,000 customers of London',
    },
    { path: 'customers/by/cityAndLastName/London?prefix=F', cost: '1', naive: 'the partition is read and sorted' },
    {
      path: 'customers/by/id/HARBR',
      cost: '2: the reference, the entity',
      naive: 'the table is scanned: 1 per 1,000 customers',
    },
    {
      path: 'orders/by/date/2026-11-20',
      cost: '8: one per bucket, concurrently',
      naive: 'the table is scanned: 1 per 1,000 orders; or 1, and one partition receives all orders of a day',
    },
    { path: 'vouchers/TEA4YOU1', cost: '1: the shard is a hash of the code', naive: '8: the shard is not known' },
    {
      path: 'vouchers/by/customer/ALPIN',
      cost: '1, and 1 per voucher, in its shard',
      naive: 'a scan of 8 shards',
    },
  ],
  Denormalization: [
    { path: 'products/91', cost: '1', naive: '2: the products, their category' },
    {
      method: 'PATCH',
      path: 'categories/91',
      body: { taxRate: 0.21 },
      cost: '4: read, intent, transaction, message; the queue takes 4 for each 100 products that change',
      naive: '2, and 2 for each product; a crash leaves some products with the old rate',
    },
    {
      method: 'POST',
      path: 'products',
      body: { categoryId: 91, productId: 909, productName: 'Black tea' },
      cost: '2: the category, the product',
      naive: '1, and the caller sends the rate, which may be wrong',
    },
  ],
  'Vertical split': [
    { path: 'products/91/901', cost: '1: the row without texts', naive: '1, with all texts' },
    { path: 'products/91/901?include=text', cost: '1: both rows in one range query', naive: '2: a read of each row' },
    { path: 'products/91', cost: '1: rows without texts', naive: '1 for each 4 MB of texts' },
    { path: 'products/91?select=productName,description', cost: '1', naive: '1, and 1 for each product' },
  ],
  'Log tail': [
    { path: 'orders/by/latest/HARBR?top=10', cost: '1', naive: 'all orders of the customer are read and sorted' },
  ],
  'Compound key': [
    {
      path: 'orders/HARBR/10001?include=orderlines',
      cost: '1',
      naive: '2: the order, its lines in a table of their own',
    },
    {
      method: 'POST',
      path: 'orderlines',
      body: { customerId: 'HARBR', orderId: 10_002, productId: 903, quantity: 1, unitPrice: 21 },
      cost: '1: the transaction; 1 more to read the order, unless this process wrote it last',
      naive: '1, also for an order that does not exist',
    },
  ],
  'Maintained counts': [
    {
      path: 'orders/totals/byMonth/HARBR/2026-11',
      cost: '1',
      naive: 'all orders of the customer are read: 1 per 1,000',
    },
    {
      path: 'orders/totals/byMonth/HARBR?from=2026',
      cost: '1: all months since then',
      naive: 'all orders of the customer are read: 1 per 1,000',
    },
    {
      path: 'orders/totals/perDay/2026-11-20',
      cost: '8: one per bucket, concurrently',
      naive: 'all orders of the day are read: 1 per 1,000 in each of 8 buckets',
    },
  ],
  'One-to-many relationships': [
    {
      method: 'POST',
      path: 'orders',
      body: { customerId: 'HARBR', orderId: 10_009, orderDate: '2026-11-21', placedAt: '2026-11-21T08:00:00.000Z' },
      cost: '12: the customer; intent, transaction; the index entry, two totals (3 each), the order, intent; the index in the partition costs nothing',
      naive: '4: the customer, the order, the index row, and 2 for each total, where concurrent writers lose changes',
    },
    {
      method: 'DELETE',
      path: 'customers/London/LAMPS',
      cost: '12: 1 query for orders of the customer; read, intent, transaction; index rows',
      naive: 'a scan of all orders to find those of the customer: 1 per 1,000',
    },
  ],
};
