import { regexes } from 'zod';
import { FENCE_HEAD } from '../../base/engine-names.ts';
import type { DeclaredEntity } from '../declaration/declaration.ts';
import type { Entity, RowKeys } from '../declaration/entity.ts';
import { forbiddenInKeys, type KeyTemplate, type Part, rangeOfPrefix } from '../keys/key-template.ts';
import { projectionsOf } from '../places/index-entries.ts';
import { type FieldSchema, fieldSchemas, isExact } from '../schema/field-schema.ts';

/**
 * Decides whether two key templates can produce the same key. A template becomes a sequence of steps: a number of
 * characters from a set. Two sequences can meet if walking both in parallel can reach both ends. A step may allow more than
 * its template, never less, so "cannot meet" is always correct.
 */

/** From `least` to `most` characters of a set. */
interface Step {
  readonly characters: ReadonlySet<string>;
  readonly least: number;
  readonly most: number;
}
type Steps = readonly Step[];

/** From the space to `~`. */
const ASCII = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index));
/** Stands for every character outside ASCII; the sets do not distinguish them. */
const OTHER = 'é';
const DIGITS = setOf(/\d/);
const HEX = setOf(/[0-9a-f]/);
/** An escape is `!` and two hexadecimal digits. */
const ESCAPES = new Set([...HEX, '!']);
/** The number of digits of an instant in `{at~}`. */
const TICKS_DIGITS = 19;
const HASH_DIGITS = 2;

/** One kind of row that an entity has in a table. */
interface RowKind extends RowKeys {
  readonly entity: Entity;
  readonly table: string;
  readonly partition: KeyTemplate;
}

/** Two kinds of rows with the same key would overwrite or block each other, and a grant must not open rows of another kind. */
export function* overlapErrors(entities: readonly Entity[]): Generator<string> {
  yield* sharedKeyErrors(entities);
  yield* openedRowErrors(entities);
  yield* fenceErrors(entities);
}

/** No value has a `!` that is not an escape, and fences have one (base/engine-names.ts): a template must not complete their names. */
function* fenceErrors(entities: readonly Entity[]): Generator<string> {
  for (const kind of entities.flatMap(rowKinds)) {
    const { template, head } = kind.row;
    if (template.includes('!') && (head === '' || head[0] === FENCE_HEAD[0]))
      yield `Entity "${kind.entity.name}": ${kind.what} (${keyOf(kind)}) has a "!" in the row key, whose keys could be those of the engine's own rows. Use another character, or begin the row key with a text that does not begin with ${FENCE_HEAD[0]}.`;
  }
}

function* sharedKeyErrors(entities: readonly Entity[]): Generator<string> {
  for (const kinds of Map.groupBy(entities.flatMap(rowKinds), ({ table }) => table).values())
    for (const [position, one] of kinds.entries())
      for (const other of kinds.slice(position + 1))
        if (haveOneKey(one, other) && !areToldApart(one.entity, other.entity))
          yield `Entity "${other.entity.name}": ${other.what} (${keyOf(other)}) can have the same key as ${one.what} (${keyOf(one)}) of "${one.entity.name}" in the table "${one.table}". Begin their row keys with different texts, or keep their fields apart by the schema: by z.literal, or by a pattern that is a plain sequence of ASCII characters such as ^[A-Z]{2}\\d+$, with neither alternatives nor the flags i, m and v, and not inside default, catch, pipe or lazy; z.uuid() and z.iso.date() are accepted, too.`;
}

/** True if no row of a table of another program is of both entities: a property has one value for each. */
function areToldApart({ existing: one }: Entity, { existing: other }: Entity): boolean {
  const theirs = other?.where ?? {};
  return Object.entries(one?.where ?? {}).some(
    ([name, value]) => Object.hasOwn(theirs, name) && theirs[name] !== value,
  );
}

