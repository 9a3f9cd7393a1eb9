import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type DeclaredEntity, defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { tasks as former, visits } from './model.ts';

const { title: _, ...fields } = former.schema.shape;

/** A later version: a field has another name, one is added, one has a default of its own in each row, and there is an index. */
const tasks = defineEntity('tasks', {
  schema: z.object({
    ...fields,
    label: z.string(),
    note: z.string().optional(),
    priority: z.int32().default(3),
    ref: z.uuid().default(() => randomUUID()),
  }),
  table: 'tasks',
  key: { partition: '{list}', row: '{taskId}' },
  version: 2,
  upgrades: { 1: ({ title, ...others }) => ({ ...others, label: `${title}!` }) },
  indexes: {
    label: interPartitionIndex({
      table: 'tasksbylabel',
      partition: '{label}',
      row: '{list}_{taskId}',
      copies: ['amount'],
    }),
  },
  references: { follows: { to: (): DeclaredEntity => tasks, by: 'taskId', onDelete: 'report' } },
  encrypted: ['secret'],
  large: ['text'],
  access: { read: ['editor'], write: ['editor'], restricted: { secret: ['editor'] } },
});

export const model = defineModel({
  roles: ['editor', 'operator'],
  operatorRole: 'operator',
  entities: [tasks, visits],
});
