import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, memberOf } from '../../lib/index.ts';

const members = defineEntity('members', {
  schema: z.object({ clubId: z.string(), userId: z.string(), role: z.enum(['member', 'admin']) }),
  table: 'clubs',
  key: { partition: '{clubId}', row: 'member_{userId}' },
  // Finds the clubs of a user.
  indexes: { userId: interPartitionIndex({ table: 'clubsbymember', partition: '{userId}', row: '{clubId}' }) },
  access: { read: ['operator'], write: ['operator'] },
});

const inClub = memberOf(members, 'clubId');
const asAdmin = memberOf(members, 'clubId', { role: 'admin' });

const notices = defineEntity('notices', {
  schema: z.object({ clubId: z.string(), noticeId: z.string(), text: z.string() }),
  table: 'clubs',
  key: { partition: '{clubId}', row: 'notice_{noticeId}' },
  access: {
    read: [{ role: 'user', where: { clubId: inClub } }],
    write: [{ role: 'user', where: { clubId: asAdmin } }],
  },
});

export const model = defineModel({
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  signedIn: 'user',
  entities: [members, notices],
});
