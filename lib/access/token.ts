import { hash } from 'node:crypto';
import { createRemoteJWKSet, errors, type JWKSCacheInput, type JWTVerifyGetKey, jwksCache, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { RowkeyError } from '../base/errors.ts';
import { type ClaimOwner, claimsIn } from '../define/declaration/access.ts';
import type { LinkedModel } from '../define/define-model.ts';

export interface Caller {
  /** Empty for a visitor: a caller without a token, who has no identity. */
  readonly subject: string;
  readonly roles: readonly string[];
  /**
   * The claims of the token that are texts or lists of texts, by name. A claim that `access` of an entity names is included only if
   * the issuer has verified it.
   */
  readonly claims: Readonly<Record<string, string | readonly string[]>>;
  /** The address of a visitor, if a trusted proxy names it. Limits of requests count by a hash of it. */
  readonly address?: string;
}

/** True for a caller without a token. */
export function isVisitor({ subject }: Pick<Caller, 'subject'>): boolean {
  return subject === '';
}

/**
 * The caller of a request for a signature of storage, with the roles that may get one: no audit log has what a steward would do with it. Throws
 * `forbidden` for a caller without a token: neither a limit nor a revocation would be the caller's own.
 */
export function toGrantee(caller: Caller, steward: string | undefined): Caller {
  if (isVisitor(caller))
    throw new RowkeyError('forbidden', 'Signatures of storage are issued to callers with a token only.');
  if (steward === undefined || !caller.roles.includes(steward)) return caller;
  return { ...caller, roles: caller.roles.filter((role) => role !== steward) };
}

/**
 * Verifies the token in an `Authorization` header and returns its caller. Without the header, the caller is a visitor if the model
 * declares `anyone`. Throws `unauthenticated`.
 */
export type Authenticate = (authorization: string | undefined) => Promise<Caller>;

type Authenticator = Authenticate & {
  /** Fetches the keys before a token needs them. Does not throw: after a failure, the next token fetches them. */
  readonly prefetchKeys: () => Promise<unknown>;
};

export interface IdentityProvider {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUri: string;
}

/** The accepted difference between the clocks of the identity provider and of this machine. */
const CLOCK_TOLERANCE_SECONDS = 30;
const RETRY_AFTER_SECONDS = 5;
/** Total length of the tokens whose callers are remembered: several thousand tokens. */
const REMEMBERED_LENGTH = 4_000_000;

const Claims = z.looseObject({
  sub: z.string().min(1),
  roles: z.array(z.unknown()).catch([]),
});

/**
 * Verifies bearer tokens of one identity provider. Its keys are fetched by `prefetchKeys` or for the first token, and
 * cached. Only RS256 is accepted, which excludes `none` and a public key used as a shared secret. A verified token is
 * remembered until it expires or the keys are fetched again (10 minutes), so a key that the provider withdraws is effective
 * as soon as without this memory.
 */
export function createAuthenticator(
  { issuer, audience, jwksUri }: IdentityProvider,
  model: Pick<LinkedModel, 'list' | 'roles' | 'signedIn' | 'anyone'>,
): Authenticator {
  const trusted = claimsThatDecide(model);
  const { anyone } = model;
  const visitor: Caller | undefined = anyone === undefined ? undefined : { subject: '', roles: [anyone], claims: {} };
  // jose replaces `fetched.jwks` whenever it fetches the keys.
  const fetched: JWKSCacheInput = {};
  const keys = createRemoteJWKSet(new URL(jwksUri), { [jwksCache]: fetched });
  /** Resolves to the error, if there is one. */
  let prefetching: Promise<unknown> | undefined;
  const currentKeys: JWTVerifyGetKey = async (header, token) => {
    // A token that joined a failing fetch would be rejected without a fetch of its own. After a timeout, it has waited enough.
    const failure = await prefetching;
    if (failure instanceof errors.JWKSTimeout) throw failure;
    return keys(header, token);
  };
  const options = {
    issuer,
    audience,
    algorithms: ['RS256'],
    requiredClaims: ['exp', 'sub'],
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
  };
  const remembered = new LRUCache<string, Remembered>({ maxSize: REMEMBERED_LENGTH });
  const verify = async (token: string): Promise<Remembered> => {
    const { payload } = await jwtVerify(token, orUnavailable(currentKeys), options);
    return {
      caller: toCaller(Claims.parse(payload), { roles: model.roles, signedIn: model.signedIn, trusted }),
      until: (Number(payload.exp) + CLOCK_TOLERANCE_SECONDS) * 1_000,
      jwks: fetched.jwks,
    };
  };
  const authenticate: Authenticate = async (authorization) => {
    if (authorization === undefined && visitor) return visitor;
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (!token) throw new RowkeyError('unauthenticated', 'The request has no bearer token.');
    // A digest, so that the memory of the process contains no token.
    const digest = hash('sha256', token, 'base64');
    const known = remembered.get(digest);
    if (known && keys.fresh && known.jwks === fetched.jwks && Date.now() < known.until) return known.caller;
    const jwks = fetched.jwks;
    try {
      const verified = await verify(token);
      // Keys that were fetched meanwhile may not be those that verified the token.
      if (verified.jwks === jwks) remembered.set(digest, verified, { size: token.length });
      return verified.caller;
    } catch (error) {
      if (error instanceof RowkeyError) throw error;
      // Leaves out the cause, which contains the claims. jose checks the signature before the expiry.
      const expired = error instanceof errors.JWTExpired;
      throw new RowkeyError('unauthenticated', expired ? 'The token has expired.' : 'The token is not valid.');
    }
  };
  return Object.assign(authenticate, {
    prefetchKeys() {
      prefetching = keys
        .reload()
        .catch((error: unknown) => error)
        .finally(() => {
          prefetching = undefined;
        });
      return prefetching;
    },
  });
}

interface Remembered {
  readonly caller: Caller;
  /** Milliseconds. */
  readonly until: number;
  /** The keys that verified the token. */
  readonly jwks: unknown;
}

interface TrustedClaim {
  readonly claim: string;
  readonly verifiedBy: NonNullable<ClaimOwner['verifiedBy']>;
}

/** The claims that decide which rows a caller reaches. */
export function claimsThatDecide({ list }: Pick<LinkedModel, 'list'>): TrustedClaim[] {
  return list.flatMap(({ access }) =>
    [...(access.own && 'claim' in access.own ? [access.own] : []), ...claimsIn(access)].map(
      ({ claim, verifiedBy = {} }) => ({
        claim,
        verifiedBy,
      }),
    ),
  );
}

function toCaller(
  payload: z.infer<typeof Claims>,
  { roles, signedIn, trusted }: Pick<LinkedModel, 'roles' | 'signedIn'> & { readonly trusted: readonly TrustedClaim[] },
): Caller {
  const isUsable = (name: string) =>
    trusted.every(({ claim, verifiedBy }) => claim !== name || isVerified(payload, verifiedBy));
  const isText = (value: unknown) => typeof value === 'string';
  const texts = Object.entries(payload).filter(
    (claim): claim is [string, string | string[]] =>
      (isText(claim[1]) || (Array.isArray(claim[1]) && claim[1].every(isText))) && isUsable(claim[0]),
  );
  const named = roles.filter((role) => payload.roles.includes(role));
  return {
    subject: payload.sub,
    roles: named.length === 0 && signedIn !== undefined && !isOfApp(payload) ? [signedIn] : named,
    claims: Object.fromEntries(texts),
  };
}

/**
 * True for the token of an app that has signed in as itself. Entra ID says so by `idtyp`, or has the id of the app as the subject and no `scp`; others
 * by `gty`, or by the id of the client as the subject (RFC 9068, section 2.2).
 */
function isOfApp({ sub, idtyp, gty, client_id, azp, appid, cid, oid, scp }: z.infer<typeof Claims>): boolean {
  if (idtyp === 'app' || gty === 'client-credentials') return true;
  return [client_id, azp, appid, cid].includes(sub) || (oid === sub && scp === undefined);
}

/** The first of these claims that the token has decides. */
function isVerified(payload: Readonly<Record<string, unknown>>, verifiedBy: TrustedClaim['verifiedBy']): boolean {
  const claims = Object.entries(verifiedBy);
  const decisive = claims.find(([claim]) => payload[claim] !== undefined);
  if (!decisive) return claims.length === 0;
  const [claim, values] = decisive;
  return values.some((value) => value === payload[claim]);
}

/** If the provider's keys are unavailable, the error is `identity-unavailable`, because the token may be valid. */
function orUnavailable(keys: JWTVerifyGetKey): JWTVerifyGetKey {
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      throw new RowkeyError(
        'identity-unavailable',
        'The token cannot be verified: the keys of its issuer are unavailable.',
        { retryAfter: RETRY_AFTER_SECONDS, cause: error },
      );
    }
  };
}
