import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';
import { interPartitionIndex } from '../../define/indexes.ts';

const text = z.string().min(1).max(200);

/** Customers by city; company-wide by a reference to them, and by city and last name under a composite key. */
export const customers = defineEntity('customers', {
  schema: z.object({
    city: text,
    customerId: z.string().regex(/^[A-Z0-9]{2,10}$/, 'two to ten capital letters and digits are needed'),
    companyName: text,
    contactName: text.optional(),
    lastName: text.optional(),
    contactTitle: text.optional(),
    address: text.optional(),
    region: text.optional(),
    postalCode: z.string().max(20).optional(),
    country: text.optional(),
    phone: z.string().max(40).optional(),
    fax: z.string().max(40).optional(),
  }),
  table: 'customers',
  key: { partition: '{city}', row: '{customerId}' },
  // The last word of the name, as sorting it by hand would take it.
  derived: {
    lastName: ({ contactName }) =>
      typeof contactName === 'string' ? contactName.trim().split(/\s+/).at(-1) : undefined,
  },
  indexes: {
    // Reference only: small, and two lookups.
    id: interPartitionIndex({
      table: 'customersbyid',
      partition: '{customerId#}',
      row: '{customerId}',
      unique: true,
      copies: 'keys',
    }),
    // A full copy under a composite key: one lookup.
    cityAndLastName: interPartitionIndex({
      table: 'customersbylastname',
      partition: '{city}_{lastName}',
      row: '{customerId}',
    }),
  },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
