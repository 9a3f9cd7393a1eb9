import { readdir, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { Command } from 'commander';
import { run } from '../cli/command.ts';

const PAGE = 'docs/console.md';
const BUILT = 'dist/console';
const SIZES = /(<!-- sizes: .* -->\n)[\s\S]*?(<!-- \/sizes -->)/;

async function writeSizes(): Promise<void> {
  const index = await readFile(`${BUILT}/index.html`, 'utf8');
  const names = (await readdir(`${BUILT}/assets`)).filter((name) => /\.(js|css)$/.test(name));
  const files = await Promise.all(
    names.map(async (name) => ({
      isFirst: index.includes(`assets/${name}`),
      bytes: gzipSync(await readFile(`${BUILT}/assets/${name}`)).length,
    })),
  );
  const format = (part: typeof files) => `${Math.round(part.reduce((sum, { bytes }) => sum + bytes, 0) / 1_000)} KB`;
  const table = `| Part | gzipped |
|---|---|
| The first page | ${format(files.filter(({ isFirst }) => isFirst))} |
| All pages | ${format(files)} |
`;
  const page = await readFile(PAGE, 'utf8');
  if (!SIZES.test(page)) throw new Error(`${PAGE} has no marks for the sizes.`);
  await writeFile(PAGE, page.replace(SIZES, `$1${table}$2`));
  console.log(table);
}

await run(
  new Command()
    .description('Writes the sizes of the built console into its page of the documentation.')
    .action(writeSizes),
);
