import { expect, test } from 'vitest';
import type { Node } from 'web-tree-sitter';
import { BLOB_RULE, TABLE_RULE } from '../../local/allow-origins.ts';
import { all, children, declarations, properties, theResource, unquoted, written } from './bicep.ts';

/** What a page of an allowed origin may do is the same on one machine and in Azure. */

const variable = (name: string) => declarations.find((one) => one.kind === 'var' && one.name === name)?.node;

/** A list as the emulator takes one, by way of a variable where one is named; else what is written. */
function said(value: Node): string {
  const declared = value.type === 'identifier' ? variable(value.text) : undefined;
  const meant = (declared && children(declared)[1]) ?? value;
  const items = children(meant).map(({ text }) => unquoted(text));
  return meant.type === 'array' ? items.join(',') : meant.text;
}

test.each([
  ['tableCorsRules', 'tableServices', TABLE_RULE],
  ['blobCorsRules', 'blobServices', BLOB_RULE],
])('%s are those of the emulator', (name, service, rule) => {
  expect(written(theResource(`Microsoft.Storage/storageAccounts/${service}`), 'properties.cors.corsRules')).toBe(name);
  const declared = variable(name);
  const rules = (declared ? all(declared, 'object') : []).map((object) =>
    Object.fromEntries([...properties(object)].map(([key, value]) => [key, said(value)])),
  );
  const { maxAgeInSeconds, ...texts } = rule;
  expect(rules).toEqual([{ ...texts, maxAgeInSeconds: String(maxAgeInSeconds), allowedOrigins: 'allowedOrigins' }]);
});

test('the API allows the same origins', () => {
  expect(written(theResource('Microsoft.Web/sites'), 'properties.siteConfig.cors.allowedOrigins')).toBe(
    'allowedOrigins',
  );
  for (const name of ['storage', 'app']) {
    const module = declarations.find((one) => one.kind === 'module' && one.name === name);
    expect(module && written(module, 'params.allowedOrigins'), name).toBe('origins');
  }
});

test('queues allow no origin, as no grant is for one', () => {
  expect(theResource('Microsoft.Storage/storageAccounts/queueServices').node.text).not.toContain('cors');
});
