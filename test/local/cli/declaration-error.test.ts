import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Runs a module that imports a command's helpers first, as every command does. */
async function load(statement: string) {
  const code = `import './local/cli/command.ts'; const { DeclarationError } = await import('./lib/base/errors.ts'); ${statement}`;
  const failed: unknown = await promisify(execFile)('node', ['--input-type=module', '--eval', code]).catch(
    (error: unknown) => error,
  );
  return failed;
}

test('shows the error of a declaration without a stack trace, and any other error with one', {
  tags: ['slow'],
}, async () => {
  expect(await load('throw new DeclarationError("Entity cars: no key.");')).toMatchObject({
    code: 1,
    stderr: 'Entity cars: no key.\n',
  });
  expect(await load('throw new TypeError("broken");')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/TypeError: broken\n +at /),
  });
});
