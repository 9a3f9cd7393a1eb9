import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import type { Packed } from './pack-packages.ts';

type Exports = Readonly<Record<string, { readonly types?: string }>>;

interface Entry {
  readonly projectFolder: string;
  readonly declarations: string;
  readonly reportName: string;
}

/**
 * Returns a report of what each entry of the packages exports, by the name of its file. A type that the entry does not export is named
 * and not shown: with the types that exported ones are made of, a report is ten times as long and about the internals.
 */
export async function createApiReports(packages: readonly Packed[]): Promise<Readonly<Record<string, string>>> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-api-'));
  try {
    for (const { name, folder: projectFolder } of packages) {
      const manifest = JSON.parse(await readFile(join(projectFolder, 'package.json'), 'utf8'));
      const exports = Object.entries((manifest.exports ?? {}) as Exports);
      const entries = exports.flatMap(([path, { types }]) => {
        const reportName = path.replace('.', name).replaceAll('/', '.');
        return types === undefined ? [] : [{ projectFolder, declarations: join(projectFolder, types), reportName }];
      });
      extract(entries.map((entry) => configure(entry, folder)));
    }
    const files = (await readdir(folder)).filter((file) => file.endsWith('.api.md'));
    return Object.fromEntries(
      await Promise.all(files.map(async (file) => [file, await readFile(join(folder, file), 'utf8')])),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

function configure({ projectFolder, declarations, reportName }: Entry, reportFolder: string): ExtractorConfig {
  const silent = { default: { logLevel: ExtractorLogLevel.None } };
  // As the declarations were compiled, by a newer compiler than the one of the extractor: nothing of tsconfig.json is read.
  const compilerOptions = {
    ...{ target: 'es2024', module: 'nodenext', lib: ['es2024', 'esnext.array'], types: ['node'] },
    ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true },
  };
  return ExtractorConfig.prepare({
    configObject: {
      projectFolder,
      mainEntryPointFilePath: declarations,
      newlineKind: 'lf',
      compiler: { overrideTsconfig: { compilerOptions, files: [declarations] } },
      apiReport: {
        enabled: true,
        reportFileName: reportName,
        reportFolder,
        reportTempFolder: join(reportFolder, 'temp'),
      },
      docModel: { enabled: false },
      // Everything exported is public, and its comments need no tags.
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(projectFolder, 'package.json'),
  });
}

/** One compiler for all entries of a package takes half of the processor time. */
function extract(configs: readonly ExtractorConfig[]): void {
  const [first, ...others] = configs;
  if (!first) return;
  const additionalEntryPoints = others.map(({ mainEntryPointFilePath }) => mainEntryPointFilePath);
  const compilerState = CompilerState.create(first, { additionalEntryPoints });
  for (const config of configs) {
    const failures: string[] = [];
    const { succeeded } = Extractor.invoke(config, {
      localBuild: true,
      compilerState,
      messageCallback(message) {
        if (message.logLevel === ExtractorLogLevel.Error) failures.push(message.formatMessageWithLocation(undefined));
        message.handled = true;
      },
    });
    if (!succeeded) throw new Error(`No report of ${config.mainEntryPointFilePath}.\n${failures.join('\n')}`);
  }
}
