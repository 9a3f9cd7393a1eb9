import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { DAY_MS, isoInstant } from '../base/time.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { Finding } from '../define/declaration/finding.ts';
import type { Engine } from '../engine/engine.ts';
import { measureCost } from '../storage/cost.ts';
import { type Row, readRange, readRow, submit } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import { count } from '../telemetry/metrics.ts';
import { type VerifyOptions, VerifyPosition, verifyPage } from './verify.ts';

/**
 * The regular consistency check. It resumes where the last run stopped, in any process, and limits its storage transactions a
 * second. It repairs what follows from the entities, and reports the rest: a repair that drops values is for an operator.
 */

const PARTITION = SYSTEM_PARTITIONS.verify;
const ROWS_A_PAGE = 50;
/** From the start of a check to the next, by what the model says. */
export const CHECK_EVERY_MS = { weekly: 7 * DAY_MS, monthly: 30 * DAY_MS };
/** Enough to see what is wrong. A check with repair returns all findings. */
const FINDINGS_KEPT = 50;
/** More findings than this point to a restored table or a wrong release, where repairs could delete the last copies of entities. */
const MAX_REPAIRS = 100;
/** In characters of JSON. A property holds 32 Ki, and the rest of the state needs some of them. */
const LONGEST_FINDINGS = 28_000;

/** The result of a regular check. `found` counts all findings, `repaired` those of them that were repaired; `findings` has only the first. */
export const VerifyRun = z.object({
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().optional(),
  checked: z.int(),
  found: z.int(),
  /** Runs of earlier releases repaired nothing. */
  repaired: z.int().default(0),
  /** Rows of other programs. */
  foreign: z.int().default(0),
  findings: z.array(Finding),
});
export type VerifyRun = z.infer<typeof VerifyRun>;

const State = VerifyRun.extend({ position: VerifyPosition.optional() });
type State = z.infer<typeof State>;

interface RunOptions extends Pick<VerifyOptions, 'isOwnRow'> {
  /** In milliseconds. No page starts after this time; a page that has started is finished. */
  readonly until: number;
  /** Storage transactions a second, on average. */
  readonly rate: number;
  /** In milliseconds. A check that began earlier than that is repeated. Default: a week. */
  readonly every?: number;
  readonly patience?: number;
}

/** Returns the last run for an entity, which may still be in progress. */
export async function readVerifyRun(engine: Engine, entity: Entity): Promise<VerifyRun | undefined> {
  const state = await readState(engine, entity);
  return state && VerifyRun.parse(state);
}

/** Returns the last run of each entity, undefined before the first. One range query. */
export async function listVerifyRuns(
  { storage }: Engine,
  entities: readonly Entity[],
): Promise<{ readonly entity: string; readonly run: VerifyRun | undefined }[]> {
  const { rows } = await readRange(storage, { table: SYSTEM_TABLE, partition: PARTITION, from: '' });
  const states = new Map(rows.map((row) => [row.row, toState(row)]));
  return entities.map(({ name }) => {
    const state = states.get(name);
    return { entity: name, run: state && VerifyRun.parse(state) };
  });
}

/**
 * Sorts the entities by the start of their last run. The one that began first is the first, because the check of a large entity may take longer
 * than the time until the next: then it would leave none for the entities after it. One range query.
 */
export async function sortByRun(engine: Engine, entities: readonly Entity[]): Promise<readonly Entity[]> {
  const runs = await listVerifyRuns(engine, entities);
  const startedAt = new Map(runs.map(({ entity, run }) => [entity, Date.parse(run?.startedAt ?? '') || 0]));
  const since = ({ name }: Entity) => startedAt.get(name) ?? 0;
  return entities.toSorted((one, other) => since(one) - since(other));
}

/** Continues the latest run, or starts one. Returns its state, finished or not. */
export async function continueVerifyRun(engine: Engine, entity: Entity, options: RunOptions): Promise<VerifyRun> {
  const run = VerifyRun.parse(await checkPages(engine, entity, options));
  const left = run.found - run.repaired;
  if (left > 0) count.inconsistencies({ entity: entity.name }, left);
  return run;
}

async function checkPages(engine: Engine, entity: Entity, options: RunOptions): Promise<State> {
  const { until, rate, every = CHECK_EVERY_MS.weekly, ...rest } = options;
  let state = await readState(engine, entity);
  const isOver = state?.finishedAt !== undefined;
  if (state && isOver && engine.now() - Date.parse(state.startedAt) < every) return state;
  if (!state || isOver)
    state = { startedAt: isoInstant(engine.now()), checked: 0, found: 0, repaired: 0, foreign: 0, findings: [] };
  while (state.finishedAt === undefined && engine.now() < until) {
    const { position, repaired }: State = state;
    const repair = repaired < MAX_REPAIRS ? 'safe' : false;
    const since = performance.now();
    const page = await measureCost(async (cost) => {
      const verified = await verifyPage(engine, entity, { position, top: ROWS_A_PAGE, repair, ...rest });
      return { ...verified, transactions: cost.transactions };
    });
    const known: readonly Finding[] = state.findings;
    // If two pages share a partition, both report its findings.
    const fresh = page.findings.filter((finding) => !known.some((other) => isDeepStrictEqual(other, finding)));
    state = {
      startedAt: state.startedAt,
      ...(page.next ? { position: page.next } : { finishedAt: isoInstant(engine.now()) }),
      checked: state.checked + page.checked,
      found: state.found + fresh.length,
      foreign: state.foreign + (page.foreign ?? 0),
      repaired: repaired + fresh.filter((finding) => finding.repaired).length,
      findings: keepFirst([...known, ...fresh]),
    };
    await writeState(engine, entity, state);
    await sleep(Math.max(0, (page.transactions / rate) * 1_000 - (performance.now() - since)));
  }
  return state;
}

function keepFirst(findings: readonly Finding[]): Finding[] {
  const kept = findings.slice(0, FINDINGS_KEPT);
  while (JSON.stringify(kept).length > LONGEST_FINDINGS) kept.pop();
  return kept;
}

async function readState({ storage }: Engine, entity: Entity): Promise<State | undefined> {
  const row = await readRow(storage, { table: SYSTEM_TABLE, partition: PARTITION, row: entity.name });
  return row && toState(row);
}

/** A state that another release wrote may not parse; the run then starts again. */
function toState({ properties }: Row): State | undefined {
  return State.safeParse(JSON.parse(String(properties.State))).data;
}

/** No ETag: if two runs overlap, they check the same rows and the last write wins. */
async function writeState({ storage }: Engine, entity: Entity, state: State): Promise<void> {
  const properties = { EntityType: ROW_TYPES.verify, State: JSON.stringify(state) };
  const actions = [{ kind: 'upsert', row: entity.name, properties } as const];
  await submit(storage, { table: SYSTEM_TABLE, partition: PARTITION, actions, isRepeatable: true });
}
