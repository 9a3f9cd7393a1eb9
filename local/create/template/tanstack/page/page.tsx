import './style.css';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Projects } from './projects.tsx';
import { Report } from './report.tsx';
import { reportCode, session } from './session.ts';

// The typed client repeats what failed itself.
const queryClient = new QueryClient({ defaultOptions: { queries: { retry: false } } });

function Page() {
  if (reportCode)
    return (
      <main>
        <Report code={reportCode} />
      </main>
    );
  return (
    <>
      <header>
        <strong>rowkey-app</strong>
        <button type="button" onClick={session.isSignedIn ? session.signOut : session.signIn}>
          {session.isSignedIn ? 'Sign out' : 'Sign in'}
        </button>
      </header>
      <main>{session.isSignedIn ? <Projects /> : <Welcome />}</main>
    </>
  );
}

function Welcome() {
  return (
    <>
      <h1>Know where your hours went</h1>
      <p>Sign in, note what you worked on, and send each customer a link to the hours of the project.</p>
    </>
  );
}

createRoot(document.body).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Page />
    </QueryClientProvider>
  </StrictMode>,
);
