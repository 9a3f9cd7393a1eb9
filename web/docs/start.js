/* global SwaggerUIBundle */

/** The renderer has dark colors under this class. The page follows the theme that was chosen in the console, or else the device. */
const dark = matchMedia('(prefers-color-scheme: dark)');
const followTheme = () => {
  const chosen = localStorage.getItem('rowkey-theme');
  const isDark = chosen === 'dark' || (chosen !== 'light' && dark.matches);
  document.documentElement.classList.toggle('dark-mode', isDark);
};
followTheme();
dark.addEventListener('change', followTheme);

/** The session of the console in this tab; its token is sent to this origin only. */
const { token } = JSON.parse(sessionStorage.getItem('rowkey-session') ?? '{}');

const note = document.querySelector('#session');
const link = Object.assign(document.createElement('a'), { href: '/console', textContent: 'the console' });
if (token) note.append('“Try it out” sends the token of your session in ', link, '.');
else note.append('Sign in to ', link, ' in this tab, and return, to try requests with your token.');

/** `/docs?tag=employees` shows the routes of one entity. */
const tag = new URLSearchParams(location.search).get('tag');
if (tag) {
  const all = Object.assign(document.createElement('a'), { href: '/docs', textContent: 'Show all routes' });
  note.append(` Only the routes of “${tag}” are shown. `, all, '.');
}

const ui = SwaggerUIBundle({
  url: tag ? `/api/openapi.json?${new URLSearchParams({ tag })}` : '/api/openapi.json',
  domNode: document.querySelector('#docs'),
  deepLinking: true,
  docExpansion: tag ? 'list' : 'none',
  filter: true,
  tryItOutEnabled: true,
  // Its schemas are shown with each route; the list of all is slow.
  defaultModelsExpandDepth: -1,
  // The description is the app's own, so no other site has to validate it.
  validatorUrl: null,
  // Otherwise a filter, which accepts a value or a comparison, has a button "Add (string | string) item".
  plugins: [
    () => ({
      afterLoad({ fn }) {
        const label = fn.getSchemaObjectTypeLabel;
        this.fn.getSchemaObjectTypeLabel = (schema) =>
          label(schema).replace(/\(([\w |]+)\)/g, (_, types) => [...new Set(types.split(' | '))].join(' or '));
      },
    }),
  ],
  onComplete() {
    if (token) ui.preauthorizeApiKey('token', token);
  },
});
