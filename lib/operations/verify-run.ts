import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Entity } from '../define/entity.ts';
import { Finding } from '../define/finding.ts';
import type { Engine } from '../engine/engine.ts';
import { SYSTEM_TABLE } from '../engine/read/continuation.ts';
import { measureCost } from '../storage/cost.ts';
import { readRow, submit } from '../storage/rows.ts';
import { countInconsistencies } from '../telemetry/metrics.ts';
import { DAY_MS, isoInstant } from '../time.ts';
import { VerifyPosition, verifyPage } from './verify.ts';

/**
 * The weekly consistency check: goes on where the run before was cut off, in whatever process, and takes no more storage
 * transactions a second than it may. It reports, and repairs nothing: that is for an operator to say.
 */

const PARTITION = 'verify';
const ROWS_A_PAGE = 50;
const WEEK_MS = 7 * DAY_MS;
/** The first of them tell what is wrong; an audit that repairs tells all. */
const FINDINGS_KEPT = 50;
/** One property holds 32 Ki characters, and the rest of the state takes some: a finding may have two keys of 512. */
const LONGEST_FINDINGS = 28_000;

/** What operators are told of a weekly audit; `found` counts all findings, of which the first are kept. */
export const VerifyRun = z.object({
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().optional(),
  looked: z.int(),
  found: z.int(),
  findings: z.array(Finding),
});
export type VerifyRun = z.infer<typeof VerifyRun>;

const State = VerifyRun.extend({ position: VerifyPosition.optional() });
type State = z.infer<typeof State>;

export interface RunOptions {
  /** Milliseconds: a page that begins before is finished. */
  readonly until: number;
  /** Storage transactions a second, on average. */
  readonly rate: number;
  readonly patience?: number;
}

/** How the last audit of an entity went, or goes. */
export async function readVerifyRun(engine: Engine, entity: Entity): Promise<VerifyRun | undefined> {
  const state = await readState(engine, entity);
  return state && VerifyRun.parse(state);
}

/** Goes on with the audit of this week, or begins it. Answers it, finished or not. */
export async function continueVerifyRun(engine: Engine, entity: Entity, options: RunOptions): Promise<VerifyRun> {
  const run = VerifyRun.parse(await goOn(engine, entity, options));
  if (run.found > 0) countInconsistencies({ entity: entity.name }, run.found);
  return run;
}

async function goOn(engine: Engine, entity: Entity, options: RunOptions): Promise<State> {
  const { until, rate, ...rest } = options;
  let state = await readState(engine, entity);
  const isOver = state?.finishedAt !== undefined;
  if (state && isOver && engine.now() - Date.parse(state.startedAt) < WEEK_MS) return state;
  if (!state || isOver) state = { startedAt: isoInstant(engine.now()), looked: 0, found: 0, findings: [] };
  while (state.finishedAt === undefined && engine.now() < until) {
    const { position } = state;
    const since = performance.now();
    const page = await measureCost(async (cost) => {
      const audited = await verifyPage(engine, entity, { position, top: ROWS_A_PAGE, repair: false, ...rest });
      return { ...audited, transactions: cost.transactions };
    });
    const known: readonly Finding[] = state.findings;
    // A partition that two pages share is counted by both.
    const fresh = page.findings.filter((finding) => !known.some((other) => isDeepStrictEqual(other, finding)));
    state = {
      startedAt: state.startedAt,
      ...(page.next ? { position: page.next } : { finishedAt: isoInstant(engine.now()) }),
      looked: state.looked + page.looked,
      found: state.found + fresh.length,
      findings: firstOf([...known, ...fresh]),
    };
    await writeState(engine, entity, state);
    await sleep(Math.max(0, (page.transactions / rate) * 1_000 - (performance.now() - since)));
  }
  return state;
}

function firstOf(findings: readonly Finding[]): Finding[] {
  const kept = findings.slice(0, FINDINGS_KEPT);
  while (JSON.stringify(kept).length > LONGEST_FINDINGS) kept.pop();
  return kept;
}

async function readState({ storage }: Engine, entity: Entity): Promise<State | undefined> {
  const row = await readRow(storage, { table: SYSTEM_TABLE, partition: PARTITION, row: entity.name });
  // What another release has written is begun anew.
  return row && State.safeParse(JSON.parse(String(row.properties.State))).data;
}

/** Two runs at once would look twice and report once: the last one to write wins. */
async function writeState({ storage }: Engine, entity: Entity, state: State): Promise<void> {
  const properties = { EntityType: 'verify', State: JSON.stringify(state) };
  const actions = [{ kind: 'upsert', row: entity.name, properties } as const];
  await submit(storage, { table: SYSTEM_TABLE, partition: PARTITION, actions });
}
