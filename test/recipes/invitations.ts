import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  defineOperation,
  type Implementations,
  interPartitionIndex,
  RowkeyError,
} from '../../lib/index.ts';

const members = defineEntity('members', {
  schema: z.object({ clubId: z.string(), userId: z.string() }),
  table: 'clubs',
  key: { partition: '{clubId}', row: 'member_{userId}' },
  access: { read: ['operator'], write: ['operator'] },
});
const invitations = defineEntity('invitations', {
  schema: z.object({
    clubId: z.string(),
    code: z.uuid().default(() => crypto.randomUUID()),
    expiresAt: z.iso.datetime(),
  }),
  table: 'clubs',
  key: { partition: '{clubId}', row: 'invitation_{code}' },
  indexes: { code: interPartitionIndex({ table: 'invitationcodes', partition: '{code}', row: 'code', unique: true }) },
  expiry: { at: 'expiresAt' },
  access: { read: ['operator'], write: ['operator'] },
});
const join = defineOperation('join', {
  summary: 'Join the club of an invitation',
  kind: 'write',
  roles: ['user'],
  input: z.object({ code: z.uuid() }),
  output: z.object({ clubId: z.string() }),
  repeatable: true,
});

export const model = defineModel({
  roles: ['user', 'operator'],
  operatorRole: 'operator',
  signedIn: 'user',
  entities: [members, invitations],
  operations: [join],
});

export const operations: Implementations<typeof model> = {
  async join({ input, caller, unlimited }) {
    const invitation = await unlimited.invitations.by.code(input);
    if (!invitation) throw new RowkeyError('not-found', 'The invitation does not exist or has expired.');
    const { clubId } = invitation;
    await unlimited.members.put({ clubId, userId: caller.subject }, {});
    return { clubId };
  },
};
