import { expect, test } from 'vitest';
import { BLOB_RULE, TABLE_RULE } from '../../local/instance/allow-origins.ts';
import { ofApp, theDeclaration, theResource, valueAt } from './bicep.ts';

/** Returns the text of a list as the emulator expects it, such as `GET,HEAD`. */
const listed = (list = '') => list.replaceAll(/[[\]' ]/g, '');

test.each([
  ['tableCorsRules', 'tableServices', TABLE_RULE],
  ['blobCorsRules', 'blobServices', BLOB_RULE],
])('%s equals the rule of the emulator, for the given origins only', (name, service, rule) => {
  expect(
    valueAt(theResource(`Microsoft.Storage/storageAccounts/${service}`, ofApp()), 'properties.cors.corsRules'),
  ).toBe(name);
  const { value } = theDeclaration('var', name);
  expect(value).toMatch(/^empty\(allowedOrigins\)\n +\? \[\]\n +: \[\n +\{\n/);
  const declared = [...value.matchAll(/^ +(\w+): (.*)$/gm)].map(([, key, text]) => [key, listed(text)]);
  expect(Object.fromEntries(declared)).toEqual({
    ...rule,
    allowedOrigins: 'allowedOrigins',
    exposedHeaders: 'exposedHeaders',
    maxAgeInSeconds: String(rule.maxAgeInSeconds),
  });
  expect(listed(theDeclaration('var', 'exposedHeaders').value)).toBe(rule.exposedHeaders);
});

test('the API allows the same origins', () => {
  const app = theResource('Microsoft.Web/sites');
  expect(valueAt(app, 'properties.siteConfig.cors.allowedOrigins')).toBe('allowedOrigins');
});

test('queues allow no origin', () => {
  expect(theResource('Microsoft.Storage/storageAccounts/queueServices').text).not.toContain('cors');
});
