import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { model } from '../../model/model.ts';
import { callsOf, commandsOf, optionOf, rehearse } from './stand-ins.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');

// Stands for the app, with the folder that `npm run package` creates.
const folder = mkdtempSync(join(tmpdir(), 'rowkey-deploy-'));
mkdirSync(join(folder, 'my-app', 'out'), { recursive: true });
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const calls = rehearse(commandsOf(page).join('\n'), {
  programs: ['git', 'npm', 'npx', 'zip', 'curl', 'az'],
  outputs: {
    'account show': 'the-tenant',
    'ad app create': 'the-api',
    'ad signed-in-user show': 'me',
    'appRoles[?value==': 'the-role-hr',
    'ad sp show': 'the-principal',
    'outputs.functionAppName.value': 'the-app',
    'outputs.apiUrl.value': 'https://api.example',
    'account get-access-token --scope api://the-api/.default': 'a-token',
    'keyvault list-deleted': 'the-vault',
  },
  cwd: folder,
});
const bodies = callsOf(calls, 'az rest').map((call) => JSON.parse(optionOf(call, '--body')));

test('registers the API with the roles of the model, for tokens of version 2', () => {
  const [create = []] = callsOf(calls, 'az ad app create');
  expect(optionOf(create, '--requested-access-token-version')).toBe('2');
  expect(callsOf(calls, 'npm run roles').map((call) => call.at(-1))).toEqual(['the-api']);
});

test('creates the scope before it allows the Azure CLI to request tokens for it', () => {
  const [scopes, clients, role] = bodies;
  const [scope] = scopes.api.oauth2PermissionScopes;
  expect(scope.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(clients.api.preAuthorizedApplications).toEqual([
    { appId: '04b07795-8ddb-461a-bbee-02f9e1bf7b46', delegatedPermissionIds: [scope.id] },
  ]);
  expect(role).toEqual({ principalId: 'me', resourceId: 'the-principal', appRoleId: 'the-role-hr' });
});

test('publishes the package to the deployed app and writes the first row with a token', () => {
  for (const call of [
    ...callsOf(calls, 'az deployment group what-if'),
    ...callsOf(calls, 'az deployment group create'),
  ])
    expect(existsSync(join(ROOT, optionOf(call, '-p')))).toBe(true);
  const [publish = []] = callsOf(calls, 'az functionapp deployment source config-zip');
  expect(optionOf(publish, '-n')).toBe('the-app');
  const [write = []] = callsOf(calls, 'curl');
  expect(write).toContain('Authorization: Bearer a-token');
  const entity = model.list.find(({ name }) => write.includes(`https://api.example/api/${name}`));
  expect(entity?.schema.safeParse(JSON.parse(optionOf(write, '-d')))).toMatchObject({ success: true });
});

test('recovers a deleted key vault before its name is used again', () => {
  expect(callsOf(calls, 'az keyvault recover').map((call) => optionOf(call, '--name'))).toEqual(['the-vault']);
});
