import { expect, test } from 'vitest';
import { type Operation, perform } from '../../../lib/api/operation.ts';
import type { Caller } from '../../../lib/index.ts';
import { engineRead } from '../../kit/engine.ts';
import { testApp } from '../http/request.ts';

const { engine } = testApp(import.meta.url);
const reader: Caller = { subject: 'ann', roles: ['reader'], claims: {} };

/** Performs an operation for a caller, and returns the steps in their order. */
async function stepsOf(
  caller: Caller | undefined,
  over: Partial<Operation<string, string>> = {},
): Promise<readonly string[]> {
  const steps: string[] = [];
  const note = (step: string) => void steps.push(step);
  const operation: Operation<string, string> = {
    name: 'things-do',
    summary: 'Do things',
    kind: 'write',
    roles: ['reader'],
    admit: (_, input) => note(`admit to ${input}`),
    run: async (_, input) => `${input} done`,
    ...over,
  };
  const call = {
    engine,
    caller,
    ready: async () => note('ready'),
    record: async <Done>(write: () => Promise<Done>) => {
      note('record');
      return write();
    },
  };
  const read = () => {
    note('read');
    return 'work';
  };
  try {
    note((await perform(operation, call, read)).output);
  } catch (error) {
    note(Object(error).code);
  }
  return steps;
}

test('a caller is admitted by role, then the input is read, then the caller is admitted to the input', async () => {
  expect(await stepsOf(reader)).toEqual(['ready', 'read', 'admit to work', 'record', 'work done']);
  expect(await stepsOf(reader, { kind: 'read' })).toEqual(['ready', 'read', 'admit to work', 'work done']);
});

test('nothing is read for a caller without a role', async () => {
  expect(await stepsOf({ ...reader, roles: ['hr'] })).toEqual(['forbidden']);
});

test('the app itself is admitted to everything, and its writes are recorded', async () => {
  expect(await stepsOf(undefined)).toEqual(['ready', 'read', 'record', 'work done']);
});

test('a read whose blob was replaced starts again with the same input, up to four times', async () => {
  const goneFor = (times: number): Partial<Operation<string, string>> => {
    let attempts = 0;
    return {
      kind: 'read',
      async run(_, input) {
        attempts += 1;
        if (attempts <= times) throw new engineRead.BlobGone();
        return `${input} done in ${attempts}`;
      },
    };
  };
  expect(await stepsOf(undefined, goneFor(3))).toEqual(['ready', 'read', 'work done in 4']);
  expect(await stepsOf(undefined, goneFor(4))).toEqual(['ready', 'read', 'needs-repair']);
  expect(await stepsOf(undefined, { ...goneFor(1), kind: 'write' })).toEqual([
    'ready',
    'read',
    'record',
    'needs-repair',
  ]);
});
