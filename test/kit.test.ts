import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** What an app imports from the package, and the modules that the client loads when it needs them. */
const ENTRIES = /^lib\/(index|define|testing\/index|client\/\w+)\.ts$/;
const IMPORTED = /^(?:import|export) [^;]*?'(\.[^']+)';|\bimport\('(\.[^']+)'\)/gm;

const tests = globSync(['test/**/*.ts', '{examples,model}/**/*.test.ts']).filter((file) => !/^test\/kit\//.test(file));

/** The modules of lib that a file imports. */
function importsOfLib(file: string): readonly string[] {
  const imports = readFileSync(file, 'utf8').matchAll(IMPORTED);
  const paths = [...imports].map(([, one, other]) => join(dirname(file), one ?? other ?? ''));
  return paths.filter((path) => path.startsWith('lib/'));
}

test('tests import the entries of the package, the module that they test, or the kit', () => {
  const others = tests.flatMap((file) => {
    const own = file.replace(/^test\//, '').replace('.test.ts', '.ts');
    return importsOfLib(file)
      .filter((path) => path !== own && !ENTRIES.test(path))
      .map((path) => `${file}: ${path}`);
  });
  expect(others).toEqual([]);
});

test('the kit exports at most 60 names, each written out', () => {
  const texts = globSync('test/kit/*.ts').map((file) => readFileSync(file, 'utf8'));
  const names = texts.flatMap((text) => [
    ...[...text.matchAll(/^export (?:async )?(?:const|function|class|interface|type|let) (\w+)/gm)].map(
      ([, name]) => name,
    ),
    ...[...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) => list.split(',')),
  ]);
  expect(names.length).toBeGreaterThan(30);
  expect(names.length, names.join(' ')).toBeLessThanOrEqual(60);
  expect(texts.filter((text) => text.includes('export *'))).toEqual([]);
});
