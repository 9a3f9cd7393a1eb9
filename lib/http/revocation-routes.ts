import { z } from 'zod';
import { restoreGrants, revokeGrants } from '../access/grant-limits.ts';
import { parse } from '../define/validation.ts';
import type { Route } from './route.ts';

const Identity = z.strictObject({
  subject: z.string().min(1).max(1_000).describe('The claim sub of its token, which the audit log has as by'),
});
const Revoked = Identity.extend({
  grantsEndAt: z.iso.datetime().describe('No grant that the identity has is good after it'),
});

/** For operators: an identity gets no more grants, until they are restored. */
export const revocationRoutes: readonly Route[] = [
  {
    name: 'operations-grants-revoke',
    method: 'POST',
    path: 'operations/grants/revoke',
    roles: ['operator'],
    summary: 'Issue no more grants to an identity; those that it has end within 15 minutes',
    requestBody: Identity,
    success: { status: 200, description: 'Revoked', body: Revoked },
    handle: async (call) => {
      const { subject } = parse(Identity, await call.json());
      const grantsEndAt = new Date(await revokeGrants(call.app.engine, subject)).toISOString();
      return { status: 200, body: { subject, grantsEndAt } };
    },
  },
  {
    name: 'operations-grants-restore',
    method: 'POST',
    path: 'operations/grants/restore',
    roles: ['operator'],
    summary: 'Issue grants to an identity again',
    requestBody: Identity,
    success: { status: 204, description: 'Restored' },
    handle: async (call) => {
      await restoreGrants(call.app.engine, parse(Identity, await call.json()).subject);
      return { status: 204 };
    },
  },
];
