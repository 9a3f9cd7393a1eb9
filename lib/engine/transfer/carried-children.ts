import pMap from 'p-map';
import type { Values } from '../../base/values.ts';
import { toSnapshot, toValues } from '../../define/codec/entity-codec.ts';
import { isWithin } from '../../define/codec/limit.ts';
import type { CarriedRows } from '../../define/declaration/change.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { referringFields } from '../../define/places/relation.ts';
import type { Address } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { type RecordedRules, ruledOut } from '../write/recorded-rules.ts';
import { toMoved } from '../write/stored-values.ts';

/** What a move asks of the children that it carries. */

/** A child as it will be at the destination of a move. */
interface Arriving {
  readonly kind: Entity;
  readonly before: Values;
  readonly after: Values;
}

/** A move of an entity with its children. */
interface MoveOfChildren {
  readonly entity: Entity;
  readonly from: Address;
  /** The change of the entity itself. */
  readonly arrival: EntityChange;
  readonly to: Values;
  readonly rules: RecordedRules | undefined;
}

const CHILDREN_CONCURRENCY = 8;

/**
 * Reads the children that a request wants to move, if one of them may be refused. Throws `forbidden` if the rules do not let the caller create
 * one at the destination, and `invalid-input` for a reference that the move would break.
 */
export async function checkChildrenToMove(engine: Engine, move: MoveOfChildren): Promise<void> {
  const { entity, from, to } = move;
  const isAsked = (kind: Entity) => move.rules?.children?.[kind.name] !== undefined || fieldsInReferences(kind, to);
  if (!entity.children.some(isAsked)) return;
  const read = entity.features.map(({ write }) => write?.carried?.read(engine, entity, from) ?? []);
  const rows = (await Promise.all(read)).flat();
  const arriving = await pMap(
    rows,
    async (row): Promise<Arriving[]> => {
      const kind = findKind(entity, row.properties);
      const snapshot = kind && toSnapshot(kind, row);
      if (!kind || snapshot?.state !== 'live') return [];
      return [{ kind, before: snapshot.values, after: await toMoved(engine, kind, snapshot.values, to) }];
    },
    { concurrency: CHILDREN_CONCURRENCY },
  );
  await checkArriving(engine, move, arriving.flat());
}

/** Asks the same of the rows that a move is about to write at the destination. Throws the same errors. */
export async function checkCarried(engine: Engine, move: MoveOfChildren, { put }: CarriedRows): Promise<void> {
  const arriving = put.flatMap(({ properties, before }): Arriving[] => {
    const kind = findKind(move.entity, properties);
    return kind ? [{ kind, before, after: toValues(kind, properties) }] : [];
  });
  await checkArriving(engine, move, arriving);
}

async function checkArriving(
  engine: Engine,
  { arrival: ofParent, rules, to }: MoveOfChildren,
  arriving: readonly Arriving[],
): Promise<void> {
  for (const { kind, after } of arriving) if (!isWithin(rules?.children?.[kind.name], after)) throw ruledOut();
  const changes = arriving.map(({ kind, before, after }): EntityChange => {
    const arrival = {
      incarnation: '',
      movingFrom: '',
      moves: fieldsMoved(kind, to, { before, after }),
      isCarried: true,
    };
    const address = { ...addressOf(kind, after), table: ofParent.address.table };
    return { entity: kind, address, before: { state: 'absent' }, after, arrival };
  });
  const together = [ofParent, ...changes];
  for (const [kind, some] of Map.groupBy(changes, (change) => change.entity))
    if (fieldsInReferences(kind, to))
      for (const { write } of kind.features) await write?.checkRelated?.(engine, kind, some, together);
}

/** The fields whose values a move changes. */
export function fieldsMoved(
  { derived }: Entity,
  to: Values | undefined,
  { before, after }: { readonly before: Values; readonly after: Values },
): readonly string[] {
  const fields = to ? Object.keys({ ...to, ...derived }) : [];
  return fields.filter((field) => before[field] !== after[field]);
}

/** True if a move may make an entity of this kind refer to another one. */
function fieldsInReferences({ references, derived }: Entity, to: Values): boolean {
  const isChanged = (field: string) => field in to || field in derived;
  return Object.values(references).some((reference) => referringFields(reference).some(isChanged));
}

function findKind({ children }: Entity, { EntityType }: { readonly EntityType?: unknown }): Entity | undefined {
  return children.find(({ name }) => name === EntityType);
}
