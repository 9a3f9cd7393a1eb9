import { readFile, writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import { run } from '../cli/command.ts';
import { requirePack } from '../packs/remove-packs.ts';
import { countRuns } from '../shape/count-runs.ts';
import { countSources, describeRuns, formatShape } from '../shape/shape-rows.ts';

const PAGE = 'docs/internals/architecture.md';
const TABLE = /(<!-- shape: .* -->\n)[\s\S]*?(<!-- \/shape -->)/;

async function writeShape(): Promise<void> {
  await requirePack('directory', 'npm run shape');
  const table = formatShape([...countSources(), ...describeRuns(await countRuns())]);
  const page = await readFile(PAGE, 'utf8');
  if (!TABLE.test(page)) throw new Error(`${PAGE} has no marks for the table.`);
  await writeFile(PAGE, page.replace(TABLE, `$1\n${table}\n$2`));
  console.log(table);
}

await run(
  new Command()
    .description('Writes counts of the code, each with its bound, into the page on the architecture.')
    .action(writeShape),
);
