import pMap from 'p-map';
import { type Entity, withArchives } from '../../define/declaration/entity.ts';
import type { Finding } from '../../define/declaration/finding.ts';
import { isSibling, projectionsOf } from '../../define/places/index-entries.ts';
import type { Engine } from '../../engine/engine.ts';
import { ownRowsOf } from '../resources.ts';
import { canVerify, type VerifyOptions, verifyPage } from '../verify.ts';

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

/** Builds the indexes, totals and lists in tables of their own, and repairs what a check finds without dropping values. */
export async function buildDerived(engine: Engine, options: BuildOptions): Promise<void> {
  await pMap(
    checkedOf(options),
    async (entity) => {
      // Totals grow with their contributions, so they are built before anything is compared with them.
      const builds = options.only ? remoteNames(entity) : Object.keys(entity.totals);
      for (const only of builds) await walk(engine, entity, options, { repair: true, only });
      if (!options.only) await walk(engine, entity, options, { repair: 'safe' });
    },
    { concurrency: CONCURRENCY },
  );
}

/** Returns what does not agree. */
export async function checkRestored(engine: Engine, options: BuildOptions): Promise<readonly Finding[]> {
  const found = await pMap(checkedOf(options), (entity) => walk(engine, entity, options, { repair: false }), {
    concurrency: CONCURRENCY,
  });
  return found.flat();
}

function checkedOf({ entities, only }: BuildOptions): readonly Entity[] {
  return (only ? [only] : entities).filter(canVerify);
}

function remoteNames(entity: Entity): readonly string[] {
  const projected = withArchives([entity])
    .flatMap(projectionsOf)
    .filter((projection) => !isSibling(projection));
  return [...new Set([...Object.keys(entity.totals), ...projected.map(({ name }) => name)])];
}

async function walk(
  engine: Engine,
  entity: Entity,
  { entities, signal, onChecked }: BuildOptions,
  check: Pick<VerifyOptions, 'repair' | 'only'>,
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  let position: VerifyOptions['position'];
  do {
    signal?.throwIfAborted();
    const page = await verifyPage(engine, entity, {
      ...check,
      position,
      top: PAGE_SIZE,
      patience: 0,
      maxTransactions: Number.POSITIVE_INFINITY,
      isOwnRow: ownRowsOf(entities),
    });
    found.push(...page.findings.filter(({ repaired }) => !repaired));
    onChecked?.(entity.name, page.checked);
    position = page.next;
  } while (position);
  return found;
}
