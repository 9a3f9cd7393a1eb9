import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { IdentityProvider } from '../../../lib/index.ts';

/** An identity provider whose keys are in this process. */

const ISSUER = 'http://127.0.0.1:9/issuer';
export const PROVIDER: IdentityProvider = { issuer: ISSUER, audience: 'app', jwksUri: `${ISSUER}/keys` };
/** Later than the end of every simulated world. */
const EXPIRES_S = 4_000_000_000;

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }), kid: 'key', alg: 'RS256', use: 'sig' };
/** What the provider returns of its keys. */
export const KEYS = JSON.stringify({ keys: [jwk] });

const known = new Map<string, string>();

export function createToken(caller: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(caller);
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const token = known.get(text);
  if (token) return token;
  const claims = { iss: ISSUER, aud: PROVIDER.audience, exp: EXPIRES_S, ...caller };
  const head = `${encode({ alg: 'RS256', kid: 'key' })}.${encode(claims)}`;
  const signed = `${head}.${sign('sha256', Buffer.from(head), privateKey).toString('base64url')}`;
  known.set(text, signed);
  return signed;
}
