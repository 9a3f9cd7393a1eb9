import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, total } from '../../lib/index.ts';

/** Declarations over the tables that .NET wrote, as a person writes them who knows the tables. */

const access = { read: ['reader'], write: ['editor'] } as const;
const roles = { roles: ['reader', 'editor'], operatorRole: 'editor' } as const;
const digits = z.string().regex(/^-?\d+$/);

const customerKey = 'C-{customerId:6}';
const customers = defineEntity('customers', {
  schema: z.object({
    customerId: z.int().min(0),
    name: z.string(),
    email: z.string(),
    phone: z.string().optional(),
    tier: z.enum(['Standard', 'Silver', 'Gold']),
    loyaltyPoints: digits,
    discount: z.number(),
    rating: z.number().optional(),
    isActive: z.boolean(),
    orderCount: z.int32(),
    createdOn: z.iso.datetime(),
    lastLoginOn: z.iso.datetime().optional(),
    externalId: z.uuid(),
    thumbnail: z.base64().optional(),
    preferences: z.string(),
  }),
  table: 'ShopData',
  key: { partition: customerKey, row: 'customer' },
  existing: {
    properties: {
      name: 'Name',
      email: 'Email',
      phone: 'Phone',
      tier: 'Tier',
      loyaltyPoints: { name: 'LoyaltyPoints', type: 'Int64' },
      discount: 'Discount',
      rating: 'Rating',
      isActive: 'IsActive',
      orderCount: 'OrderCount',
      createdOn: { name: 'CreatedOn', type: 'DateTime' },
      lastLoginOn: { name: 'LastLoginOn', type: 'DateTime' },
      externalId: { name: 'ExternalId', type: 'Guid' },
      thumbnail: { name: 'Thumbnail', type: 'Binary' },
      preferences: 'Preferences',
    },
  },
  indexes: {
    byEmail: interPartitionIndex({ table: 'customersbyemail', partition: '{email}', row: 'customer', unique: true }),
  },
  totals: { perTier: total({ table: 'customertotals', partition: 'all', row: '{tier}', sum: ['orderCount'] }) },
  access,
});

const orders = defineEntity('orders', {
  schema: z.object({
    customerId: z.int().min(0),
    orderNo: z.int32().min(0),
    status: z.enum(['Pending', 'Paid', 'Shipped', 'Cancelled']),
    totalCents: digits,
    currency: z.string(),
    discount: z.number(),
    isGift: z.boolean(),
    itemCount: z.int32(),
    createdOn: z.iso.datetime(),
    shippedOn: z.iso.datetime().optional(),
    externalId: z.uuid(),
    note: z.string().optional(),
    shippingAddress: z.string(),
  }),
  table: 'ShopData',
  key: { partition: customerKey, row: 'order-{orderNo:8}' },
  existing: {
    properties: {
      orderNo: 'OrderNo',
      status: 'Status',
      totalCents: { name: 'TotalCents', type: 'Int64' },
      currency: 'Currency',
      discount: 'Discount',
      isGift: 'IsGift',
      itemCount: 'ItemCount',
      createdOn: { name: 'CreatedOn', type: 'DateTime' },
      shippedOn: { name: 'ShippedOn', type: 'DateTime' },
      externalId: { name: 'ExternalId', type: 'Guid' },
      note: 'Note',
      shippingAddress: 'ShippingAddress',
    },
  },
  indexes: {
    byNumber: interPartitionIndex({ table: 'ordersbynumber', partition: '{orderNo:8}', row: 'order', unique: true }),
  },
  access,
});

/** Of the lines of orders, nothing is declared: they are rows of others. */
export const shop = defineModel({ ...roles, entities: [customers, orders] });

const requests = defineEntity('requests', {
  schema: z.object({
    day: z.string().regex(/^\d{8}$/),
    loggedOn: z.iso.datetime(),
    requestId: z.string(),
    level: z.enum(['Information', 'Warning', 'Error']),
    message: z.string(),
    path: z.string(),
    statusCode: z.int32(),
    durationMs: z.number(),
    userId: z.string().optional(),
  }),
  table: 'RequestLog',
  key: { partition: '{day}', row: '{loggedOn~}_{requestId}' },
  existing: {
    properties: {
      loggedOn: { name: 'LoggedOn', type: 'DateTime' },
      requestId: { name: 'RequestId', type: 'Guid' },
      level: 'Level',
      message: 'Message',
      path: 'Path',
      statusCode: 'StatusCode',
      durationMs: 'DurationMs',
      userId: 'UserId',
    },
    readOnly: true,
  },
  access,
});
export const log = defineModel({ ...roles, entities: [requests] });

const users = defineEntity('users', {
  schema: z.object({
    userId: z.string(),
    userName: z.string(),
    normalizedUserName: z.string(),
    email: z.string(),
    normalizedEmail: z.string(),
    emailConfirmed: z.boolean(),
    passwordHash: z.string(),
    securityStamp: z.uuid(),
    accessFailedCount: z.int32(),
    lockoutEnd: z.iso.datetime().optional(),
    createdOn: z.iso.datetime(),
  }),
  table: 'Identity',
  key: { partition: 'user_{userId}', row: 'profile' },
  existing: {
    properties: {
      userId: 'UserId',
      userName: 'UserName',
      normalizedUserName: 'NormalizedUserName',
      email: 'Email',
      normalizedEmail: 'NormalizedEmail',
      emailConfirmed: 'EmailConfirmed',
      passwordHash: 'PasswordHash',
      securityStamp: { name: 'SecurityStamp', type: 'Guid' },
      accessFailedCount: 'AccessFailedCount',
      lockoutEnd: { name: 'LockoutEnd', type: 'DateTime' },
      createdOn: { name: 'CreatedOn', type: 'DateTime' },
    },
  },
  indexes: {
    byEmail: interPartitionIndex({ table: 'usersbyemail', partition: '{normalizedEmail}', row: 'user', unique: true }),
  },
  access,
});

const logins = defineEntity('logins', {
  schema: z.object({
    userId: z.string(),
    provider: z.string(),
    providerKey: z.string(),
    displayName: z.string().optional(),
  }),
  table: 'Identity',
  key: { partition: 'user_{userId}', row: 'login_{provider}' },
  existing: {
    properties: { userId: 'UserId', provider: 'Provider', providerKey: 'ProviderKey', displayName: 'DisplayName' },
  },
  access,
});

const claims = defineEntity('claims', {
  schema: z.object({ userId: z.string(), number: z.int32(), type: z.string(), value: z.string() }),
  table: 'Identity',
  key: { partition: 'user_{userId}', row: 'claim_{number}' },
  existing: { properties: { userId: 'UserId', number: 'Number', type: 'Type', value: 'Value' } },
  access,
});
export const identity = defineModel({ ...roles, entities: [users, logins, claims] });
