import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CryptoKey,
  createLocalJWKSet,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Authenticate, createAuthenticator } from '../../../lib/access/token.ts';
import { RowkeyError } from '../../../lib/index.ts';
import {
  type LocalIdentityProvider,
  signToken,
  startIdentityProvider,
} from '../../../local/instance/identity-provider.ts';
import { model } from '../../fixtures/model.ts';

let folder: string;
let provider: LocalIdentityProvider;
let authenticate: Authenticate;
let kid: string;
let key: CryptoKey;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-token-'));
  provider = await startIdentityProvider({ folder, port: 0 });
  authenticate = createAuthenticator(provider, model);
  const jwk = JSON.parse(await readFile(join(folder, 'identity-key.json'), 'utf8'));
  kid = jwk.kid;
  key = (await importJWK(jwk, 'RS256')) as CryptoKey;
});
afterAll(async () => {
  await provider.stop();
  await rm(folder, { recursive: true, force: true });
});

const now = () => Math.floor(Date.now() / 1000);

/** The claims of a valid token, changed by `over`. */
function claims(over: Record<string, unknown> = {}): JWTPayload {
  const { issuer: iss, audience: aud } = provider;
  return { iss, aud, sub: 'somebody', roles: ['hr'], iat: now(), exp: now() + 60, ...over };
}

function sign(payload: JWTPayload, header: { alg?: string; kid?: string } = {}, by = key): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid, ...header }).sign(by);
}

async function refusal(authorization: string | undefined): Promise<RowkeyError> {
  const error: unknown = await authenticate(authorization).then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (!(error instanceof RowkeyError)) throw new Error(`Not refused: ${error}`);
  return error;
}

async function expectInvalid(token: string, message = 'The token is not valid.') {
  const error = await refusal(`Bearer ${token}`);
  expect([error.code, error.message, error.cause]).toEqual(['unauthenticated', message, undefined]);
  expect(JSON.stringify({ ...error, message: error.message })).not.toContain(token.slice(-20));
}

