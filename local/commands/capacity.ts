import { readFile, writeFile } from 'node:fs/promises';
import { CAPACITY_PAGE, COSTS_PAGE, updateCosts, updatePlans } from '../capacity/capacity-page.ts';
import { createPlanCommand } from '../capacity/plan-command.ts';
import { run } from '../cli/command.ts';
import { requirePack } from '../packs/remove-packs.ts';

async function writePages(): Promise<void> {
  await requirePack('directory', 'npm run capacity -- --write');
  await writeFile(CAPACITY_PAGE, await updatePlans(await readFile(CAPACITY_PAGE, 'utf8')));
  await writeFile(COSTS_PAGE, await updateCosts(await readFile(COSTS_PAGE, 'utf8')));
  console.log(`${CAPACITY_PAGE} and ${COSTS_PAGE} updated.`);
}

const command = createPlanCommand(console.log)
  .name('npm run capacity --')
  .addHelpText('after', `\nAlone, --write writes the plans in ${CAPACITY_PAGE} and the costs in ${COSTS_PAGE} again.`);
await (process.argv.slice(2).join(' ') === '--write' ? writePages() : run(command));
