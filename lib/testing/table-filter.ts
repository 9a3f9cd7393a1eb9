import { StorageRejection } from './storage-request.ts';
import { compareValues, type StoredValue, textual, toStoredValue } from './stored-value.ts';

/** Returns a property of a row, or a key. */
export type Property = (name: string) => StoredValue | undefined;

interface TableFilter {
  matches(row: Property): boolean;
  /** Every row that matches has this partition key and at least this row key. */
  readonly partition: string | undefined;
  readonly from: string;
  /** Every row that matches is in a partition from this one on; used without `partition`. */
  readonly fromPartition: string;
  /** No row with a greater row key matches. */
  readonly to: string | undefined;
}

type Operator = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le';
type Node =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Node[] }
  | { readonly kind: 'not'; readonly part: Node }
  | { readonly kind: 'comparison'; readonly name: string; readonly operator: Operator; readonly value: StoredValue };

/** https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities */
const MAX_COMPARISONS = 15;
const TOKEN =
  /\s*(?:(?<text>'(?:[^']|'')*')|(?<prefix>datetime|guid|binary|X)(?<quoted>'[^']*')|(?<number>[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?)[LdDfF]?)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<paren>[()]))/uy;
const HOLDS: Readonly<Record<Operator, (order: number) => boolean>> = {
  eq: (order) => order === 0,
  ne: (order) => order !== 0,
  gt: (order) => order > 0,
  ge: (order) => order >= 0,
  lt: (order) => order < 0,
  le: (order) => order <= 0,
};
const MIRRORED: Readonly<Record<Operator, Operator>> = { eq: 'eq', ne: 'ne', gt: 'lt', ge: 'le', lt: 'gt', le: 'ge' };

/** Parses `$filter`. Throws `InvalidInput`. */
export function parseFilter(text: string): TableFilter {
  const tokens = tokenize(text);
  let at = 0;
  let comparisons = 0;
  const peek = () => tokens[at];
  const next = () => tokens[at++] ?? invalid();
  const accept = (word: string) => {
    const isNext = peek()?.name === word;
    if (isNext) at += 1;
    return isNext;
  };

  function parseOr(): Node {
    const parts = [parseAnd()];
    while (accept('or')) parts.push(parseAnd());
    return parts.length === 1 && parts[0] ? parts[0] : { kind: 'or', parts };
  }
  function parseAnd(): Node {
    const parts = [parseNot()];
    while (accept('and')) parts.push(parseNot());
    return parts.length === 1 && parts[0] ? parts[0] : { kind: 'and', parts };
  }
  function parseNot(): Node {
    if (accept('not')) return { kind: 'not', part: parseNot() };
    if (peek()?.paren !== '(') return parseComparison();
    next();
    const inner = parseOr();
    return next().paren === ')' ? inner : invalid();
  }
  function parseComparison(): Node {
    const [left, operator, right] = [next(), next().name ?? '', next()];
    comparisons += 1;
    if (!isOperator(operator)) return invalid();
    if (left.value === undefined && right.value && left.name)
      return { kind: 'comparison', name: left.name, operator, value: right.value };
    if (left.value && right.value === undefined && right.name)
      return { kind: 'comparison', name: right.name, operator: MIRRORED[operator], value: left.value };
    return invalid();
  }

  const root = parseOr();
  if (at < tokens.length) invalid();
  if (comparisons > MAX_COMPARISONS) throw new StorageRejection(400, 'InvalidInput', 'Too many comparisons.');
  return { matches: (row) => evaluate(root, row), ...boundsOf(root) };
}

interface Token {
  readonly name?: string;
  readonly paren?: string;
  readonly value?: StoredValue;
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const trimmed = text.trimEnd();
  for (let at = 0; at < trimmed.length; ) {
    TOKEN.lastIndex = at;
    const { groups } = TOKEN.exec(trimmed) ?? invalid();
    at = TOKEN.lastIndex;
    tokens.push(toToken(groups ?? {}));
  }
  return tokens;
}

function toToken({
  text,
  prefix,
  quoted = '',
  number,
  name = '',
  paren = '',
}: Record<string, string | undefined>): Token {
  if (paren) return { paren };
  if (text) return { value: textual('String', text.slice(1, -1).replaceAll("''", "'")) };
  if (prefix) return { value: toTyped(prefix, quoted.slice(1, -1)) };
  if (number) return { value: toNumber(number) };
  if (name === 'true' || name === 'false') return { value: { type: 'Boolean', value: name === 'true', json: name } };
  return { name };
}

function toTyped(prefix: string, text: string): StoredValue {
  if (prefix === 'datetime') return toStoredValue(text, 'DateTime');
  if (prefix === 'guid') return textual('Guid', text, text.toLowerCase());
  return toStoredValue(Buffer.from(text, 'hex').toString('base64'), 'Binary');
}

function toNumber(text: string): StoredValue {
  if (text.endsWith('L')) return toStoredValue(text.slice(0, -1), 'Int64');
  return /^[+-]?\d+$/.test(text) ? toStoredValue(text, 'Int32') : toStoredValue(text.replace(/[dDfF]$/, ''), 'Double');
}

function isOperator(text: string): text is Operator {
  return Object.hasOwn(HOLDS, text);
}

/** No comparison holds for a property that is missing, and only `ne` for one of another type. */
function evaluate(node: Node, row: Property): boolean {
  switch (node.kind) {
    case 'and':
      return node.parts.every((part) => evaluate(part, row));
    case 'or':
      return node.parts.some((part) => evaluate(part, row));
    case 'not':
      return !evaluate(node.part, row);
    case 'comparison': {
      const found = row(node.name);
      const order = found && compareValues(found, node.value);
      return order === undefined ? found !== undefined && node.operator === 'ne' : HOLDS[node.operator](order);
    }
  }
}

/** Storage uses only the keys' comparisons that always have to hold; so does this. */
function boundsOf(root: Node): Omit<TableFilter, 'matches'> {
  const parts = root.kind === 'and' ? root.parts.flatMap(conjuncts) : [root];
  const values = (name: string, ...operators: readonly Operator[]) =>
    parts.flatMap((part) =>
      part.kind === 'comparison' && part.name === name && operators.includes(part.operator)
        ? [String(part.value.value)]
        : [],
    );
  const greatest = (texts: readonly string[]) => texts.reduce((one, other) => (one > other ? one : other), '');
  return {
    partition: values('PartitionKey', 'eq')[0],
    fromPartition: greatest(values('PartitionKey', 'ge', 'gt')),
    from: greatest(values('RowKey', 'ge', 'gt', 'eq')),
    to: values('RowKey', 'le', 'lt', 'eq').toSorted()[0],
  };
}

function conjuncts(node: Node): readonly Node[] {
  return node.kind === 'and' ? node.parts.flatMap(conjuncts) : [node];
}

function invalid(): never {
  throw new StorageRejection(400, 'InvalidInput', 'The query condition specified in the request is invalid.');
}
