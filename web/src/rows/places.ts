import type { IndexDescription } from '../../../lib/define/declaration/model-description.ts';
import type { Explained, Explanation } from '../api/entity-client.ts';
import { type Entity, type Model, neededFields, type TemplateDescription, type Values } from '../api/model.ts';

export interface Place {
  readonly what: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
}

interface Described {
  readonly entity: Entity;
  readonly model: Pick<Model, 'entities'>;
  readonly values: Values;
}

/**
 * The rows of an entity: the one that its read gets, and those that its delete would read and write. Intents and messages
 * are left out, because they last as long as a write.
 */
export function findPlaces(described: Described, read: Explanation, removal: Explanation): Place[] {
  const places = new Map<string, Place>();
  // The rules read the memberships of the caller before the row.
  const own = read.steps.findLast((step) => step.read === 'row');
  const add = (table: unknown, partition: unknown, row: unknown, given?: string) => {
    const place = { table: String(table), partition: String(partition), row: String(row) };
    const id = JSON.stringify(place);
    const isLocal = place.table === own?.table && place.partition === own.partition;
    const what = given ?? (isLocal ? describeLocal(described, place.row) : describeRemote(described, place));
    if (!places.has(id)) places.set(id, { what, ...place });
  };
  if (own) add(own.table, own.partition, own.row, 'the row');
  for (const step of removal.steps) {
    if (step.write === 'rows')
      for (const { row } of step.actions as readonly { readonly row: string }[]) add(step.table, step.partition, row);
    else if (step.read === 'row') add(step.table, step.partition, step.row);
    else if (step.read === 'blob') add(step.container, '', step.name, 'a blob');
  }
  return [...places.values()];
}

interface Asked {
  readonly explain: Pick<Explained, 'by'>;
  /** The explained read of the row. */
  readonly read: Explanation;
  readonly signal: AbortSignal;
}

/**
 * The entries of a row in the indexes with these names, without an explained delete: explained reads of the indexes name their tables
 * and keys.
 */
export async function findIndexEntries(
  { entity, values, names }: Omit<Described, 'model'> & { readonly names: readonly string[] },
  { explain, read, signal }: Asked,
): Promise<Place[]> {
  // The rules read the same for the row and for the index.
  const ofRules = new Set(read.steps.map((step) => JSON.stringify(step)));
  const found = Object.entries(entity.indexes).flatMap(([name, index]) => {
    if (!names.includes(name)) return [];
    if (neededFields(entity, index).some((field) => values[field] === undefined)) return [];
    const what = `index entry: ${name}${index.sparse ? ', if the row meets its condition' : ''}`;
    return eachOfList(index, values).map(async (one): Promise<Place | undefined> => {
      const { steps } = await explainRead(name, index, one, explain, signal);
      const step = steps.find(
        (each) => (each.read === 'row' || each.read === 'rows') && !ofRules.has(JSON.stringify(each)),
      );
      if (!step) return undefined;
      const {
        table,
        partition = keyIn(step.filter, 'PartitionKey eq'),
        row = keyIn(step.filter, 'RowKey (?:ge|eq)'),
      } = step;
      // A read asks every bucket for its entries, so that its first step may be another bucket.
      const bucket = index.partition?.template.includes('%') ? index.partition.template : partition;
      return { what, table: String(table), partition: String(bucket), row: String(row) };
    });
  });
  return (await Promise.all(found)).filter((place) => place !== undefined);
}

/** The values with each element of a list in the keys of the index. */
function eachOfList({ partition, row }: IndexDescription, values: Values): Values[] {
  const list = [...(partition?.fields ?? []), ...row.fields].find((field) => Array.isArray(values[field]));
  const elements = list === undefined ? undefined : (values[list] as readonly unknown[]);
  return elements ? elements.map((element) => ({ ...values, [String(list)]: element })) : [values];
}

/** The range with the most fields is bounded by the rest of the row key. */
function explainRead(
  name: string,
  index: IndexDescription,
  values: Values,
  { by }: Pick<Explained, 'by'>,
  signal: AbortSignal,
) {
  const pick = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, values[field]]));
  const range = index.of === 'many' ? index.ranges.at(-1) : undefined;
  if (!range) return by[name]?.(pick(index.fields), { signal }) ?? { steps: [] };
  const bound = String(values[range.bounded]);
  return by[name]?.range(pick(range.fields), { from: bound, to: bound, first: 1, signal }) ?? { steps: [] };
}

/** The text that a filter of storage compares with a key. */
function keyIn(filter: unknown, comparison: string): string {
  const [, text = ''] = new RegExp(`${comparison} '((?:[^']|'')*)'`).exec(String(filter)) ?? [];
  return text.replaceAll("''", "'");
}

function describeLocal({ entity, model, values }: Described, row: string): string {
  const index = Object.entries(entity.indexes).find(([, one]) => !one.partition && matches(one.row, values, row));
  if (index) return `index entry: ${index[0]}`;
  const child = entity.children.find((name) => {
    const template = model.entities.get(name)?.key.row;
    return template !== undefined && matches(template, values, row);
  });
  if (child !== undefined) return `child: ${child}`;
  const counter = [...model.entities.values()].find(
    (other) => Object.values(other.counts).includes(entity.name) && matches(other.key.row, values, row),
  );
  return counter ? `count: ${counter.name}` : 'sibling row';
}

function describeRemote({ entity, values }: Described, { partition, row }: Omit<Place, 'what'>): string {
  const found = Object.entries(entity.indexes).find(
    ([, index]) => index.partition && matches(index.partition, values, partition) && matches(index.row, values, row),
  );
  if (found) return `index entry: ${found[0]}`;
  const total = Object.keys(entity.totals).length > 0;
  return total ? 'totals, or another row' : 'another row';
}

/** True if the template gives this key. A hash, a width, a bucket or an unknown field may give any text. */
function matches({ template }: TemplateDescription, values: Values, key: string): boolean {
  const pattern = template.replace(/\{(\w+)([^}]*)\}|[^{]+/g, (text, field: string | undefined, modifier: string) => {
    if (field === undefined) return escapeText(text);
    const value = values[field];
    return modifier === '' && typeof value === 'string' && /^[\w@.-]*$/.test(value) ? escapeText(value) : '.+';
  });
  return new RegExp(`^${pattern}$`, 's').test(key);
}

function escapeText(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
