import { describe, expect, test } from 'vitest';
import { type BicepFile, files, isThere, parse, templates } from './bicep.ts';
import {
  declaredTwice,
  loaded,
  missingOutputs,
  notExported,
  undeclared,
  unused,
  wrongAssignments,
  wrongParameters,
} from './references.ts';

const byPath = (list: readonly BicepFile[]) => list.map((file) => [file.path, file] as const);
const main = templates.filter(({ path }) => path === 'main.bicep');
const modules = main.flatMap((file) =>
  file.declarations.filter(({ kind }) => kind === 'module').map((module) => [module.name, module, file] as const),
);

describe('every name that is used is declared, in its file', () => {
  test.each(byPath(files))('%s', (_path, file) => expect(undeclared(file)).toEqual([]));
});

describe('everything that is declared is used', () => {
  test.each(byPath(files))('%s', (_path, file) => expect(unused(file)).toEqual([]));
});

describe('nothing is declared twice', () => {
  test.each(byPath(files))('%s', (_path, file) => expect(declaredTwice(file)).toEqual([]));
});

describe('what is imported is exported', () => {
  test.each(byPath(templates))('%s', (_path, file) => expect(notExported(file)).toEqual([]));
});

describe('a module is given the parameters that it declares, and no others', () => {
  test.each(modules)('%s', (_name, module, file) => expect(wrongParameters(module, file)).toEqual([]));
});

describe('outputs that are read are there', () => {
  test.each(byPath(templates))('%s', (_path, file) => expect(missingOutputs(file)).toEqual([]));
});

describe('a parameter file gives every parameter without a default, and none that is not declared', () => {
  const parameterFiles = files.filter(({ using }) => using !== undefined);
  test('there is one for azd, one for dev and one for prod', () =>
    expect(parameterFiles.map(({ path }) => path)).toEqual(['dev.bicepparam', 'main.bicepparam', 'prod.bicepparam']));
  test.each(byPath(parameterFiles))('%s', (_path, file) => expect(wrongAssignments(file)).toEqual([]));
});

describe('files that are loaded are there', () => {
  test.each(byPath(files))('%s', (_path, file) =>
    expect(loaded(file).filter((path) => !isThere(path, file))).toEqual([]),
  );
});

test('every module of the folder is used', () => {
  const used = main.flatMap(({ declarations, imports }) => [
    ...declarations.filter(({ kind }) => kind === 'module').map(({ of }) => of),
    ...imports.map(({ from }) => from),
  ]);
  const imported = templates.flatMap(({ imports }) => imports.map(({ from }) => `modules/${from}`));
  const there = templates.map(({ path }) => path).filter((path) => path.startsWith('modules/'));
  expect(there.filter((path) => !used.includes(path) && !imported.includes(path))).toEqual([]);
});

describe('what is wrong is seen', () => {
  test('a name that is not declared', () => {
    expect(undeclared(parse('a.bicep', 'var a = b\n'))).toEqual(['a.bicep:1 b']);
    expect(undeclared(parse('a.bicep', `output a string = 'x-\${b}'\n`))).toEqual(['a.bicep:1 b']);
    expect(undeclared(parse('a.bicep', 'param a Tags\n'))).toEqual(['a.bicep:1 Tags']);
    expect(undeclared(parse('a.bicep', 'output a array = [for b in [] : { c: b, d: e }]\n'))).toEqual(['a.bicep:1 e']);
    expect(undeclared(parse('a.bicep', "output a string = listKeys('x', 'y')\n"))).toEqual([
      "a.bicep listKeys('x', 'y')",
    ]);
  });

  test('a name that is not used', () => {
    expect(unused(parse('a.bicep', "param a string\nvar b = 1\nimport { c } from 'd.bicep'\n"))).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  test('a parameter that is missing or too much', () => {
    const file = parse(
      'main.bicep',
      "module a 'modules/identity.bicep' = {\n  name: 'a'\n  params: { name: 'x', other: 1 }\n}\n",
    );
    const [module] = file.declarations;
    expect(module && wrongParameters(module, file)).toEqual([
      'location is not given',
      'tags is not given',
      'other is not declared',
    ]);
    const parameters = wrongAssignments(parse('x.bicepparam', "using 'main.bicep'\n\nparam nothing = 1\n"));
    expect(parameters).toContain('environmentName is not given');
    expect(parameters).toContain('nothing is not declared');
  });

  test('an output that is not there', () => {
    const text = "module a 'modules/identity.bicep' = {\n  name: 'a'\n}\noutput b string = a.outputs.c\n";
    expect(missingOutputs(parse('main.bicep', text))).toEqual(['a.outputs.c']);
  });
});
