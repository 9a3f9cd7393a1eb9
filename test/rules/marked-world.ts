import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { z } from 'zod';
import { RowkeyError, type Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { creationOf } from '../../local/walk/values.ts';
import { apiCalls } from '../kit/api.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity, LinkedModel } from '../kit/define.ts';
import type { Engine } from '../kit/engine.ts';
import type { Stored } from './declared-rules.ts';

/**
 * Entities of any model with random values that refer to one another. Each has a text of its own in every field that accepts one, so
 * that a response which shows any field of it is found.
 */

export interface Marked extends Stored {
  readonly mark: string;
}

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString();

/** The store of the app, which has no rules. Its types are those of no model in particular. */
// biome-ignore lint/suspicious/noExplicitAny: the values follow from the model
export type AnyStore = Readonly<Record<string, any>>;

export function storeOf({ list }: LinkedModel, engine: Engine): AnyStore {
  const record = <Result>(_by: string, write: () => Promise<Result>) => write();
  return apiCalls.createStore(list, { engine: async () => engine, limits: [], record }) as AnyStore;
}

interface Filling {
  /** The most entities of each kind. */
  readonly most: number;
  /** Makes the next mark. */
  mark?(): string;
}

/** Creates entities, the same in each world but for their marks; those that the model rejects are left out. */
export async function fillWorld(
  store: AnyStore,
  { list }: LinkedModel,
  { most, mark: makeMark = () => `mark-${randomUUID()}` }: Filling,
): Promise<Marked[]> {
  const made: Marked[] = [];
  for (const entity of list.toSorted((one, other) => rankOf(one) - rankOf(other))) {
    const find = (other: Entity | undefined, nth: number) => {
      const others = made.filter((one) => one.entity === other);
      return others[nth % others.length]?.values ?? {};
    };
    let count = 0;
    for (const [nth, sample] of fc.sample(creationOf(entity), { numRuns: 4 * most, seed: 7 }).entries()) {
      if (count >= most) break;
      const links = Object.values(entity.references).map(({ field, to, by }) => ({ [field]: find(to, nth)[by] }));
      const copied = Object.values(entity.denormalized).map(({ source, field, by }) => {
        const values = find(source, nth);
        return { ...baseValues.pick(values, entity.keyFields), [field]: values[by] };
      });
      const parent = baseValues.pick(find(entity.childOf, nth), entity.childOf?.keyFields ?? []);
      const mark = makeMark();
      const until = entity.expiry?.at ? { [entity.expiry.at]: TOMORROW } : {};
      const given = withMark(entity, Object.assign({}, sample, parent, ...links, ...copied, until), mark);
      const values = await create(store, entity, given, mark);
      if (!values) continue;
      made.push({ entity, values, mark });
      count += 1;
    }
  }
  // An entity may have counts and copies of those that came after it.
  for (const [at, one] of made.entries()) {
    if (one.entity.series) continue;
    const found = await store[one.entity.name].get(baseValues.pick(one.values, one.entity.keyFields));
    made[at] = { ...one, values: found.values };
  }
  return made;
}

/** Those that others refer to come first. */
function rankOf({ childOf, references, denormalized }: Entity): number {
  return (childOf ? 2 : 0) + (Object.keys(references).length > 0 || Object.keys(denormalized).length > 0 ? 1 : 0);
}

/** The values with the mark in each field that accepts it, and that decides neither a key nor what a rule allows. */
function withMark(entity: Entity, values: Values, mark: string): Values {
  const { access, keyFields, schema, references, denormalized } = entity;
  const compared = Object.values(access.rules ?? {}).flatMap((rule) =>
    rule.flatMap(({ where = {} }) => Object.keys(where)),
  );
  const kept = [
    ...keyFields,
    ...compared,
    ...Object.keys(references),
    ...Object.keys(denormalized),
    ...entity.decidedFields,
  ];
  // A field of the key may be derived from a list.
  const marks = Object.keys(entity.derived).length > 0 ? [mark] : [mark, [mark]];
  const marked = Object.entries(schema.shape).flatMap(([field, type]) => {
    const accepted = marks.find((value) => (type as z.ZodType).safeParse(value).success);
    return kept.includes(field) || accepted === undefined || (entity.union && values[field] === undefined)
      ? []
      : [[field, accepted] as const];
  });
  return { ...values, ...Object.fromEntries(marked) };
}

async function create(store: AnyStore, entity: Entity, given: Values, mark: string): Promise<Values | undefined> {
  const { name, series, keyFields } = entity;
  const of = store[name];
  try {
    if (series) {
      await of.set(baseValues.pick(given, keyFields), given.counts ?? { [series.first]: 1 });
      return { ...given, counts: given.counts ?? { [series.first]: 1 } };
    }
    const { values } = await of.create(given);
    // The bytes after the picture carry the mark. Anybody may read a public file.
    for (const [field, { public: isPublic }] of Object.entries(entity.attachments))
      await of.files[field].put(
        baseValues.pick(values, keyFields),
        Buffer.concat([PNG, Buffer.from(isPublic ? '' : mark)]),
      );
    const found = await of.get(baseValues.pick(values, keyFields));
    return found?.values;
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
    return undefined;
  }
}
