import * as oauth from 'oauth4webapi';

/**
 * Sign-in by OpenID Connect for a page without a server: the authorization code flow with PKCE, for any provider that publishes its
 * metadata. The tokens live in sessionStorage: they end with the tab and are sent to the API only.
 */

export interface Provider {
  /** The address of the discovery document without `/.well-known/…`. */
  readonly issuer: string;
  /** Of a public client, without a secret. */
  readonly clientId: string;
  readonly scope: string;
  /** The registered address of the page, to which the provider returns. */
  readonly redirectTo: string;
}

export interface Session {
  /** Of whom the tokens are: pages of one origin share the storage, and no API may get the token of another one. */
  readonly of?: string;
  readonly token: string;
  readonly refreshToken?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** The parts of a page that are used. Node does not have them. */
interface Page {
  readonly location: {
    readonly href: string;
    readonly origin: string;
    readonly pathname: string;
    readonly hash: string;
    assign(url: URL): void;
    reload(): void;
  };
  readonly history: { replaceState(state: null, unused: '', url: string): void };
}

export function thisPage(): Page {
  const page: unknown = globalThis;
  return page as Page;
}

interface Started {
  readonly verifier: string;
  readonly state: string;
  /** The hash of the page to return to. */
  readonly hash: string;
}

const STARTED_KEY = 'rowkey-sign-in';
const SESSION_KEY = 'rowkey-session';
/** For providers that omit `expires_in`. */
const DEFAULT_LIFETIME_S = 3_600;
/** A token is renewed this long before it expires. */
const EARLY_MS = 60_000;

/** The session of this provider, client and scope in the tab. */
export function readSession(provider: Provider): Session | undefined {
  const text = sessionStorage.getItem(SESSION_KEY);
  const session: Session | undefined = text === null ? undefined : JSON.parse(text);
  return session?.of === undefined || session.of === nameOf(provider) ? session : undefined;
}

function nameOf({ issuer, clientId, scope }: Provider): string {
  return JSON.stringify([issuer, clientId, scope]);
}

export function endSession(): void {
  sessionStorage.removeItem(SESSION_KEY);
}

/** Leaves the page for that of the identity provider. */
export async function startSignIn(provider: Provider): Promise<void> {
  const server = await discover(provider);
  if (!server.authorization_endpoint) throw new Error('The identity provider has no authorization endpoint.');
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const started: Started = { verifier, state, hash: thisPage().location.hash };
  sessionStorage.setItem(STARTED_KEY, JSON.stringify(started));
  const url = new URL(server.authorization_endpoint);
  const parameters = {
    client_id: provider.clientId,
    redirect_uri: provider.redirectTo,
    response_type: 'code',
    scope: provider.scope,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  thisPage().location.assign(url);
}

/** Exchanges the code if the identity provider has just returned to the page, and removes it from the address. */
export async function finishSignIn(provider: Provider): Promise<void> {
  const { location, history } = thisPage();
  const url = new URL(location.href);
  // A page may have a parameter `code` of its own, such as that of an invitation.
  if (!url.searchParams.has('state')) return;
  if (!url.searchParams.has('code') && !url.searchParams.has('error')) return;
  const text = sessionStorage.getItem(STARTED_KEY);
  sessionStorage.removeItem(STARTED_KEY);
  const started: Started | undefined = text === null ? undefined : JSON.parse(text);
  history.replaceState(null, '', `${url.pathname}${started?.hash ?? ''}`);
  if (!started) throw new Error('This tab has started no sign-in.');
  const server = await discover(provider);
  const client = { client_id: provider.clientId };
  const parameters = oauth.validateAuthResponse(server, client, url, started.state);
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    provider.redirectTo,
    started.verifier,
    insecureIfLocal(provider),
  );
  keep(provider, await oauth.processAuthorizationCodeResponse(server, client, response));
}

/** The token of the session, renewed if it expires soon or `forceRefresh`. Undefined if the user must sign in again. */
export async function currentToken(provider: Provider, forceRefresh: boolean): Promise<string | undefined> {
  const session = readSession(provider);
  if (!session) return undefined;
  if (!forceRefresh && session.expiresAt - EARLY_MS > Date.now()) return session.token;
  renewal ??= renew(provider, session, forceRefresh).finally(() => {
    renewal = undefined;
  });
  return (await renewal)?.token;
}

/** Concurrent requests share it: a provider may accept a refresh token once. */
let renewal: Promise<Session | undefined> | undefined;

/** A token that the API has rejected is of no use, even if it has not expired. */
async function renew(provider: Provider, session: Session, isRejected: boolean): Promise<Session | undefined> {
  const { refreshToken } = session;
  if (refreshToken === undefined) return !isRejected && session.expiresAt > Date.now() ? session : undefined;
  const server = await discover(provider);
  const client = { client_id: provider.clientId };
  const options = insecureIfLocal(provider);
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), refreshToken, options);
  const renewed = await oauth.processRefreshTokenResponse(server, client, response).catch(() => undefined);
  return renewed && keep(provider, renewed, refreshToken);
}

function keep(provider: Provider, response: oauth.TokenEndpointResponse, previous?: string): Session {
  const { access_token: token, refresh_token: refreshToken = previous, expires_in = DEFAULT_LIFETIME_S } = response;
  const session = { of: nameOf(provider), token, expiresAt: Date.now() + expires_in * 1_000, refreshToken };
  sessionStorage.setItem(SESSION_KEY, JSON.stringify(session));
  return session;
}

async function discover(provider: Provider): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(provider.issuer);
  const response = await oauth.discoveryRequest(issuer, { ...insecureIfLocal(provider), algorithm: 'oidc' });
  return oauth.processDiscoveryResponse(issuer, response);
}

/** Only the provider for development uses HTTP. */
function insecureIfLocal({ issuer }: Provider) {
  const { protocol, hostname } = new URL(issuer);
  const isLocal = protocol === 'http:' && (hostname === '127.0.0.1' || hostname === 'localhost');
  return { [oauth.allowInsecureRequests]: isLocal };
}
