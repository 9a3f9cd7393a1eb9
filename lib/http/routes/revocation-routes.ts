import { z } from 'zod';
import { restoreGrants, revokeGrants } from '../../access/grant-limits.ts';
import { parse } from '../../define/codec/validation.ts';
import type { OperatorRoute } from '../route.ts';

const Identity = z.strictObject({
  subject: z.string().min(1).max(1_000).describe('The claim "sub" of its token; the audit log has it as "by"'),
});
const Revoked = Identity.extend({
  grantsEndAt: z.iso.datetime().describe('All grants of the identity have expired by then'),
});

export const revocationRoutes: readonly OperatorRoute[] = [
  {
    name: 'operations-grants-revoke',
    method: 'POST',
    path: 'operations/grants/revoke',
    summary: 'Stop issuing grants to an identity; its existing grants expire within 15 minutes',
    requestBody: () => Identity,
    success: { status: 200, description: 'Revoked', body: () => Revoked },
    handle: async (context) => {
      const { subject } = parse(Identity, await context.json());
      const grantsEndAt = new Date(await revokeGrants(context.app.engine, subject)).toISOString();
      return { status: 200, body: { subject, grantsEndAt } };
    },
  },
  {
    name: 'operations-grants-restore',
    method: 'POST',
    path: 'operations/grants/restore',
    summary: 'Issue grants to an identity again',
    requestBody: () => Identity,
    success: { status: 204, description: 'Restored' },
    handle: async (context) => {
      await restoreGrants(context.app.engine, parse(Identity, await context.json()).subject);
      return { status: 204 };
    },
  },
];
