import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose';
import { z } from 'zod';
import { readJsonFile } from './json-file.ts';
import { createLogin, type Login, type Signers, TOKEN_PATH } from './login.ts';
import { parseClaims } from './login-page.ts';

export const KEY_FILE = 'identity-key.json';
const HOST = '127.0.0.1';
const AUDIENCE = 'api://rowkey';
const ALGORITHM = 'RS256';
const TOKEN_VALID_FOR_SECONDS = 8 * 3_600;
const BASE64URL = z.base64url().min(1);
/** A private key as `exportJWK` returns it, with its thumbprint as the id. */
const SigningKey = z.looseObject({ kty: z.literal('RSA'), n: BASE64URL, e: BASE64URL, d: BASE64URL, kid: z.string() });
type SigningKey = z.infer<typeof SigningKey>;

export interface LocalIdentityProvider {
  readonly issuer: string;
  readonly jwksUri: string;
  readonly audience: string;
  stop(): Promise<void>;
}

interface IdentityProviderOptions {
  /** The folder of the signing key; only its owner may read the key. */
  readonly folder: string;
  /** Default: any free port. */
  readonly port?: number;
  /** Who may sign in with a browser, asked at each sign-in: a model may change meanwhile. Default: nobody. */
  readonly signers?: () => Signers;
}

/**
 * An identity provider for development, on 127.0.0.1 only. It publishes the public key of `signToken`, and signs in
 * everyone who opens its login page, without a password.
 */
export async function startIdentityProvider(options: IdentityProviderOptions): Promise<LocalIdentityProvider> {
  const { folder, port = 0, signers = () => ({ roles: [] }) } = options;
  const { kty, n, e, kid } = await readSigningKey(folder);
  const server = createServer((request, response) => {
    const body = request.method === 'GET' ? documents[request.url ?? ''] : undefined;
    // Not the login page: a redirect to a readable address would show its code to pages of other origins.
    if (body || request.url === TOKEN_PATH) response.setHeader('access-control-allow-origin', '*');
    if (body) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    else
      respondToLogin(login, issuer, { request, response }).catch(() => {
        if (!response.headersSent) response.writeHead(400);
        response.end();
      });
  });
  server.listen(port, HOST);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'EADDRINUSE' ? 'another program uses it' : error.message;
    throw new Error(`The identity provider cannot listen on port ${port}: ${why}.`, { cause: error });
  });
  const issuer = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  const jwksUri = `${issuer}/.well-known/jwks.json`;
  const login = createLogin({
    issuer,
    signers,
    tokenValidForSeconds: TOKEN_VALID_FOR_SECONDS,
    async sign({ roles: role, email, subject, claims: lines }, { client_id, nonce }) {
      const claims = { ...parseClaims(lines), ...(subject === undefined ? {} : { sub: subject }) };
      const person = { folder, issuer, role, claims, ...(email === undefined ? {} : { email }) };
      return {
        access_token: await signToken({ ...person, audience: AUDIENCE }),
        id_token: await signToken({
          ...person,
          audience: client_id,
          claims: nonce === undefined ? claims : { ...claims, nonce },
        }),
      };
    },
  });
  const documents: Readonly<Record<string, object>> = {
    '/.well-known/openid-configuration': {
      issuer,
      jwks_uri: jwksUri,
      id_token_signing_alg_values_supported: [ALGORITHM],
      ...login.metadata,
    },
    // Only the public fields: the file also contains the private key.
    '/.well-known/jwks.json': { keys: [{ kty, n, e, kid, alg: ALGORITHM, use: 'sig' }] },
  };
  return {
    issuer,
    jwksUri,
    audience: AUDIENCE,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

const MAX_FORM_BYTES = 16_384;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function respondToLogin(login: Login, issuer: string, { request, response }: Exchange): Promise<void> {
  const { method = '', url = '', headers } = request;
  // A page of another origin could name this machine by a host name of its own, and read the responses.
  const isForUs = headers.host === new URL(issuer).host || headers.host === `localhost:${new URL(issuer).port}`;
  // No page of another origin may send the form.
  const isOwnForm = url === TOKEN_PATH || headers.origin === undefined || headers.origin === `http://${headers.host}`;
  const isSmall = Number(headers['content-length'] ?? 0) <= MAX_FORM_BYTES && !headers['transfer-encoding'];
  const isAccepted = isForUs && isOwnForm && isSmall;
  const form = new URLSearchParams(method === 'POST' && isAccepted ? await text(request) : '');
  const result = isAccepted ? await login.respond(method, new URL(url, issuer), form, headers.cookie) : undefined;
  response.writeHead(result?.status ?? 404, result?.headers).end(result?.body);
}

interface TokenOptions {
  readonly folder: string;
  readonly issuer: string;
  readonly audience: string;
  readonly role: string | readonly string[];
  readonly email?: string;
  /** More claims, by name. */
  readonly claims?: Readonly<Record<string, string | readonly string[]>>;
  /** Milliseconds since 1970. */
  readonly now?: number;
}

/** Signs a token for eight hours with the key in the folder. */
export async function signToken(options: TokenOptions): Promise<string> {
  const { folder, issuer, audience, role, email, claims = {}, now = Date.now() } = options;
  const key = await readSigningKey(folder);
  const issuedAt = Math.floor(now / 1000);
  const all: Record<string, string | readonly string[]> = { ...claims, ...(email === undefined ? {} : { email }) };
  // The app accepts an email address only if the issuer has verified it.
  return new SignJWT({ ...all, ...(all.email ? { email_verified: true } : {}), roles: [role].flat() })
    .setProtectedHeader({ alg: ALGORITHM, kid: key.kid })
    .setSubject(String(all.sub ?? all.email ?? [role].flat().join('+')))
    .setIssuer(issuer)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setNotBefore(issuedAt)
    .setExpirationTime(issuedAt + TOKEN_VALID_FOR_SECONDS)
    .sign(await importJWK(key, ALGORITHM));
}

/** Reads the private key in the folder; the first call creates it. Throws if the file is not valid. */
async function readSigningKey(folder: string): Promise<SigningKey> {
  const file = join(folder, KEY_FILE);
  const known = await readJsonFile(
    file,
    SigningKey,
    'is not a signing key: delete it, and the next start creates a new one. Tokens signed with the old key end.',
  );
  if (known) return known;
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const key = await exportJWK(privateKey);
  const named = SigningKey.parse({ ...key, kid: await calculateJwkThumbprint(key) });
  await mkdir(folder, { recursive: true });
  await writeFile(file, JSON.stringify(named), { mode: 0o600, flag: 'wx' });
  return named;
}
