import { z } from 'zod';
import { createClient } from '../../lib/client/index.ts';
import { defineEntity } from '../../lib/define/define-entity.ts';
import { interPartitionIndex, intraPartitionIndex } from '../../lib/define/indexes.ts';
import { total } from '../../lib/define/totals.ts';
import type { model } from '../../lib/model/model.ts';
import type { Store } from '../../lib/store/store-types.ts';

/** What adopters misname. compiler-errors.test.ts has the compiler's sentence for each of these calls, in their order. */

const common = {
  schema: z.object({ department: z.string(), employeeId: z.string(), hireDate: z.iso.date(), email: z.string() }),
  table: 'employees',
  key: { partition: '{department}', row: '{employeeId}' },
  access: { read: [], write: [] },
} as const;
const hireDate = intraPartitionIndex({ row: 'hired_{hiredate}_{employeeId}' });
const email = interPartitionIndex({ table: 'byemail', partition: '{email#}', row: '{email}', unique: true });

defineEntity('employees', { ...common, indexes: { email, hireDate } });
defineEntity('employees', { ...common, indexes: { email }, encrypted: ['email'] });
const byMonth = total({ table: 'hired', partition: '{hired.month}', row: '{department}' });
defineEntity('employees', { ...common, totals: { byMonth } });
const byEmail = total({ table: 'hired', partition: '{email}', row: '{department}' });
defineEntity('employees', { ...common, totals: { byEmail }, encrypted: ['email'] });

declare const store: Store<typeof model.entities>;
store.employees.by.hireDate.range({});
store.movies.by.actor.range({ cast: 'Charlie Chaplin', title: 'The Kid' });
store.employees.by.hireDate.range({ department: 'Sales', jobTitle: 'Clerk' });
store.orders.totals.byMonth.range({});

const client = createClient<typeof model>({ url: '', token: async () => '' });
client.employees.by.hireDate.range({});
client.query(({ employees }) => ({ hired: employees.by.hireDate.range({}) }));
