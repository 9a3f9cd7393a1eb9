import { omit, pick, type Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { hasConstantDefault } from '../../lib/define/schema/field-schema.ts';
import type { Engine } from '../../lib/engine/engine.ts';
import type { Position } from '../../lib/engine/read/continuation.ts';
import { scanEntities } from '../../lib/engine/read/retrieve.ts';
import { toPlain } from '../../lib/engine/write/stored-values.ts';
import { canonicalText } from '../cli/everything/manifest.ts';
import { bucketOf, Sums } from '../cli/everything/sums.ts';
import { expectValues, type Kind } from './read-source.ts';

/**
 * Compares what a copy should have stored with what is stored. The two are in different orders, so each side is added up by buckets of keys, in constant
 * memory. Only the entities of buckets that differ are then read again, and compared one by one.
 */

const PAGE = 1_000;

/** The values that are to be stored of one kind. */
type Expected = () => AsyncIterable<ReadonlyMap<Kind, readonly Values[]>>;

export type Difference =
  | {
      readonly is: 'missing' | 'different';
      readonly kind: Kind;
      readonly values: Values;
      readonly fields: readonly string[];
    }
  | { readonly is: 'extra'; readonly kind: Kind; readonly values: Values }
  /** The app does not accept the values. */
  | { readonly is: 'rejected'; readonly kind: Kind; readonly values: Values; readonly reason: string };

interface Comparison {
  readonly engine: Engine;
  readonly kinds: readonly Kind[];
  /** Read twice if there are differences. */
  readonly expected: Expected;
  readonly signal?: AbortSignal | undefined;
  readonly onRows?: ((rows: number) => void) | undefined;
}

/** Returns each difference, in no order. */
export async function* compareCopy({
  engine,
  kinds,
  expected,
  signal,
  onRows,
}: Comparison): AsyncGenerator<Difference> {
  const sums = new Map(kinds.map((kind) => [kind, { wanted: new Sums(), stored: new Sums() }]));
  const invalid: Difference[] = [];
  for await (const page of expected())
    for (const [kind, rows] of page)
      for (const values of rows) {
        const wanted = expect(kind, values);
        if ('is' in wanted) invalid.push(wanted);
        else sums.get(kind)?.wanted.add(keyOf(kind, wanted.values), wanted.values);
      }
  yield* invalid;
  for (const kind of kinds)
    for await (const rows of readStored(engine, kind, signal)) {
      for (const values of rows) sums.get(kind)?.stored.add(keyOf(kind, values), toComparable(kind.to, values));
      onRows?.(rows.length);
    }
  const buckets = new Map([...sums].map(([kind, { wanted, stored }]) => [kind, wanted.differences(stored)]));
  if ([...buckets.values()].every(({ size }) => size === 0)) return;
  const isIn = (kind: Kind, key: string) => buckets.get(kind)?.has(bucketOf(key)) ?? false;
  const left = new Map(kinds.map((kind) => [kind, new Map<string, Wanted>()]));
  for await (const page of expected())
    for (const [kind, rows] of page)
      for (const row of rows) {
        const wanted = expect(kind, row);
        if ('is' in wanted) continue;
        const key = keyOf(kind, wanted.values);
        if (!isIn(kind, key)) continue;
        const ofKind = left.get(kind);
        if (ofKind?.has(key))
          yield { is: 'rejected', kind, values: wanted.values, reason: 'Another row has the same key.' };
        else ofKind?.set(key, wanted);
      }
  for (const kind of kinds) {
    const rowsLeft = left.get(kind) ?? new Map<string, Wanted>();
    if (buckets.get(kind)?.size === 0) continue;
    for await (const rows of readStored(engine, kind, signal))
      for (const values of rows) {
        const key = keyOf(kind, values);
        if (!isIn(kind, key)) continue;
        const wanted = rowsLeft.get(key);
        rowsLeft.delete(key);
        if (!wanted) yield { is: 'extra', kind, values };
        else {
          const stored = toComparable(kind.to, values);
          const fields = [...new Set([...Object.keys(wanted.values), ...Object.keys(stored)])].filter(
            (field) => canonicalText(wanted.values[field]) !== canonicalText(stored[field]),
          );
          // What cannot be compared stays, unless the other side says what it is.
          const kept = pick(values, settableFields(kind.to));
          if (fields.length > 0) yield { is: 'different', kind, values: { ...kept, ...toPut(kind, wanted) }, fields };
        }
      }
    for (const wanted of rowsLeft.values()) yield { is: 'missing', kind, values: toPut(kind, wanted), fields: [] };
  }
}

interface Wanted {
  /** Those that can be compared. */
  readonly values: Values;
  readonly given: Values;
}

const toPut = ({ to }: Kind, { values, given }: Wanted): Values => ({ ...values, ...pick(given, settableFields(to)) });

function expect(kind: Kind, values: Values): Wanted | Difference {
  try {
    return { values: toComparable(kind.to, expectValues(kind.to, values)), given: values };
  } catch (error) {
    return { is: 'rejected', kind, values, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Fields whose default is another one for each entity, and those that the entity computes, cannot be compared. */
function toComparable(entity: Entity, values: Values): Values {
  return omit(values, incomparableFields(entity));
}

/** Those that a write may set. */
function settableFields(entity: Entity): string[] {
  return incomparableFields(entity).filter((field) => !entity.decidedFields.includes(field));
}

export function incomparableFields(entity: Entity): string[] {
  const isRandom = (field: string) =>
    (field in entity.defaults || entity.schema.shape[field]?.safeParse(undefined).data !== undefined) &&
    !hasConstantDefault(entity.schema, field);
  return Object.keys(entity.columns).filter(
    (field) => !entity.keyFields.includes(field) && (entity.decidedFields.includes(field) || isRandom(field)),
  );
}

const keyOf = ({ to }: Kind, values: Values) => JSON.stringify(to.keyFields.map((field) => values[field]));

/** The entities that are stored, by pages. */
async function* readStored(engine: Engine, { to }: Kind, signal?: AbortSignal): AsyncGenerator<readonly Values[]> {
  let after: Position | undefined;
  do {
    signal?.throwIfAborted();
    const { items, next } = await scanEntities(engine, to, { top: PAGE, after, marksLost: true });
    yield await Promise.all(items.map((values) => toPlain(engine, to, values, () => null)));
    after = next;
  } while (after);
}

/** The values of an app's entities for the tables from which they were copied. */
export async function* readBack(
  engine: Engine,
  kinds: readonly Kind[],
  { signal, onRows }: Pick<Comparison, 'signal' | 'onRows'>,
): AsyncGenerator<ReadonlyMap<Kind, readonly Values[]>> {
  for (const kind of kinds)
    for await (const rows of readStored(engine, { ...kind, to: kind.from }, signal)) {
      onRows?.(rows.length);
      const mapped = rows.map((values) => (kind.map ? kind.map(values) : values));
      yield new Map([[kind, mapped.filter((values) => values !== undefined)]]);
    }
}
