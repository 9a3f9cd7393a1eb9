import {
  admitGrant,
  GRANTS_KEPT_MS,
  GRANTS_PER_MINUTE,
  grantFor,
  restoreGrants,
  revokeGrants,
  VALID_FOR_MS,
  validityAt,
} from '../../lib/access/grant.ts';
import { limitOf } from '../../lib/access/limit.ts';
import { requireFields } from '../../lib/access/rule.ts';
import { createAuthenticator } from '../../lib/access/token.ts';

/** Tokens, rules, limits and grants (lib/access). */
export const accessChecks = {
  GRANTS_KEPT_MS,
  GRANTS_PER_MINUTE,
  VALID_FOR_MS,
  admitGrant,
  createAuthenticator,
  grantFor,
  limitOf,
  requireFields,
  restoreGrants,
  revokeGrants,
  validityAt,
} as const;
