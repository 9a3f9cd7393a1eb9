import { compareAnswers } from '../../local/walk/compare-answers.ts';
import type { WalkWorld } from '../../local/walk/walk-world.ts';
import type { Entity, Finding } from '../kit/define.ts';
import { operationsCheck, type VerifyPosition } from '../kit/operations.ts';
import type { Injection } from './injections-into.ts';

/** The entities whose answers may follow from rows of this one. */
export function relatedTo(entities: readonly Entity[], entity: Entity): Entity[] {
  const linked = (one: Entity) => [
    ...Object.values(one.references).map(({ to }) => to),
    ...Object.values(one.denormalized).map(({ source }) => source),
    ...Object.values(one.counts),
    ...(one.childOf ? [one.childOf] : []),
  ];
  const isRelated = (one: Entity) =>
    one === entity || linked(one).includes(entity) || linked(entity).includes(one) || one.table === entity.table;
  return entities.filter(isRelated);
}

/** Runs the consistency check of the entities to its end. */
async function check({ engine }: WalkWorld, entities: readonly Entity[], repair: boolean): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const entity of entities.filter(({ period }) => !period))
    for (let position: VerifyPosition | undefined, isFirst = true; isFirst || position; isFirst = false) {
      const page = await operationsCheck.verifyPage(engine, entity, { position, top: 100, repair, patience: 0 });
      findings.push(...page.findings);
      position = page.next;
    }
  return findings;
}

/** What does not agree with the stored entities. */
export async function recount(world: WalkWorld, entities: readonly Entity[]): Promise<readonly string[]> {
  return (await compareAnswers(world, entities)).differences;
}

export interface Outcome {
  readonly findings: readonly Finding[];
  /** True if an answer was wrong before the repair. */
  readonly isHarmful: boolean;
  readonly violations: readonly string[];
}

/** Injects, looks, repairs once and looks again. Undefined if the row has nothing of the kind to change. */
export async function tryInjection(
  world: WalkWorld,
  entities: readonly Entity[],
  injection: Injection,
): Promise<Outcome | undefined> {
  const applied = await injection.apply(world);
  if (!applied) return undefined;
  const before = await recount(world, entities);
  const found = await check(world, entities, false);
  const findings = await check(world, entities, true);
  const after = await recount(world, entities);
  const again = await check(world, entities, false);
  if (applied !== true) await applied();
  const seen = { before, found, findings, after, again, isList: injection.what.startsWith('list') };
  return { findings, isHarmful: before.length > 0, violations: violationsIn(seen) };
}

interface Seen {
  /** The answers that differ from a recount before the repair, and after it. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** What a look found before the repair, the findings of the repair, and what a look found after it. */
  readonly found: readonly Finding[];
  readonly findings: readonly Finding[];
  readonly again: readonly Finding[];
  /** The members of a list are one row. */
  readonly isList: boolean;
}

function violationsIn({ before, after, found, findings, again, isList }: Seen): string[] {
  const left = findings.filter(({ repaired }) => !repaired).map(textOf);
  const repaired = findings.map(textOf);
  const twice = found.map(textOf).filter((text, index, all) => !isList && all.indexOf(text) !== index);
  // The repair of contributions writes their total again.
  const unexpected = findings.filter((one) => !isTotal(one) && !isOfAbsent(one)).map(textOf);
  const unrepaired = found.filter((one) => !isOfAbsent(one) && !repaired.includes(textOf(one)));
  const surprising = isList ? [] : unexpected.filter((text) => !found.map(textOf).includes(text));
  // The check of another entity may repair what was left.
  const more = again.map(textOf).filter((text) => !left.includes(text));
  return [
    ...after.filter((text) => !before.includes(text)).map((text) => `worse after the repair: ${text}`),
    ...twice.map((text) => `found twice: ${text}`),
    ...unrepaired.map((one) => `found, and not named by the repair: ${textOf(one)}`),
    ...surprising.map((text) => `named by the repair, and not found before: ${text}`),
    ...more.map((text) => `found after the repair, which did not name it: ${text}`),
    ...(before.length > 0 && found.length === 0 ? [`not found: ${before}`] : []),
    ...(after.length > 0 && again.length === 0 ? [`still wrong: ${after}`] : []),
  ];
}

const textOf = ({ kind, of, table, partition, row }: Finding) => `${kind} ${of} ${table}/${partition}/${row}`;

const isTotal = ({ kind, row }: Finding) => kind === 'wrong-total' || (kind === 'orphaned' && row.startsWith('t_'));

/** A reference through an index dangles while the index lacks its entity. */
const isOfAbsent = ({ kind }: Finding) => kind === 'dangling';
