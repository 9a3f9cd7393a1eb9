import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { declarations, INFRA, paths } from './bicep.ts';

/** The compiler is one binary from https://github.com/Azure/bicep/releases, which no package of npm has. */
const compiler = [process.env.BICEP, 'bicep'].find((path) => path && spawnSync(path, ['--version']).status === 0);
const missing = 'skipped: there is no Bicep compiler on the PATH, and BICEP does not name one';

/** What the parameter files read; the values are checked for being there at all. */
const ENVIRONMENT = {
  TOKEN_ISSUER: 'https://issuer.example',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'https://issuer.example/keys',
  ALERT_EMAILS: 'operator@example.com',
  ALLOWED_ORIGINS: 'https://app.example',
};

describe.skipIf(!compiler)(`the compiler (${compiler ?? missing})`, () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rowkey-bicep-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs it, and answers what it warns of; the linter's rules are errors. */
  function run(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(compiler ?? '', args, {
      encoding: 'utf8',
      env: { ...process.env, ...ENVIRONMENT },
    });
    return status === 0 ? stderr.trim() : `${args.join(' ')} ended with ${status}: ${stdout}${stderr}`;
  }

  test.each(paths.filter((path) => path.endsWith('.bicep')))('lints %s without a warning', (path) => {
    expect(run('lint', join(INFRA, path))).toBe('');
  });

  test.each(paths.filter((path) => path.endsWith('.bicepparam')))('builds %s without a warning', (path) => {
    expect(run('build-params', join(INFRA, path), '--outfile', join(folder, `${path}.json`))).toBe('');
  });

  test('finds the resources that the tests read from the tree', () => {
    const file = join(folder, 'main.json');
    expect(run('build', join(INFRA, 'main.bicep'), '--outfile', file)).toBe('');
    const read = declarations.filter(({ kind, existing }) => kind === 'resource' && !existing).map(({ of }) => of);
    expect(compiled(JSON.parse(readFileSync(file, 'utf8'))).toSorted()).toEqual(read.toSorted());
  });
});

interface Compiled {
  readonly type?: string;
  readonly apiVersion?: string;
  readonly existing?: boolean;
  readonly properties?: { readonly template?: Template };
}
interface Template {
  readonly resources: Readonly<Record<string, Compiled>> | readonly Compiled[];
}

/** Type and version of every resource, those of the modules included. */
function compiled({ resources }: Template): string[] {
  return Object.values(resources)
    .filter(({ existing }) => !existing)
    .flatMap(({ type, apiVersion, properties }) =>
      properties?.template ? compiled(properties.template) : [`${type}@${apiVersion}`],
    );
}
