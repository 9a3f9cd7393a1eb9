import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { callsOf, commandsOf, optionOf, rehearse } from './stand-ins.ts';

/** The commands of docs/users.md for an external tenant. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(new URL('../../docs/users.md', import.meta.url), 'utf8');
const [, section = ''] = page.split('\n## Sign up with ');
const commands = commandsOf(section)
  .map((block) => block.replace('TENANT=<tenant id>', 'TENANT=the-tenant').replaceAll('<app>', 'app'))
  .join('\n');
const calls = rehearse(
  `${commands}\nnpm settings $TOKEN_ISSUER $TOKEN_AUDIENCE $TOKEN_JWKS_URI $CONSOLE_CLIENT_ID "$CONSOLE_SCOPE"`,
  {
    programs: ['az', 'npm'],
    outputs: { '--display-name fleet-api': 'the-api', '--display-name fleet-page': 'the-page' },
    cwd: ROOT,
  },
);

test('registers the API with a scope, which the page has', () => {
  const [patch = []] = callsOf(calls, 'az rest');
  const [scope] = JSON.parse(optionOf(patch, '--body')).api.oauth2PermissionScopes;
  expect(patch.join(' ')).toContain("applications(appId='the-api')");
  const [add = []] = callsOf(calls, 'az ad app permission add');
  expect([optionOf(add, '--id'), optionOf(add, '--api'), optionOf(add, '--api-permissions')]).toEqual([
    'the-page',
    'the-api',
    `${scope.id}=Scope`,
  ]);
});

test('adds the addresses of the page and of the console', () => {
  expect(callsOf(calls, 'npm run redirects')).toEqual([
    [
      ...['npm', 'run', 'redirects', '--', 'the-page'],
      ...['https://app.contoso.com/', 'http://localhost:5173/', 'https://app.azurewebsites.net/console/'],
    ],
  ]);
});

test('sets the issuer of the tenant, and the keys of the same host', () => {
  const [[, , issuer, audience, keys, client, scope] = []] = callsOf(calls, 'npm settings');
  expect([issuer, keys].map((address) => new URL(String(address)).host)).toEqual([
    'the-tenant.ciamlogin.com',
    'the-tenant.ciamlogin.com',
  ]);
  expect([audience, client, scope]).toEqual(['the-api', 'the-page', 'openid offline_access api://the-api/use']);
});
