import type { Session } from '../../../lib/client/oidc.ts';

/** What the console shows of the user. Only the API decides what the user may do. */
export interface User {
  readonly name: string;
  /** The `sub` of the token. */
  readonly subject: string;
  readonly roles: readonly string[];
}

interface Me {
  readonly subject: string;
  readonly roles: readonly string[];
}

/**
 * The user, with the roles that the app gives to the token; none of the model without `me`. The name is a claim, read without verification,
 * which is the API's. A token that is no JWT has no claims.
 */
export function toUser({ token }: Session, me: Me | undefined): User {
  const { sub, email, preferred_username, name } = readClaims(token);
  const label = [email, preferred_username, name, sub].find((claim) => typeof claim === 'string');
  return { name: String(label ?? 'signed in'), subject: me?.subject ?? '', roles: me?.roles ?? [] };
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
