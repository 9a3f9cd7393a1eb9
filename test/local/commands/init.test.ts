import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, glob, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { listPacks, removePacks } from '../../../local/packs/remove-packs.ts';
import { PATIENCE_MS } from '../../patience.ts';
import { IS_EVERY_POINT, sampleItems } from '../../points.ts';
import { ROOT } from '../../start-process.ts';

const execute = promisify(execFile);
/** No entity of a repository has this name. */
const NAME = 'initialised';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-init-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Copies the work tree, with its packages, as a clone. */
async function clone(name: string): Promise<string> {
  const root = join(folder, name);
  const { stdout } = await execute('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT });
  for (const file of stdout.split('\0').filter(Boolean)) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    // A file that was deleted in the work tree is still listed.
    await cp(join(ROOT, file), join(root, file)).catch(() => undefined);
  }
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  await git(root, 'init', '--quiet');
  // The rule of .gitignore matches a folder; this is a link.
  await writeFile(join(root, '.git/info/exclude'), 'node_modules\n');
  await commit(root);
  return root;
}

function git(root: string, ...words: string[]) {
  return execute('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...words], { cwd: root });
}

async function commit(root: string): Promise<void> {
  await git(root, 'add', '-A');
  await git(root, 'commit', '--quiet', '-m', 'Commit everything');
}

/** The environment without the variables of vitest and of the tests' commands. */
function environment(): NodeJS.ProcessEnv {
  const mine = Object.entries(process.env).filter(
    ([name]) => !/^(NODE_OPTIONS|NODE_ENV|VITEST|TEST$|POINTS|WRITE_FAULTS)/.test(name),
  );
  return Object.fromEntries(mine);
}

function run(root: string, file: string, ...words: string[]) {
  return execute(file, words, { cwd: root, env: environment() }).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, said: stdout + stderr }),
  );
}

const npm = (root: string, ...words: string[]) => run(root, 'npm', 'run', '-s', ...words);
const vitest = (root: string, ...words: string[]) => run(root, 'node_modules/.bin/vitest', 'run', ...words);

async function expectGreen(root: string, ...tests: readonly string[]): Promise<void> {
  await git(root, 'add', '-A');
  // The other files are as npm run lint of this repository has checked them.
  const lint = IS_EVERY_POINT
    ? await npm(root, 'lint')
    : await run(root, 'node_modules/.bin/biome', 'check', '--error-on-warnings', '--staged');
  expect(lint.code, lint.said).toBe(0);
  const ofModel = (await readdir(join(root, 'model'))).filter((file) => file.endsWith('.test.ts'));
  const files = ofModel.map((file) => `model/${file}`);
  const { code, said } = await vitest(root, ...files, 'test/infra/model.test.ts', ...tests);
  expect(code, said).toBe(0);
  if (!IS_EVERY_POINT) return;
  const types = await npm(root, 'types');
  expect(types.code, types.said).toBe(0);
  const build = await npm(root, 'build');
  expect(build.code, build.said).toBe(0);
}

/** The test files that read the deployed model or the README, which `npm run init` replaces. */
async function testsOfTheModel(root: string): Promise<string[]> {
  const files = await Array.fromAsync(glob('test/**/*.test.ts', { cwd: root }));
  const isOfModel = async (file: string) =>
    /model\/(model|entities)\.ts|deployed: true|README\.md/.test(await readFile(join(root, file), 'utf8'));
  const found = await Promise.all(files.map(async (file) => ((await isOfModel(file)) ? [file] : [])));
  return found.flat();
}

/** Starts the product, runs the printed commands, then `more`, and returns the results of the printed commands. */
async function tryCommands(root: string, more: () => Promise<void> = async () => undefined): Promise<unknown[]> {
  const args = ['local/commands/start.ts', '--port', '0', '--data', join(root, '.rowkey')];
  const child = spawn(process.execPath, args, { cwd: root, env: environment() });
  const chunks: string[] = [];
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (chunk) => chunks.push(chunk));
  const exited = once(child, 'exit');
  try {
    await vi.waitFor(() => expect(chunks.join('')).toContain('Ctrl-C stops'), { timeout: PATIENCE_MS });
    const answers: unknown[] = [];
    for (const line of chunks
      .join('')
      .split('\n')
      .filter((each) => each.startsWith('curl')))
      answers.push(JSON.parse((await run(root, 'sh', '-c', line)).said));
    await more();
    return answers;
  } finally {
    child.kill('SIGTERM');
    await exited;
  }
}

