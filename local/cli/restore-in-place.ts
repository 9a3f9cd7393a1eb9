import { createInterface } from 'node:readline/promises';
import { z } from 'zod';
import { commandLine } from '../../lib/command-line.ts';
import { ModelDescription } from '../../lib/define/declaration/model-description.ts';
import { Problem } from '../../lib/http/problem.ts';
import { pathTo } from '../../lib/http/route.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import {
  ask,
  formatProblem,
  readNextPage,
  readProblem,
  resolveTarget,
  type Target,
  type TargetOptions,
} from './target.ts';

/** Puts the entities of an app that runs back to what they were: shows what differs, asks, and restores that and nothing else. */

export interface InPlaceOptions extends TargetOptions {
  readonly at: string;
  readonly entity?: string;
  readonly partition?: string;
  readonly row?: string;
  readonly dryRun?: true;
  readonly yes?: true;
}

const MAX_EXAMPLES = 20;
/** Of one request. */
const MAX_ITEMS = 100;

const Difference = z.object({
  entity: z.string(),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  version: z.string().optional(),
  key: z.record(z.string(), z.unknown()),
  change: z.enum(['create', 'replace', 'delete']),
  lost: z.array(z.string()).default([]),
});
type Difference = z.infer<typeof Difference>;
const Differences = z.object({ items: z.array(Difference) });
const Restored = z.object({
  items: z.array(
    z.object({
      outcome: z.enum(['restored', 'changed', 'failed']),
      problem: Problem.optional(),
      lost: z.array(z.string()).default([]),
    }),
  ),
});

const nameOf = ({ entity, key }: Difference) => `${entity} ${Object.values(key).join('/')}`;

export async function restoreInPlace(options: InPlaceOptions): Promise<void> {
  const { at, dryRun, yes } = options;
  const target = await resolveTarget(options);
  /** By the entity of the path: itself, and its children. */
  const found = new Map<string, Difference[]>();
  const left: string[] = [];
  const countFound = () => [...found.values()].reduce((sum, { length }) => sum + length, 0);
  const progress = startProgress({ rows: countFound, describe: () => 'differ' });
  const { signal } = progress;
  try {
    for (const name of await entitiesOf(target, options.entity)) {
      found.set(name, []);
      const reason = await compare(target, name, {
        options,
        signal,
        onPage: (items) => found.get(name)?.push(...items),
      });
      if (reason === undefined) continue;
      found.delete(name);
      left.push(reason);
    }
  } finally {
    progress.stop();
  }
  if (signal.aborted) return interrupt();
  for (const line of [...describeDifferences([...found.values()].flat(), at), ...left]) console.log(line);
  if (dryRun || countFound() === 0 || !(await isConfirmed(yes))) return;
  await restoreAll(target, found, at);
}

function interrupt(): void {
  console.error(`Interrupted. To continue, run the same command again: ${commandLine('restore')}.`);
  process.exitCode = INTERRUPTED_EXIT_CODE;
}

/** The entities of the model that are restored with their children; archives last, so that what was archived is back before it goes there. */
async function entitiesOf(target: Target, only: string | undefined): Promise<string[]> {
  if (only !== undefined) return [only];
  const model = ModelDescription.parse(await readJson(await ask(target, pathTo(target.root, 'model'))));
  if (!model.backup) throw new Error('The app declares no backup. Add backup: { days: 35 } to defineModel.');
  const own = Object.entries(model.entities).filter(([, { parent, series }]) => parent === undefined && !series);
  const isArchive = ([, { archiveOf }]: (typeof own)[number]) => Number(archiveOf !== undefined);
  return own.sort((one, other) => isArchive(one) - isArchive(other)).map(([name]) => name);
}

