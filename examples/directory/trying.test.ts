import { dirname } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { loadSamples } from '../../local/packs/load-samples.ts';
import { type OpenApi, withoutReferences } from '../../test/openapi.ts';
import { useProduct } from '../../test/product.ts';

/** Requests as /docs proposes them after `npm start`: with the examples of the description and the sample data. */

const product = useProduct(import.meta.url, { app: deployedApp });
let paths: OpenApi['paths'];
beforeAll(async () => {
  const token = await product.token(['reader', 'hr', 'operator']);
  await loadSamples({ folder: dirname(product.keyFile), url: product.url, token });
  paths = withoutReferences((await (await fetch(`${product.url}/api/openapi.json`)).json()) as OpenApi).paths;
});

/** The keys of their samples have dates, which depend on the day. Nobody left the company. */
const WITHOUT_SAMPLE = /^\/api\/(doorevents|doorminutes|expenses|formeremployees|logins|messagehours|messageyears)\//;

test.each([
  ['get', /^get$|-(get|range|by|list)/],
  ['put', /-replace$/],
  ['patch', /-patch$/],
  ['post', /-create$/],
] as const)('%s of the proposed values succeeds on the sample data', async (method, kind) => {
  const operations = Object.entries(paths).flatMap(([path, methods]) => {
    const operation = methods[method];
    if (
      !operation ||
      !kind.test(operation.operationId) ||
      /totals|status|operations|grants|file/.test(operation.operationId)
    )
      return [];
    return WITHOUT_SAMPLE.test(path) ? [] : [{ path, operation }];
  });
  expect(operations.length).toBeGreaterThan(8);
  const failed = [];
  for (const { path, operation } of operations) {
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
      const { examples = [] } = Object(operation.parameters.find((one) => one.name === name)?.schema);
      return encodeURIComponent(examples[0] ?? '');
    });
    const schema = Object(operation.requestBody?.content['application/json']?.schema);
    const [body] = schema.examples ?? schema.oneOf?.[0].examples ?? [];
    const { status, body: reply } = await product.as(['reader', 'hr', 'operator'])(method.toUpperCase(), filled, {
      body,
    });
    if (status >= 400) failed.push([method, filled, body, reply]);
  }
  const hint = 'of the .meta({ examples }) of a key field, the first one is in the sample data, and the last is new';
  expect(failed, hint).toEqual([]);
});
