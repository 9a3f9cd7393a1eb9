import { z } from 'zod';
import { defineEntity, defineModel, intraPartitionIndex } from '../../lib/index.ts';

const contacts = defineEntity('contacts', {
  schema: z.object({
    team: z.string(),
    contactId: z.string(),
    name: z.string(),
    nameKey: z.string().optional(),
  }),
  table: 'contacts',
  key: { partition: '{team}', row: 'contact_{contactId}' },
  // Keys compare characters, so the index has lower-case letters.
  derived: { nameKey: ({ name }) => (typeof name === 'string' ? name.toLowerCase() : undefined) },
  indexes: { nameKey: intraPartitionIndex({ row: 'name_{nameKey}_{contactId}' }) },
  access: { read: ['user'], write: ['user'] },
});

export const model = defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities: [contacts] });
