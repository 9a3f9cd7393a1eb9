import type { HttpRequest, InvocationContext } from '@azure/functions';
import { requireRole } from '../../access/rule.ts';
import type { Caller } from '../../access/token.ts';
import type { App, Middleware } from '../route.ts';

export const NOBODY: Caller = { subject: '', roles: [], claims: {} };

/** Verifies the token of the caller, who needs one of the roles of the route. */
export const admission: Middleware =
  ({ roles }, next) =>
  async (exchange) => {
    const { app, request, invocation } = exchange;
    return next({ ...exchange, caller: await admit(app, roles, request, invocation) });
  };

/** Returns the caller; `roles` is undefined if no token is needed. Throws `unauthenticated`, `forbidden`, `wrong-setting`. */
export async function admit(
  app: () => App,
  roles: readonly string[] | undefined,
  request: HttpRequest,
  invocation: InvocationContext,
): Promise<Caller> {
  if (!roles) return NOBODY;
  const caller = await app().authenticate(request.headers.get('authorization') ?? undefined);
  requireRole(caller, roles);
  await app().ready(invocation);
  return caller;
}
