import { z } from 'zod';
import { defineClaims, defineEntity, defineModel } from '../../lib/index.ts';

/** The issuer states the tenant of a user, and users cannot choose it. */
const { tenant } = defineClaims({ tenant: { verifiedBy: {} } });
const inTenant = { tenant };

const orders = defineEntity('orders', {
  schema: z.object({ tenant: z.string(), orderId: z.string(), text: z.string() }),
  table: 'orders',
  // Begin each partition key with the tenant: then one tenant can have a storage account of its own.
  key: { partition: '{tenant}', row: 'order_{orderId}' },
  access: {
    read: [{ role: 'user', where: inTenant }],
    write: [{ role: 'user', where: inTenant }],
    set: { tenant },
  },
});

export const model = defineModel({
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  signedIn: 'user',
  entities: [orders],
});
