import { useEffect, useState } from 'preact/hooks';
import { RowkeyClientError } from '../../../lib/client/index.ts';
import { currentToken, endSession, finishSignIn, readSession, startSignIn } from '../../../lib/client/oidc.ts';
import { createApi } from '../api/api.ts';
import { toModel } from '../api/model.ts';
import { type ConsoleConfig, loadConfig } from '../sign-in/config.ts';
import { toUser } from '../sign-in/session.ts';
import { SignInPage } from '../sign-in/sign-in-page.tsx';
import { createImportRuns } from '../transfer/import-runs.ts';
import { ErrorNotice, Loading } from '../ui/notice.tsx';
import { type App, AppContext } from './context.ts';
import { createOutcomes } from './outcomes.ts';
import { Shell } from './shell.tsx';

type State =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'signed-out'; readonly config: ConsoleConfig; readonly reason?: unknown }
  | { readonly kind: 'signed-in'; readonly app: App };

/** Loads the configuration and the model, and shows the sign-in or the app. */
export function Start() {
  const [state, setState] = useState<State>({ kind: 'loading' });
  useEffect(() => {
    start(setState).catch((error: unknown) => setState({ kind: 'failed', error }));
  }, []);
  switch (state.kind) {
    case 'loading':
      return (
        <main class="sign-in">
          <Loading what="the console" />
        </main>
      );
    case 'failed':
      return (
        <main class="sign-in">
          <ErrorNotice error={state.error} />
        </main>
      );
    case 'signed-out':
      return <SignInPage config={state.config} reason={state.reason} />;
    case 'signed-in':
      return (
        <AppContext.Provider value={state.app}>
          <Shell />
        </AppContext.Provider>
      );
  }
}

async function start(setState: (state: State) => void): Promise<void> {
  const config = await loadConfig();
  const finished = await finishSignIn(config).catch((reason: unknown) => ({ reason }));
  const imports = createImportRuns();
  const signOut = (reason?: unknown) => {
    endSession();
    for (const { entity } of imports.list()) imports.cancel(entity, 'The session has ended.');
    setState({ kind: 'signed-out', config, reason });
  };
  if (finished && 'reason' in finished) return signOut(finished.reason);
  const session = readSession(config);
  if (!session) return signOut();
  const token = async ({ forceRefresh }: { readonly forceRefresh: boolean }) => {
    const current = await currentToken(config, forceRefresh);
    if (current !== undefined) return current;
    const expired = new Error('The session has ended. Sign in again.');
    signOut(expired);
    throw expired;
  };
  const api = createApi({ url: config.apiUrl, token });
  const read = async (path: string) => JSON.parse((await api.send({ method: 'GET', path })).text);
  let refusal: unknown;
  const [model, me] = await Promise.all([
    read('/model').then(toModel),
    read('/me').catch((error: unknown) => {
      if (!(error instanceof RowkeyClientError && error.code === 'forbidden')) throw error;
      // A user without a role of the model still sees the names of its entities, and one who is blocked nothing.
      if (error.problem?.accepted === undefined) refusal = error;
    }),
  ]);
  if (refusal !== undefined) return signOut(refusal);
  const isLocal = ['127.0.0.1', 'localhost'].includes(new URL(config.issuer).hostname);
  const tryAs = isLocal ? () => void startSignIn(config).catch(signOut) : undefined;
  const app = {
    api,
    model,
    user: toUser(session, me),
    imports,
    outcomes: createOutcomes(),
    signOut: () => signOut(),
    tryAs,
  };
  setState({ kind: 'signed-in', app });
}