/** A grant of a partition opens the rows from the first to the last key of the entity. Storage checks no type of row. */
function* openedRowErrors(entities: readonly Entity[]): Generator<string> {
  const kinds = entities.flatMap(rowKinds);
  for (const entity of entities) {
    const { access, table, partition, row, name } = entity;
    if (!access.own || !('through' in access.own)) continue;
    const granted = stepsOf(entity, partition);
    for (const other of kinds) {
      // Copies and lists in the same partition have values of the entity alone.
      if (other.table !== table || (other.entity === entity && other.partition === partition)) continue;
      if (!canMeet(granted, stepsOf(other.entity, other.partition))) continue;
      // Further rows begin with the row key of their entity, which has no "!".
      if (canBeGranted(stepsOfRow(other), row.head))
        yield `Entity "${name}": a grant (access.own) opens the rows of its partition that begin with "${row.head}", among them ${other.what} (${keyOf(other)}) of "${other.entity.name}". Begin the row key with a text with which no other row key begins, such as "${name}_{…}", or give the entity a table of its own.`;
    }
  }
}

type RowKey = Pick<RowKind, 'entity' | 'partition' | 'row' | 'isNumbered'>;

function stepsOfRow({ entity, row, isNumbered }: RowKey): Steps {
  return stepsOf(entity, row, isNumbered ? NUMBER_SUFFIX : []);
}

/** True if both templates can produce the same key. */
export function haveOneKey(one: RowKey, other: RowKey): boolean {
  const partitions = [one, other].map(({ entity, partition }) => stepsOf(entity, partition));
  const rows = [one, other].map(stepsOfRow);
  return [partitions, rows].every(([first = [], second = []]) => canMeet(first, second));
}

function keyOf({ partition, row, isNumbered }: RowKind): string {
  return `${partition.template} / ${row.template}${isNumbered ? '_{number}' : ''}`;
}

function rowKinds(entity: Entity): RowKind[] {
  const { table, partition, row, formerKey, archive, features } = entity;
  const archived = archive ? [archive, ...archive.children] : [];
  const archivedBefore = archive?.formerKey ? [{ ...archive.formerKey, table: archive.table }] : [];
  return [
    { entity, table, partition, row, what: 'its row' },
    ...(formerKey ? [{ entity, table, ...formerKey, what: 'its row at the former key' }] : []),
    ...features.flatMap(({ layout }) =>
      (layout?.numbered?.keys(entity) ?? []).map((keys) => {
        return { ...keys, entity, table, partition };
      }),
    ),
    ...projectionsOf(entity).map(({ name, at: { member: _, ...at } }) => {
      return { entity, ...at, what: `the rows of its index "${name}"` };
    }),
    ...archived.map(({ table, partition, row }) => ({ entity, table, partition, row, what: 'its archived row' })),
    ...archivedBefore.map((keys) => ({ entity, ...keys, what: 'its archived row at the former key' })),
  ];
}

/** The steps of the keys of a template, followed by `suffix`. */
function stepsOf(entity: DeclaredEntity, template: KeyTemplate, suffix: Steps = []): Steps {
  const fields = fieldSchemas(entity.schema);
  const parts = template.parts.flatMap((part) => {
    const isChecked = !Object.hasOwn(entity.derived, part.field) && isExact(entity.schema, part.field);
    return [...partSteps(part, isChecked ? fields[part.field] : undefined), ...literalSteps(part.after)];
  });
  return [...literalSteps(template.head), ...parts, ...suffix];
}

/** The suffix of the second and later rows of a data series: `_2`, `_3` … */
const NUMBER_SUFFIX: Steps = [...literalSteps('_'), ...atLeastOne(DIGITS)];

/**
 * True if a key of the sequence can be one of a grant: a key that begins with `prefix`, or the first key after those, with which a
 * signature ends.
 */
function canBeGranted(steps: Steps, prefix: string): boolean {
  const { before } = rangeOfPrefix(prefix);
  const any = { characters: new Set([...ASCII, OTHER]), least: 0, most: Number.POSITIVE_INFINITY };
  return (
    canMeet(steps, [...literalSteps(prefix), any]) || (before !== undefined && canMeet(steps, literalSteps(before)))
  );
}

/** True if both sequences can produce the same key. */
function canMeet(one: Steps, other: Steps): boolean {
  const seen = new Set<string>();
  const open: [number, number, number, number][] = [[0, 0, 0, 0]];
  for (let state = open.pop(); state; state = open.pop()) {
    const [at, count, otherAt, otherCount] = state;
    const id = state.join();
    if (seen.has(id)) continue;
    seen.add(id);
    const [step, otherStep] = [one[at], other[otherAt]];
    if (!step && !otherStep) return true;
    if (step && count >= step.least) open.push([at + 1, 0, otherAt, otherCount]);
    if (otherStep && otherCount >= otherStep.least) open.push([at, count, otherAt + 1, 0]);
    const canAdvance = step && otherStep && count < step.most && otherCount < otherStep.most;
    if (canAdvance && [...step.characters].some((character) => otherStep.characters.has(character)))
      open.push([at, countStep(step, count), otherAt, countStep(otherStep, otherCount)]);
  }
  return false;
}

