import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { deployedApp } from '../../local/instance/deployed-app.ts';
import { loadSamples } from '../../local/packs/load-samples.ts';
import { type OpenApi, withoutReferences } from '../../test/openapi.ts';
import { useProduct } from '../../test/product.ts';
import { commandsOf } from '../../test/workflows/stand-ins.ts';

/** What the pages and /docs propose after `npm start`, on the sample data. */

const product = useProduct(import.meta.url, { app: deployedApp });
let token: string;
beforeAll(async () => {
  token = await product.token('hr', 'jonesj@contoso.com');
  await loadSamples({ folder: dirname(product.keyFile), url: product.url, token });
});

/** Runs the commands of a page and returns the JSON that they print, line by line. */
async function resultsOf(commands: readonly string[]) {
  // The commands would get a token from the instance on .rowkey instead of the test's.
  const script = ['npm() { echo "$GIVEN"; }', ...commands, 'echo'].join('\n');
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-eu', '-o', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:7071', product.url)],
    { env: { PATH: process.env.PATH, GIVEN: token } },
  );
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}

/** The JSON examples of a page. */
function examplesOf(page: string) {
  return [...readFileSync(page, 'utf8').matchAll(/^```json\n(.*?)^```$/gms)].map(([, example = '']) =>
    JSON.parse(example),
  );
}

test('the commands of docs/getting-started.md do what the page says, and README.md shows the conflict', async () => {
  const [, , ...commands] = commandsOf(readFileSync('docs/getting-started.md', 'utf8'));
  const results = await resultsOf(commands);
  const [byKey, byEmail, range, created, patched, byLastName, conflict, explained, granted] = results;
  expect(byKey).toMatchObject({ employeeId: '000123' });
  expect(byEmail).toEqual(byKey);
  expect(range.items).toContainEqual({ employeeId: '000123', lastName: 'Jones' });
  expect(created).toMatchObject({ employeeId: '000777', lastName: 'Berg' });
  expect(patched).toMatchObject({ employeeId: '000777', lastName: 'Lund' });
  expect(byLastName.items).toEqual([patched]);
  expect(explained.transactions).toBeGreaterThan(5);
  expect(granted).toMatchObject({ RowKey: 'empid_000123' });
  expect(results).toHaveLength(9);
  expect(conflict).toEqual(examplesOf('README.md')[1]);
});

test('the command of README.md returns the employee that the page shows', async () => {
  expect(await resultsOf(commandsOf(readFileSync('README.md', 'utf8')).slice(2, 3))).toMatchObject([
    examplesOf('README.md')[0],
  ]);
});

test('docs/reference/http.md shows the error of an invalid entity', async () => {
  const body = { department: 'Sales', employeeId: '12', email: 'x', firstName: 'A', lastName: 'B' };
  expect((await product.as('hr')('POST', '/api/employees', { body })).body).toEqual(
    examplesOf('docs/reference/http.md').at(-1),
  );
});

/** The keys of their samples have dates, which depend on the day. Nobody left the company. */
const WITHOUT_SAMPLE = /^\/api\/(doorevents|doorminutes|expenses|formeremployees|logins|messagehours|messageyears)\//;

test.each([
  ['get', /^get$|-(get|range|by|list)/],
  ['put', /-replace$/],
  ['patch', /-patch$/],
  ['post', /-create$/],
] as const)('%s of the values that /docs proposes succeeds on the sample data', async (method, kind) => {
  const { paths } = withoutReferences((await (await fetch(`${product.url}/api/openapi.json`)).json()) as OpenApi);
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
