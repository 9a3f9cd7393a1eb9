import {
  defineEntity,
  defineModel,
  defineOperation,
  interPartitionIndex,
  intraPartitionIndex,
  subject,
  total,
} from 'rowkey';
import { z } from 'zod';

const id = z.uuid().default(() => crypto.randomUUID());
const name = z.string().trim().min(1).max(80);
const hours = z.number().positive().max(24);
const note = z.string().max(200).optional();

/** Only their owner reads and writes them: `ownerId` is the subject of the token. */
const own = [{ role: 'user', where: { ownerId: subject() } }] as const;
const access = { read: own, write: own, set: { ownerId: subject() } } as const;

/** What a user works on. Whoever knows the code sees the report of the project. */
export const projects = defineEntity('projects', {
  schema: z.object({ ownerId: z.string(), projectId: id, name, code: id }),
  table: 'projects',
  key: { partition: '{ownerId}', row: 'project_{projectId}' },
  indexes: {
    // One row for each name: no user has two projects of the same name.
    name: intraPartitionIndex({ row: 'name_{name}' }),
    code: interPartitionIndex({ table: 'projectsbycode', partition: '{code}', row: 'code', unique: true }),
  },
  ofUser: { ownerId: 'delete' },
  access,
});

/** The hours of a day, in the partition of their owner: `{day~}` puts the newest first. */
export const entries = defineEntity('entries', {
  schema: z.object({ ownerId: z.string(), projectId: z.uuid(), day: z.iso.date(), entryId: id, hours, note }),
  table: 'projects',
  key: { partition: '{ownerId}', row: 'entry_{projectId}_{day~}_{entryId}' },
  references: { projectId: { to: projects, onDelete: 'refuse' } },
  totals: { byProject: total({ table: 'hours', partition: '{ownerId}', row: '{projectId}', sum: ['hours'] }) },
  ofUser: { ownerId: 'delete' },
  access,
});

/** For a customer who has the link, and no account. */
const report = defineOperation('report', {
  summary: 'Get the hours of the project that has this code',
  kind: 'read',
  roles: ['visitor', 'user'],
  input: z.object({ code: z.uuid() }),
  output: z.object({
    name,
    hours: z.number(),
    entries: z.array(z.object({ entryId: z.uuid(), day: z.iso.date(), hours, note })),
  }),
});

export const model = defineModel({
  roles: ['visitor', 'user', 'support', 'operator'],
  operatorRole: 'operator',
  // Sees and exports the rows of all users. The audit log has each of its reads.
  steward: 'support',
  anyone: 'visitor',
  // Whoever signs in is a user: nobody assigns the role.
  signedIn: 'user',
  entities: [projects, entries],
  operations: [report],
});
