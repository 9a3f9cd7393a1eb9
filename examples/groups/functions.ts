import { app } from '@azure/functions';
import { type Caller, createRowkey, fromEnvironment, RowkeyError, registerFunctions } from '../../lib/index.ts';
import { model } from './model.ts';

const nameOf = ({ subject, claims }: Caller) => String(claims.email ?? subject);
function found<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new RowkeyError('not-found', 'The invitation does not exist or has expired.');
  return value;
}

export const rowkey = createRowkey({
  model,
  ...fromEnvironment(process.env),
  operations: {
    async createGroup({ input, caller, unlimited }) {
      const { groupId } = (await unlimited.groups.create(input)).values;
      await unlimited.members.put({ groupId, userId: caller.subject }, { name: nameOf(caller), role: 'owner' });
      return { groupId };
    },
    async invited({ input: { code }, unlimited }) {
      const { groupId } = found(await unlimited.invitations.by.code({ code }));
      return found((await unlimited.groups.get({ groupId }))?.values);
    },
    /** A caller outside the group cannot read its invitations, and knows a code. */
    async join({ input: { code }, caller, unlimited }) {
      const { groupId } = found(await unlimited.invitations.by.code({ code }));
      const key = { groupId, userId: caller.subject };
      // Whoever is a member already stays the owner.
      if (!(await unlimited.members.get(key)))
        await unlimited.members.put(key, { name: nameOf(caller), role: 'member' });
      return { groupId };
    },
  },
});
registerFunctions(app, rowkey, { routePrefix: '' });
