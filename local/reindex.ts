import { join } from 'node:path';
import { run } from './command.ts';
import { type TargetOptions, targetOf, withTarget } from './target.ts';
import { walkPages } from './walk-pages.ts';

interface Options extends TargetOptions {
  readonly rate: string;
}

const program = withTarget('Builds an index from what was stored before it was declared, while writes go on.')
  .argument('<entity>', 'such as employees')
  .argument('<index>', 'its name in the declaration')
  .option('--rate <number>', 'storage transactions a second, on average', '200')
  .action(reindex);

async function reindex(entity: string, index: string, options: Options): Promise<void> {
  const target = await targetOf(options, 'operator');
  const path = `/api/operations/reindex/${encodeURIComponent(entity)}/${encodeURIComponent(index)}?top=100`;
  const bookmark = join(options.data, `reindex-${entity}-${index}`);
  const { looked, found, repaired } = await walkPages(target, { path, bookmark, rate: Number(options.rate) });
  console.log(`${looked} rows looked at: ${repaired} of ${found} that were missing are in the index ${index} now.`);
  if (found > repaired) process.exitCode = 1;
}

await run(program);
