import type { HandMadeIndex } from './find-links.ts';
import type { ProposedField, ProposedKind } from './propose-kind.ts';
import type { Proposal, ProposedTable } from './propose-tables.ts';

/** Returns the proposal as a TypeScript file of a model, whose comments are the report. */
export function formatProposal(
  { tables, indexes }: Proposal,
  imports: { readonly define: string } = { define: 'rowkey' },
): string {
  const byHand = new Map(indexes.map((found) => [found.index, found]));
  const isDeclared = (kind: ProposedKind) => kind.problem === undefined && !byHand.has(kind);
  const parts = tables.flatMap((table) => [
    comment(describeTable(table)),
    ...table.kinds.map((kind) => {
      const found = byHand.get(kind);
      if (found) return comment(describeIndexRows(found));
      const lines = comment(describeKind(kind));
      const declaration = declare(
        kind,
        indexes.filter(({ target }) => target === kind),
      );
      return kind.problem === undefined ? `${lines}\n${declaration}` : `${lines}\n${comment(declaration.split('\n'))}`;
    }),
  ]);
  const names = tables.flatMap(({ kinds }) => kinds.filter(isDeclared).map(({ name }) => name));
  return [
    HEAD,
    `import { defineEntity, defineModel } from ${quote(imports.define)};\nimport { z } from 'zod';`,
    ...parts,
    `export const model = defineModel({\n  roles: ['reader', 'operator'],\n  operatorRole: 'operator',\n  entities: [${names.join(', ')}],\n});`,
    '',
  ].join('\n\n');
}

const HEAD = comment([
  'Proposed from a sample of rows. Read each declaration before you use it: rows that are not in the sample may be different.',
  'With readOnly, Rowkey writes nothing to these tables. Remove it once the declaration is right and Rowkey shall write.',
]);

function describeTable({ table, sample, sizes, kinds }: ProposedTable): string[] {
  const { rows, isWhole } = sample;
  if (rows.length === 0) return [`Table ${table}: no rows.`];
  const { partitions, largest, isAppended, isPrepended } = sizes;
  const lines = [
    `Table ${table}: ${count(rows.length, 'row')}${isWhole ? ', the whole table' : ' in the sample; the table has more'}. ${count(kinds.length, 'kind')} of rows.`,
  ];
  if (largest)
    lines.push(
      `${count(partitions, 'partition')}; the largest, ${JSON.stringify(largest.partition)}, has ${share(largest.rows, rows.length)}.`,
    );
  if (isAppended || isPrepended)
    lines.push(
      `Hot: new rows go to the ${isAppended ? 'last' : 'first'} partitions, in the order of time, so storage cannot spread the writes.`,
    );
  return lines;
}

function describeKind({
  rows,
  notRead,
  unique,
  without,
  fields,
  notes,
  beginsWithTime,
  problem,
}: ProposedKind): string[] {
  const others = [...notRead].map(([reason, number]) => `Not read: ${count(number, 'row')}, because ${reason}.`);
  return [
    ...(problem === undefined ? [] : [`Cannot be declared. ${problem}`]),
    `${count(rows.length, 'row')} of the sample.`,
    ...others,
    ...(beginsWithTime
      ? ['The partition key begins with a time: all writes of the moment go to one end of the table.']
      : []),
    ...without.map(
      ({ property, reason }) => `No field for the property ${property}: ${reason}. Writes keep it as it is.`,
    ),
    ...fields.flatMap(({ field, notes: ofField }) => ofField.map((note) => `${field}: ${note}.`)),
    ...notes.map((note) => `${note}.`),
    ...(unique.length > 0
      ? [`Perhaps unique: ${unique.join(', ')}. The sample has no value twice, which proves nothing.`]
      : []),
  ];
}

function describeIndexRows({ index, target }: HandMadeIndex): string[] {
  return [
    `${index.partition} / ${index.row}: ${count(index.rows.length, 'row')} of the sample, an index of ${target.name} that the other program keeps.`,
    `It is not declared: see the comment in ${target.name}.`,
  ];
}