describe('a valid token', () => {
  test('returns the subject, the known roles and the text claims', async () => {
    const token = await sign(claims({ roles: ['hr', 'emperor', 7, 'reader'], oid: 'an id' }));
    const { issuer: iss, audience: aud } = provider;
    expect(await authenticate(`Bearer ${token}`)).toEqual({
      subject: 'somebody',
      roles: ['reader', 'hr'],
      claims: { iss, aud, sub: 'somebody', oid: 'an id' },
    });
    expect(await authenticate(`bearer   ${token}`)).toMatchObject({ subject: 'somebody' });
  });

  describe('of a model with a role of anyone', () => {
    const open = () => createAuthenticator(provider, { ...model, signedIn: 'reader', anyone: 'hr' });

    test('makes a request without the header a visitor, with this role alone', async () => {
      expect(await open()(undefined)).toEqual({ subject: '', roles: ['hr'], claims: {} });
    });

    test('rejects every header that is no valid token', async () => {
      const authenticateAny = open();
      const expired = await sign(claims({ exp: now() - 60 }));
      for (const header of ['', ' ', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer x', `Bearer ${expired}`, expired])
        await expect(authenticateAny(header)).rejects.toMatchObject({ code: 'unauthenticated' });
    });

    test('gives the role to a token that names it, and to no other', async () => {
      const authenticateAny = open();
      const rolesOf = async (roles: unknown) =>
        (await authenticateAny(`Bearer ${await sign(claims({ roles }))}`)).roles;
      expect(await rolesOf(['hr'])).toEqual(['hr']);
      expect(await rolesOf([])).toEqual(['reader']);
      expect(await rolesOf(['anyone', 'visitor'])).toEqual(['reader']);
    });
  });

  describe('of a user without a role', () => {
    const subject = '5f1c2b7e-0000-4000-8000-000000000001';
    const rolesOf = async (over: Record<string, unknown>, signedIn: string | undefined = 'reader') => {
      const open = createAuthenticator(provider, { ...model, signedIn });
      return (await open(`Bearer ${await sign(claims({ sub: subject, roles: undefined, ...over }))}`)).roles;
    };

    test('has the role of those who come by themselves, if the model has one', async () => {
      expect(await rolesOf({})).toEqual(['reader']);
      expect(await rolesOf({ roles: ['emperor'] })).toEqual(['reader']);
      // As tokens of Entra ID and of others have them.
      expect(await rolesOf({ idtyp: 'user', oid: 'another id', azp: 'a page', scp: 'access' })).toEqual(['reader']);
      expect(await rolesOf({ oid: subject, scp: 'access' })).toEqual(['reader']);
      expect(await authenticate(`Bearer ${await sign(claims({ roles: [] }))}`)).toMatchObject({ roles: [] });
    });

    test('has the roles that it names, and no other', async () => {
      expect(await rolesOf({ roles: ['hr'] })).toEqual(['hr']);
      expect(await rolesOf({ roles: ['hr', 'reader'] })).toEqual(['reader', 'hr']);
    });

    test.each([
      [{ idtyp: 'app' }],
      [{ gty: 'client-credentials' }],
      [{ client_id: subject }],
      [{ azp: subject }],
      [{ appid: subject }],
      [{ cid: subject }],
      [{ oid: subject }],
    ])('has none if it is of an app: %j', async (over) => {
      expect(await rolesOf(over)).toEqual([]);
      expect(await rolesOf({ ...over, roles: ['hr'] })).toEqual(['hr']);
    });
  });

  test('needs neither roles nor an address', async () => {
    const token = await sign(claims({ roles: undefined }));
    expect(await authenticate(`Bearer ${token}`)).toMatchObject({ subject: 'somebody', roles: [] });
    const odd = await authenticate(`Bearer ${await sign(claims({ roles: 'hr', email: 5, email_verified: true }))}`);
    expect(odd).toMatchObject({ subject: 'somebody', roles: [] });
    expect(odd.claims).not.toHaveProperty('email');
  });

  test.each<[unknown, unknown, boolean]>([
    [true, undefined, true],
    [true, false, true],
    ['true', undefined, false],
    [1, undefined, false],
    [false, undefined, false],
    ['false', undefined, false],
    [0, undefined, false],
    [null, undefined, false],
    ['', true, false],
    [false, true, false],
    [null, true, false],
    [undefined, true, true],
    [undefined, 1, true],
    [undefined, '1', true],
    [undefined, 'true', true],
    [undefined, false, false],
    [undefined, '0', false],
    [undefined, 'false', false],
    [undefined, null, false],
    [undefined, undefined, false],
  ])(
    'with email_verified %j and xms_edov %j has a verified email: %j',
    async (email_verified, xms_edov, isVerified) => {
      const token = await sign(claims({ email: 'Ann@contoso.com', email_verified, xms_edov }));
      const { email } = (await authenticate(`Bearer ${token}`)).claims;
      expect(email).toBe(isVerified ? 'Ann@contoso.com' : undefined);
    },
  );

  test('is accepted slightly before or after its validity, because clocks differ', async () => {
    const token = await sign(claims({ nbf: now() + 20, exp: now() - 20 }));
    expect(await authenticate(`Bearer ${token}`)).toMatchObject({ subject: 'somebody' });
  });
});

describe('rejects as unauthenticated', () => {
  test.each([undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a b'])(
    'a missing token: %j',
    async (authorization) => {
      const error = await refusal(authorization);
      expect([error.code, error.message]).toEqual(['unauthenticated', 'The request has no bearer token.']);
    },
  );

  test.each(['x', 'a.b.c', '..', `${'a'.repeat(10_000)}.b.c`])('text that is not a token', (text) =>
    expectInvalid(text),
  );

  test('a signature of another key', async () => {
    const other = await generateKeyPair('RS256');
    await expectInvalid(await sign(claims(), {}, other.privateKey));
  });

  test('a changed payload', async () => {
    const [header, , signature] = (await sign(claims())).split('.');
    const payload = Buffer.from(JSON.stringify(claims({ roles: ['operator'] }))).toString('base64url');
    await expectInvalid([header, payload, signature].join('.'));
  });

  test.each<[string, () => Record<string, unknown>]>([
    ['another issuer', () => ({ iss: 'https://login.example.com' })],
    ['another audience', () => ({ aud: 'api://another' })],
    ['no expiry', () => ({ exp: undefined })],
    ['no subject', () => ({ sub: undefined })],
    ['an empty subject', () => ({ sub: '' })],
    ['a token that is not valid yet', () => ({ nbf: now() + 120 })],
  ])('%s', async (_, over) => expectInvalid(await sign(claims(over()))));

  test('an expired token, with a message that says so', async () => {
    await expectInvalid(await sign(claims({ exp: now() - 120 })), 'The token has expired.');
    const nineHoursAgo = Date.now() - 9 * 3_600_000;
    const old = await signToken({ ...provider, folder, role: 'hr', now: nineHoursAgo });
    await expectInvalid(old, 'The token has expired.');
  });

  test('an expired token with a wrong signature, with a message that does not mention the expiry', async () => {
    const other = await generateKeyPair('RS256');
    await expectInvalid(await sign(claims({ exp: now() - 120 }), {}, other.privateKey));
  });

  test('alg none', async () => expectInvalid(new UnsecuredJWT(claims()).encode()));

  test('HS256 with the public key as the secret', async () => {
    const jwks = (await (await fetch(provider.jwksUri)).json()) as JSONWebKeySet;
    const publicKey = await createLocalJWKSet(jwks)({ alg: 'RS256', kid });
    const secrets = [await exportSPKI(publicKey), JSON.stringify(jwks.keys[0])];
    for (const secret of secrets) {
      const token = new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid });
      await expectInvalid(await token.sign(Buffer.from(secret)));
    }
  });

  test('another RSA algorithm', async () => {
    const jwk = JSON.parse(await readFile(join(folder, 'identity-key.json'), 'utf8'));
    const by = (await importJWK(jwk, 'RS512')) as CryptoKey;
    await expectInvalid(await sign(claims(), { alg: 'RS512' }, by));
  });

  test('an unknown key', async () => expectInvalid(await sign(claims(), { kid: 'unknown' })));
});

test('returns identity-unavailable if the keys of the provider cannot be read', async () => {
  const good = `Bearer ${await sign(claims())}`;
  const gone = createAuthenticator({ ...provider, jwksUri: 'http://127.0.0.1:1/keys' }, model);
  await expect(gone(good)).rejects.toMatchObject({ code: 'identity-unavailable', retryAfter: 5 });
  const wrong = createAuthenticator({ ...provider, jwksUri: `${provider.issuer}/nothing` }, model);
  await expect(wrong(good)).rejects.toMatchObject({ code: 'identity-unavailable' });
  await expect(gone('Bearer x')).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('waits for a provider that hangs only as long as one fetch of the keys takes', async () => {
  const timedOut = new AbortController();
  const server = createServer(() => timedOut.abort(new DOMException('The issuer hangs.', 'TimeoutError')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(timedOut.signal);
  onTestFinished(() => {
    timeout.mockRestore();
    server.closeAllConnections();
    server.close();
  });
  const jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const starting = createAuthenticator({ ...provider, jwksUri }, model);
  const token = `Bearer ${await sign(claims())}`;
  const prefetched = starting.prefetchKeys();
  await expect(starting(token)).rejects.toMatchObject({ code: 'identity-unavailable' });
  await prefetched;
  expect(timeout).toHaveBeenCalledTimes(1);
});

describe('a token that was verified before', () => {
  afterEach(() => vi.useRealTimers());

  test('is verified without its signature, and for its own claims only', async () => {
    const verify = vi.spyOn(crypto.subtle, 'verify');
    const [one, other] = [await sign(claims({ sub: 'one' })), await sign(claims({ sub: 'other' }))];
    for (let times = 0; times < 3; times += 1) {
      expect(await authenticate(`Bearer ${one}`)).toMatchObject({ subject: 'one' });
      expect(await authenticate(`Bearer ${other}`)).toMatchObject({ subject: 'other' });
    }
    expect(verify).toHaveBeenCalledTimes(2);
    verify.mockRestore();
  });

  test('expires', async () => {
    const token = await sign(claims());
    expect(await authenticate(`Bearer ${token}`)).toMatchObject({ subject: 'somebody' });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 91_000 });
    await expectInvalid(token, 'The token has expired.');
  });

  test('is rejected once the provider has withdrawn its key and the keys are fetched again', async () => {
    const withdrawn = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(withdrawn.publicKey)), kid: 'withdrawn', alg: 'RS256' };
    let keys: object[] = [jwk];
    const server = createServer((_, response) => response.end(JSON.stringify({ keys })));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    const rotating = createAuthenticator({ ...provider, jwksUri }, model);
    const token = await sign(claims({ exp: now() + 3_600 }), { kid: 'withdrawn' }, withdrawn.privateKey);
    for (let times = 0; times < 2; times += 1)
      expect(await rotating(`Bearer ${token}`)).toMatchObject({ subject: 'somebody' });
    keys = [];
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 11 * 60_000 });
    await expect(rotating(`Bearer ${token}`)).rejects.toMatchObject({ code: 'unauthenticated' });
    server.close();
  });
});
