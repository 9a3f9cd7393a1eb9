import { type Command, InvalidArgumentError, Option } from 'commander';
import { RowkeyError } from '../../lib/base/errors.ts';
import { pick, type Values } from '../../lib/base/values.ts';
import { commandLine } from '../../lib/command-line.ts';
import type { Engine } from '../../lib/engine/engine.ts';
import { writePartitions } from '../../lib/engine/write/entity-batch.ts';
import { prepareDelete } from '../../lib/engine/write/entity-write.ts';
import { measureCost } from '../../lib/storage/cost.ts';
import { padTime } from '../../lib/storage/row-journal.ts';
import { compareCopy, type Difference, incomparableFields, readBack } from '../copy/compare-copy.ts';
import { copyTable, formatKey, type KindCopied, nextSince, put } from '../copy/copy-table.ts';
import { planCopy, priceOf } from '../copy/plan-copy.ts';
import {
  findKinds,
  isCopied,
  type Kind,
  type KindReport,
  newReport,
  readSource,
  type SourceReport,
} from '../copy/read-source.ts';
import { createCommand } from './command.ts';
import type { OpenCopy } from './open-copy.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';

interface CopyCommandOptions {
  readonly data: string;
  readonly from: string;
  readonly source: string;
  readonly table?: readonly string[];
  readonly since: string;
  readonly dryRun?: true;
  readonly compare?: true;
  readonly delete?: true;
  readonly back?: true;
}

type Open = (options: Pick<CopyCommandOptions, 'data' | 'from' | 'source'>) => Promise<OpenCopy>;

interface Work extends Pick<CopyCommandOptions, 'since' | 'delete'> {
  readonly opened: OpenCopy;
  readonly kinds: readonly Kind[];
  readonly signal: AbortSignal;
  readonly onRows: (rows: number) => void;
  /** Prints a line of the result. */
  readonly say: (line: string) => void;
}

/** Creates the command that copies the tables of another program into those of the app. */
export function createCopyCommand(open: Open): Command {
  return createCommand(
    'Copies the entities of tables that another program fills into the tables of the app. The next run copies what has changed since.',
  )
    .addOption(
      new Option(
        '--from <account>',
        'the storage account of the other program: its name, or a connection string, for which the variable is better',
      )
        .env('COPY_FROM')
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--source <file>',
      'the file that exports the model of its tables, whose entities have the option existing and the names of those of the app, and, if values differ, map',
    )
    .option('--table <name...>', 'only these tables')
    .option(
      '--since <when>',
      'read rows that were written since the last run, or since an instant, or all, which are then written one by one',
      toSince,
      'last',
    )
    .option('--dry-run', 'only read, and say what a run would write and cost')
    .option('--compare', 'only compare all entities of both sides')
    .option('--delete', 'with --compare: delete entities that the other side does not have')
    .option('--back', 'copy what differs in the app to the tables of the other program instead')
    .action(async ({ table, dryRun, compare, back, ...options }: CopyCommandOptions) => {
      const opened = await open(options);
      const { source, model, maps, mapsBack } = opened;
      const kinds = findKinds(source.list, model.list, { maps, ...(table ? { tables: table } : {}) });
      let rows = 0;
      const progress = startProgress({ rows: () => rows });
      const onRows = (read: number) => {
        rows += read;
      };
      const lines: string[] = [];
      const say = (line: string) => lines.push(line);
      const work = { ...options, opened, signal: progress.signal, onRows, say };
      const started = performance.now();
      try {
        const { isDone, transactions } = await measureCost(async (cost) => ({
          isDone: back
            ? await runBack({ ...work, kinds }, { mapsBack, isComparison: compare === true })
            : await (compare ? runCompare : dryRun ? runPlan : runCopy)({ ...work, kinds }),
          transactions: cost.transactions,
        }));
        progress.stop();
        for (const line of lines) console.log(line);
        const seconds = (performance.now() - started) / 1_000;
        console.log(
          `${format(rows)} rows read in ${seconds.toFixed(1)} s, ${format(Math.round(rows / seconds))} rows/s, ${format(transactions)} storage transactions.`,
        );
        if (!isDone) process.exitCode = 1;
      } catch (error) {
        progress.stop();
        for (const line of lines) console.log(line);
        if (!progress.signal.aborted) throw error;
        console.error(`Stopped. To continue, run the same command again: ${commandLine('copy')}.`);
        process.exitCode = INTERRUPTED_EXIT_CODE;
      }
    });
}

function toSince(text: string): string {
  if (text === 'last' || text === 'all') return text;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?Z$/.test(text) || Number.isNaN(Date.parse(text)))
    throw new InvalidArgumentError('Accepted are last, all, and an instant in UTC such as 2026-11-29T09:30:00Z.');
  return padTime(text.replace(/T(\d\d:\d\d)Z$/, 'T$1:00Z'));
}