/** Imports and exports rows of the first entity, whose roles are not those of the packs. */
async function importNotes(root: string): Promise<void> {
  const [file, exported] = [join(folder, 'notes.csv'), join(folder, 'notes.ndjson')];
  await writeFile(file, 'owner,title\nAnn,First\nAnn,Second\n');
  const imported = await npm(root, 'import', '--', NAME, file);
  expect(imported).toEqual({ code: 0, said: expect.stringMatching(/^2 read: 2 created,/) });
  // With the one that the printed commands created.
  expect(await npm(root, 'export', '--', NAME, exported)).toEqual({
    code: 0,
    said: `Exported 3 ${NAME} to ${exported}.\n`,
  });
}

// Skipped in a repository without packs.
const packs = await listPacks(ROOT);
const own = await readdir(join(ROOT, 'model'));
const hasOwnEntities = own.length > 2;

// A usual run removes the packs in the next test only, because the checks of each repository take most of a minute.
test.runIf(packs.length > 0 && IS_EVERY_POINT)(
  'without the packs, every check passes after npm run infra',
  async () => {
    const root = await clone('emptied');
    await removePacks(root, packs);
    expect(await readdir(join(root, 'model'))).toEqual(own);
    const stale = await vitest(root, 'test/infra/model.test.ts');
    expect(stale).toMatchObject({ code: 1, said: expect.stringContaining('run npm run infra') });
    expect(await npm(root, 'infra')).toMatchObject({ code: 0 });
    // The commands of the workflow pages write an entity of the packs.
    const ofModel = (await testsOfTheModel(root)).filter((file) => !file.startsWith('test/workflows'));
    await expectGreen(root, 'test/lib/define', ...ofModel);
    if (!hasOwnEntities) expect(await tryCommands(root)).toEqual([]);
  },
);

test.skipIf(packs.length === 0 || hasOwnEntities)(
  'npm run init leaves one entity, and every check passes',
  async () => {
    const root = await clone('initialised');
    await writeFile(join(root, 'new.txt'), '');
    expect(await npm(root, 'init')).toEqual({
      code: 1,
      said: expect.stringMatching(/^The git tree has uncommitted changes[^\n]*\n$/),
    });
    await rm(join(root, 'new.txt'));

    await writeFile(join(root, 'model', 'rooms.ts'), '');
    await git(root, 'add', '-A');
    await git(root, 'commit', '-qm', 'Add an entity');
    expect(await npm(root, 'init')).toEqual({
      code: 1,
      said: expect.stringMatching(/^model\/rooms\.ts may need the example packs[^\n]*Nothing was changed[^\n]*\n$/),
    });
    await git(root, 'reset', '-q', '--hard', 'HEAD~1');

    for (const name of sampleItems(['constructor', 'query'], 'reserved name'))
      expect(await npm(root, 'init', '--', '--name', name)).toEqual({
        code: 1,
        said: expect.stringContaining(`The name "${name}" cannot be used, and nothing was changed: `),
      });
    expect((await git(root, 'status', '--porcelain')).stdout).toBe('');
    for (const name of sampleItems(['Vehicles', 'a', 'vehicle-parts', 'a'.repeat(49)], 'unusable name'))
      expect(await npm(root, 'init', '--', '--name', name)).toMatchObject({
        code: 1,
        said: expect.stringContaining('A name is 3 to 48 lower-case letters and digits'),
      });
    expect(await npm(root, 'init', '--', '--name', NAME)).toMatchObject({
      code: 0,
      said: expect.stringContaining(`model/${NAME}.ts`),
    });
    const files = [...own, `${NAME}.test.ts`, `${NAME}.ts`].toSorted();
    expect(await readdir(join(root, 'model'))).toEqual(files);
    expect(await readFile(join(root, 'infra/model.json'), 'utf8')).toContain(`"${NAME}"`);
    const pages = (await readdir(join(root, 'docs'), { recursive: true })).filter((file) => file.endsWith('.md'));
    for (const page of ['README.md', ...pages.map((file) => join('docs', file))])
      expect(await readFile(join(root, page), 'utf8'), page).not.toMatch(/\]\([^)]*examples\/(directory|shop|films)/);
    await expectGreen(root, ...(IS_EVERY_POINT ? await testsOfTheModel(root) : []));
    if (IS_EVERY_POINT) {
      const [created, one, range, byTitle] = await tryCommands(root, () => importNotes(root));
      expect(created).toMatchObject({ owner: 'example', title: 'example' });
      expect([one, range, byTitle]).toEqual([created, { items: [created] }, { items: [created] }]);
    }

    await commit(root);
    expect(await npm(root, 'init')).toEqual({
      code: 1,
      said: 'This repository has no example packs: npm run init has run before.\n',
    });
  },
);
