import { join } from 'node:path';
import { run } from '../cli/command.ts';
import { createTargetCommand, resolveTarget, type TargetOptions } from '../cli/target.ts';
import { toRate, walkPages } from '../cli/walk-pages.ts';
import { deployedApp } from '../instance/deployed-app.ts';

interface Options extends TargetOptions {
  readonly repair?: true;
  readonly rate: number;
}

const program = createTargetCommand(
  'Compares the stored rows of an entity with its indexes, copies, lists, counts and blobs.',
)
  .argument('<entity>', 'the name of the entity, such as employees in the example pack')
  .option('--repair', 'repair the differences')
  .option('--rate <number>', 'average storage transactions per second', toRate, 200)
  .action(verify);

async function verify(entity: string, options: Options): Promise<void> {
  const { repair = false, rate, data } = options;
  const target = await resolveTarget(options, deployedApp.model.roles);
  const path = `/api/operations/verify/${encodeURIComponent(entity)}?top=100&repair=${repair}`;
  const bookmark = join(data, `verify-${entity}-${repair ? 'repair' : 'look'}`);
  const { checked, found, repaired } = await walkPages(target, { path, bookmark, rate });
  console.log(`${checked} rows checked: ${found} do not agree${repair ? `, ${repaired} of them repaired` : ''}.`);
  if (found > repaired) process.exitCode = 1;
}

await run(program);
