import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const COMPILER = 'node_modules/typescript/bin/tsc';
const MISNAMED = 'test/misnamed';

const missing = (field: string, type: string) =>
  `Property '${field}' is missing in type '{}' but required in type '{ ${type} }'.`;
const noHireDate = missing(
  'department',
  'readonly department: string; readonly employeeId?: never; readonly hireDate?: string;',
);

test('the compiler explains each misnamed field in one sentence', () => {
  const { stdout } = spawnSync(process.execPath, [COMPILER, '--project', MISNAMED], { encoding: 'utf8' });
  const sentences = stdout
    .trim()
    .split('\n')
    // Where, the number of the error, and the type that is not assignable.
    .map((line) =>
      line.replace(/^\S+ error TS\d+: /, '').replace(/^.* is not assignable to (?:parameter of )?type /, ''),
    );
  expect(sentences).toEqual([
    String.raw`'"\"hiredate\" is not a field of the schema, or is encrypted"'.`,
    String.raw`'"\"email\" is not a field of the schema, or is encrypted"'.`,
    String.raw`'"\"hired\" is not a field of the schema, or is encrypted"'.`,
    String.raw`'"\"email\" is not a field of the schema, or is encrypted"'.`,
    noHireDate,
    `'"A range gives the first fields of the row key, in its order"'.`,
    String.raw`'"\"jobTitle\" is not a field of the key"'.`,
    missing('customerId', 'readonly customerId: string; readonly orderDate?: never;'),
    noHireDate,
    noHireDate,
  ]);
});
