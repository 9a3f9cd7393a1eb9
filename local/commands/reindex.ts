import { join } from 'node:path';
import { run } from '../cli/command.ts';
import { createTargetCommand, resolveTarget, type TargetOptions } from '../cli/target.ts';
import { toRate, walkPages } from '../cli/walk-pages.ts';
import { deployedApp } from '../instance/deployed-app.ts';

interface Options extends TargetOptions {
  readonly rate: number;
  readonly cleanUp?: true;
}

const program = createTargetCommand('Builds an index from what was stored before it was declared, while writes go on.')
  .argument('<entity>', 'such as employees')
  .argument('<index>', 'its name in the declaration')
  .option('--clean-up', 'deletes what an index that is declared no more has kept')
  .option('--rate <number>', 'storage transactions a second, on average', toRate, 200)
  .action(reindex);

async function reindex(entity: string, index: string, options: Options): Promise<void> {
  const { cleanUp = false, data, rate } = options;
  const target = await resolveTarget(options, deployedApp.model.roles);
  const work = cleanUp ? 'clean-up' : 'reindex';
  const path = `/api/operations/${work}/${encodeURIComponent(entity)}/${encodeURIComponent(index)}?top=100`;
  const bookmark = join(data, `${work}-${entity}-${index}`);
  const { looked, found, repaired } = await walkPages(target, { path, bookmark, rate });
  console.log(
    cleanUp
      ? `${looked} rows looked at: ${repaired} that the former index ${index} kept are gone, and its table if it was its own.`
      : `${looked} rows looked at: ${repaired} of ${found} that were missing are in the index ${index} now.`,
  );
  if (found > repaired) process.exitCode = 1;
}

await run(program);
