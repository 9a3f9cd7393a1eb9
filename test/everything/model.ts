import { z } from 'zod';
import { type DeclaredEntity, defineEntity, defineModel, defineSeries } from '../../lib/define.ts';

const access = { read: ['editor'], write: ['editor'] } as const;

/** A task may follow one that comes after it in an export. */
export const tasks = defineEntity('tasks', {
  schema: z.object({
    list: z.string().min(1).max(100),
    taskId: z.string().min(1).max(100),
    title: z.string(),
    follows: z.string().optional(),
    amount: z.number().optional(),
    at: z.iso.datetime({ offset: true }).optional(),
    free: z.json().optional(),
    secret: z.string().optional(),
    text: z.string().optional(),
  }),
  table: 'tasks',
  key: { partition: '{list}', row: '{taskId}' },
  references: {
    follows: { to: (): DeclaredEntity => tasks, by: 'taskId', onDelete: 'report' },
  },
  encrypted: ['secret'],
  large: ['text'],
  access: { ...access, restricted: { secret: ['editor'] } },
});

export const visits = defineSeries('visits', {
  schema: z.object({ list: z.string().min(1).max(100), day: z.iso.date() }),
  table: 'visits',
  key: { partition: '{list}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  access,
});

export const model = defineModel({
  roles: ['editor', 'operator'],
  operatorRole: 'operator',
  entities: [tasks, visits],
});
