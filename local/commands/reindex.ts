import { join } from 'node:path';
import { run } from '../cli/command.ts';
import { createTargetCommand, resolveTarget, type TargetOptions } from '../cli/target.ts';
import { toRate, walkPages } from '../cli/walk-pages.ts';
import { deployedApp } from '../instance/deployed-app.ts';

interface Options extends TargetOptions {
  readonly rate: number;
  readonly cleanUp?: true;
}

const program = createTargetCommand(
  'Adds the rows that were stored before an index was declared to that index. Writes may continue.',
)
  .argument('<entity>', 'the name of the entity, such as employees in the example pack')
  .argument('<index>', 'the name of the index in the declaration')
  .option('--clean-up', 'delete the rows of an index that is no longer declared')
  .option('--rate <number>', 'average storage transactions per second', toRate, 200)
  .action(reindex);

async function reindex(entity: string, index: string, options: Options): Promise<void> {
  const { cleanUp = false, data, rate } = options;
  const target = await resolveTarget(options, deployedApp.model.roles);
  const work = cleanUp ? 'clean-up' : 'reindex';
  const path = `/api/operations/${work}/${encodeURIComponent(entity)}/${encodeURIComponent(index)}?top=100`;
  const bookmark = join(data, `${work}-${entity}-${index}`);
  const { checked, found, repaired } = await walkPages(target, { path, bookmark, rate });
  console.log(
    cleanUp
      ? `${checked} rows checked: ${repaired} rows of the former index ${index} deleted, and its table if it was not shared.`
      : `${checked} rows checked: ${repaired} of ${found} missing rows added to the index ${index}.`,
  );
  if (found > repaired) process.exitCode = 1;
}

await run(program);