/** Reads the differences of an entity. Returns why it stays as it is, if it does and others are restored. */
async function compare(
  target: Target,
  name: string,
  {
    options: { at, entity, partition, row },
    signal,
    onPage,
  }: {
    readonly options: InPlaceOptions;
    readonly signal: AbortSignal;
    readonly onPage: (items: Difference[]) => void;
  },
): Promise<string | undefined> {
  const request = toRequest({ at, partition, row });
  let next: string | undefined = `${pathTo(target.root, 'operations', 'differences', name)}?top=1000`;
  for (; next && !signal.aborted; ) {
    const response = await ask(target, next, request);
    const problem = entity === undefined && !response.ok ? await readProblem(response.clone()) : undefined;
    if (problem?.code === 'invalid-input' && problem.field === undefined)
      return `${name} stays as it is: ${formatProblem(problem)}`;
    onPage(Differences.parse(await readJson(response)).items);
    next = readNextPage(response);
  }
  return undefined;
}

function toRequest(body: object): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

function describeDifferences(differences: readonly Difference[], at: string): string[] {
  if (differences.length === 0) return [`Everything is as it was at ${at}.`];
  const counts = [...Map.groupBy(differences, ({ entity }) => entity)].map(([entity, all]) => {
    const count = (wanted: Difference['change']) => all.filter(({ change }) => change === wanted).length;
    return `${entity}: ${count('create')} to create, ${count('replace')} to replace, ${count('delete')} to delete`;
  });
  const examples = differences.slice(0, MAX_EXAMPLES).map((each) => `  ${each.change} ${nameOf(each)}`);
  const more = differences.length - examples.length;
  const lost = differences.flatMap((each) =>
    each.lost.map((field) => `${nameOf(each)}: "${field}" cannot be restored.`),
  );
  return [...counts, ...examples, ...(more > 0 ? [`  and ${more} more`] : []), ...lost.slice(0, MAX_EXAMPLES)];
}

async function isConfirmed(yes: true | undefined): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY) {
    console.log('Nothing is changed without --yes.');
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question('Restore these? (y/N) ')).trim());
  } finally {
    terminal.close();
  }
}

/** Restores parents before their children, and again what failed while something is restored: it may have needed that. */
async function restoreAll(target: Target, found: ReadonlyMap<string, Difference[]>, at: string): Promise<void> {
  let restored = 0;
  const lost: string[] = [];
  const changed: string[] = [];
  const failed = new Map<Difference, string>();
  const progress = startProgress({ rows: () => restored, describe: () => `restored, ${failed.size} failed` });
  const { signal } = progress;
  const restore = async (name: string, items: readonly Difference[]) => {
    const body = { at, items: items.map(({ key: _, change: __, lost: ___, ...item }) => item) };
    const response = await ask(target, pathTo(target.root, 'operations', 'restore', name), toRequest(body));
    for (const [index, done] of Restored.parse(await readJson(response)).items.entries()) {
      const item = items[index];
      if (!item) continue;
      failed.delete(item);
      if (done.outcome === 'restored') restored += 1;
      else if (done.outcome === 'changed') changed.push(nameOf(item));
      else failed.set(item, `${nameOf(item)}: ${formatProblem(done.problem)}`);
      lost.push(...done.lost.map((field) => `${nameOf(item)}: "${field}" is lost.`));
    }
  };
  try {
    for (
      let before = -1, isWanted = (_: Difference) => true;
      restored > before;
      isWanted = (item) => failed.has(item)
    ) {
      before = restored;
      for (const [name, all] of found) {
        const wanted = all
          .filter(isWanted)
          .sort((one, other) => Number(one.entity !== name) - Number(other.entity !== name));
        for (let first = 0; first < wanted.length && !signal.aborted; first += MAX_ITEMS)
          await restore(name, wanted.slice(first, first + MAX_ITEMS));
      }
    }
  } finally {
    progress.stop();
  }
  for (const line of [...failed.values(), ...lost]) console.error(line);
  for (const name of changed) console.error(`${name} has changed since the comparison, and stays as it is.`);
  console.log(
    `${restored} restored, ${changed.length} have changed since and stay as they are, ${failed.size} failed.`,
  );
  if (signal.aborted) interrupt();
  else if (failed.size + changed.length + lost.length > 0) process.exitCode = 1;
}

async function readJson(response: Response): Promise<unknown> {
  if (response.ok) return response.json();
  const path = new URL(response.url).pathname;
  throw new Error(`${path} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
}
