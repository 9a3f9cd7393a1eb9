import { createHash } from 'node:crypto';

/** The person that the login page signs in. */
export interface Person {
  readonly roles: readonly string[];
  readonly email: string | undefined;
  readonly subject: string | undefined;
  /** Further claims, one `name=value` a line. A name of several lines is a list. */
  readonly claims?: string | undefined;
}

interface LoginPage {
  /** Without a request, the page shows the problem alone. */
  readonly request?: Readonly<Record<string, string | undefined>>;
  readonly roles?: readonly string[];
  readonly signedIn?: string | undefined;
  readonly problem?: string;
  /** Who the form shows; nobody by default. */
  readonly person?: Person | undefined;
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; background: light-dark(#f4f5f7, #14171c); color: light-dark(#1c2430, #e6e9ee); }
main { box-sizing: border-box; width: min(26rem, 100%); padding: 1.5rem; background: light-dark(#fff, #1d222a); border: 1px solid light-dark(#d5d9e0, #343b47); border-radius: .75rem; }
h1 { margin: 0; font-size: 1.35rem; }
h2 { margin: 1.5rem 0 .75rem; font-size: 1.05rem; }
form > p { margin: .5rem 0 0; font-size: .9rem; }
p { margin: .25rem 0 1rem; color: light-dark(#4a5463, #aab3c0); }
fieldset { margin: 0 0 1rem; padding: .5rem .75rem .75rem; border: 1px solid light-dark(#d5d9e0, #343b47); border-radius: .5rem; }
fieldset label { display: flex; gap: .5rem; align-items: center; padding: .15rem 0; }
.field { display: block; margin-bottom: 1rem; }
.field :is(input, textarea) { box-sizing: border-box; width: 100%; margin-top: .25rem; padding: .5rem .6rem; font: inherit; color: inherit; background: light-dark(#fff, #14171c); border: 1px solid light-dark(#8b94a3, #6b7686); border-radius: .4rem; }
button { width: 100%; padding: .6rem; font: inherit; font-weight: 600; color: #fff; background: #0b5cad; border: 0; border-radius: .4rem; cursor: pointer; }
button:hover { background: #094b8e; }
:focus-visible { outline: 3px solid light-dark(#0b5cad, #7db8f5); outline-offset: 2px; }
.problem { padding: .5rem .75rem; color: light-dark(#8c1d18, #ffb4ab); border: 1px solid currentColor; border-radius: .4rem; }
@media (max-width: 30rem) { main { min-height: 100vh; border: 0; border-radius: 0; } }
`;

/** The page of a form without a script. Its own style is allowed by its hash. */
export function formatLoginPage({ request, roles = [], signedIn, problem, person }: LoginPage) {
  const hash = createHash('sha256').update(STYLE).digest('base64');
  // A browser also checks the redirect after the form, which leads to a page of this machine.
  const targets = "'self' http://127.0.0.1:* http://localhost:*";
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; form-action ${targets}; base-uri 'none'; frame-ancestors 'none'`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in for development</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Sign in for development</h1>
<p>${request ? 'Choose who you are, and only the roles that this person has. There is no password: this page runs on this machine only.' : 'This page runs on this machine only.'}</p>
${problem ? `<p class="problem" role="alert">${escapeHtml(problem)}</p>` : ''}
${request && signedIn !== undefined ? formatAccountForm(request, signedIn, person) : ''}
${request ? formatForm(request, { roles, signedIn }, person) : ''}
</main>
</body>
</html>
`;
  return { html, policy };
}

function formatHidden(request: NonNullable<LoginPage['request']>): string {
  const hidden = Object.entries(request).map(
    ([name, value = '']) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`,
  );
  return hidden.join('\n');
}

/** Whoever comes by itself has no role of the model by name. The address is the account: the same one signs in again. */
function formatAccountForm(request: NonNullable<LoginPage['request']>, signedIn: string, person?: Person): string {
  const email = person?.roles.length === 0 ? person.email : undefined;
  return `<form method="post" action="/authorize">
${formatHidden(request)}
<label class="field">Your email address
<input type="email" name="email" autocomplete="email" required value="${escapeHtml(email ?? '')}"></label>
<button>${email === undefined ? 'Create an account' : 'Continue'}</button>
<p>As everybody who signs up: the app gives you the role ${escapeHtml(signedIn)}. The same address is the same account.</p>
</form>
<h2>Or choose roles</h2>`;
}

function formatForm(
  request: NonNullable<LoginPage['request']>,
  { roles, signedIn }: { readonly roles: readonly string[]; readonly signedIn: string | undefined },
  { roles: chosen, email, subject, claims = '' }: Person = { roles: [], email: undefined, subject: undefined },
) {
  const choices = roles.map(
    (role) =>
      `<label><input type="checkbox" name="role" value="${escapeHtml(role)}"${chosen.includes(role) ? ' checked' : ''}> ${escapeHtml(role)}</label>`,
  );
  return `<form method="post" action="/authorize">
${formatHidden(request)}
<fieldset><legend>Roles${signedIn === undefined ? '' : ` (none: ${escapeHtml(signedIn)})`}</legend>
${choices.join('\n')}
</fieldset>
<label class="field">Email address (optional)
<input type="email" name="email" autocomplete="email" value="${escapeHtml(email ?? '')}"></label>
<label class="field">Subject (optional; the email address by default)
<input name="subject" autocomplete="off" maxlength="200" value="${escapeHtml(subject ?? '')}"></label>
<label class="field">Claims (optional, one name=value a line, such as departments=Sales)
<textarea name="claims" rows="2" maxlength="1000">${escapeHtml(claims)}</textarea></label>
<button>Sign in</button>
</form>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The claims of the lines of a form, by name. */
export function parseClaims(text = ''): Readonly<Record<string, string | readonly string[]>> {
  const pairs = text.split('\n').flatMap((line) => {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return name === undefined || value === undefined || value === '' ? [] : [[name, value] as const];
  });
  const groups = [...Map.groupBy(pairs, ([name]) => name)];
  return Object.fromEntries(
    groups.map(([name, all]) => [name, all.length > 1 ? all.map(([, value]) => value) : (all[0]?.[1] ?? '')]),
  );
}
