import {
  canList,
  canListOwn,
  type Entity,
  hasRange,
  type Model,
  mayScan,
  neededFields,
  type RangeDescription,
  type Roles,
  readableFields,
  readsEveryRow,
  type TemplateDescription,
} from '../api/model.ts';

/** A way to read rows of an entity: by key, a partition, an index, all that the rules let the caller read, or the whole table. */
export interface Way {
  readonly id: string;
  readonly kind: 'key' | 'partition' | 'index' | 'mine' | 'scan';
  readonly title: string;
  readonly hint: string;
  /** Rows without one of these fields are not found this way. */
  readonly needs: readonly string[];
  /** The fields to give, in their order. */
  readonly fields: readonly string[];
  /** With these fields alone, a range is read. The longest comes first. */
  readonly ranges: readonly RangeDescription[];
  /** True if it leads to at most one row when all fields are given. */
  readonly isOne: boolean;
  /** The fields of its rows. */
  readonly available: readonly string[];
}

/** No index has such a name. */
const PARTITION = '';
const KEY = '=';
const SCAN = '*';
const MINE = '~';

/** The ways that the roles of the user and the rules on rows allow. An index needs the right to read its fields, because its order reveals them. */
export function waysToRead(entity: Entity, model: Model, user: Roles): Way[] {
  const readable = readableFields(entity, user);
  const partition = entity.key.partition.fields;
  const bounded = entity.key.row.fields.find((field) => !partition.includes(field)) ?? '';
  const all = { fields: [], ranges: [], isOne: false, available: readable, needs: [] };
  const indexes = Object.entries(entity.indexes)
    .filter(([, index]) => [...index.fields, ...index.row.fields].every((field) => readable.includes(field)))
    .filter(([id, { of }]) => of === 'one' || canList(entity, user, id))
    .map(([id, index]): Way => {
      const { copies, fields, ranges, of, kind, unique, sparse } = index;
      const isPart = typeof copies !== 'string';
      const described = [unique ? 'unique' : '', sparse ? 'some rows only' : '', kindNames[kind]].filter(Boolean);
      return {
        id,
        kind: 'index',
        title: `index ${id}`,
        hint: `${described.join(', ')}; ${isPart ? 'copies some fields' : copies === 'keys' ? 'refers to rows' : 'copies whole rows'}`,
        needs: neededFields(entity, index),
        fields,
        ranges: ranges
          .filter((range) => range.fields.length <= fields.length)
          .toSorted((a, b) => b.fields.length - a.fields.length),
        isOne: of === 'one',
        available: isPart
          ? readable.filter((field) =>
              [...entity.key.fields, ...fields, ...index.row.fields, ...copies].includes(field),
            )
          : readable,
      };
    });
  return [
    ...(hasRange(entity) && canList(entity, user)
      ? [
          {
            ...all,
            id: PARTITION,
            kind: 'partition',
            title: 'partition',
            hint: `one query; rows in the order of ${entity.key.row.template}`,
            fields: partition,
            ranges: [{ fields: partition, bounded, order: 'ascending' }],
          } as const,
        ]
      : []),
    { ...all, id: KEY, kind: 'key', title: 'key', hint: 'opens the row', fields: entity.key.fields, isOne: true },
    ...indexes,
    ...(canListOwn(entity, user)
      ? [{ ...all, id: MINE, kind: 'mine', title: 'your rows', hint: 'all rows that the rules let you read' } as const]
      : []),
    ...(mayScan(model, user) && entity.series === undefined && readsEveryRow(entity, user)
      ? [{ ...all, id: SCAN, kind: 'scan', title: 'whole table', hint: 'reads every row of the table' } as const]
      : []),
  ];
}

/** The fields that a list shows, unless the user chooses others. */
export function listedFields({ fields }: Entity, { available }: Way): string[] {
  return available.filter((field) => !fields[field]?.large);
}

/**
 * The way that lists all rows, or all that the rules let the caller read, without a value to fill in. Of the lists of all rows, only one that
 * takes a query for a page. An index that refers to rows reads each of them.
 */
export function findOpening({ key, indexes }: Entity, ways: readonly Way[]): Way | undefined {
  const isWhole = ({ id, kind, needs }: Way) => {
    if (kind === 'partition') return !isSpread(key.partition);
    const index = indexes[id];
    return index && index.copies !== 'keys' && !index.sparse && needs.length === 0 && !isSpread(index.partition);
  };
  return (
    ways.find((way) => (way.kind === 'partition' || way.kind === 'index') && findRead(way, {}) && isWhole(way)) ??
    ways.find(({ kind }) => kind === 'mine')
  );
}

/** A way of which the rules give the only value: the subject of the caller. Undefined if there is none. */
export function findOwn(entity: Entity, ways: readonly Way[], user: Roles & { readonly subject: string }) {
  const mine = entity.access.rules.read.filter(({ role }) => user.roles.includes(role));
  const isCaller = (field: string) => mine.some(({ terms }) => terms.includes(`${field} is the caller`));
  const way = ways.find(({ kind, fields: [field, ...others] }) => {
    return (kind === 'partition' || kind === 'index') && field !== undefined && others.length === 0 && isCaller(field);
  });
  return way && user.subject !== '' ? { way, given: { [way.fields[0] ?? '']: user.subject } } : undefined;
}

/** True if each bucket takes a query: `{code%8}`. */
function isSpread(partition: TemplateDescription | undefined): boolean {
  return countBuckets(partition) > 1;
}

function countBuckets(partition: TemplateDescription | undefined): number {
  return Number(/\{[^}]*%(\d+)\}/.exec(partition?.template ?? '')?.[1] ?? 1);
}

/** A page of a list with more buckets costs too much for a page that nobody has asked for. */
const MOST_BUCKETS = 16;

/** The way by which a page shows its first rows if no list of all rows takes one query: for operators the table, else an index. */
export function findPreview({ indexes }: Entity, ways: readonly Way[]): Way | undefined {
  const isCheap = ({ id, kind }: Way) => kind === 'index' && countBuckets(indexes[id]?.partition) <= MOST_BUCKETS;
  const lists = ways.filter((way) => isCheap(way) && findRead(way, {}));
  // An index of all rows before those that leave some out.
  const isOfAll = ({ id, needs }: Way) => !indexes[id]?.sparse && needs.length === 0;
  return ways.find(({ kind }) => kind === 'scan') ?? lists.find(isOfAll) ?? lists[0];
}

const kindNames = {
  'intra-partition': 'in the partition',
  'inter-partition': 'a table of its own',
  'index-entity': 'lists of keys',
};

/** What the given values ask for: a value of the index, or a range of it. Undefined if a required field is missing. */
export function findRead(way: Way, given: Readonly<Record<string, string>>) {
  const isGiven = (field: string) => (given[field] ?? '') !== '';
  const filled = way.fields.filter(isGiven);
  const isLeading = filled.every((field, position) => way.fields[position] === field);
  if (way.kind === 'scan' || way.kind === 'mine') return { fields: [], range: undefined };
  const range = way.ranges.find(
    ({ fields }) => fields.length === filled.length && fields.every((field) => filled.includes(field)),
  );
  if (way.kind !== 'partition' && filled.length === way.fields.length) return { fields: filled, range };
  return isLeading && range ? { fields: filled, range } : undefined;
}
