import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';

const text = z.string().min(1).max(200);

/** Customers by city, with inter-partition indexes: one with references, one by city and last name with a composite key. */
export const customers = defineEntity('customers', {
  label: 'companyName',
  schema: z.object({
    city: text.meta({ examples: ['London'] }),
    customerId: z
      .string()
      .regex(/^[A-Z0-9]{2,10}$/, 'two to ten capital letters and digits are needed')
      .meta({ examples: ['HARBR', 'NEWCO'] }),
    companyName: text,
    contactName: text.meta({ examples: ['Ada Fenn', 'Ann Lee'] }).optional(),
    lastName: text.meta({ examples: ['Fenn'] }).optional(),
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
  // The last word of the name, as in an alphabetical list by last name.
  derived: {
    lastName: ({ contactName }) =>
      typeof contactName === 'string' ? contactName.trim().split(/\s+/).at(-1) : undefined,
  },
  indexes: {
    // References only: small rows, and two lookups for each read.
    id: interPartitionIndex({
      table: 'customersbyid',
      partition: '{customerId#}',
      row: '{customerId}',
      unique: true,
      copies: 'keys',
    }),
    // Full copies with a composite key: one lookup for each read.
    cityAndLastName: interPartitionIndex({
      table: 'customersbylastname',
      partition: '{city}',
      row: '{lastName}_{customerId}',
    }),
  },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
