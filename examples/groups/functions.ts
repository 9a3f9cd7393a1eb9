import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, RowkeyError, registerFunctions } from '../../lib/index.ts';
import { model } from './model.ts';

export const rowkey = createRowkey({ model, ...fromEnvironment(process.env) });
registerFunctions(app, rowkey, { routePrefix: '' });

/** A caller outside the group cannot read its invitations, and knows a code. */
app.http('join', {
  methods: ['POST'],
  route: 'api/join/{code}',
  authLevel: 'anonymous',
  handler: rowkey.handler({ roles: ['user'] }, async ({ params, query }, { caller: { subject } }) => {
    const invitation = await rowkey.store.invitations.by.code({ code: params.code ?? '' });
    if (!invitation) throw new RowkeyError('not-found', 'The invitation does not exist or has expired.');
    const key = { groupId: invitation.groupId, userId: subject };
    const { values } = await rowkey.store.members.put(key, { name: query.get('name') ?? subject }, { by: subject });
    return { jsonBody: values };
  }),
});

/** The rules let the payer change a draft, and what is changed must still be one. */
app.http('finish', {
  methods: ['POST'],
  route: 'api/finish/{groupId}/{expenseId}',
  authLevel: 'anonymous',
  handler: rowkey.handler({ roles: ['user'] }, async ({ params }, { caller }) => {
    const key = { groupId: params.groupId ?? '', expenseId: params.expenseId ?? '' };
    const { etag } = await rowkey.store.as(caller).expenses.update(key, {});
    const options = { ifMatch: etag, by: caller.subject };
    const { values } = await rowkey.store.expenses.update(key, { status: 'final' }, options);
    return { jsonBody: values };
  }),
});
