import { join } from 'node:path';
import type { Command } from 'commander';
import pMap from 'p-map';
import { z } from 'zod';
import { commandLine } from '../../lib/command-line.ts';
import { pathTo } from '../../lib/http/route.ts';
import {
  ask,
  createTargetCommand,
  formatProblem,
  readNextPage,
  readProblem,
  resolveTarget,
  type Target,
  type TargetOptions,
} from './target.ts';
import { describeFormer, toRate, type Walked, walkPages } from './walk-pages.ts';

/** The commands that call the operations of an API page by page. */

interface VerifyOptions extends TargetOptions {
  readonly repair?: true;
  readonly rate: number;
}

export function createVerifyCommand(): Command {
  return createTargetCommand('Compares the stored rows of an entity with its indexes, copies, lists, counts and blobs.')
    .argument('<entity>', 'the name of the entity')
    .option('--repair', 'repair the differences')
    .option('--rate <number>', 'average storage transactions per second', toRate, 200)
    .action(verify);
}

async function verify(entity: string, options: VerifyOptions): Promise<void> {
  const { repair = false, rate, data, path: root = '' } = options;
  const target = await resolveTarget(options);
  const path = `${target.root}/operations/verify/${encodeURIComponent(entity)}?top=100&repair=${repair}`;
  const bookmark = join(data, root, `verify-${entity}-${repair ? 'repair' : 'look'}`);
  const walked = await walkPages(target, { path, bookmark, rate });
  if (!walked) return;
  const { checked, found, repaired, foreign } = walked;
  console.log(
    `${checked} rows checked: ${found} do not agree${repair ? `, ${repaired} of them repaired` : ''}.${describeFormer(walked)}`,
  );
  if (foreign > 0)
    console.log(
      `${foreign} of them are rows of another program, which are left as they are. Unless ${entity} has the option existing, move them to a table of their own; or, if no clients write ${entity} with grants, declare sharedTable: true of ${entity}.`,
    );
  if (found > repaired) process.exitCode = 1;
}

interface ReindexOptions extends TargetOptions {
  readonly rate: number;
  readonly cleanUp?: true;
}

export function createReindexCommand(): Command {
  return createTargetCommand(
    'Adds the rows that were stored before an index was declared to that index. Writes may continue.',
  )
    .argument('<entity>', 'the name of the entity')
    .argument('<index>', 'the name of the index in the declaration')
    .option('--clean-up', 'delete the rows of an index that is no longer declared')
    .option('--rate <number>', 'average storage transactions per second', toRate, 1_000)
    .action(reindex);
}

async function reindex(entity: string, index: string, options: ReindexOptions): Promise<void> {
  const { cleanUp = false, data, rate, path: root = '' } = options;
  const target = await resolveTarget(options);
  const work = cleanUp ? 'clean-up' : 'reindex';
  const path = `${target.root}/operations/${work}/${encodeURIComponent(entity)}/${encodeURIComponent(index)}?top=100`;
  const bookmark = join(data, root, `${work}-${entity}-${index}`);
  const walked = await walkPages(target, { path, bookmark, rate });
  if (!walked) return;
  const { checked, found, repaired } = walked;
  const sums = cleanUp
    ? formatCleanUp(index, { checked, repaired })
    : `${checked} rows checked: ${repaired} of ${found} missing rows added to the index ${index}.`;
  console.log(`${sums}${describeFormer(walked)}`);
  if (found > repaired) process.exitCode = 1;
}

export function createRekeyCommand(): Command {
  return createTargetCommand('Moves the entities of a kind from their former key to the key of the declaration.')
    .argument('<entity>', 'the name of the entity')
    .option('--rate <number>', 'average storage transactions per second', toRate, 500)
    .action(rekey);
}

async function rekey(entity: string, options: VerifyOptions): Promise<void> {
  const { rate, data, path: root = '' } = options;
  const target = await resolveTarget(options);
  const path = `${target.root}/operations/rekey/${encodeURIComponent(entity)}?top=100`;
  const bookmark = join(data, root, `rekey-${entity}`);
  const describe = ({ checked, repaired }: Walked) =>
    checked === 0 ? 'waiting for writes at the former key' : `${repaired} moved`;
  const walked = await walkPages(target, { path, bookmark, rate, printsLeft: true, describe });
  if (!walked) return;
  const { checked, found, repaired } = walked;
  console.log(`${checked} rows read: ${repaired} of ${found} entities moved.${describeFormer(walked)}`);
  if (found > repaired) process.exitCode = 1;
}

