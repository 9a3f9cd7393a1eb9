import { readFile } from 'node:fs/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { formatPlan, readMeasured } from './format-plan.ts';
import { planCapacity } from './plan.ts';
import { readPublished } from './published.ts';

const MEASURED = 'docs/internals/patterns.md';

interface Options {
  readonly reads: number;
  readonly writes: number;
  readonly bytes: number;
  readonly readCpu: number;
  readonly writeCpu: number;
  readonly utilization: number;
  readonly memory: number;
  readonly backup: number;
  readonly prices?: string;
}

const entities = deployedApp.model.list.filter(({ series, isArchive }) => !series && !isArchive);

/** Creates the command that plans a load and gives the plan to `say`. */
export function createPlanCommand(say: (plan: string) => void): Command {
  const command = new Command()
    .description('Sizes a load of the model under the published targets of Azure, and its cost.')
    .showHelpAfterError()
    .option('--reads <number>', 'point queries a second, spread over the entities by their number', toNumber, 0)
    .option('--writes <number>', 'creates a second, spread in the same way', toNumber, 0)
    .option('--bytes <number>', 'bytes of one entity', toNumber, 1_000)
    .option('--read-cpu <milliseconds>', 'CPU of a read', toNumber, 2.5)
    .option('--write-cpu <milliseconds>', 'CPU of a write', toNumber, 10)
    .option('--utilization <part>', 'the part of a CPU to plan for', toNumber, 0.6)
    .addOption(new Option('--memory <gigabytes>', 'memory of an instance: 0.5, 2 or 4').argParser(toMemory).default(2))
    .option(
      '--backup <days>',
      'days for which a backup is kept; default: those of the model, or none',
      toNumber,
      deployedApp.model.backup?.days ?? 0,
    )
    .option('--prices <file>', 'targets and prices in the form of local/capacity/published.yaml')
    .action(async (options) => say(await plan(options)));
  for (const { name } of entities) command.option(`--${name} <number>`, `how many ${name} are stored`, toNumber);
  return command;
}

async function plan(options: Options & Readonly<Record<string, unknown>>): Promise<string> {
  const stored = entities.flatMap((entity) => {
    const count = options[entity.name];
    return typeof count === 'number' && count > 0 ? [{ entity, count }] : [];
  });
  const total = stored.reduce((sum, { count }) => sum + count, 0);
  if (total === 0)
    throw new Error(
      `Name an entity and its number, such as --${entities[0]?.name} 1000000. Entities: ${namesOf(entities)}.`,
    );
  const loads = stored.map(({ entity, count }) => ({
    entity,
    count,
    reads: (options.reads * count) / total,
    writes: (options.writes * count) / total,
  }));
  const result = planCapacity(loads, options, await readPublished(options.prices));
  return formatPlan(result, readMeasured(await readFile(MEASURED, 'utf8').catch(() => '')));
}

function namesOf(all: readonly Entity[]): string {
  return all.map(({ name }) => name).join(', ');
}

function toNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value;
  throw new InvalidArgumentError('A number from 0 is needed.');
}

/** The sizes of an instance in the Flex Consumption plan. */
function toMemory(text: string): number {
  if (['0.5', '2', '4'].includes(text)) return Number(text);
  throw new InvalidArgumentError('0.5, 2 or 4 is needed.');
}
