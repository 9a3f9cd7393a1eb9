import { z } from 'zod';
import { blockUser, listBlocked, unblockUser } from '../../access/blocked.ts';
import { RowkeyError } from '../../base/errors.ts';
import { parse } from '../../define/codec/validation.ts';
import type { PageOptions } from '../../engine/read/retrieve.ts';
import { bind, bindPage, listOf } from '../bind.ts';
import { PAGE_QUERY } from '../query.ts';
import type { RequestContext, Route } from '../route.ts';

export const User = z.strictObject({
  subject: z
    .string()
    .min(1)
    .max(1_000)
    .describe('The claim "sub" of the tokens of the user; the audit log has it as "by"'),
});
const Blocked = z.object({ subject: User.shape.subject, blockedAt: z.iso.datetime() });

/** Rejects the requests of a user while the user's tokens are still valid. */
export function userRoutes(operatorRole: string): Route[] {
  const roles = [operatorRole];
  const readUser = async ({ json, caller }: RequestContext) => ({ ...parse(User, await json()), by: caller.subject });
  type Named = Awaited<ReturnType<typeof readUser>>;
  return [
    bindPage(
      {
        name: 'operations-users-blocked',
        summary: 'List the users who are blocked',
        kind: 'read',
        roles,
        output: () => listOf(Blocked),
        async run({ engine }, { top, after }: PageOptions) {
          const { items, next } = await listBlocked(engine, { limit: top, after: after?.row });
          return { items, next: next === undefined ? undefined : { row: next } };
        },
      },
      {
        path: 'operations/users/blocked',
        query: PAGE_QUERY,
        success: { status: 200, description: 'A page of users' },
      },
    ),
    bind(
      {
        name: 'operations-users-block',
        summary:
          'Reject the requests of a user, within 10 seconds in every process; signatures of storage expire within 15 minutes',
        kind: 'write',
        roles,
        input: () => User,
        async run({ engine }, { subject, by }: Named) {
          if (subject === by)
            throw new RowkeyError('invalid-input', 'An operator cannot block itself.', {
              field: 'subject',
              accepted: 'another user',
            });
          await blockUser(engine, subject);
        },
      },
      {
        method: 'POST',
        path: 'operations/users/block',
        success: { status: 204, description: 'Blocked' },
        read: readUser,
      },
    ),
    bind(
      {
        name: 'operations-users-unblock',
        summary: 'Accept the requests of a user again',
        kind: 'write',
        roles,
        input: () => User,
        run: ({ engine }, { subject }: Named) => unblockUser(engine, subject),
      },
      {
        method: 'POST',
        path: 'operations/users/unblock',
        success: { status: 204, description: 'Unblocked' },
        read: readUser,
      },
    ),
  ];
}
