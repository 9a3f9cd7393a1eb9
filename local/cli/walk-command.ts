import { randomBytes, randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Model } from '../../lib/define/define-model.ts';
import { createEmulatorAccount, startAzurite } from '../instance/azurite.ts';
import { importModel } from '../instance/import-model.ts';
import { needTool } from '../instance/need-tool.ts';

interface Options {
  readonly model?: string;
  readonly seed: number;
  readonly writes?: number;
  readonly seconds?: number;
}

const WRITES = 1_000;

/** Creates the command. `loadModel` is called if no file is named. */
export function createWalkCommand(loadModel: () => Promise<Model>): Command {
  return new Command()
    .description(
      'Writes random entities of a model on emulated storage, and compares every index, list, count, total, series and archived period with them.',
    )
    .option('--model <file>', 'the file that exports "model" or "rowkey"; by default the model of this app')
    .addOption(
      new Option('--seed <number>', 'determines the steps').argParser(toCount).default(randomInt(1_000), 'random'),
    )
    .option('--writes <number>', `how many steps to take; ${WRITES} by default, and any number with --seconds`, toCount)
    .option('--seconds <number>', 'start no further round of steps after this time', toCount)
    .action(async (options: Options) => {
      const { model: file, seed, writes, seconds } = options;
      const model = file === undefined ? await loadModel() : await importModel(resolve(file));
      if (!model) throw new Error(`${file} exports neither a "model" of defineModel nor a "rowkey" of createRowkey.`);
      if (model.list.length === 0) throw new Error('The model has no entity to write: add one to it.');
      const { walk, formatFailure } = await needTool('fast-check', () => import('../walk/walk.ts'));
      const folder = await mkdtemp(join(tmpdir(), 'rowkey-walk-'));
      const account = createEmulatorAccount(randomBytes(64).toString('base64'));
      const azurite = await startAzurite({ folder, accounts: [account] });
      const since = Date.now();
      try {
        const { outcomes, failure, ...done } = await walk(model, {
          connectionString: azurite.connectionString(),
          folder,
          seed,
          writes: writes ?? (seconds === undefined ? WRITES : Number.POSITIVE_INFINITY),
          ...(seconds === undefined ? {} : { until: since + seconds * 1_000 }),
        });
        for (const [outcome, times] of [...outcomes].sort()) console.log(`${String(times).padStart(6)}  ${outcome}`);
        const minutes = ((Date.now() - since) / 60_000).toFixed(1);
        console.log(`Seed ${seed}: ${done.writes} steps in ${done.rounds} rounds, ${minutes} minutes.`);
        if (!failure) return console.log('Every answer agrees.');
        console.error(formatFailure(failure));
        process.exitCode = 1;
      } finally {
        await azurite.stop();
        await rm(folder, { recursive: true, force: true });
      }
    });
}

function toCount(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('A whole number from 0 is needed.');
}
