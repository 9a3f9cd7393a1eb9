/** The signed-in user. The tokens live in sessionStorage: they end with the tab and are sent to the API only. */
export interface Session {
  readonly token: string;
  readonly refreshToken?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** What the console shows of the user. Only the API decides what the user may do. */
export interface User {
  readonly name: string;
  readonly roles: readonly string[];
}

const KEY = 'rowkey-session';

export function readSession(): Session | undefined {
  const text = sessionStorage.getItem(KEY);
  return text === null ? undefined : JSON.parse(text);
}

export function storeSession(session: Session | undefined): void {
  if (session) sessionStorage.setItem(KEY, JSON.stringify(session));
  else sessionStorage.removeItem(KEY);
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
