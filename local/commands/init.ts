import { execFile } from 'node:child_process';
import { access, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Command, InvalidArgumentError } from 'commander';
import { run } from '../cli/command.ts';
import { checkName } from '../packs/check-name.ts';
import { listPacks, removePacks } from '../packs/remove-packs.ts';
import {
  addEntity,
  addressToStarter,
  formatEntityFile,
  formatEntityTestFile,
  formatModelFile,
  formatReadmeFile,
} from '../packs/starter.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DEFAULT_NAME = 'notes';
/** The name is also the table name, which has 3 to 55 characters; the table of the index adds `bytitle`. */
const NAME = /^[a-z][a-z0-9]{2,47}$/;
const execute = promisify(execFile);

const program = new Command()
  .description('Makes this repository yours: removes the example packs and leaves one small entity of your own.')
  .option(
    '--name <name>',
    `the name of that entity, in the plural; default: asks in a terminal, else ${DEFAULT_NAME}`,
    toName,
  )
  .showHelpAfterError()
  .action(init);

async function init({ name: given }: { readonly name?: string }): Promise<void> {
  await requireCleanTree();
  const packs = await listPacks(ROOT);
  if (packs.length === 0) throw new Error('This repository has no example packs: npm run init has run before.');
  const own = await ownFiles();
  if (own.length > 0)
    throw new Error(
      `${own.join(', ')} may need the example packs or roles of the sample. Nothing was changed: remove the packs by hand, as docs/declare-an-entity.md says.`,
    );
  const name = given ?? (await askForName());
  const file = join('model', `${name}.ts`);
  if (await exists(join(ROOT, file))) throw new Error(`${file} exists: choose another name.`);
  await checkName(name);

  await removePacks(ROOT, packs);
  await write(file, formatEntityFile(name));
  await write(join('model', `${name}.test.ts`), formatEntityTestFile(name));
  const list = join('model', 'entities.ts');
  await write(list, addEntity(await readFile(join(ROOT, list), 'utf8'), name));
  await write(join('model', 'model.ts'), formatModelFile());
  await write('README.md', formatReadmeFile(name));
  const deploy = join('docs', 'deploy.md');
  await write(deploy, addressToStarter(await readFile(join(ROOT, deploy), 'utf8'), name));
  // A new process, because this one has loaded the old model.
  await execute(process.execPath, [join(ROOT, 'local', 'commands', 'infra-model.ts')]);
  console.log(`Removed the example packs: ${packs.join(', ')}. Your first entity is in ${file}.

  rm -rf .rowkey   deletes the data of the examples, after you have stopped npm start
  npm start        runs the app
  npm test         checks everything
  git status       shows what changed; commit it when you agree`);
}

/** The files of the model that are not those of the sample. */
async function ownFiles(): Promise<string[]> {
  const files = await readdir(join(ROOT, 'model'));
  return files.filter((file) => file !== 'model.ts' && file !== 'entities.ts').map((file) => join('model', file));
}

async function requireCleanTree(): Promise<void> {
  const { stdout } = await execute('git', ['status', '--porcelain'], { cwd: ROOT }).catch(() => {
    throw new Error(
      'npm run init needs a git repository, so that you can see and undo what it changes: run git init and commit first.',
    );
  });
  if (stdout !== '')
    throw new Error(
      'The git tree has uncommitted changes: commit or discard them first, so that git diff shows what npm run init changes.',
    );
}

async function askForName(): Promise<string> {
  if (!process.stdin.isTTY) return DEFAULT_NAME;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return toName(
      (await terminal.question(`Name of your first entity, in the plural (${DEFAULT_NAME}): `)) || DEFAULT_NAME,
    );
  } finally {
    terminal.close();
  }
}

function toName(text: string): string {
  if (NAME.test(text)) return text;
  throw new InvalidArgumentError('A name is 3 to 48 lower-case letters and digits, and begins with a letter.');
}

function write(file: string, text: string): Promise<void> {
  return writeFile(join(ROOT, file), text);
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

await run(program);
