import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { formatLoginPage, type Person } from './login-page.ts';

/**
 * The code flow with PKCE (RFC 6749, 7636) of the development provider. It asks for no password, so it gives codes only to
 * pages of this machine (RFC 8252, 7.3): no page of another origin gets a token, even if it opens the login page.
 */

export const TOKEN_PATH = '/token';
const CODE_VALID_FOR_MS = 60_000;
/** A cookie with the characters of claims, which are escaped, has less than 4 KB. */
const MOST_CLAIMS = 1_000;
const LOOPBACK = /^http:\/\/(127\.0\.0\.1|localhost)(:\d+)?(\/[^#]*)?$/;

const Request = z.object({
  client_id: z.string().min(1),
  redirect_uri: z.string().regex(LOOPBACK, 'must be an http:// address of this machine'),
  response_type: z.literal('code'),
  code_challenge: z.string().regex(/^[\w-]{43}$/, 'must be an S256 challenge'),
  code_challenge_method: z.literal('S256'),
  scope: z.string().default('openid'),
  state: z.string().optional(),
  nonce: z.string().optional(),
});
type LoginRequest = z.infer<typeof Request>;

interface Issued extends LoginRequest {
  readonly person: Person;
  readonly expires: number;
}

interface LoginResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Who may sign in. */
export interface Signers {
  /** The roles of the model, among which a person chooses. */
  readonly roles: readonly string[];
  /** The role of a person without one, if the model has such. */
  readonly signedIn?: string | undefined;
}

interface LoginOptions {
  readonly issuer: string;
  readonly signers: () => Signers;
  readonly sign: (person: Person, request: LoginRequest) => Promise<{ access_token: string; id_token: string }>;
  readonly tokenValidForSeconds: number;
}

export interface Login {
  /** The part of the discovery document. */
  readonly metadata: object;
  /** Undefined if the path is another one. `form` has the fields of a POST, `cookie` the header of that name. */
  respond(method: string, url: URL, form: URLSearchParams, cookie?: string): Promise<LoginResponse | undefined>;
}

export function createLogin({ issuer, signers, sign, tokenValidForSeconds }: LoginOptions): Login {
  const codes = new Map<string, Issued>();
  // Browsers send the cookies of a host to all its ports.
  const remembered = `rowkey-person-${new URL(issuer).port}`;

  /** The form shows who signed in last in this browser, and on the first visit nobody: a client must work with the roles that its users have. */
  function showForm(parameters: URLSearchParams, cookie = ''): LoginResponse {
    const { data, error } = Request.safeParse(Object.fromEntries(parameters));
    if (!data) return refuse(error);
    const [, last] = new RegExp(`(?:^|; )${remembered}=([^;]*)`).exec(cookie) ?? [];
    return toPage(200, formatLoginPage({ request: data, ...signers(), person: readPerson(new URLSearchParams(last)) }));
  }

  /** Reads a person from the fields of the form. */
  function readPerson(fields: URLSearchParams): Person {
    const [email, subject] = ['email', 'subject'].map((name) => fields.get(name)?.trim() || undefined);
    const claims = fields.get('claims')?.trim().slice(0, MOST_CLAIMS) || undefined;
    return { roles: fields.getAll('role').filter((role) => signers().roles.includes(role)), email, subject, claims };
  }

  function problemOf({ roles: chosen, email, subject }: Person): string | undefined {
    if (chosen.length > 0) return undefined;
    if (signers().signedIn === undefined) return 'Choose at least one role.';
    return email || subject ? undefined : 'Enter an email address or a subject, or choose a role.';
  }

  function remember({ roles: role, email = '', subject = '', claims = '' }: Person): string {
    const fields = new URLSearchParams({ email, subject, claims });
    for (const name of role) fields.append('role', name);
    return `${remembered}=${fields}; Path=/authorize; Max-Age=31536000; HttpOnly; SameSite=Lax`;
  }

  function issueCode(form: URLSearchParams): LoginResponse {
    const { data: request, error } = Request.safeParse(Object.fromEntries(form));
    if (!request) return refuse(error);
    const person = readPerson(form);
    const problem = problemOf(person);
    if (problem) return toPage(400, formatLoginPage({ request, ...signers(), problem, person }));
    const code = randomBytes(32).toString('base64url');
    const now = Date.now();
    for (const [key, { expires }] of codes) if (expires < now) codes.delete(key);
    codes.set(code, { ...request, person, expires: now + CODE_VALID_FOR_MS });
    const location = new URL(request.redirect_uri);
    location.searchParams.set('code', code);
    location.searchParams.set('iss', issuer);
    if (request.state !== undefined) location.searchParams.set('state', request.state);
    const headers = { location: location.href, 'cache-control': 'no-store', 'set-cookie': remember(person) };
    return { status: 303, headers, body: '' };
  }

  async function exchange(form: URLSearchParams): Promise<LoginResponse> {
    if (form.get('grant_type') !== 'authorization_code') return toJson(400, { error: 'unsupported_grant_type' });
    const code = form.get('code') ?? '';
    const issued = codes.get(code);
    // A code is valid once, even if the rest of the request is wrong.
    codes.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isValid =
      issued &&
      issued.expires >= Date.now() &&
      issued.code_challenge === challenge &&
      issued.redirect_uri === form.get('redirect_uri') &&
      issued.client_id === form.get('client_id');
    if (!isValid) return toJson(400, { error: 'invalid_grant' });
    const tokens = await sign(issued.person, issued);
    return toJson(200, { ...tokens, token_type: 'Bearer', expires_in: tokenValidForSeconds, scope: issued.scope });
  }

  function signOut(parameters: URLSearchParams): LoginResponse {
    const to = parameters.get('post_logout_redirect_uri') ?? '';
    if (!LOOPBACK.test(to)) return toPage(200, formatLoginPage({ problem: 'You are signed out.' }));
    const location = new URL(to);
    const state = parameters.get('state');
    if (state !== null) location.searchParams.set('state', state);
    return { status: 303, headers: { location: location.href }, body: '' };
  }

  return {
    metadata: {
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}${TOKEN_PATH}`,
      end_session_endpoint: `${issuer}/logout`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      authorization_response_iss_parameter_supported: true,
      subject_types_supported: ['public'],
      scopes_supported: ['openid'],
    },
    async respond(method, { pathname, searchParams }, form, cookie) {
      if (pathname === '/authorize' && method === 'GET') return showForm(searchParams, cookie);
      if (pathname === '/authorize' && method === 'POST') return issueCode(form);
      if (pathname === TOKEN_PATH && method === 'POST') return exchange(form);
      if (pathname === '/logout' && method === 'GET') return signOut(searchParams);
      return undefined;
    },
  };
}

/** Not a redirect: the address may be that of another origin. */
function refuse(error: z.ZodError): LoginResponse {
  const problem = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  return toPage(400, formatLoginPage({ problem: `The sign-in request is not valid. ${problem}.` }));
}

function toPage(status: number, { html, policy }: { html: string; policy: string }): LoginResponse {
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // The form must be sent with its origin.
    'referrer-policy': 'same-origin',
  };
  return { status, headers, body: html };
}

function toJson(status: number, body: object): LoginResponse {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  return { status, headers, body: JSON.stringify(body) };
}
