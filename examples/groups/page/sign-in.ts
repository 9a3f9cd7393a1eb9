import * as oauth from 'oauth4webapi';

/**
 * Signs in by the authorization code flow with PKCE, with the provider and the client id of the console. Returns the token, or
 * an empty text until the user has signed in. The button, enabled once it works, leaves the page for the provider, which returns to the page.
 */
export async function signIn(api: string, button: HTMLElement & { disabled: boolean }): Promise<string> {
  const { issuer, clientId: client_id, scope } = await (await fetch(`${api}/console/config.json`)).json();
  const redirect_uri = location.origin + location.pathname;
  const provider = new URL(issuer);
  // Only the provider for development has no HTTPS.
  const options = { [oauth.allowInsecureRequests]: provider.hostname === '127.0.0.1' };
  const server = await oauth.processDiscoveryResponse(provider, await oauth.discoveryRequest(provider, options));
  button.onclick = async () => {
    sessionStorage.verifier = oauth.generateRandomCodeVerifier();
    const code_challenge = await oauth.calculatePKCECodeChallenge(sessionStorage.verifier);
    const request = { client_id, scope, redirect_uri, response_type: 'code', code_challenge_method: 'S256' };
    location.assign(`${server.authorization_endpoint}?${new URLSearchParams({ ...request, code_challenge })}`);
  };
  const { searchParams } = new URL(location.href);
  if (searchParams.has('code')) {
    history.replaceState(null, '', redirect_uri);
    const client = { client_id };
    const code = oauth.validateAuthResponse(server, client, searchParams, oauth.expectNoState);
    const { verifier } = sessionStorage;
    const none = oauth.None();
    const sent = oauth.authorizationCodeGrantRequest(server, client, none, code, redirect_uri, verifier, options);
    sessionStorage.token = (await oauth.processAuthorizationCodeResponse(server, client, await sent)).access_token;
  }
  const { token = '' } = sessionStorage;
  if (token) {
    button.textContent = 'Sign out';
    button.onclick = () => {
      sessionStorage.clear();
      location.reload();
    };
  }
  button.disabled = false;
  return token;
}
