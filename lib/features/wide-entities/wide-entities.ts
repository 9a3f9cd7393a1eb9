import { z } from 'zod';
import { hasValue } from '../../base/values.ts';
import { columnFormOf, fieldsToProperties, MAX_PROPERTIES, propertySize } from '../../define/codec/entity-codec.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { furtherRowCheck, furtherRowErrors } from '../../engine/reconcile/check-further-rows.ts';

/**
 * Wide entities pattern: an entity whose fields do not fit into one row is stored in several rows of its partition. One range query
 * reads them, and one entity group transaction changes them. A field stays in its row while the row has room for it, so a change
 * of some fields writes the rows of these fields and the entity's own row.
 */
export const wideEntities: Feature = {
  name: 'wide entities',
  isUsed: ({ wide }) => wide,
  validate: function* (entity, { entities }) {
    yield* furtherRowErrors(entity, entities);
    yield* validationErrors(entity);
  },
  layout: {
    further: {
      apartFields: () => [],
      groupsOf(entity, fields) {
        const own = ownFields(entity);
        return fields?.every((field) => own.includes(field)) ? [] : [GROUP];
      },
      /** A field stays in its row if the row has room for it. Any other field goes to the first row with room, or to a new one. */
      divide(entity, values, current) {
        const own = newRow();
        const further = new Map<string, RowOfFields>();
        for (const name of [...(current?.further?.keys() ?? [])].sort((one, other) => numberOf(one) - numberOf(other)))
          further.set(name, newRow());
        const fixed = new Set(ownFields(entity));
        const rowOf = rowsOfFields(current);
        const fields = Object.entries(values)
          .filter(([, value]) => hasValue(value))
          .map(([field, value]) => sizedField(entity, field, value));
        for (const each of fields) if (fixed.has(each.field)) put(own, each);
        const left = fields.filter((each) => {
          const name = rowOf(entity, each.field);
          return !fixed.has(each.field) && (name === undefined || !putIfRoom(further.get(name) ?? own, each));
        });
        for (const each of left)
          if (![own, ...further.values()].some((row) => putIfRoom(row, each))) put(addRow(further), each);
        const stored = [...further].filter(([, row]) => row.properties > 0);
        return { own: own.values, further: new Map(stored.map(([name, row]) => [name, row.values])) };
      },
    },
  },
  memory: {
    remember: ({ wide }) => (wide ? { wide } : {}),
    *refuse({ wide }, before) {
      if (Memory.parse(before).wide && !wide) yield 'it was wide; the fields in its further rows would not be found';
    },
  },
  check: furtherRowCheck,
};

const Memory = z.object({ wide: z.boolean().default(false) });

/** Further rows are `wide1`, `wide2` and so on. */
const GROUP = 'wide';
/** The size of the fields of a row, as `propertySize` adds it up. The rest of 1 MiB is for keys and system properties. */
const MAX_ROW_BYTES = 1_000_000;

function* validationErrors({ split, union, access, indexes, keyFields, ...entity }: Entity): Generator<string> {
  const alone = 'a wide entity';
  if (Object.keys(split).length > 0) yield `${alone} decides by itself which row has a field. Remove split or wide.`;
  if (union) yield `${alone} is of one kind. Remove wide, or declare each kind with defineEntity.`;
  if (access.own) yield `${alone} cannot be granted (access.own), because a grant reads one row. Remove own or wide.`;
  if (Object.keys(entity.denormalized).length > 0)
    yield `${alone} has no fields that change with another entity. Remove denormalized or wide.`;
  for (const { target } of entity.dependents)
    yield `${alone} has no copies in other entities, which "${target().name}" declares (denormalized). Remove denormalized or wide.`;
  for (const [name, index] of Object.entries(indexes)) {
    const copies = 'copies' in index ? index.copies : 'keys';
    if (copies === 'everything')
      yield `the index "${name}" copies everything, which one row cannot hold. Set copies to 'keys' or to a list of fields.`;
    const most = MAX_PROPERTIES - keyFields.length;
    if (Array.isArray(copies) && copies.length > most)
      yield `the index "${name}" copies ${copies.length} fields, which one row cannot hold. Copy at most ${most}.`;
  }
}

/** The fields that are always in the entity's own row, so that storage can compare them and other entities can change them. */
function ownFields(entity: Entity): readonly string[] {
  return [...entity.keyFields, ...entity.keptFields];
}

/** A field with the room that it takes in a row. */
interface SizedField {
  readonly field: string;
  readonly value: unknown;
  readonly bytes: number;
  readonly properties: number;
}

interface RowOfFields {
  readonly values: Record<string, unknown>;
  bytes: number;
  properties: number;
}

function sizedField(entity: Entity, field: string, value: unknown): SizedField {
  const stored = Object.entries(fieldsToProperties(entity, { [field]: value }));
  const bytes = stored.reduce((sum, [name, each]) => sum + propertySize(name, each), 0);
  return { field, value, bytes, properties: stored.length };
}

function newRow(): RowOfFields {
  return { values: {}, bytes: 0, properties: 0 };
}

function addRow(further: Map<string, RowOfFields>): RowOfFields {
  let number = 1;
  while (further.has(`${GROUP}${number}`)) number += 1;
  const row = newRow();
  further.set(`${GROUP}${number}`, row);
  return row;
}

function numberOf(name: string): number {
  return Number(name.slice(GROUP.length));
}

function putIfRoom(row: RowOfFields, each: SizedField): boolean {
  const hasRoom = row.bytes + each.bytes <= MAX_ROW_BYTES && row.properties + each.properties <= MAX_PROPERTIES;
  if (hasRoom) put(row, each);
  return hasRoom;
}

function put(row: RowOfFields, { field, value, bytes, properties }: SizedField): void {
  row.values[field] = value;
  row.bytes += bytes;
  row.properties += properties;
}

/** Finds the row that has a field now: the name of a further row, an empty text for the own row, undefined for none. */
function rowsOfFields(current: Live | undefined): (entity: Entity, field: string) => string | undefined {
  const rows = new Map<string, string>();
  for (const [name, properties] of current?.further ?? [])
    for (const property of Object.keys(properties)) rows.set(property, name);
  return (entity, field) => {
    const names = columnFormOf(entity, field)?.names(entity, field) ?? [field];
    const found = names.map((name) => rows.get(name)).find((name) => name !== undefined);
    return found ?? (hasValue(current?.values[field]) ? '' : undefined);
  };
}
