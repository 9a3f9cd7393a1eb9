import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type DeclaredEntity,
  defineEntity,
  defineModel,
  defineSeries,
  interPartitionIndex,
} from '../../../../lib/define.ts';
import { httpDoor } from '../../../kit/http.ts';

/** Declarations for the tests of the validation of a model. */

const roles = { roles: ['reader', 'hr', 'operator'], operatorRole: 'operator' } as const;

export const text = z.string().min(1).max(100);
export const digits = z.string().regex(/^\d{6}$/);
export const shape = {
  city: text,
  id: digits,
  name: text.optional(),
  email: z.email().optional(),
  day: z.iso.date(),
  year: z.int32(),
  tags: z.array(z.string()),
  large: z.string().optional(),
};
export const access = { read: ['hr'], write: ['hr'] } as const;
export const photo = { container: 'photos', maxBytes: 1_000, types: ['image/png'] };

/** Changes of a declaration, of which the compiler would reject some. */
export interface Parts {
  readonly row?: string;
  readonly partition?: string;
  readonly [option: string]: unknown;
}

/** A valid entity, changed by `over`. */
export function entity(
  name: string,
  { row = `${name}_{id}`, partition = '{city}', ...over }: Parts = {},
): DeclaredEntity {
  const declaration = { schema: z.object(shape), table: 'things', key: { partition, row }, access, ...over };
  return defineEntity(name, declaration as never) as unknown as DeclaredEntity;
}

/** Does with the model what the start of an app does. */
export const load = (...entities: DeclaredEntity[]) => httpDoor.createRoutes(defineModel({ ...roles, entities }));

export const allThings = (over: object = {}) =>
  interPartitionIndex({ table: 'thinglist', partition: 'all', row: '{city}_{id}', ...over });
export const byName = (over: object = {}) =>
  interPartitionIndex({ table: 'thingsbyname', partition: '{name#}', row: '{name}', unique: true, ...over });
export const ofOne = {
  schema: z.object(shape).required(),
  indexes: {
    email: interPartitionIndex({ table: 'thingsbyemail', partition: '{email#}', row: '{email}', unique: true }),
  },
};
export const owned = (over: Parts = {}) =>
  entity('things', {
    ...ofOne,
    ...over,
    access: { ...access, own: { claim: 'email', verifiedBy: {}, index: 'email' } },
  });
/** An entity that clients write. The city and the id of its owner are the whole partition key. */
export const handedIn = (through: DeclaredEntity, over: Parts = {}) =>
  entity('claims', {
    table: 'claims',
    partition: '{city}_{id}',
    row: 'claims_{day}',
    ...over,
    access: { ...access, own: { through, permissions: 'ra' } },
  });
export const granted = (through: DeclaredEntity, over: Parts = {}) =>
  entity('claims', {
    table: 'claims',
    partition: '{id}',
    row: '{day}',
    ...over,
    access: { ...access, own: { through, permissions: 'r' } },
  });
/** An entity and others that copy from it. */
export const copying = (
  over: Parts,
  { field = 'id', ...link }: { readonly field?: string; readonly by?: string; readonly copies?: object } = {},
): DeclaredEntity[] => {
  const source = entity('things', over);
  const denormalized = { [field]: { source, copies: { name: () => '' }, fanOut: true, ...link } };
  return [source, entity('notes', { table: 'notes', row: '{id}_{day}', denormalized })];
};
/** An entity and another one that refers to it. */
export const referring = (
  over: Parts,
  { references, ...notes }: Readonly<Record<'references' | string, object | string>>,
) => {
  const things = entity('things', over);
  const to = Object.entries(references ?? {}).map(([field, one]) => [field, { to: things, ...Object(one) }]);
  return [things, entity('notes', { table: 'notes', ...notes, references: Object.fromEntries(to) })];
};
export const series = (
  slots: { name: string; first: number; last: number; perRow?: number },
  row = '{id}',
  over: object = {},
) =>
  defineSeries('hours', {
    schema: z.object({ city: text, id: digits }),
    table: 'hours',
    key: { partition: '{city}', row } as never,
    slots,
    access,
    ...over,
  } as never) as unknown as DeclaredEntity;
export const month = z.string().regex(/^\d{4}-\d{2}$/);
export const spanning = (last: number, per: string, at: z.ZodType = z.iso.date(), field = 'at') =>
  series({ name: 'slot', first: 1, last }, '{at}', { schema: z.object({ city: text, at }), span: { field, per } });

export const large = (access: object) =>
  series({ name: 'slot', first: 0, last: 9 }, '{at}', {
    schema: z.object({ id: digits, at: z.iso.date() }),
    key: { partition: '{id}', row: '{at}' },
    slots: { name: 'slot', first: 0, last: 999, overflow: 'blob' },
    access,
  });
export const keeping = (per: string, at: z.ZodType, span?: object) =>
  series({ name: 'slot', first: 1, last: 12 }, '{at}', {
    schema: z.object({ city: text, at }),
    period: { per, field: 'at', keep: 12 },
    span,
  });

/**
 * A model that is rejected, or what its only entity has; a part of the error message; and how many errors the message has, because a model
 * must not be rejected for what is right: one if left out.
 */
export type Rejected = readonly [
  title: string,
  model: Parts | (() => unknown),
  sentence: RegExp,
  errors?: number | undefined,
];

export function testRejections(rejected: readonly Rejected[]): void {
  describe('rejects a model with a message:', () => {
    const cases = rejected.map(([title, model, sentence, errors = 1]) => [title, { model, sentence, errors }] as const);
    test.each(cases)('%s', (_, { model, sentence, errors }) => {
      const build = typeof model === 'function' ? model : () => load(entity('things', model));
      expect(build).toThrow(sentence);
      // Other messages than that of a model are of the first error.
      expect(build).toThrow(
        new RegExp(`^(The model is not valid\\.(\\n.+){${errors}}|(?!The model is not valid)[^]+)$`),
      );
    });
  });
}