/** Caps the count of an open-ended step at `least`: a higher count leads to no new state. */
function countStep({ least, most }: Step, count: number): number {
  return Number.isFinite(most) ? count + 1 : Math.min(count + 1, least);
}

function partSteps(part: Part, field: FieldSchema | undefined): Steps {
  if (part.buckets !== undefined) return [exactly(DIGITS, String(part.buckets - 1).length)];
  if (part.hash) return [exactly(HEX, HASH_DIGITS)];
  if (part.newestFirst) return [exactly(DIGITS, TICKS_DIGITS)];
  if (part.width !== undefined) return [exactly(DIGITS, part.width)];
  const isEscaped = (character: string) => forbiddenInKeys(character) || character === part.after[0];
  const known = part.each || part.unit ? undefined : knownSteps(field);
  return (known ?? atLeastOne(new Set([...ASCII, OTHER]))).map((step) => withEscapes(step, isEscaped));
}

function withEscapes({ characters, least, most }: Step, isEscaped: (character: string) => boolean): Step {
  const plain = [...characters].filter((character) => !isEscaped(character));
  if (plain.length === characters.size) return { characters, least, most };
  return { characters: new Set([...plain, ...ESCAPES]), least, most: Number.POSITIVE_INFINITY };
}

/** One ASCII character or a set of them without negation, and its quantifier. */
const PIECE = /(\\[dw]|\[(?!\^)(?:[^\]\\]|\\(?:[dw]|[^\w]))+\]|[\w -]|\\[^\w])(?:\{(\d+)(?:(,)(\d*))?\}|([+*?]))?/y;

/** Zod gives some formats, such as `z.uuid()`, patterns with alternatives. Each maps to a plain sequence that allows more. */
const PLAIN_PATTERNS = new Map([
  ...[regexes.uuid(), regexes.uuid4, regexes.uuid6, regexes.uuid7, regexes.guid].map(
    ({ source }) => [source, '^[0-9a-fA-F-]{36}$'] as const,
  ),
  [regexes.date.source, '^\\d{4}-\\d{2}-\\d{2}$'],
]);

/**
 * The steps of a constant, or of a pattern that is a plain sequence of printable ASCII characters. Undefined for any other field, which
 * may then have any text: the sets cannot distinguish other characters.
 */
function knownSteps(field: FieldSchema | undefined): Steps | undefined {
  if (field?.constant !== undefined)
    return /^[\x20-\x7e]+$/.test(field.constant) ? literalSteps(field.constant) : undefined;
  const declared = field?.pattern ?? '';
  const pattern = PLAIN_PATTERNS.get(declared) ?? declared;
  if (!/^\^[\x20-\x7e]+\$$/.test(pattern)) return undefined;
  const source = pattern.slice(1, -1);
  const steps: Step[] = [];
  PIECE.lastIndex = 0;
  for (let end = 0; end < source.length; end = PIECE.lastIndex) {
    const [, one, least, comma, most, sign] = PIECE.exec(source) ?? [];
    if (one === undefined) return undefined;
    const characters = setOf(new RegExp(one));
    if (sign)
      steps.push({ characters, least: sign === '+' ? 1 : 0, most: sign === '?' ? 1 : Number.POSITIVE_INFINITY });
    else if (least === undefined) steps.push(exactly(characters, 1));
    else {
      const open = most ? Number(most) : Number.POSITIVE_INFINITY;
      steps.push({ characters, least: Number(least), most: comma ? open : Number(least) });
    }
  }
  return steps;
}

function setOf(one: RegExp): ReadonlySet<string> {
  return new Set(ASCII.filter((character) => one.test(character)));
}

function exactly(characters: ReadonlySet<string>, count: number): Step {
  return { characters, least: count, most: count };
}

function atLeastOne(characters: ReadonlySet<string>): Steps {
  return [{ characters, least: 1, most: Number.POSITIVE_INFINITY }];
}

function literalSteps(text: string): Steps {
  return text.split('').map((character) => exactly(new Set([ASCII.includes(character) ? character : OTHER]), 1));
}
