import type { Session } from '../../../lib/client/oidc.ts';

/** What the console shows of the user. Only the API decides what the user may do. */
export interface User {
  readonly name: string;
  readonly roles: readonly string[];
}

/** Reads the claims of an access token without verification, which is the API's. A token that is no JWT has no claims. */
export function toUser({ token }: Session): User {
  const { sub, email, preferred_username, name, roles } = readClaims(token);
  const label = [email, preferred_username, name, sub].find((claim) => typeof claim === 'string');
  return {
    name: String(label ?? 'signed in'),
    roles: Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : [],
  };
}

function readClaims(token: string): Readonly<Record<string, unknown>> {
  try {
    const [, payload = ''] = token.split('.');
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0));
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}