function declare(kind: ProposedKind, indexes: readonly HandMadeIndex[]): string {
  const { name, table, partition, row, appends, where, fields } = kind;
  const schema = fields.map(
    ({ field, schema: type, isOptional }) => `    ${field}: ${type}${isOptional ? '.optional()' : ''},`,
  );
  const properties = fields.flatMap((field) => declareProperty(field, kind));
  return [
    `export const ${name} = defineEntity(${quote(name)}, {`,
    '  schema: z.object({',
    ...schema,
    '  }),',
    `  table: ${quote(table)},`,
    `  key: { partition: ${quote(partition)}, row: ${quote(row)}${appends ? ', appends: true' : ''} },`,
    '  existing: {',
    ...(properties.length > 0 ? ['    properties: {', ...properties.map((line) => `      ${line},`), '    },'] : []),
    ...(where
      ? [
          `    where: { ${member(where.property)}: ${typeof where.value === 'string' ? quote(where.value) : where.value} },`,
        ]
      : []),
    '    readOnly: true,',
    '  },',
    ...indexes.flatMap(describeIndex).map((line) => `  // ${line}`),
    ...declareIndexes(indexes).map((line) => `  // ${line}`),
    "  access: { read: ['reader'], write: [] },",
    '});',
  ].join('\n');
}

/** A field that is not named here has the property of its name, and a field of the key has none. */
function declareProperty({ field, property, type }: ProposedField, { keyFields }: ProposedKind): string[] {
  if (property === undefined || (property === field && type === undefined && !keyFields.includes(field))) return [];
  return [`${field}: ${type ? `{ name: ${quote(property)}, type: ${quote(type)} }` : quote(property)}`];
}

function describeIndex(found: HandMadeIndex): string[] {
  const { index, target, from, isList, by, hasId } = found;
  const changes = by.filter(({ change }) => change !== undefined);
  const what = isList ? `list the ids of ${target.name} in ${from}` : `lead to ${target.name} by ${from}`;
  return [
    `The rows ${index.partition} / ${index.row} of the table ${index.table} ${what}. Another program keeps them.`,
    `Compared: ${describeCounts(found)}.`,
    ...changes.map(
      ({ field, change }) => `They have ${field} in ${change} case. An index of Rowkey has it as it is stored.`,
    ),
    ...(by.length === 0
      ? [
          `No field of ${target.name} has the values of their ${hasId ? 'other ' : ''}keys: add one before you declare an index.`,
        ]
      : []),
  ];
}

function describeCounts({ target, compared, dangling, missing, stale }: HandMadeIndex): string {
  const known = [
    dangling === undefined ? undefined : `${count(dangling, 'id')} without a row`,
    missing === undefined ? undefined : `${missing} of ${target.name} without an index row`,
    `${stale} with another value`,
  ];
  return [count(compared, 'row'), ...known.filter((each) => each !== undefined)].join(', ');
}

function declareIndexes(indexes: readonly HandMadeIndex[]): string[] {
  const declared = indexes.filter(({ by }) => by.length > 0).map(declareIndex);
  const what = 'Rowkey can keep such an index itself, in a table of its own, once it alone writes:';
  return declared.length > 0 ? [what, 'indexes: {', ...declared.map((line) => `  ${line},`), '},'] : [];
}

/** The index of Rowkey that takes the place of rows that another program keeps. */
function declareIndex({ target, by, isList, hasId, within }: HandMadeIndex): string {
  const fields = by.map(({ field }) => field);
  const [first = ''] = fields;
  const ofKey = `${target.partition}${target.row}`.match(/\{[^}]*\}/g) ?? [];
  const isWithin = (part: string) => within !== undefined && new RegExp(`^\\{${within}\\b`).test(part);
  const name = within === undefined ? first : `${first}In${within.charAt(0).toUpperCase()}${within.slice(1)}`;
  const table = `${target.name}by${within ?? ''}${fields.join('')}`
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
    .slice(0, 55);
  const id = ofKey.filter((part) => !isWithin(part)).join('|');
  const values = fields.map((field) => `{${field}}`).join('|');
  const partition = ofKey.find(isWithin) ?? `${first.toLowerCase()}_{${first}#}`;
  const at = `table: ${quote(table)}, partition: ${quote(partition)}`;
  if (isList) return `${name}: indexEntity({ ${at}, row: ${quote(values)}, holds: ${quote(ofKey.join('|'))} })`;
  if (hasId) return `${name}: interPartitionIndex({ ${at}, row: ${quote(`${values}|${id}`)} })`;
  return `${name}: interPartitionIndex({ ${at}, row: ${quote(values)}, unique: true })`;
}

function comment(lines: readonly string[]): string {
  return lines.map((line) => (line === '' ? '//' : `// ${line}`)).join('\n');
}

function quote(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inside}'`;
}

function member(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name);
}

function count(number: number, what: string): string {
  return `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`;
}

function share(part: number, whole: number): string {
  return `${count(part, 'row')} (${Number(((part / whole) * 100).toFixed(1))} %)`;
}
