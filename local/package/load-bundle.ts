import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { basename, dirname } from 'node:path';
import vm from 'node:vm';

const START = '(function (exports, require, module, __filename, __dirname) { ';
const END = '\n})';
const DIGEST_BYTES = 32;

/** Loads a CommonJS bundle as `require` does, without compiling it if the package has the compiled code. */
export function loadBundle(file: string): void {
  const require = createRequire(file);
  // A local host loads an app again.
  delete require.cache[file];
  // Node maps the positions of modules, and not those of scripts.
  const isMapped = process.sourceMapsEnabled && existsSync(`${file}.map`);
  const compiled = isMapped ? undefined : readCompiled(file);
  if (compiled) runBundle(file, compiled.source, compiled.code);
  else {
    if (!isMapped) reportOtherVersions(file);
    require(file);
  }
}

/** Nobody can ask a deployed app for its version of Node, which Azure chooses. */
function reportOtherVersions(file: string): void {
  const start = `${basename(file)}.v`;
  const others = readdirSync(dirname(file)).filter(
    (name) => name.startsWith(start) && name !== basename(compiledFile(file)),
  );
  for (const other of others)
    console.warn(
      `The package has compiled code for ${other.slice(start.length - 1)}, and Node here is ${process.version}-${process.platform}-${process.arch}.`,
    );
}

/** True if the compiled code beside the bundle is that of the bundle. */
export function isCompiled(bundle: string): boolean {
  return readCompiled(bundle) !== undefined;
}

function readCompiled(bundle: string): { readonly source: Buffer; readonly code: Buffer } | undefined {
  let compiled: Buffer;
  try {
    compiled = readFileSync(compiledFile(bundle));
  } catch {
    return undefined;
  }
  const source = readFileSync(bundle);
  const code = compiled.subarray(DIGEST_BYTES);
  // V8 itself compares only the length of the source, and does not look for damaged code.
  return digestOf(source, code).equals(compiled.subarray(0, DIGEST_BYTES)) ? { source, code } : undefined;
}

/** Runs a bundle, and writes the code that V8 compiled for the run to a file beside it. */
export function compileBundle(file: string): void {
  const source = readFileSync(file);
  const code = runBundle(file, source).createCachedData();
  writeFileSync(compiledFile(file), Buffer.concat([digestOf(source, code), code]));
}

/** Another version of Node must not run the code. V8 can accept it and crash: https://github.com/nodejs/node/issues/62781. */
const compiledFile = (bundle: string) => `${bundle}.${process.version}-${process.platform}-${process.arch}`;

const digestOf = (source: Buffer, code: Buffer) => createHash('sha256').update(source).update(code).digest();

function runBundle(file: string, source: Buffer, cachedData?: Buffer): vm.Script {
  const script = new vm.Script(Buffer.concat([Buffer.from(START), source, Buffer.from(END)]).toString(), {
    filename: file,
    // Stack traces have the positions of the source map.
    columnOffset: -START.length,
    cachedData,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const module = new Module(file);
  module.filename = file;
  const require = createRequire(file);
  require.cache[file] = module;
  script.runInThisContext().call(module.exports, module.exports, require, module, file, dirname(file));
  module.loaded = true;
  return script;
}
