import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { z } from 'zod';
import { ROLES, type Role } from '../define/entity.ts';
import { RowkeyError } from '../errors.ts';

/** Who makes a request. */
export interface Caller {
  readonly subject: string;
  readonly roles: readonly Role[];
  /** The claims of the token that are texts, by name; `email` only where the issuer says that it is verified. */
  readonly claims: Readonly<Record<string, string>>;
}

/** Says whose token the `Authorization` header carries. Throws `unauthenticated`. */
export type Authenticate = (authorization: string | undefined) => Promise<Caller>;

export interface IdentityProvider {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUri: string;
}

/** The clocks of the identity provider and of this machine may differ by so much. */
const CLOCK_TOLERANCE_SECONDS = 30;
const RETRY_AFTER_SECONDS = 5;

const Claims = z.looseObject({
  sub: z.string().min(1),
  roles: z.array(z.unknown()).catch([]),
});

/** As Entra ID writes that the owner of the domain was verified. https://learn.microsoft.com/entra/identity-platform/migrate-off-email-claim-authorization */
const VERIFIED_DOMAIN: readonly unknown[] = [true, 1, '1', 'true'];

/** Throws `forbidden` unless the caller has one of the roles. */
export function requireRole(caller: Caller, roles: readonly Role[]): void {
  if (roles.some((role) => caller.roles.includes(role))) return;
  throw new RowkeyError(
    'forbidden',
    `The request requires one of these roles: ${roles.join(', ')}; the token has none of them.`,
    {
      accepted: roles.join(', '),
    },
  );
}

/**
 * Validates bearer tokens of one identity provider, whose keys are fetched at first use and kept. RS256 is the one
 * algorithm, so neither `none` nor a public key taken for a shared secret gets through.
 */
export function createAuthenticator({ issuer, audience, jwksUri }: IdentityProvider): Authenticate {
  const key = keysOf(jwksUri);
  const options = {
    issuer,
    audience,
    algorithms: ['RS256'],
    requiredClaims: ['exp', 'sub'],
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
  };
  return async (authorization) => {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (!token) throw new RowkeyError('unauthenticated', 'The request has no bearer token.');
    try {
      const { payload } = await jwtVerify(token, key, options);
      return toCaller(Claims.parse(payload));
    } catch (error) {
      if (error instanceof RowkeyError) throw error;
      // Without the cause, which holds the claims; a signature that is wrong is found before an expiry.
      const expired = error instanceof errors.JWTExpired;
      throw new RowkeyError('unauthenticated', expired ? 'The token has expired.' : 'The token is not valid.');
    }
  };
}

function toCaller(payload: z.infer<typeof Claims>): Caller {
  const { sub, roles } = payload;
  const texts = Object.entries(payload).filter(
    (claim): claim is [string, string] =>
      typeof claim[1] === 'string' && (claim[0] !== 'email' || isEmailVerified(payload)),
  );
  return { subject: sub, roles: ROLES.filter((role) => roles.includes(role)), claims: Object.fromEntries(texts) };
}

/**
 * Anybody can give an unverified address at some issuers, another person's too. An issuer that sends neither claim has
 * verified nothing.
 */
function isEmailVerified({ email_verified, xms_edov }: z.infer<typeof Claims>): boolean {
  return email_verified === undefined ? VERIFIED_DOMAIN.includes(xms_edov) : email_verified === true;
}

/** The provider's keys; that they cannot be had is not the caller's fault. */
function keysOf(jwksUri: string): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(jwksUri));
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      const details = { retryAfter: RETRY_AFTER_SECONDS };
      throw new RowkeyError(
        'identity-unavailable',
        'The token cannot be verified: the keys of its issuer are unavailable.',
        details,
        error,
      );
    }
  };
}
