import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, RowkeyError, registerFunctions } from '../../lib/index.ts';
import { model } from './model.ts';

export const rowkey = createRowkey({
  model,
  ...fromEnvironment(process.env),
  operations: {
    /** A caller outside the group cannot read its invitations, and knows a code. */
    async join({ input: { code }, caller: { subject, claims }, unlimited }) {
      const invitation = await unlimited.invitations.by.code({ code });
      if (!invitation) throw new RowkeyError('not-found', 'The invitation does not exist or has expired.');
      const { groupId } = invitation;
      await unlimited.members.put({ groupId, userId: subject }, { name: String(claims.email ?? subject) });
      return { groupId };
    },
  },
});
registerFunctions(app, rowkey, { routePrefix: '' });
