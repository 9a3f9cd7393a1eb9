import type { HostedFunction } from '../load-app.ts';

const NAME = /^[a-z][a-z0-9_-]{0,127}$/i;

/** `FunctionNameValidationRegex` in Utility.cs. The library registers no two functions of one name, ignoring case. */
export function findNameErrors(functions: readonly Pick<HostedFunction, 'name'>[]): string[] {
  return functions
    .filter(({ name }) => !NAME.test(name) || name.toLowerCase() === 'host')
    .map(
      ({ name }) =>
        `The function name ${JSON.stringify(name)} is not valid: a name has 1 to 128 letters, digits, - and _, begins with a letter and is not host.`,
    );
}
