import { z } from 'zod';
import { defineUnion } from '../../lib/define.ts';
import { text } from './fields.ts';

/**
 * Every contact of the company by country, employees and customers. Version 1 had a single `name`; the rows of version 1
 * are upgraded when they are read.
 */
export const people = defineUnion('people', {
  schema: z.object({
    country: text.meta({ examples: ['UK'] }),
    personId: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,40}$/, 'letters, digits and hyphens are needed')
      .meta({ examples: ['e-000123', 'e-000901'] }),
    firstName: text,
    lastName: text.optional(),
    email: z.email().max(254).toLowerCase().optional(),
  }),
  kinds: {
    employee: z.object({ jobTitle: text, hireDate: z.iso.date().optional() }),
    customer: z.object({ companyName: text, discount: z.number().min(0).max(1).optional() }),
  },
  table: 'people',
  key: { partition: '{country}', row: '{personId}' },
  version: 2,
  upgrades: {
    1: ({ name, ...others }) => {
      const [firstName, ...rest] = String(name).trim().split(/\s+/);
      return { ...others, firstName, ...(rest.length > 0 ? { lastName: rest.join(' ') } : {}) };
    },
  },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
