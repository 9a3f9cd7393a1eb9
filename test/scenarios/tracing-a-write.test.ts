import { expect, test, vi } from 'vitest';

// Set before the product starts, because it inherits the environment.
vi.stubEnv('TELEMETRY', 'console');

import { contains } from '../contains.ts';
import { PATIENCE_MS } from '../patience.ts';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url, { hasTelemetry: true });
const hr = product.as('hr');
const PATIENCE = { timeout: PATIENCE_MS, interval: 50 };

/** The lines of each printed tree, by its first line. */
function trees(): { head: string; lines: string[] }[] {
  const all: { head: string; lines: string[] }[] = [];
  // Core Tools begin each line with its time.
  for (const line of product.logged.map((logged) => logged.replace(/^\[[^\]]*\] /, '')))
    if (line.startsWith('trace ')) all.push({ head: line, lines: [] });
    else all.at(-1)?.lines.push(line.replace(/ \([\d.]+ ms\)$/, ''));
  return all;
}
const treeOf = (what: string) => trees().find(({ lines }) => lines[0]?.includes(what));

test('a write is one trace, from the request to the reconciled index', async () => {
  const one = somebody({ department: 'Traced', firstName: 'Personal', lastName: 'Secretive' });
  await hr('POST', '/api/employees', { body: one });
  const request = await vi.waitUntil(() => treeOf('POST /api/employees 201'), PATIENCE);
  expect(request.lines).toEqual(
    expect.arrayContaining([
      '  POST /api/employees 201',
      '    eventual transaction',
      '      queue POST index-changes 201',
      '      table POST employeesbyemail 204',
      '      table POST $batch 202',
      '      reconcile',
      '        table PUT employeesbyemail 204',
      '      queue DELETE index-changes 204',
    ]),
  );
});

test('a request and its queue work are one trace', async () => {
  const one = somebody({ department: 'Traced', firstName: 'Personal', lastName: 'Secretive' });
  await hr('POST', '/api/employees', { body: one });
  await hr('POST', `/api/employees/Traced/${one.employeeId}/archive`);
  const what = 'POST /api/employees/{department}/{employeeId}/archive 202';
  const request = await vi.waitUntil(() => treeOf(what), PATIENCE);
  // Core Tools start a trace for each request, which the app continues.
  const continued = `${request.head.replace(', continued', '')}, continued`;
  const reconciled = await vi.waitUntil(
    () => trees().find(({ head, lines }) => head === continued && lines[0] === '  transfers process'),
    PATIENCE,
  );
  expect(reconciled.lines).toContain('    archive or move');
});

test('a trace that the caller started is continued', async () => {
  const traceId = '0123456789abcdef0123456789abcdef';
  const headers = { traceparent: `00-${traceId}-0123456789abcdef-01` };
  await hr('GET', '/api/employees/Traced', { headers });
  const tree = await vi.waitUntil(() => treeOf('GET /api/employees/{department} 200'), PATIENCE);
  expect(tree.head).toBe(`trace ${traceId}, continued`);
});

test('metrics are counted, and contain neither keys nor values', { tags: ['slow'] }, async () => {
  const one = somebody({ department: 'Traced', firstName: 'Personal', lastName: 'Secretive' });
  await hr('POST', '/api/employees', { body: one });
  await hr('GET', `/api/employees/by/email/Traced/${one.email}`);
  const self = product.as('reader', one.email);
  expect((await self('POST', '/api/grants', { body: { entity: 'employees', scope: 'own' } })).status).toBe(201);
  await product.storage.queue('index-changes').sendMessage('not JSON');
  for (const metric of [
    'metric rowkey.poison.recorded, queue index-changes: 1',
    'metric rowkey.grants.issued, entity employees: 1',
    'metric rowkey.storage.transactions, pattern eventual transaction, operation queue POST: ',
    'metric rowkey.storage.transactions, pattern secondary index, operation table GET: ',
    'metric rowkey.storage.responses, service table, resource employees, status 204: ',
    'metric rowkey.storage.responses, service queue, resource index-changes, status 201: ',
    'metric rowkey.reconcile.lag: ',
  ])
    await vi.waitUntil(() => product.logged.some((line) => line.includes(metric)), PATIENCE);
  const said = product.logged.join('\n');
  const secrets = [one.email, one.employeeId, 'Personal', 'Secretive', 'sig='];
  expect(secrets.filter((secret) => contains(said, secret))).toEqual([]);
});
