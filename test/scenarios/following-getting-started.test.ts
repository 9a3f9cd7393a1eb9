import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { loadSamples } from '../../local/packs/load-samples.ts';
import { useProduct } from '../product.ts';
import { commandsOf } from '../workflows/stand-ins.ts';

const product = useProduct(import.meta.url);
const [, ...commands] = commandsOf(readFileSync('docs/getting-started.md', 'utf8'));

test('the commands of docs/getting-started.md do what the page says', async () => {
  const token = await product.token('hr', 'jonesj@contoso.com');
  await loadSamples({ folder: dirname(product.keyFile), url: product.url, token });
  // The page gets its token from the instance on .rowkey, which is not this one.
  const script = ['npm() { echo "$GIVEN"; }', ...commands].join('\n').replaceAll('http://127.0.0.1:7071', product.url);
  const { stdout } = await promisify(execFile)('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    env: { PATH: process.env.PATH, GIVEN: token },
  });
  const bodies = stdout.split('\n').filter((line) => line.startsWith('{'));
  const [byKey, byEmail, range, created, patched, byLastName, refused, explained, granted] = bodies.map((body) =>
    JSON.parse(body),
  );
  expect(byKey).toMatchObject({ employeeId: '000123' });
  expect(byEmail).toEqual(byKey);
  expect(range.items).toContainEqual({ employeeId: '000123', lastName: 'Jones' });
  expect(created).toMatchObject({ employeeId: '000777', lastName: 'Berg' });
  expect(patched).toMatchObject({ employeeId: '000777', lastName: 'Lund' });
  expect(byLastName.items).toEqual([patched]);
  expect(refused).toMatchObject({ code: 'duplicate-value', field: 'email' });
  expect(explained.transactions).toBeGreaterThan(5);
  expect(granted).toMatchObject({ RowKey: 'empid_000123' });
  expect(bodies).toHaveLength(9);
});
