import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { declarations, INFRA, sources } from './bicep.ts';

/**
 * The compiler checks syntax, names, and resource types. It is one binary from https://github.com/Azure/bicep/releases, on
 * the PATH or named by BICEP. If BICEP is set, as in CI, the tests run and fail without a compiler.
 */
const { BICEP } = process.env;
const compiler = BICEP || 'bicep';
const isMissing = !BICEP && spawnSync(compiler, ['--version']).status !== 0;
const title = isMissing ? 'skipped: no Bicep compiler on the PATH, and BICEP is not set' : compiler;

/** Values of the variables that the parameter files require. */
const ENVIRONMENT = {
  TOKEN_ISSUER: 'https://issuer.example',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'https://issuer.example/keys',
  ALERT_EMAILS: 'operator@example.com',
  ALLOWED_ORIGINS: 'https://app.example',
};
const filesOf = (extension: string) => [...sources.keys()].filter((path) => path.endsWith(extension));

describe.skipIf(isMissing)(`the compiler (${title})`, () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rowkey-bicep-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Returns the warnings and errors. The compiler exits with 0 after warnings, such as a property that Azure does not know. */
  function run(...args: string[]): string {
    const { status, error, stdout, stderr } = spawnSync(compiler, args, {
      encoding: 'utf8',
      env: { ...process.env, ...ENVIRONMENT },
    });
    if (error) throw error;
    return status === 0 ? stderr.trim() : `bicep ${args.join(' ')} exited with ${status}: ${stdout}${stderr}`;
  }

  test.each(filesOf('.bicep'))('lints %s without a warning', (path) => {
    expect(run('lint', join(INFRA, path))).toBe('');
  });

  test.each(filesOf('.bicepparam'))('builds %s without a warning', (path) => {
    expect(run('build-params', join(INFRA, path), '--outfile', join(folder, `${path}.json`))).toBe('');
  });

  test('deploys the resources that the other tests read', () => {
    const file = join(folder, 'main.json');
    expect(run('build', join(INFRA, 'main.bicep'), '--outfile', file)).toBe('');
    const read = declarations.filter(({ kind, isExisting }) => kind === 'resource' && !isExisting);
    expect(compiled(JSON.parse(readFileSync(file, 'utf8'))).toSorted()).toEqual(
      read.map(({ type, version }) => `${type}@${version}`).toSorted(),
    );
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

/** Type and API version of every resource, with the resources of modules. */
function compiled({ resources }: Template): string[] {
  return Object.values(resources)
    .filter(({ existing }) => !existing)
    .flatMap(({ type, apiVersion, properties }) =>
      properties?.template ? compiled(properties.template) : [`${type}@${apiVersion}`],
    );
}
