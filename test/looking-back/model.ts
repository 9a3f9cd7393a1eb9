import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, subject } from '../../lib/define.ts';

/** An app with a backup, whose deleted entities have everything that an undelete has to bring back. */

const employees = defineEntity('employees', {
  schema: z.object({
    department: z.string().min(1).max(50),
    employeeId: z.string().regex(/^\d{6}$/),
    email: z.email(),
    owner: z.string().max(100),
    grade: z.int32().optional(),
    salary: z.int32().optional(),
    bonus: z.int32().optional(),
    nationalId: z.string().optional(),
    story: z.string().max(200_000).optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: 'empid_{employeeId}' },
  indexes: {
    email: interPartitionIndex({
      table: 'employeesbyemail',
      partition: '{email#}',
      row: '{email}',
      unique: true,
      copies: 'keys',
    }),
  },
  encrypted: ['nationalId'],
  large: ['story'],
  attachments: { photo: { container: 'photos', maxBytes: 1_000_000, types: ['image/png'] } },
  access: {
    read: ['hr', { role: 'reader', where: { owner: subject() }, lists: 'filtered' }],
    write: ['hr'],
    restricted: { nationalId: ['hr'], salary: ['hr'], bonus: ['hr', { role: 'reader', where: { owner: subject() } }] },
  },
});

const reviews = defineEntity('reviews', {
  schema: z.object({
    department: z.string().min(1).max(50),
    employeeId: z.string().regex(/^\d{6}$/),
    year: z.string().regex(/^\d{4}$/),
    rating: z.int32(),
    text: z.string().max(200_000).optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: 'empid_{employeeId}_{year}' },
  childOf: employees,
  large: ['text'],
  access: { read: ['hr', 'reader'], write: ['hr'] },
});

/** A row alone, which the store writes and deletes without a read if there is no backup. */
const notes = defineEntity('notes', {
  schema: z.object({ pad: z.string(), noteId: z.string(), text: z.string() }),
  table: 'notes',
  key: { partition: '{pad}', row: '{noteId}' },
  access: { read: ['hr'], write: ['hr'] },
});

/** Rows of another program, of which a backup has snapshots alone. */
const parts = defineEntity('parts', {
  schema: z.object({ rack: z.string(), partId: z.string(), name: z.string() }),
  table: 'warehouse',
  key: { partition: '{rack}', row: '{partId}' },
  existing: { properties: { name: 'Name' } },
  access: { read: ['hr'], write: ['hr'] },
});

export const model = defineModel({
  roles: ['hr', 'reader', 'operator', 'guest'],
  operatorRole: 'operator',
  entities: [employees, reviews, notes, parts],
  backup: { days: 7, roles: ['hr', 'reader', 'operator'] },
});