const byTable = (kinds: readonly Kind[]) => [...Map.groupBy(kinds, ({ from }) => from.table)];

async function runCopy({ opened: { from, to: engine }, kinds, since, say, ...work }: Work): Promise<boolean> {
  let rejected = 0;
  for (const [, some] of byTable(kinds)) {
    const copies = await copyTable({
      ...work,
      from: from.storage,
      engine,
      kinds: some,
      since: since === 'all' ? '' : since,
    });
    for (const { source, kinds: done, since: from } of copies) {
      describeSource(source, from).forEach(say);
      for (const kind of done) describeKind(kind.source, describeCopied(kind)).forEach(say);
      rejected += done.reduce((sum, kind) => sum + kind.source.rejected, 0);
    }
  }
  return rejected === 0;
}

async function runPlan({ opened: { from, to }, kinds, since: given, say, ...work }: Work): Promise<boolean> {
  let rejected = 0;
  const total = { tables: 0, queues: 0 };
  for (const [table, some] of byTable(kinds)) {
    const next = given === 'last' ? await nextSince(to.storage, from.storage, some) : given;
    const since = next === 'all' ? '' : next;
    const report = newReport(table, some);
    const pages = readSource(from.storage, some, { ...work, report, since: since || undefined });
    const plan = await planCopy(pages, { report, isLoad: () => since === undefined });
    total.tables += plan.tables;
    total.queues += plan.queues;
    describeSource(report, since).forEach(say);
    for (const of of report.kinds.values()) {
      describeKind(of, `${format(plan.valid.get(of.name) ?? 0)} to write`).forEach(say);
      rejected += of.rejected;
    }
  }
  const dollars = priceOf(total).toFixed(4);
  say(
    `A run would take about ${format(total.tables + total.queues)} storage transactions, for about $${dollars}. Nothing was written.`,
  );
  return rejected === 0;
}

async function runCompare({
  opened: { from, to: engine },
  kinds,
  say,
  signal,
  onRows,
  ...work
}: Work): Promise<boolean> {
  const reports: SourceReport[] = [];
  const expected = async function* () {
    for (const [table, some] of byTable(kinds)) {
      const report = newReport(table, some);
      reports.push(report);
      yield* readSource(from.storage, some, { signal, onRows, report });
    }
  };
  const found = await compare({ engine, kinds, expected, say, signal, onRows });
  // A second reading has others.
  const first = new Map(reports.toReversed().map((report) => [report.table, report]));
  const unreadable = [...first.values()]
    .flatMap(({ kinds }) => [...kinds.values()])
    .filter(({ rejected }) => rejected > 0);
  for (const { name, rejected, rejections } of unreadable) sayRejections({ name, rejected, rejections }, say);
  const differences = found.length + unreadable.reduce((sum, { rejected }) => sum + rejected, 0);
  const unsure = new Set([...unreadable.map(({ name }) => name), ...namesOfRejected(found)]);
  return finish(differences, { found, unsure, engine, say, isDelete: work.delete === true });
}

async function runBack(
  { opened: { from: engine, to }, kinds: forth, say, ...work }: Work,
  { mapsBack, isComparison }: Pick<OpenCopy, 'mapsBack'> & { readonly isComparison: boolean },
): Promise<boolean> {
  const kinds = toBack(forth, mapsBack);
  const expected = () => readBack(to, kinds, work);
  // A row that no copy has brought into the app is not one that the app has deleted.
  const isNoted = (one: Difference) =>
    one.is !== 'extra' || forth.some((kind) => kind.from === one.kind.to && isCopied(kind, one.values));
  const found = await compare({ engine, kinds, expected, say, isNoted, ...work });
  const unsure = new Set(namesOfRejected(found));
  if (isComparison) return finish(found.length, { found, unsure, engine, say, isDelete: work.delete === true });
  let rejected = 0;
  for (const kind of kinds) {
    const values = found.flatMap((one): readonly Values[] =>
      one.kind === kind && (one.is === 'missing' || one.is === 'different') ? [one.values] : [],
    );
    const source = [...newReport(kind.to.table, [kind]).kinds.values()][0];
    if (!source) continue;
    const counts: KindCopied = { created: 0, changed: 0, unchanged: 0, source };
    await put(engine, kind.to, values, counts);
    rejected += source.rejected;
    describeKind(source, describeCopied(counts)).forEach(say);
  }
  const extra = found.filter(({ is }) => is === 'extra');
  if (work.delete) await deleteAll(engine, extra, { unsure, say });
  return rejected === 0 && unsure.size === 0 && (extra.length === 0 || work.delete === true);
}

