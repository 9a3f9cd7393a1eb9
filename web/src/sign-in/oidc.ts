import * as oauth from 'oauth4webapi';
import { CONSOLE_URL, type ConsoleConfig } from './config.ts';
import { readSession, type Session, storeSession } from './session.ts';

/** Sign-in by OpenID Connect: the authorization code flow with PKCE, for any provider that publishes its metadata. */

interface Started {
  readonly verifier: string;
  readonly state: string;
  /** The page to return to. */
  readonly hash: string;
}

const STARTED_KEY = 'rowkey-sign-in';
/** For providers that omit `expires_in`. */
const DEFAULT_LIFETIME_S = 3_600;
/** A token is renewed this long before it expires. */
const EARLY_MS = 60_000;

/** Leaves the console for the page of the identity provider. */
export async function startSignIn(config: ConsoleConfig): Promise<void> {
  const server = await discover(config);
  if (!server.authorization_endpoint) throw new Error('The identity provider has no authorization endpoint.');
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const started: Started = { verifier, state, hash: location.hash };
  sessionStorage.setItem(STARTED_KEY, JSON.stringify(started));
  const url = new URL(server.authorization_endpoint);
  const parameters = {
    client_id: config.clientId,
    redirect_uri: CONSOLE_URL,
    response_type: 'code',
    scope: config.scope,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

/** Exchanges the code if the identity provider has just returned to the console, and removes it from the address. */
export async function finishSignIn(config: ConsoleConfig): Promise<Session | undefined> {
  const url = new URL(location.href);
  if (!url.searchParams.has('code') && !url.searchParams.has('error')) return undefined;
  const text = sessionStorage.getItem(STARTED_KEY);
  sessionStorage.removeItem(STARTED_KEY);
  const started: Started | undefined = text === null ? undefined : JSON.parse(text);
  history.replaceState(null, '', `${url.pathname}${started?.hash ?? ''}`);
  if (!started) throw new Error('This tab has started no sign-in.');
  const server = await discover(config);
  const client = { client_id: config.clientId };
  const parameters = oauth.validateAuthResponse(server, client, url, started.state);
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    CONSOLE_URL,
    started.verifier,
    insecureIfLocal(config),
  );
  return keep(await oauth.processAuthorizationCodeResponse(server, client, response));
}

/** The token of the session, renewed if it expires soon or `forceRefresh`. Undefined if the user must sign in again. */
export async function currentToken(config: ConsoleConfig, forceRefresh: boolean): Promise<string | undefined> {
  const session = readSession();
  if (!session) return undefined;
  if (!forceRefresh && session.expiresAt - EARLY_MS > Date.now()) return session.token;
  renewal ??= renew(config, session, forceRefresh).finally(() => {
    renewal = undefined;
  });
  return (await renewal)?.token;
}

/** Concurrent requests share it: a provider may accept a refresh token once. */
let renewal: Promise<Session | undefined> | undefined;

/** A token that the API has rejected is of no use, even if it has not expired. */
async function renew(config: ConsoleConfig, session: Session, isRejected: boolean): Promise<Session | undefined> {
  const { refreshToken } = session;
  if (refreshToken === undefined) return !isRejected && session.expiresAt > Date.now() ? session : undefined;
  const server = await discover(config);
  const client = { client_id: config.clientId };
  const options = insecureIfLocal(config);
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), refreshToken, options);
  const renewed = await oauth.processRefreshTokenResponse(server, client, response).catch(() => undefined);
  return renewed && keep(renewed, refreshToken);
}

function keep(response: oauth.TokenEndpointResponse, previous?: string): Session {
  const { access_token: token, refresh_token: refreshToken = previous, expires_in = DEFAULT_LIFETIME_S } = response;
  const session = { token, expiresAt: Date.now() + expires_in * 1_000, refreshToken };
  storeSession(session);
  return session;
}

async function discover(config: ConsoleConfig): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(config.issuer);
  const response = await oauth.discoveryRequest(issuer, { ...insecureIfLocal(config), algorithm: 'oidc' });
  return oauth.processDiscoveryResponse(issuer, response);
}

/** Only the provider for development uses HTTP. */
function insecureIfLocal({ issuer }: ConsoleConfig) {
  const { protocol, hostname } = new URL(issuer);
  const isLocal = protocol === 'http:' && (hostname === '127.0.0.1' || hostname === 'localhost');
  return { [oauth.allowInsecureRequests]: isLocal };
}
