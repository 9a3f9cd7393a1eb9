import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { callsOf, commandsOf, optionOf, rehearse } from './stand-ins.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(new URL('../../docs/workflows.md', import.meta.url), 'utf8');
const [settingUp = ''] = page.split('\n## Without GitHub').map((part) => commandsOf(part).join('\n'));

const calls = rehearse(settingUp, {
  programs: ['az', 'gh', 'sleep'],
  outputs: {
    'actions/oidc/customization/sub --jq .sub_claim_prefix': 'repo:contoso@1/rowkey@2',
    'account show --query id': 'the-subscription',
    'account show --query tenantId': 'the-tenant',
    'ad app create': 'an-app',
    'ad app list': 'the-api',
    'ad sp create': 'a-principal',
    'deployment sub create': 'the-backup-role',
    'api user': '4711',
  },
  cwd: ROOT,
});

test('registers every resource provider of the templates', () => {
  const infra = fileURLToPath(new URL('../../infra', import.meta.url));
  const templates = readdirSync(infra, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.bicep'));
  const used = templates.flatMap(
    (file) => readFileSync(`${infra}/${file}`, 'utf8').match(/(?<=')Microsoft\.\w+(?=\/)/g) ?? [],
  );
  const registered = callsOf(calls, 'az provider register').map((call) => optionOf(call, '--namespace'));
  expect(new Set(used).size).toBeGreaterThan(7);
  expect([...new Set(used)].filter((name) => !registered.includes(name))).toEqual([]);
});

test('trusts each environment by the subject that GitHub reports, with ids', () => {
  const credentials = callsOf(calls, 'az ad app federated-credential create').map((call) =>
    JSON.parse(optionOf(call, '--parameters')),
  );
  expect(credentials.map(({ subject }) => subject)).toEqual(
    ['dev', 'prod', 'preview'].map((environment) => `repo:contoso@1/rowkey@2:environment:${environment}`),
  );
});

test('lets deployments assign only the roles of the template, and previews none', () => {
  const roles = readFileSync(new URL('../../infra/modules/roles.bicep', import.meta.url), 'utf8').match(
    /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
  );
  const assigned = callsOf(calls, 'az role assignment create').map((call) => ({
    role: optionOf(call, '--role'),
    scope: optionOf(call, '--scope').split('/').at(-1),
    condition: call.includes('--condition') ? optionOf(call, '--condition') : undefined,
  }));
  const condition = expect.stringContaining(`GuidEquals {${roles?.join(',')},the-backup-role}`);
  expect(assigned).toEqual([
    { role: 'Contributor', scope: 'rg-rowkey-dev', condition: undefined },
    { role: 'Locks Contributor', scope: 'rg-rowkey-dev', condition: undefined },
    { role: 'Role Based Access Control Administrator', scope: 'rg-rowkey-dev', condition },
    { role: 'Contributor', scope: 'rg-rowkey-prod', condition: undefined },
    { role: 'Locks Contributor', scope: 'rg-rowkey-prod', condition: undefined },
    { role: 'Role Based Access Control Administrator', scope: 'rg-rowkey-prod', condition },
    { role: 'Deployment Previewer', scope: 'rg-rowkey-dev', condition: undefined },
  ]);
  const [backupRole = []] = callsOf(calls, 'az deployment sub create');
  expect(existsSync(join(ROOT, optionOf(backupRole, '-f')))).toBe(true);
  const [definition] = callsOf(calls, 'az role definition create');
  expect(JSON.parse(optionOf(definition ?? [], '--role-definition'))).toMatchObject({
    Actions: ['*/read', 'Microsoft.Resources/deployments/*'],
  });
});

test('sets every required variable in each environment', () => {
  const set = callsOf(calls, 'gh variable set').filter((call) => call.includes('--env'));
  for (const environment of ['dev', 'prod', 'preview'])
    expect(
      set
        .filter((call) => optionOf(call, '--env') === environment)
        .map(([, , , name]) => name)
        .toSorted(),
    ).toEqual(['AZURE_CLIENT_ID', 'AZURE_RESOURCE_GROUP', 'TOKEN_AUDIENCE', 'TOKEN_ISSUER', 'TOKEN_JWKS_URI']);
});
