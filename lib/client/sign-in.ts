import { currentToken, endSession, finishSignIn, type Provider, readSession, startSignIn, thisPage } from './oidc.ts';
import type { TokenSource } from './transport.ts';

/** The entry `rowkey/sign-in`: a page without a server signs its user in, at any provider of OpenID Connect. */

export type SignInOptions = Pick<Provider, 'issuer' | 'clientId'> & Partial<Pick<Provider, 'scope' | 'redirectTo'>>;

export interface SignedIn {
  /** False until the user has signed in, and after the sign-out. */
  readonly isSignedIn: boolean;
  /** For `createClient`. Renews the token before it expires. Throws if the user must sign in again. */
  readonly token: (options: Parameters<TokenSource>[0]) => Promise<string>;
  /** Leaves the page for that of the provider, which returns to the page. */
  readonly signIn: () => Promise<void>;
  /** Forgets the tokens, and loads the page again. */
  readonly signOut: () => void;
}

/**
 * The session of the user in this tab. Finishes a sign-in if the provider has just returned to the page. With `url`, the root of the API,
 * the provider is that of the app's console. `scope` is `openid` by default, and `redirectTo` the address of the page without query and hash.
 * Throws if the provider rejects the sign-in or cannot be reached.
 *
 * @example
 * const session = await openSession({ url: 'https://fleet.example/api' });
 * const client = createClient<typeof model>({ url: 'https://fleet.example/api', token: session.token });
 */
export async function openSession(options: SignInOptions | { readonly url: string }): Promise<SignedIn> {
  const given: SignInOptions = 'url' in options ? await readConfig(options.url) : options;
  const { location } = thisPage();
  const redirectTo = location.origin + location.pathname;
  const provider = { scope: 'openid', redirectTo, ...given };
  await finishSignIn(provider);
  return {
    isSignedIn: readSession(provider) !== undefined,
    async token({ forceRefresh }) {
      const token = await currentToken(provider, forceRefresh);
      if (token !== undefined) return token;
      endSession();
      throw new Error('The session has ended. Sign in again.');
    },
    signIn: () => startSignIn(provider),
    signOut() {
      endSession();
      location.reload();
    },
  };
}

async function readConfig(url: string): Promise<SignInOptions> {
  const response = await fetch(new URL('/console/config.json', url));
  if (!response.ok) throw new Error(`The app does not say where to sign in: the status was ${response.status}.`);
  const { issuer, clientId, scope }: Omit<Provider, 'redirectTo'> = JSON.parse(await response.text());
  return { issuer, clientId, scope };
}
