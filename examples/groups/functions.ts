import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, RowkeyError, registerFunctions } from '../../lib/index.ts';
import { model } from './model.ts';

export const rowkey = createRowkey({
  model,
  ...fromEnvironment(process.env),
  operations: {
    async createGroup({ input, caller: { subject, claims }, unlimited }) {
      const { groupId } = (await unlimited.groups.create(input)).values;
      await unlimited.members.put(
        { groupId, userId: subject },
        { name: String(claims.email ?? subject), role: 'owner' },
      );
      return { groupId };
    },
    /** A caller outside the group cannot read its invitations, and knows a code. */
    async join({ input: { code }, caller: { subject, claims }, unlimited }) {
      const invitation = await unlimited.invitations.by.code({ code });
      if (!invitation) throw new RowkeyError('not-found', 'The invitation does not exist or has expired.');
      const key = { groupId: invitation.groupId, userId: subject };
      // Whoever is a member already stays the owner.
      if (!(await unlimited.members.get(key)))
        await unlimited.members.put(key, { name: String(claims.email ?? subject), role: 'member' });
      return { groupId: invitation.groupId };
    },
  },
});
registerFunctions(app, rowkey, { routePrefix: '' });
