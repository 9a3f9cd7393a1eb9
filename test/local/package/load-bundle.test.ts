import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { compileApp } from '../../../local/package/build-app.ts';

const APP = fileURLToPath(new URL('../../../dist/app.js', import.meta.url));
const THIS_NODE = `${process.version}-${process.platform}-${process.arch}`;
/** Calls a function that was compiled, one that was not, and a chunk, which requires the bundle as chunks of the app do. */
const BUNDLE = `const later = () => new Error('thrown').stack.split('\\n')[1].trim(); const { version } = require('./chunk.cjs');
const ran = (() => 'one')();
import('./chunk.cjs').then((chunk) => console.log(JSON.stringify([ran, version, chunk.isSame(module.exports), later(), __filename, module.loaded])));
`;
const POSITION = `1:${BUNDLE.indexOf('new Error') + 1}`;

let folder: string;
let bundle: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-bundle-'));
  bundle = join(folder, 'main.cjs');
  await copyFile(APP, join(folder, 'app.js'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(
    join(folder, 'chunk.cjs'),
    "exports.version = 1; exports.isSame = (main) => require('./main.cjs') === main;",
  );
  await writeFile(bundle, BUNDLE);
  onTestFinished(() => rm(folder, { recursive: true }));
});

/** Whether V8 was given compiled code and took it (undefined: none was given), and what the bundle printed. */
async function load(
  ...flags: string[]
): Promise<{ rejected: boolean | undefined; printed: unknown; warned: string | undefined }> {
  const script = `import vm from 'node:vm';
const { Script } = vm;
let rejected;
vm.Script = class extends Script {
  constructor(source, options) { super(source, options); rejected = this.cachedDataRejected; }
};
process.on('exit', () => console.log(JSON.stringify(rejected ?? null)));
await import(process.argv[2]);`;
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const running = promisify(execFile)(
    process.execPath,
    [...flags, '--input-type=module', '-', join(folder, 'app.js')],
    { env },
  );
  running.child.stdin?.end(script);
  const { stdout, stderr } = await running;
  const [printed = '', rejected = ''] = stdout.trim().split('\n');
  return {
    printed: JSON.parse(printed),
    rejected: JSON.parse(rejected) ?? undefined,
    warned: /^The package has .*$/m.exec(stderr)?.[0],
  };
}

test('a bundle runs from compiled code as it does without, with the same positions in stack traces', {
  tags: ['slow'],
}, async () => {
  const expected = (file: string) => ['one', 1, true, `at later (${file}:${POSITION})`, file, true];
  expect(await load()).toEqual({ rejected: undefined, printed: expected(bundle) });
  expect(await compileApp(folder)).toBeUndefined();
  expect(await load()).toEqual({ rejected: false, printed: expected(bundle) });
  // A package is deployed to another folder.
  const deployed = `${folder}-deployed`;
  await rename(folder, deployed);
  folder = deployed;
  expect(await load()).toEqual({ rejected: false, printed: expected(join(deployed, 'main.cjs')) });
});

test('compiled code of other source is not used, whatever its length', async () => {
  expect(await compileApp(folder)).toBeUndefined();
  await writeFile(bundle, BUNDLE.replace(`'one'`, `'two'`));
  expect(await load()).toMatchObject({
    rejected: undefined,
    printed: ['two', 1, true, expect.any(String), bundle, true],
  });
});

test.each([
  ['is compiled', ''],
  ['fails to load', "throw new Error('half a bundle');"],
])('the code fits the bundle of another build that replaces one while that %s', async (_, end) => {
  // Compiling a bundle runs it.
  await writeFile(bundle, `require('node:fs').writeFileSync(__filename, ${JSON.stringify(BUNDLE)}); ${end}`);
  expect(await compileApp(folder)).toBeUndefined();
  expect(await load()).toMatchObject({ rejected: false, printed: ['one', 1, true, expect.any(String), bundle, true] });
});

test('damaged compiled code is not used', { tags: ['slow'] }, async () => {
  expect(await compileApp(folder)).toBeUndefined();
  const compiled = `${bundle}.${THIS_NODE}`;
  const bytes = await readFile(compiled);
  const flipped = bytes.map((byte, index) => (index === bytes.length - 40 ? byte ^ 1 : byte));
  for (const damaged of [bytes.subarray(0, -8), bytes.subarray(0, 7), flipped]) {
    await writeFile(compiled, damaged);
    expect(await load()).toMatchObject({
      rejected: undefined,
      printed: ['one', 1, true, expect.any(String), bundle, true],
    });
  }
});

test('compiled code of another build of Node is not used, and the log names both', async () => {
  expect(await compileApp(folder)).toBeUndefined();
  expect(await load()).toMatchObject({ warned: undefined });
  await rename(`${bundle}.${THIS_NODE}`, `${bundle}.v24.0.0-linux-x64`);
  expect(await load()).toMatchObject({
    rejected: undefined,
    warned: `The package has compiled code for v24.0.0-linux-x64, and Node here is ${THIS_NODE}.`,
    printed: ['one', 1, true, expect.any(String), bundle, true],
  });
});

test('a bundle runs if V8 rejects the compiled code', { tags: ['slow'] }, async () => {
  const before = await load();
  expect(await compileApp(folder)).toBeUndefined();
  // V8 compiles for its own flags.
  expect(await load('--no-opt')).toEqual({ ...before, rejected: true });
});

test('stack traces show the sources if Node maps them, compiled or not', { tags: ['slow'] }, async () => {
  await writeFile(bundle, `${BUNDLE}//# sourceMappingURL=main.cjs.map`);
  const map = { version: 3, sources: ['later.ts'], names: [], mappings: 'AAAA' };
  await writeFile(`${bundle}.map`, JSON.stringify(map));
  expect(await compileApp(folder)).toBeUndefined();
  const { printed } = await load('--enable-source-maps');
  expect(printed).toContain(`at later (${join(folder, 'later.ts')}:1:1)`);
  // A package has no source maps.
  await rm(`${bundle}.map`);
  expect(await load('--enable-source-maps')).toMatchObject({ rejected: false });
});

test('a later import of the app runs the bundle again, compiled or not', { tags: ['slow'] }, async () => {
  const script = `await import(process.argv[2]); await import(process.argv[2] + '?load=1');`;
  const countRuns = async () => {
    const running = promisify(execFile)(process.execPath, ['--input-type=module', '-', join(folder, 'app.js')]);
    running.child.stdin?.end(script);
    return (await running).stdout.trim().split('\n').length;
  };
  expect(await countRuns()).toBe(2);
  expect(await compileApp(folder)).toBeUndefined();
  expect(await countRuns()).toBe(2);
});

test('a build removes compiled code of earlier builds', async () => {
  await writeFile(`${bundle}.v24.0.0-linux-x64`, 'old');
  expect(await compileApp(folder)).toBeUndefined();
  await expect(readFile(`${bundle}.v24.0.0-linux-x64`)).rejects.toThrow('ENOENT');
});

test('a build returns the error of an app that cannot be loaded, without the source', async () => {
  await writeFile(bundle, `const source = 1; throw new Error('PARTNER_KEY is missing.');`);
  const failure = await compileApp(folder);
  expect(failure).toMatch(/^Error: PARTNER_KEY is missing\.\n {4}at /);
  expect(failure).not.toContain('const source');
  await expect(readFile(`${bundle}.${THIS_NODE}`)).rejects.toThrow('ENOENT');
});
