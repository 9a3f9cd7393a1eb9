/** A small shop, the same at every first start. */

const CUSTOMERS = [
  { city: 'London', customerId: 'HARBR', companyName: 'Harbour Teas', contactName: 'Ada Fenn', country: 'UK' },
  { city: 'London', customerId: 'LAMPS', companyName: 'Lamps and More', contactName: 'Noor Sattar', country: 'UK' },
  { city: 'Bern', customerId: 'ALPIN', companyName: 'Alpine Goods', contactName: 'Urs Meier', country: 'Switzerland' },
];

const CATEGORIES = [
  { categoryId: 91, buyer: 'Ben Stone', taxRate: 0.2 },
  { categoryId: 92, buyer: 'Ida Marsh', taxRate: 0.05 },
];

const PRODUCTS = [
  {
    categoryId: 91,
    productId: 901,
    productName: 'Green tea',
    categoryName: 'Drinks',
    unitPrice: 8.5,
    unitsInStock: 40,
    description: 'A steamed green tea from the first harvest of the year, with a light and slightly sweet taste.',
    specification: 'Organic. Steep 3 g in 200 ml of water at 75 °C for two minutes. Store cool, dry and dark.',
  },
  { categoryId: 91, productId: 902, productName: 'Cider', categoryName: 'Drinks', unitPrice: 14, unitsInStock: 12 },
  { categoryId: 92, productId: 903, productName: 'Hard cheese', categoryName: 'Dairy', unitPrice: 21, unitsInStock: 7 },
];

const ORDERS = [
  {
    customerId: 'HARBR',
    orderId: 10_001,
    orderDate: '2026-11-19',
    placedAt: '2026-11-19T09:12:07.000Z',
    shipCity: 'London',
    freight: 12.5,
  },
  {
    customerId: 'HARBR',
    orderId: 10_002,
    orderDate: '2026-11-20',
    placedAt: '2026-11-20T15:40:31.000Z',
    shipCity: 'London',
    freight: 3.25,
  },
  {
    customerId: 'ALPIN',
    orderId: 10_003,
    orderDate: '2026-11-20',
    placedAt: '2026-11-20T15:58:02.000Z',
    shipCity: 'Bern',
    freight: 40,
  },
];

const ORDER_LINES = [
  { customerId: 'HARBR', orderId: 10_001, productId: 901, quantity: 10, unitPrice: 8.5 },
  { customerId: 'HARBR', orderId: 10_001, productId: 903, quantity: 1, unitPrice: 21, discount: 0.1 },
  { customerId: 'HARBR', orderId: 10_002, productId: 901, quantity: 2, unitPrice: 8.5 },
  { customerId: 'ALPIN', orderId: 10_003, productId: 902, quantity: 24, unitPrice: 14, discount: 0.05 },
];

const VOUCHERS = [
  { code: 'TEA4YOU1', customerId: 'HARBR', amount: 20 },
  { code: 'SPRING26', customerId: 'HARBR', amount: 15 },
  { code: 'ALPENROS', customerId: 'ALPIN', amount: 50 },
];

export function sampleRequests() {
  const post = (path: string, list: readonly object[]) => list.map((body) => ({ method: 'POST', path, body }));
  // An order needs its customer, and a line its order.
  return [
    [
      ...post('customers', CUSTOMERS),
      ...post('categories', CATEGORIES),
      ...post('products', PRODUCTS),
      ...post('vouchers', VOUCHERS),
    ],
    post('orders', ORDERS),
    post('orderlines', ORDER_LINES),
  ];
}
