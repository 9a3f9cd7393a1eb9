import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Command } from 'commander';
import { run } from '../cli/command.ts';
import { requirePack } from '../packs/remove-packs.ts';
import { SCALE_PAGE, updateScale } from '../scale/scale-page.ts';

async function writePage(): Promise<void> {
  await requirePack('directory', 'npm run scale');
  const { text, charts } = await updateScale(await readFile(SCALE_PAGE, 'utf8'));
  await writeFile(SCALE_PAGE, text);
  for (const [file, svg] of charts) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, svg);
  }
  console.log(`${[SCALE_PAGE, ...charts.keys()].join(', ')} updated.`);
}

await run(
  new Command()
    .name('npm run scale --')
    .description(`Simulates 10 to 1,000,000 requests a second and writes ${SCALE_PAGE}.`)
    .action(writePage),
);
