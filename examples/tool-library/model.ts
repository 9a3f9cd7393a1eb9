import { z } from 'zod';
import {
  type DeclaredEntity,
  defineEntity,
  defineModel,
  defineOperation,
  interPartitionIndex,
  memberOf,
  subject,
} from '../../lib/define.ts';

const id = z.uuid().default(() => crypto.randomUUID());
const name = z.string().trim().min(1).max(80);
const inLibrary = memberOf((): DeclaredEntity => members, 'libraryId');

/** A user who knows the code may join. */
const libraries = defineEntity('libraries', {
  schema: z.object({ libraryId: id, name, code: id }),
  table: 'libraries',
  key: { partition: '{libraryId}', row: 'library' },
  indexes: { code: interPartitionIndex({ table: 'librarycodes', partition: '{code}', row: 'code', unique: true }) },
  access: { read: [{ role: 'user', where: { libraryId: inLibrary } }], write: ['operator'] },
});

const members = defineEntity('members', {
  schema: z.object({ libraryId: z.uuid(), userId: z.string(), name }),
  table: 'libraries',
  key: { partition: '{libraryId}', row: 'member_{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'librariesbymember', partition: '{userId}', row: '{libraryId}' }) },
  access: { read: [{ role: 'user', where: { libraryId: inLibrary } }], write: ['operator'] },
});

const tools = defineEntity('tools', {
  schema: z.object({ libraryId: z.uuid(), toolId: id, ownerId: z.string(), name }),
  table: 'libraries',
  key: { partition: '{libraryId}', row: 'tool_{toolId}' },
  attachments: { photo: { container: 'tools', maxBytes: 10_000_000, types: ['image/jpeg', 'image/png'] } },
  access: {
    read: [{ role: 'user', where: { libraryId: inLibrary } }],
    write: [{ role: 'user', where: { libraryId: inLibrary, ownerId: subject() } }],
    set: { ownerId: subject() },
  },
});

/** A tool has at most one loan: the key has the tool alone. */
const loans = defineEntity('loans', {
  schema: z.object({ libraryId: z.uuid(), toolId: z.uuid(), borrowerId: z.string() }),
  table: 'libraries',
  key: { partition: '{libraryId}', row: 'loan_{toolId}' },
  references: { toolId: { to: tools, onDelete: 'refuse' } },
  access: {
    read: [{ role: 'user', where: { libraryId: inLibrary } }],
    write: {
      create: [{ role: 'user', where: { libraryId: inLibrary } }],
      delete: [{ role: 'user', where: { libraryId: inLibrary, borrowerId: subject() } }],
    },
    set: { borrowerId: subject() },
  },
});

const createLibrary = defineOperation('createLibrary', {
  summary: 'Create a library, of which the caller is a member',
  kind: 'write',
  roles: ['user'],
  input: z.object({ name }),
  output: z.object({ libraryId: z.uuid() }),
  repeatable: true,
});
const join = defineOperation('join', {
  summary: 'Join the library that has this code',
  kind: 'write',
  roles: ['user'],
  input: z.object({ code: z.uuid() }),
  output: z.object({ libraryId: z.uuid() }),
  repeatable: true,
});

export const model = defineModel({
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  // Whoever signs in is a user: nobody assigns the role.
  signedIn: 'user',
  entities: [libraries, members, tools, loans],
  operations: [createLibrary, join],
});
