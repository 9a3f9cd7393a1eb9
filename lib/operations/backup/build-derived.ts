import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { type Entity, withArchives } from '../../define/declaration/entity.ts';
import type { Finding } from '../../define/declaration/finding.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { addressIfAny, remoteIndexesOf } from '../../define/places/index-entries.ts';
import type { Engine } from '../../engine/engine.ts';
import { readJoinedRow } from '../../engine/read/entity-rows.ts';
import { ANY_ROWS } from '../../engine/read/page-length.ts';
import { type Row, scanTable } from '../../storage/rows.ts';
import { ownRowsOf } from '../resources.ts';
import { surviveRow } from '../survive-row.ts';
import { canVerify, type VerifyOptions, verifyPage } from '../verify.ts';
import { whyInvalid } from '../why-invalid.ts';
import { findSharedTables, WRITE_CONCURRENCY, writeDerived } from '../write-derived.ts';

/** Builds what follows from the entities of a restore, which is in no backup, and checks all of it. Nobody else writes meanwhile. */

interface BuildOptions {
  /** The entities of the model. */
  readonly entities: readonly Entity[];
  /** The only one that was restored. What others would have to say of it is then neither repaired nor a finding. */
  readonly only?: Entity | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called after each page. */
  readonly onChecked?: ((entity: string, rows: number) => void) | undefined;
}

const PAGE_SIZE = 200;
const CONCURRENCY = 4;
/** A repair may show what another one has to repair. */
const PASSES = 4;
/** The entries of many entities share transactions. */
const WRITE_PAGE_SIZE = 1_000;

/** Builds the indexes, totals and lists in tables of their own. */
export async function buildDerived(engine: Engine, options: BuildOptions): Promise<void> {
  // One after another, because each is written with as many requests as an account takes.
  for (const entity of withArchives(checkedOf(options))) await writeEntries(engine, entity, options);
}

/**
 * Writes the entries of all entities, many at a time. A check repairs one after another, with several requests for each. It finds what this has left
 * out: entities that are not valid, and tables in which another program has rows, of which none is replaced.
 */
async function writeEntries(engine: Engine, entity: Entity, { signal, onChecked }: BuildOptions): Promise<void> {
  if (remoteIndexesOf(entity).length === 0 || entity.period) return;
  const shared = await findSharedTables(engine.storage, entity);
  const isLeft = ({ table }: IndexEntry) => shared.has(table);
  for (let after: Row | undefined; ; ) {
    signal?.throwIfAborted();
    const { rows, more } = await scanTable(engine.storage, {
      table: entity.table,
      after,
      limit: entity.furtherRows ? PAGE_SIZE : WRITE_PAGE_SIZE,
      bound: ANY_ROWS,
    });
    const found = await pMap(rows, (row) => readValid(engine, entity, row), { concurrency: WRITE_CONCURRENCY });
    await writeDerived(
      engine,
      entity,
      found.flatMap((each) => each ?? []),
      { isLeft, signal },
    );
    onChecked?.(entity.name, rows.length);
    after = rows.at(-1);
    if (!more || !after) return;
  }
}

/** The values of an entity that nothing is wrong with, and that no operation has closed. */
async function readValid(engine: Engine, entity: Entity, scanned: Row) {
  const { table, partition, row, properties } = scanned;
  if (properties.EntityType !== entity.name || properties.SourceRow !== undefined) return undefined;
  const address = { table, partition, row };
  const read = async () => {
    const fields = Object.keys(entity.columns);
    const joined = entity.furtherRows ? await readJoinedRow(engine, entity, address, { fields }) : scanned;
    const snapshot = toSnapshot(entity, joined);
    if (!joined || snapshot.state !== 'live' || snapshot.system.MovingFrom || snapshot.system.Leaving) return undefined;
    const { values } = snapshot;
    const isHere = entity.series || isDeepStrictEqual(addressIfAny(entity, values), address);
    return isHere && whyInvalid(entity, joined, values) === undefined ? { address, values } : undefined;
  };
  return surviveRow(read, () => undefined);
}

/**
 * Returns what does not agree. Repairs what can be repaired without dropping values, until a pass over everything has found nothing to repair.
 * Of one entity, nothing is repaired: its copies of others may be the last ones.
 */
export async function checkRestored(engine: Engine, options: BuildOptions): Promise<readonly Finding[]> {
  for (let pass = 1; ; pass += 1) {
    const repair = options.only || pass === PASSES ? false : 'safe';
    const found = await pMap(checkedOf(options), (entity) => walk(engine, entity, options, repair), {
      concurrency: CONCURRENCY,
    });
    if (!found.flat().some(({ repaired }) => repaired)) return found.flat();
  }
}

function checkedOf({ entities, only }: BuildOptions): readonly Entity[] {
  return (only ? [only] : entities).filter(canVerify);
}

async function walk(
  engine: Engine,
  entity: Entity,
  { entities, signal, onChecked }: BuildOptions,
  repair: VerifyOptions['repair'],
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  let position: VerifyOptions['position'];
  do {
    signal?.throwIfAborted();
    const page = await verifyPage(engine, entity, {
      repair,
      position,
      top: PAGE_SIZE,
      patience: 0,
      maxTransactions: Number.POSITIVE_INFINITY,
      isOwnRow: ownRowsOf(entities),
    });
    found.push(...page.findings);
    onChecked?.(entity.name, page.checked);
    position = page.next;
  } while (position);
  return found;
}
