import { useEffect, useRef, useState } from 'preact/hooks';
import { pages } from '../pages.ts';
import { ErrorBoundary } from '../ui/error-boundary.tsx';
import { useApp } from './context.ts';
import { CostBar } from './cost-bar.tsx';
import { LateOutcomes } from './late-outcomes.tsx';
import { Navigation } from './navigation.tsx';
import { NotFound } from './not-found.tsx';
import { matchAddress, useAddress } from './router.ts';
import { RunningImports } from './running-imports.tsx';
import { readTheme, storeTheme, THEMES } from './theme.ts';

/** The frame of every page: header, navigation, page, and the cost of its requests. */
export function Shell() {
  const app = useApp();
  const address = useAddress();
  const path = address.segments.join('/');
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const found = pages
    .filter(({ isVisible }) => isVisible?.(app) ?? true)
    .map((page) => ({ page, open: matchAddress(page.pattern, address.segments) }))
    .find(({ open }) => open !== undefined);

  // biome-ignore lint/correctness/useExhaustiveDependencies: after each change of the path
  useEffect(() => {
    setOpen(false);
    // A screen reader continues at the new page, not at the link that led to it.
    // A page that asks for a value has the focus in its field.
    if (!isFirst.current && !main.current?.contains(document.activeElement)) main.current?.focus();
    isFirst.current = false;
  }, [path]);

  const { component: Content, title } = found?.page ?? { component: PageNotFound, title: 'Not found' };
  const name = titleOf(title, found?.open ?? {}, address.segments);
  useEffect(() => {
    document.title = `${name} · Rowkey console`;
  }, [name]);

  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="top">
        <button
          type="button"
          class="menu secondary outline"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
        <a class="brand" href="#/">
          Rowkey
        </a>
        <div class="user">
          <span class="name" title={app.user.roles.join(', ')}>
            {app.user.name}
            <small>{app.user.roles.join(', ') || 'no role'}</small>
          </span>
          <ThemeChoice />
          <button type="button" class="secondary outline" onClick={() => app.signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <div class="body">
        <Navigation isOpen={isOpen} current={path} onChoose={() => setOpen(false)} />
        <main id="main" tabIndex={-1} ref={main}>
          <ErrorBoundary key={path}>
            <Content open={found?.open ?? {}} address={address} />
          </ErrorBoundary>
        </main>
      </div>
      <RunningImports path={path} />
      <LateOutcomes />
      <CostBar path={path} />
    </div>
  );
}

/** The title of a tab of the browser, with what distinguishes it from other tabs first: `Sales / 000123 · employees`. */
function titleOf(title: string, { entity }: Readonly<Record<string, string>>, segments: readonly string[]): string {
  if (entity === undefined) return title;
  const key = segments[2] === 'rows' ? segments.slice(3) : [];
  return [key.length > 0 ? key.join(' / ') : title, entity].filter(Boolean).join(' · ');
}

function ThemeChoice() {
  const [theme, setTheme] = useState(readTheme);
  return (
    <select
      class="theme"
      aria-label="Theme"
      value={theme}
      onChange={({ currentTarget }) => {
        const chosen = THEMES.find((one) => one === currentTarget.value) ?? 'auto';
        storeTheme(chosen);
        setTheme(chosen);
      }}
    >
      {THEMES.map((one) => (
        <option key={one} value={one}>
          {one === 'auto' ? 'Auto' : one === 'light' ? 'Light' : 'Dark'}
        </option>
      ))}
    </select>
  );
}

function PageNotFound() {
  return <NotFound what="Page">The console has no such page, or your roles do not see it.</NotFound>;
}
