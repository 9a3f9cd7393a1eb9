import type { z } from 'zod';
import { type Declaration, defineEntity } from './define-entity.ts';
import type { DeclaredEntity, Slots } from './entity.ts';
import { frozenCopy } from './frozen-copy.ts';
import type { FieldsOf } from './keys/key-template.ts';
import { inheritedNameErrors } from './validate/validate-entity.ts';

type SlotsOptions = Omit<Slots, 'perRow'> & { readonly perRow?: number };

type SeriesDeclaration<
  Shape extends z.ZodRawShape,
  Partition extends string,
  Row extends string,
  Role extends string,
> = Pick<
  Declaration<Shape, Partition, Row, never, Record<never, never>, Role>,
  'schema' | 'table' | 'key' | 'access'
> & { readonly slots: SlotsOptions };

/** Table storage allows 252 properties beside the keys. The rest is for key fields and system properties. */
const MAX_SLOTS_IN_ROW = 240;
/** The limit of `toSlot`. */
const MAX_SLOT = 9_999;

/**
 * Declares a series. Its schema has the fields of the key and no others. Throws an error that lists everything that is
 * wrong.
 */
export function defineSeries<
  Shape extends z.ZodRawShape,
  const Partition extends string,
  const Row extends string,
  const Name extends string = string,
  const Role extends string = string,
>(
  name: Name,
  { slots, ...declaration }: SeriesDeclaration<Shape, Partition, Row, Role>,
): DeclaredEntity<Shape, Name, FieldsOf<Partition> | FieldsOf<Row>, Record<never, never>, Role> & {
  readonly series: Slots;
} {
  const { first, last, perRow = last - first + 1 } = slots;
  const refuse = (why: string) => new Error(`Entity "${name}": ${why}`);
  for (const error of inheritedNameErrors('slot', [slots.name])) throw refuse(error);
  if (!/^[a-z][A-Za-z0-9]{0,49}$/.test(slots.name))
    throw refuse(`the slot name "${slots.name}" is not accepted; 1 to 50 letters and digits are.`);
  if (![first, last].every(Number.isInteger) || first < 0 || last < first || last > MAX_SLOT)
    throw refuse(
      `the slots run from ${first} to ${last}; whole numbers from 0 to ${MAX_SLOT}, in order, are accepted.`,
    );
  if (!Number.isInteger(perRow) || perRow < 1 || perRow > MAX_SLOTS_IN_ROW)
    throw refuse(`a row would hold ${perRow} slots; perRow must be a whole number from 1 to ${MAX_SLOTS_IN_ROW}.`);
  const entity = defineEntity<
    Shape,
    Partition,
    Row,
    never,
    Name,
    Record<never, never>,
    never,
    never,
    never,
    never,
    never,
    never,
    never,
    Role
  >(name, declaration);
  const keyFields: readonly string[] = entity.keyFields;
  const other = Object.keys(entity.columns).find((field) => !keyFields.includes(field));
  if (other)
    throw refuse(`the field ${other} is not in the key; the schema of a series has the fields of its key alone.`);
  return frozenCopy({ ...entity, series: { ...slots, perRow } });
}
