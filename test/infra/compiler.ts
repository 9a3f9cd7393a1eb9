import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const VERSION = '0.49.2';
/** NuGet names a package after the platform. */
const SYSTEMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'osx', win32: 'win' };
const RESTORE_WITHIN_MS = 180_000;

/**
 * Finds the Bicep compiler: the one named by BICEP, the one on the PATH, the one of the Azure CLI, or the package of NuGet,
 * which the .NET SDK downloads once. Undefined if none runs. BICEP is not tried, so that a wrong path fails the tests.
 */
export function findCompiler(): string | undefined {
  return process.env.BICEP || ['bicep', join(homedir(), '.azure', 'bin', 'bicep')].find(canRun) || fromNuGet();
}

function canRun(compiler: string): boolean {
  return spawnSync(compiler, ['--version']).status === 0;
}

function fromNuGet(): string | undefined {
  const id = `Azure.Bicep.CommandLine.${SYSTEMS[process.platform]}-${process.arch}`;
  const compilerIn = (packages: string) => join(packages, id.toLowerCase(), VERSION, 'tools', 'bicep');
  // The SDK takes some seconds to find a package that it has.
  const known = compilerIn(process.env.NUGET_PACKAGES || join(homedir(), '.nuget', 'packages'));
  if (canRun(known)) return known;
  const folder = mkdtempSync(join(tmpdir(), 'rowkey-bicep-'));
  try {
    const project = join(folder, 'bicep.csproj');
    writeFileSync(
      project,
      `<Project Sdk="Microsoft.NET.Sdk">
        <PropertyGroup>
          <TargetFramework>netstandard2.0</TargetFramework>
          <DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>
        </PropertyGroup>
        <ItemGroup><PackageDownload Include="${id}" Version="[${VERSION}]" /></ItemGroup>
      </Project>`,
    );
    const options = { encoding: 'utf8', timeout: RESTORE_WITHIN_MS } as const;
    if (spawnSync('dotnet', ['restore', project], options).status !== 0) return undefined;
    const packages = spawnSync('dotnet', ['msbuild', project, '-getProperty:NuGetPackageRoot'], options).stdout.trim();
    const compiler = compilerIn(packages);
    return canRun(compiler) ? compiler : undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