function toBack(kinds: readonly Kind[], mapsBack: OpenCopy['mapsBack']): Kind[] {
  return kinds.map(({ from, to, map }) => {
    const back = mapsBack[from.name];
    if (map && !back) throw new Error(`The source maps ${from.name}: to copy back, it must export mapBack for it.`);
    return { from: to, to: from, map: back };
  });
}

async function compare({
  say,
  isNoted = () => true,
  ...comparison
}: Parameters<typeof compareCopy>[0] &
  Pick<Work, 'say'> & { readonly isNoted?: (one: Difference) => boolean }): Promise<Difference[]> {
  const found: Difference[] = [];
  for await (const difference of compareCopy(comparison)) {
    if (!isNoted(difference)) continue;
    found.push(difference);
    say(describeDifference(difference));
  }
  for (const { to } of comparison.kinds) {
    const left = incomparableFields(to).filter((field) => !to.decidedFields.includes(field));
    if (left.length > 0)
      say(`${to.name}: not compared: ${left.join(', ')}, whose defaults differ from entity to entity.`);
  }
  return found;
}

function describeDifference(one: Difference): string {
  const of = `${one.kind.to.name} "${formatKey(one.kind.to, one.values)}"`;
  if (one.is === 'missing') return `${of} is missing.`;
  if (one.is === 'extra') return `${of} is extra.`;
  if (one.is === 'rejected') return `${of} is not accepted: ${one.reason}`;
  return `${of} differs in ${one.fields.join(', ')}.`;
}

const namesOfRejected = (found: readonly Difference[]) =>
  found.flatMap(({ is, kind }) => (is === 'rejected' ? kind.to.name : []));

interface Finishing extends Pick<Work, 'say'> {
  readonly found: readonly Difference[];
  /** Entities with rows that could not be read or are not accepted. */
  readonly unsure: ReadonlySet<string>;
  readonly engine: Engine;
  readonly isDelete: boolean;
}

async function finish(differences: number, { found, isDelete, ...deleting }: Finishing): Promise<boolean> {
  const extra = found.filter(({ is }) => is === 'extra');
  deleting.say(`${format(differences)} differences.`);
  const deleted = isDelete ? await deleteAll(deleting.engine, extra, deleting) : 0;
  return differences === deleted;
}

/** Deletes what the other side does not have, unless rows of the entity were rejected: an extra one may be one of them. */
async function deleteAll(
  engine: Engine,
  extra: readonly Difference[],
  { unsure, say }: Pick<Finishing, 'unsure' | 'say'>,
): Promise<number> {
  const certain = extra.filter(({ kind }) => !unsure.has(kind.to.name));
  const writes = certain.map(({ kind: { to }, values }) =>
    prepareDelete(engine, to, pick(values, to.keyFields), undefined, {}),
  );
  const outcomes = [...(await writePartitions(engine, writes)).values()];
  const failed = outcomes.flatMap((outcome) => (outcome instanceof RowkeyError ? outcome.message : []));
  failed.forEach(say);
  const deleted = writes.length - failed.length;
  say(`${format(deleted)} extra entities deleted.`);
  if (certain.length < extra.length)
    say(
      `${format(extra.length - certain.length)} were left: some rows of ${[...unsure].join(', ')} are not accepted, and may be theirs.`,
    );
  return deleted;
}

function describeSource({ table, rows, foreign, forms }: SourceReport, since: string | undefined): string[] {
  const read = since ? `${format(rows)} rows since ${since}` : `${format(rows)} rows`;
  if (foreign === 0) return [`${table}: ${read}.`];
  const keys = [...forms].map(([form, count]) => `${form} (${format(count)})`).join(', ');
  return [`${table}: ${read}; ${format(foreign)} are of no entity and are left out, with keys such as ${keys}.`];
}

function describeCopied({ created, changed, unchanged }: KindCopied): string {
  return `${format(created)} created, ${format(changed)} changed, ${format(unchanged)} unchanged`;
}

function describeKind(report: KindReport, what: string): string[] {
  const { name, rows, leftOut, rejected, undeclared } = report;
  const lines = [
    `${name}: ${format(rows)} rows, ${what}, ${format(leftOut)} left out by map, ${format(rejected)} rejected.`,
  ];
  for (const [property, count] of undeclared)
    lines.push(`${name}: the property ${property} of ${format(count)} rows is not copied, because no field names it.`);
  sayRejections(report, (line) => lines.push(line));
  return lines;
}

const MAX_LINES = 20;

function sayRejections(
  { name, rejected, rejections }: Pick<KindReport, 'name' | 'rejected' | 'rejections'>,
  say: Work['say'],
) {
  for (const { key, reason } of rejections.slice(0, MAX_LINES)) say(`${name} "${key}" is rejected: ${reason}`);
  if (rejected > MAX_LINES) say(`${name}: ${format(rejected - MAX_LINES)} more are rejected.`);
}

const format = (value: number) => value.toLocaleString('en-US');
