/** Requests on the sample data for each pattern of the guide, with the storage transactions that the guide predicts. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    { path: 'customers/by/cityAndLastName/London/Fenn', cost: '1: full copies' },
    { path: 'customers/by/cityAndLastName/London?prefix=F', cost: '1' },
    { path: 'customers/by/id/HARBR', cost: '2: the reference, the entity' },
    { path: 'orders/by/date/2026-11-20', cost: '8: one per bucket, concurrently' },
    { path: 'vouchers/TEA4YOU1', cost: '1: the shard is a hash of the code' },
    {
      path: 'vouchers/by/customer/ALPIN',
      cost: '1, and 1 per voucher, in its shard; without the index a scan of 8 shards',
    },
  ],
  Denormalization: [
    { path: 'products/91', cost: '1; without copies 1 more, for the category' },
    {
      method: 'PATCH',
      path: 'categories/91',
      body: { taxRate: 0.21 },
      cost: '4: read, intent, transaction, message; the queue takes 4 for each 100 products that change, a write of each product by the caller 200',
    },
    {
      method: 'POST',
      path: 'products',
      body: { categoryId: 91, productId: 909, productName: 'Black tea' },
      cost: '2: the category, the product',
    },
  ],
  'Vertical split': [
    { path: 'products/91/901', cost: '1: the row without texts' },
    { path: 'products/91/901?include=text', cost: '1: both rows in one range query' },
    { path: 'products/91', cost: '1: rows without texts' },
    { path: 'products/91?select=productName,description', cost: '1' },
  ],
  'Log tail': [
    { path: 'orders/by/latest/HARBR?top=10', cost: '1; without the index all orders of the customer are read' },
  ],
  'Compound key': [
    { path: 'orders/HARBR/10001?include=orderlines', cost: '1; with lines in a table of their own 2' },
    {
      method: 'POST',
      path: 'orderlines',
      body: { customerId: 'HARBR', orderId: 10_002, productId: 903, quantity: 1, unitPrice: 21 },
      cost: '1: the transaction; 1 more to read the order, unless this process wrote it last',
    },
  ],
  'Maintained counts': [
    { path: 'orders/totals/byMonth/HARBR/2026-11', cost: '1; without totals all orders of the customer are read' },
    { path: 'orders/totals/byMonth/HARBR?from=2026', cost: '1: all months since then' },
    {
      path: 'orders/totals/perDay/2026-11-20',
      cost: '8: one per bucket, concurrently; without totals all orders of the day are read',
    },
  ],
  'One-to-many relationships': [
    {
      method: 'POST',
      path: 'orders',
      body: { customerId: 'HARBR', orderId: 10_009, orderDate: '2026-11-21', placedAt: '2026-11-21T08:00:00.000Z' },
      cost: '13: the customer; intent, transaction; the index entry (2), two totals (3 each), the order, intent; the index in the partition costs nothing',
    },
    {
      method: 'DELETE',
      path: 'customers/London/LAMPS',
      cost: '12: 1 query for orders of the customer; without a key that begins with it, a scan of all orders',
    },
  ],
};
