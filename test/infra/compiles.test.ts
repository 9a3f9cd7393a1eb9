import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IS_EVERY_POINT } from '../points.ts';
import { declarations, INFRA, sources } from './bicep.ts';
import { findCompiler } from './compiler.ts';

/** The compiler checks syntax, names, resource types and the format. */
const compiler = findCompiler();
if (!compiler)
  console.warn(
    'SKIPPED: infra is not compiled, because there is no Bicep compiler. Install bicep, the Azure CLI with "az bicep install", or the .NET SDK, or name a compiler by BICEP.',
  );

/** Values of the variables that the parameter files require. */
const ENVIRONMENT = {
  TOKEN_ISSUER: 'https://issuer.example',
  TOKEN_AUDIENCE: 'api://rowkey',
  TOKEN_JWKS_URI: 'https://issuer.example/keys',
  ALERT_EMAILS: 'operator@example.com',
  ALLOWED_ORIGINS: 'https://app.example',
};

describe.skipIf(!compiler)(`the compiler ${compiler ?? '(none found)'}`, () => {
  /** A copy of infra, because the compiler writes beside its input. */
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rowkey-bicep-'));
    cpSync(INFRA, folder, { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Returns the warnings and errors. The compiler exits with 0 after warnings, such as a property that Azure does not know. */
  function run(...args: string[]): string {
    const options = { encoding: 'utf8', cwd: folder, env: { ...process.env, ...ENVIRONMENT } } as const;
    const { status, error, stdout, stderr } = spawnSync(compiler ?? '', args, options);
    if (error) throw error;
    return status === 0 ? stderr.trim() : `bicep ${args.join(' ')} exited with ${status}: ${stdout}${stderr}`;
  }

  // The build lints main.bicep and its modules, too.
  test.runIf(IS_EVERY_POINT)('lints every file without a warning', () =>
    expect(run('lint', '--pattern', '**/*.bicep')).toBe(''),
  );

  test('builds every parameter file without a warning', () => {
    expect(run('build-params', '--pattern', '**/*.bicepparam')).toBe('');
    for (const path of [...sources.keys()].filter((path) => path.endsWith('.bicepparam')))
      expect(existsSync(join(folder, path.replace(/bicepparam$/, 'json'))), path).toBe(true);
  });

  test.runIf(IS_EVERY_POINT)('finds every file in its format', () => {
    for (const pattern of ['**/*.bicep', '**/*.bicepparam']) expect(run('format', '--pattern', pattern)).toBe('');
    for (const [path, text] of sources)
      expect(text, `Run bicep format infra/${path}`).toBe(readFileSync(join(folder, path), 'utf8'));
  });

  test('deploys the resources that the other tests read', () => {
    // The role of backups is deployed by itself, once in a subscription.
    const built = ['main.bicep', 'backup-role.bicep'].flatMap((file) => {
      expect(run('build', file, '--outfile', 'compiled.json')).toBe('');
      return compiled(JSON.parse(readFileSync(join(folder, 'compiled.json'), 'utf8')));
    });
    const read = declarations.filter(({ kind, isExisting }) => kind === 'resource' && !isExisting);
    expect(built.toSorted()).toEqual(read.map(({ type, version }) => `${type}@${version}`).toSorted());
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
  readonly metadata: { readonly _generator: { readonly templateHash: string } };
}

/** Type and API version of every resource, with the resources of modules: once for a module that is deployed several times. */
function compiled({ resources }: Template, counted = new Set<string>()): string[] {
  return Object.values(resources)
    .filter(({ existing }) => !existing)
    .flatMap(({ type, apiVersion, properties: { template } = {} }) => {
      if (!template) return [`${type}@${apiVersion}`];
      const module = template.metadata._generator.templateHash;
      if (counted.has(module)) return [];
      counted.add(module);
      return compiled(template, counted);
    });
}
