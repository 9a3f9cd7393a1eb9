import { describe, expect, test } from 'vitest';
import { files, parse, syntaxErrors } from './bicep.ts';

describe('every Bicep file parses', () => {
  test.each(files.map((file) => [file.path, file] as const))('%s', (_path, file) => {
    expect(syntaxErrors(file)).toEqual([]);
  });

  test('and one that is wrong does not', () => {
    expect(syntaxErrors(parse('wrong.bicep', "param name string\nresource a 'A/b@1' = {\n"))).not.toEqual([]);
    expect(syntaxErrors(parse('wrong.bicepparam', "using 'main.bicep'\nparam name =\n"))).not.toEqual([]);
  });
});
