/** Which rows a query returns, as the filter that storage evaluates. */

/** Storage rejects more comparisons. https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities */
export const MAX_COMPARISONS = 15;
/** A number with an exponent, which the emulator does not read. */
const WITH_EXPONENT = /^-?[\d.]+e/;

/** A comparison of one property with values typed as stored; with `in`, one of the values must be equal. */
export interface RowComparison {
  readonly name: string;
  readonly operator: 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le' | 'in';
  readonly values: readonly unknown[];
}

/** A comparison, or alternatives of comparisons that all hold. */
export type RowCondition = RowComparison | { readonly anyOf: readonly (readonly RowComparison[])[] };

/** Which rows to return. */
export interface RowFilter {
  /** Only rows of this `EntityType`, or of one of these, with the comparisons of the type. */
  readonly type?: string | readonly (string | TypeFilter)[] | undefined;
  /**
   * Only rows for which all comparisons hold; storage reads every row of the range. Comparisons that storage cannot evaluate are
   * left out, so the caller compares the rows again.
   */
  readonly where?: readonly RowCondition[] | undefined;
  /** With `where`, also every row of an earlier `EntityVersion`. */
  readonly orVersionBefore?: number | undefined;
  /** The `EntityType` of the rows that count against `limit`; by default all count. */
  readonly counted?: string | undefined;
}

interface TypeFilter extends Pick<RowFilter, 'where' | 'orVersionBefore'> {
  readonly type: string;
}

/** The conditions of a filter, with at most `room` comparisons. */
export function rowConditions({ type, ...filter }: RowFilter, room: number): string[] {
  const types = type === undefined ? [] : [type].flat().map((one) => (typeof one === 'string' ? { type: one } : one));
  let left = room - types.length;
  const compare = ({ where = [], orVersionBefore }: RowFilter) => {
    const isVersioned = orVersionBefore !== undefined && where.length > 0;
    if (isVersioned) left -= 1;
    const sent = where.flatMap((condition) => {
      const alternatives = ('anyOf' in condition ? condition.anyOf : [[condition]]).map((all) => all.map(toText));
      const all = alternatives.flat();
      const needed = all.reduce((sum, { count }) => sum + count, 0);
      if (needed > left || all.some(({ isReadable }) => !isReadable)) return [];
      left -= needed;
      const texts = alternatives.map((each) => each.map(({ text }) => text).join(' and '));
      return [texts.length > 1 ? `(${texts.map((text) => `(${text})`).join(' or ')})` : String(texts[0])];
    });
    if (!isVersioned || sent.length === 0) return sent;
    // The version comes first: an older row may have a value of another type.
    return [`(EntityVersion lt ${literal(orVersionBefore)} or (${sent.join(' and ')}))`];
  };
  const ofTypes = types.map((one) => {
    const conditions = [`EntityType eq ${literal(one.type)}`, ...compare(one)];
    return types.length > 1 && conditions.length > 1 ? `(${conditions.join(' and ')})` : conditions.join(' and ');
  });
  const ofType = ofTypes.length > 1 ? [`(${ofTypes.join(' or ')})`] : ofTypes;
  return [...ofType, ...compare(filter)];
}

function toText({ name, operator, values }: RowComparison) {
  const literals = values.map(literal);
  const wanted = literals.map((text) => `${name} ${operator === 'in' ? 'eq' : operator} ${text}`);
  return {
    text: wanted.length > 1 ? `(${wanted.join(' or ')})` : String(wanted[0]),
    count: literals.length,
    isReadable: !literals.some((text) => WITH_EXPONENT.test(text)),
  };
}

/** Formats a value for a filter. The SDK's own template formats a Double and an Int64 as an Int32. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`;
  if (typeof value !== 'object' || value === null || !('type' in value) || !('value' in value)) return String(value);
  const text = String(value.value);
  if (value.type === 'Int64') return `${text}L`;
  return /[.e]/i.test(text) ? text : `${text}.0`;
}
