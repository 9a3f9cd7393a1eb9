import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { HOUR_MS, isoInstant, MINUTE_MS, SECOND_MS } from '../base/time.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Finding } from '../define/declaration/finding.ts';
import { tablesOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { ANY_ROWS } from '../engine/read/page-length.ts';
import { listFormOf } from '../engine/write/siblings.ts';
import { type Row, readRow, scanTable, submit } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import { repairRows, VerifyPosition, verifyPage } from './verify.ts';
import { partOf } from './verify-index-rows.ts';

/**
 * Follows the program that fills a table. A look reads the rows that have changed since the last one began, by their time stamps, and repairs what follows
 * from them: a part of the table at a time, then the index rows of that part. Rows that were deleted have no time stamp: the index rows are compared with
 * their entities, some at each look.
 *
 * A look that ends early is continued by the next one, of any process. The state is written after the work that it names, and each state is true by itself: so a look
 * that is repeated, or that overlaps another one, only does work again.
 */

const PARTITION = SYSTEM_PARTITIONS.follow;
/** A row may be stored some time after its time stamp was taken, and the clocks of the services may differ. */
const MARGIN_MS = 2 * MINUTE_MS;
/** The changed rows whose index rows one pass over the indexes finds. A storage call returns as many. */
const ROWS_A_PART = 1_000;
/** From the start of a comparison of the index rows to the next. */
const COMPARE_EVERY_MS = HOUR_MS;
/** Index rows of each entity that one look compares; each takes two reads. */
const ROWS_COMPARED = 500;

const State = z.object({
  /** What changed before is settled. Absent: nothing is. */
  since: z.iso.datetime().optional(),
  /** The `since` of the next look. */
  next: z.iso.datetime(),
  /** The start of the last look by the clock of its process, and how far it is. */
  startedAt: z.iso.datetime(),
  isFinished: z.boolean(),
  after: z.object({ partition: z.string(), row: z.string() }).optional(),
  resume: z.string().optional(),
  /** The comparisons of the index rows, by entity. */
  compared: z
    .record(z.string(), z.object({ startedAt: z.iso.datetime(), position: VerifyPosition.optional() }))
    .default({}),
});
type State = z.infer<typeof State>;

interface FollowOptions {
  /** In milliseconds. No part starts after this time. */
  readonly until: number;
  readonly patience?: number;
}

interface Followed {
  /** The changed rows that were checked. */
  readonly checked: number;
  readonly repaired: number;
  /** What needs an operator, such as two rows with one unique value. */
  readonly left: number;
}

/** True if an app follows the table of the entity. */
export function isFollowed({ existing }: Entity): boolean {
  return existing?.follow !== undefined;
}

/** The followed entities, by their tables. */
export function followedTables(entities: readonly Entity[]): ReadonlyMap<string, readonly Entity[]> {
  return Map.groupBy(entities.filter(isFollowed), ({ table }) => table);
}

/** Begins a look at the table of these entities if it is time for one, or continues the last one. */
export async function followTable(
  engine: Engine,
  entities: readonly Entity[],
  options: FollowOptions,
): Promise<Followed> {
  const [first] = entities;
  const sum = { checked: 0, repaired: 0, left: 0 };
  if (!first) return sum;
  const { table } = first;
  const every = Math.min(...entities.map(({ existing }) => existing?.follow ?? Number.POSITIVE_INFINITY)) * SECOND_MS;
  const before = await readState(engine, table);
  if (before?.isFinished && engine.now() - Date.parse(before.startedAt) < every) return sum;
  let state: State = before && !before.isFinished ? before : begin(engine, before);
  const note = (repaired: readonly { readonly repaired: boolean }[]) => {
    sum.repaired += repaired.filter((finding) => finding.repaired).length;
    sum.left += repaired.filter((finding) => !finding.repaired).length;
  };
  while (!state.isFinished && engine.now() < options.until) {
    const { since, after, resume }: State = state;
    const { rows, more, ...page } = await scanTable(engine.storage, {
      table,
      type: entities.map(({ name }) => name),
      ...(since && { where: [{ name: 'Timestamp', operator: 'ge', values: [{ type: 'DateTime', value: since }] }] }),
      select: ['EntityType'],
      limit: ROWS_A_PART,
      mayPause: true,
      after,
      resume,
    });
    for (const entity of entities) {
      const changed = rows.filter(({ properties: { EntityType } }) => EntityType === entity.name);
      note(await settleRows(engine, entity, changed, options));
    }
    sum.checked += rows.length;
    const last = rows.at(-1) ?? after;
    const place = page.resume
      ? { after, resume: page.resume }
      : { after: last && { partition: last.partition, row: last.row } };
    const { next, startedAt, compared } = state;
    const looked = { next, startedAt, compared };
    state = more ? { ...looked, since, isFinished: false, ...place } : { ...looked, since: next, isFinished: true };
    await writeState(engine, table, state);
  }
  for (const entity of entities) {
    if (engine.now() >= options.until) break;
    const compared = await compareIndexRows(engine, entity, state.compared[entity.name], options);
    if (!compared) continue;
    note(compared.findings);
    state = { ...state, compared: { ...state.compared, [entity.name]: compared.next } };
    await writeState(engine, table, state);
  }
  return sum;
}

function begin({ storage, now }: Engine, last: State | undefined): State {
  const next = isoInstant((storage.clock.earliestTime() ?? now()) - MARGIN_MS);
  return { since: last?.since, next, startedAt: isoInstant(now()), isFinished: false, compared: last?.compared ?? {} };
}

/** Repairs what follows from rows of an entity: the entries that they need, and those that they have left. */
async function settleRows(engine: Engine, entity: Entity, changed: readonly Row[], options: FollowOptions) {
  if (changed.length === 0) return [];
  const found = [
    ...(await repairRows(
      engine,
      entity,
      changed.map((row) => ({ row })),
      options,
    )),
  ];
  const keys = new Set(changed.map(keyOf));
  const list = listFormOf(entity);
  for (const table of tablesOf(entity).filter((one) => one !== entity.table))
    for (let after: Row | undefined, isOver = false; !isOver; ) {
      // The members of a list are in its row, and in no property that all lists have.
      const select = list ? undefined : ['EntityType', 'SourcePartition', 'SourceRow'];
      const bound = list && ANY_ROWS;
      const { rows, more } = await scanTable(engine.storage, { table, select, after, limit: ROWS_A_PART, bound });
      const parts = [];
      for (const row of rows) {
        const whole = list?.has(row) ? await list.complete(engine.storage, row) : row;
        parts.push((whole && partOf(entity, whole, (owner) => keys.has(keyOf(owner)))) ?? []);
      }
      found.push(...(await repairRows(engine, entity, parts.flat(), options)));
      after = rows.at(-1);
      isOver = !more || !after;
    }
  return found;
}

function keyOf({ partition, row }: Pick<Row, 'partition' | 'row'>): string {
  return JSON.stringify([partition, row]);
}

/** Compares some index rows of an entity with their entities. Undefined if it has none, or until the next comparison is due. */
async function compareIndexRows(
  engine: Engine,
  entity: Entity,
  before: State['compared'][string] | undefined,
  { patience, until }: FollowOptions,
) {
  const isOver = before !== undefined && before.position === undefined;
  if (isOver && engine.now() - Date.parse(before.startedAt) < COMPARE_EVERY_MS) return undefined;
  const run: State['compared'][string] = before && !isOver ? before : { startedAt: isoInstant(engine.now()) };
  // The first table is that of the entities.
  let position: VerifyPosition | undefined = run.position ?? { table: 1, left: 0 };
  const findings: Finding[] = [];
  for (let top = ROWS_COMPARED; position && top > 0 && engine.now() < until; ) {
    const options = { position, top, repair: 'safe', ...(patience === undefined ? {} : { patience }) } as const;
    const page = await verifyPage(engine, entity, options);
    findings.push(...page.findings);
    top -= page.checked;
    position = page.next;
  }
  return { findings, next: { startedAt: run.startedAt, position } };
}

/** A state that another release wrote may not parse; the look then begins again, with all rows. */
async function readState({ storage }: Engine, table: string): Promise<State | undefined> {
  const row = await readRow(storage, { table: SYSTEM_TABLE, partition: PARTITION, row: table });
  return row && State.safeParse(JSON.parse(String(row.properties.State))).data;
}

async function writeState({ storage }: Engine, table: string, state: State): Promise<void> {
  const properties = { EntityType: ROW_TYPES.follow, State: JSON.stringify(state) };
  const actions = [{ kind: 'upsert', row: table, properties } as const];
  await submit(storage, { table: SYSTEM_TABLE, partition: PARTITION, actions, isRepeatable: true });
}
