import { describe, expect, test } from 'vitest';
import { type BicepFile, parse, templates } from './bicep.ts';
import { byHand, generated, schemaOf } from './schemas.ts';
import { wrongIn, wrongReads } from './wrong-resources.ts';

const resourcesOf = (file: BicepFile) =>
  file.declarations.filter(({ kind }) => kind === 'resource').map((resource) => ({ resource, file }));
const every = templates
  .flatMap(resourcesOf)
  .map(({ resource, file }) => [`${resource.file} ${resource.name}`, resource, file] as const);

describe('every resource is what Azure says of its type', () => {
  test.each(every)('%s', (_name, resource, file) => expect(wrongIn(resource, file)).toEqual([]));
});

describe('what is read is there', () => {
  test.each(templates.map((file) => [file.path, file] as const))('%s', (_path, file) =>
    expect(wrongReads(file)).toEqual([]),
  );
});

describe('the schemas', () => {
  test('that are written by hand are of types that cannot be had', () =>
    expect(Object.keys(byHand).filter((type) => type in generated)).toEqual([]));

  // What is true of an older version is true of a newer one; what is new in a newer one is not.
  test('are of no later version than the resources', () => {
    const older = every.filter(
      ([, resource]) => (schemaOf(resource)?.version ?? '') > (resource.of.split('@')[1] ?? ''),
    );
    expect(older.map(([name]) => name)).toEqual([]);
  });
});

/** A part of a file, what is written there instead, and what is found. */
const mistakes: readonly [string, string, string, string, string][] = [
  [
    'a misspelt property',
    'storage',
    'allowSharedKeyAccess:',
    'allowSharedKeysAccess:',
    'allowSharedKeysAccess is not known',
  ],
  ['a value of no list', 'storage', "publicAccess: 'None'", "publicAccess: 'Off'", "and not 'Off'"],
  ['a value of no list that may grow', 'storage', "'TLS1_2'", "'TLS12'", "and not 'TLS12'"],
  [
    'a value in a list',
    'key-vault',
    "'unwrapKey'",
    "'unwrap'",
    "keyOps[] is encrypt | decrypt | sign | verify | wrapKey | unwrapKey | import | release | string, and not 'unwrap'",
  ],
  ['a value of a loop', 'alerts', "window: 'PT2H'", "window: 'PT26H'", "and not 'PT26H'"],
  ['a value of another kind of alert', 'alerts', "windowSize: 'PT30M'", "windowSize: 'P2D'", "and not 'P2D'"],
  [
    'a number of a loop of tables',
    'monitoring',
    'retentionInDays: retentionDays\n      //',
    "retentionInDays: '30'\n      //",
    'retentionInDays is int',
  ],
  ['a value of a branch', 'storage', "'MERGE'", "'MRGE'", "and not 'MRGE'"],
  ['a value of a parameter', 'storage', "'Standard_ZRS'", "'Standard_ZR'", "and not 'Standard_ZR'"],
  [
    'what is read-only',
    'storage',
    "accessTier: 'Hot'",
    "primaryLocation: 'westeurope'",
    'primaryLocation is read-only',
  ],
  ['what is missing', 'key-vault', "family: 'A'", '', 'sku.family is missing'],
  [
    'a property in another place',
    'app',
    'siteConfig: {',
    "minTlsVersion: '1.2'\n    siteConfig: {",
    'properties.minTlsVersion is not known',
  ],
  [
    'a property of another object of the type',
    'app',
    "name: 'authsettingsV2'",
    "name: 'logs'",
    'properties.platform is not known',
  ],
  ['an object of no such type', 'app', "name: 'authsettingsV2'", "name: 'authsettingsV3'", 'and not this object'],
  [
    'a type that is not there',
    'storage',
    "Accounts@2025-06-01' = {",
    "Account@2025-06-01' = {",
    'there is no schema of Microsoft.Storage/storageAccount:',
  ],
  ['a text in place of a number', 'alerts', 'threshold: 5', "threshold: '5'", 'threshold is int'],
  [
    'a number in place of a text',
    'key-vault',
    "name: 'standard'",
    'name: 1',
    'sku.name is standard | premium, and not any int',
  ],
  [
    'a parameter of another type',
    'budget',
    'param amount int',
    'param amount string',
    'properties.amount is int, and not any string',
  ],
  ['a parameter that may be too large', 'storage', '@maxValue(365)', '@maxValue(3650)', 'days is out of bounds'],
  ['a number that is too large', 'alerts', 'severity: 2', 'severity: 5', 'severity is out of bounds'],
  [
    'a text that is too long',
    'alerts',
    "groupShortName: 'rowkey'",
    "groupShortName: 'rowkey-alerts'",
    'groupShortName is out of bounds',
  ],
  ['one in place of a list', 'alerts', 'scopes: [workspaceId]', 'scopes: workspaceId', 'scopes is string[]'],
  ['a list in place of one', 'monitoring', "kind: 'web'", "kind: ['web']", 'kind is string, and not a list'],
  ['a reading of what is not there', 'app', 'key.properties.keyUri', 'key.properties.keyURL', 'key.properties.keyURL'],
  ['a reading of what a loop does not have', 'alerts', 'rule.severity', 'rule.severityy', 'rule.severityy'],
];

describe('finds', () => {
  test.each(mistakes)('%s', (_what, module, written, instead, found) => {
    const file = templates.find(({ path }) => path === `modules/${module}.bicep`);
    const text = file?.root.text ?? '';
    expect(text).toContain(written);
    const changed = parse(
      file?.path ?? '',
      text.replace(written, () => instead),
    );
    const wrong = resourcesOf(changed).flatMap(({ resource }) => wrongIn(resource, changed));
    expect([...wrong, ...wrongReads(changed)].join('\n')).toContain(found);
  });
});