const Model = z.object({
  entities: z.record(z.string(), z.object({ key: z.object({ fields: z.array(z.string()) }) })),
});
const Page = z.object({ items: z.array(z.record(z.string(), z.unknown())) });
/** One by one: a batch leaves index entries to the queue, and a release with another key would handle its messages. */
const PURGE_CONCURRENCY = 8;

export function createPurgeCommand(): Command {
  return createTargetCommand(
    'Deletes all entities of a kind, as a change of their key needs. Without --yes, only counts them.',
  )
    .argument('<entity>', 'the name of the entity')
    .option('--yes', 'delete them; export them first if you want to import them again')
    .action(purge);
}

async function purge(entity: string, options: TargetOptions & { readonly yes?: true }): Promise<void> {
  const target = await resolveTarget(options);
  const { root } = target;
  const { entities } = Model.parse(await readJson(await ask(target, `${root}/model`)));
  const { key } = (Object.hasOwn(entities, entity) && entities[entity]) || {};
  if (!key) throw new Error(`Entity "${entity}" not found; accepted are ${Object.keys(entities).join(', ')}.`);
  const scan = `${root}/operations/scan/${entity}?top=200&select=${key.fields.join(',')}`;
  const remove = async (row: Readonly<Record<string, unknown>>): Promise<void> => {
    const path = pathTo(root, entity, ...key.fields.map((field) => row[field]));
    const response = await ask(target, path, { method: 'DELETE' });
    // The delete of its parent deletes a child.
    if (!response.ok && response.status !== 404)
      console.error(`${path} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
  };
  const found = await walkItems(target, scan, async (items) => {
    if (options.yes) await pMap(items, remove, { concurrency: PURGE_CONCURRENCY });
  });
  if (!options.yes) {
    console.log(
      `${found} ${entity} would be deleted, with their children, files, index entries and unique values. Archived ones stay. Nothing is deleted without --yes.`,
    );
    return;
  }
  const left = await walkItems(target, scan);
  console.log(`${found - left} of ${found} ${entity} deleted.`);
  if (left === 0) return;
  console.error(
    `The others are still there: ${commandLine('verify', entity, options.path)} reports those that no request finds.`,
  );
  process.exitCode = 1;
}

/** Reads all pages of a scan, one after another, and returns the number of entities. */
async function walkItems(
  target: Target,
  path: string,
  handle: (items: z.infer<typeof Page>['items']) => Promise<void> = async () => {},
): Promise<number> {
  let count = 0;
  for (let next: string | undefined = path; next; ) {
    const response = await ask(target, next);
    const { items } = Page.parse(await readJson(response));
    count += items.length;
    await handle(items);
    next = readNextPage(response);
  }
  return count;
}

async function readJson(response: Response): Promise<unknown> {
  if (response.ok) return response.json();
  const path = new URL(response.url).pathname;
  throw new Error(`${path} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
}

interface ReplayOptions extends TargetOptions {
  readonly queue?: string;
  readonly reason?: string;
}

export function createReplayCommand(): Command {
  return createTargetCommand('Sends failed messages to their queues again. Without an option, all of them.')
    .option('--queue <name>', 'those of a queue, such as index-changes')
    .option('--reason <text>', 'those whose reason contains the text')
    .action(replay);
}

const Ids = z.array(z.string());
const Replayed = z.object({ replayed: Ids, failed: Ids.default([]), away: Ids.default([]) });

async function replay({ queue, reason, ...options }: ReplayOptions): Promise<void> {
  const target = await resolveTarget(options);
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ queue, reason }),
  };
  let count = 0;
  const failed: string[] = [];
  const away = new Set<string>();
  for (let next: string | undefined = `${target.root}/operations/poison/replays?top=100`; next; ) {
    const response = await ask(target, next, request);
    const page = Replayed.parse(await readJson(response));
    count += page.replayed.length;
    failed.push(...page.failed);
    for (const name of page.away) away.add(name);
    next = readNextPage(response);
  }
  console.log(`${count} messages sent again.`);
  if (failed.length > 0)
    console.error(`${failed.length} cannot be sent, and stay: ${failed.join(', ')}. Does their queue still exist?`);
  if (failed.length > 0) process.exitCode = 1;
  if (away.size === 0) return;
  console.error(`Others stay: accounts that do not respond may have some: ${[...away].join(', ')}.`);
  process.exitCode = 1;
}

export function formatCleanUp(index: string, { checked, repaired }: Pick<Walked, 'checked' | 'repaired'>): string {
  // The API drops a table that no declared index uses, without reading its rows.
  if (checked === 0) return `The former index ${index} is cleaned up: its table was dropped, or has no rows.`;
  return `${checked} rows checked: ${repaired} rows of the former index ${index} deleted.`;
}
