import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { checkTypes } from '../../check-types.ts';

const MISNAMED = 'test/misnamed';

const type = (name: string) => `'${name}'.`;
const sentence = (text: string) => type(`"${text.replaceAll('"', '\\"')}"`);
const notInSchema = (field: string) => sentence(`"${field}" is not a field of the schema`);
const noKeyField = (field: string) => sentence(`"${field}" is not a field of the schema, or is encrypted`);
const noOption = (option: string, accepted: string) => sentence(`"${option}" is not an option. Use ${accepted}`);
const FIELDS = '"department" | "email" | "employeeId" | "hireDate" | "size" | "teamId"';
const oneOf = (meant: string) => `'${FIELDS}'. Did you mean '"${meant}"'?`;
const misspelt = (name: string) =>
  `Object literal may only specify known properties, but '${name}' does not exist in type `;
const missing = (field: string, of: string) =>
  `Property '${field}' is missing in type '{}' but required in type '{ ${of} }'.`;
const noHireDate = missing(
  'department',
  'readonly department: string; readonly employeeId?: never; readonly hireDate?: string;',
);

/** The end of each message, which has one line, by the comment above the call in misnamed.ts. */
const MESSAGES = {
  'a field of an index': noKeyField('hiredate'),
  'a field of a unique index': noKeyField('mail'),
  'a field that an index copies': noKeyField('mail'),
  'a field of a list': noKeyField('team'),
  'an encrypted field of an index': noKeyField('email'),
  'a field of a total': noKeyField('hired'),
  'an encrypted field of a total': noKeyField('email'),
  'a field of the partition key': noKeyField('departmnt'),
  'a field of the row key': noKeyField('id'),
  'an encrypted field of the key': noKeyField('department'),
  'a restricted field': notInSchema('salary'),
  'a disclosed field': notInSchema('salary'),
  'the index of the owner': type('"email"'),
  'the index of a lookup': type('"email"'),
  'a derived field': notInSchema('sise'),
  'a derived field of a union': notInSchema('sise'),
  'a count': notInSchema('sise'),
  'a field with copies': notInSchema('sise'),
  'a field that refers to a source of copies': notInSchema('team'),
  'a field that refers': notInSchema('team'),
  'an entity that is referred to': type('Declared'),
  'a rule of a reference': type('"refuse" | "report"'),
  'the clock of an expiry': oneOf('hireDate'),
  'the field of a period': oneOf('hireDate'),
  'a large field': oneOf('email'),
  'an encrypted field': oneOf('email'),
  'a field that a move changes': oneOf('department'),
  'a field apart': oneOf('email'),
  'an option of an entity': sentence('"indices" is not an option of an entity'),
  'a field of a rule': notInSchema('mail'),
  'a field of a rule of a restricted field': notInSchema('mail'),
  'a field of a rule before a change': notInSchema('mail'),
  'a field of a rule after one of several changes': notInSchema('mail'),
  'a field of a check': "Property 'mail' does not exist on type",
  'a claim of a rule': "Did you mean 'departments'?",
  'the key of a membership': "to parameter of type 'FieldOf<EntityBy",
  'a field of the members': `and 'nmae' does not exist in type '{ readonly department?: Scalar;`,
  'an option of the access': misspelt('reads'),
  'an option of an index in the partition': noOption('unique', 'row, when, copies'),
  'an option of an index in other partitions': noOption(
    'uniq',
    'table, partition, row, when, copies, unique, settle, appends',
  ),
  'an option in place of a required one': `${misspelt('rows')}'InterPartitionOptions'. Did you mean to write 'row'?`,
  'an option of a list': noOption('copies', 'row, holds, when, table, partition, settle, appends'),
  'an option of a total': noOption('sums', 'table, partition, row, sum, min, max, when, appends'),
  'a role': sentence('"raeder" is not a role of the model'),
  'a role after a change': sentence('"raeder" is not a role of the model'),
  'a role of a restricted field': sentence('"raeder" is not a role of the model'),
  'the role of operators': type('"reader"'),
  'the role of a limit': type('"reader"'),
  'the entity of a limit': type('"teams"'),
  'the operation of a limit': type('"invite"'),
  'the role of an operation': sentence('"raeder" is not a role of the model'),
  'an option of an operation': "Did you mean to write 'roles'?",
  'the implementation of an operation': "Did you mean to write 'invite'?",
  'a member of the input': "Did you mean 'email'?",
  'a range without its first field': noHireDate,
  'a range with a field in place of another': sentence('A range gives the first fields of the row key, in its order'),
  'a range with a field that is not in the key': sentence('"jobTitle" is not a field of the key'),
  'a range of totals': missing('branch', 'readonly branch: string; readonly soldOn?: never;'),
  'a range through the client': noHireDate,
  'a range in a query': noHireDate,
  'an operation through the client': "Did you mean 'invite'?",
  'a member of the input through the client': "Did you mean to write 'email'?",
};

/** The lines of the compiler, by the last comment above the code that they are about. */
const lines = new Map<string, string[]>();
beforeAll(async () => {
  const source = readFileSync(`${MISNAMED}/misnamed.ts`, 'utf8').split('\n');
  let title = '';
  for (const line of (await checkTypes(MISNAMED)).trim().split('\n')) {
    const [, at] = /misnamed\.ts\((\d+),/.exec(line) ?? [];
    if (at)
      title =
        source
          .slice(0, Number(at))
          .findLast((text) => text.startsWith('// '))
          ?.slice(3) ?? '';
    lines.set(title, [...(lines.get(title) ?? []), line]);
  }
});

test.each(Object.entries(MESSAGES))('the compiler explains in one line: %s', (title, message) => {
  expect(lines.get(title)).toEqual([expect.stringContaining(message)]);
});

test('the compiler reports nothing else', () => {
  expect([...lines.keys()]).toEqual(Object.keys(MESSAGES));
});
