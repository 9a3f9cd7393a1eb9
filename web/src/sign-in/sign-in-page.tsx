import { useState } from 'preact/hooks';
import { startSignIn } from '../../../lib/client/oidc.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import type { ConsoleConfig } from './config.ts';

/** Shown to a visitor without a session. */
export function SignInPage({ config, reason }: { readonly config: ConsoleConfig; readonly reason?: unknown }) {
  const [error, setError] = useState<unknown>(reason);
  const [isBusy, setBusy] = useState(false);
  const signIn = () => {
    setBusy(true);
    startSignIn(config).catch((failed: unknown) => {
      setBusy(false);
      setError(failed);
    });
  };
  return (
    <main class="sign-in">
      <article>
        <h1>Rowkey console</h1>
        <p>Browse and change what the app stores, and see what each request costs.</p>
        <ErrorNotice error={error} />
        <button type="button" onClick={signIn} aria-busy={isBusy}>
          Sign in
        </button>
        <p class="muted">
          <small>You sign in with {new URL(config.issuer).host}.</small>
        </p>
      </article>
    </main>
  );
}
