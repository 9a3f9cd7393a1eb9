import { randomUUID } from 'node:crypto';
import { AzureSASCredential, TableClient } from '@azure/data-tables';
import { expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { accessChecks } from '../kit/access.ts';
import type { ChangeRecord } from '../kit/engine.ts';
import { storageBlobs } from '../kit/storage.ts';
import { type Client, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const operator = product.as(['operator', 'hr']);
const ROW = { entity: 'employees', scope: 'own' };
const PARTITION = { entity: 'expenses', scope: 'own', permissions: 'ra' };
const UPLOAD = { type: 'image/png', bytes: 3 };

/** An employee that can request grants. The email is the subject of its token. */
async function employee() {
  const one = somebody({ department: 'Granting', email: `${randomUUID()}@contoso.com` });
  expect((await product.as('hr')('POST', '/api/employees', { body: one })).status).toBe(201);
  const path = `/api/employees/Granting/${one.employeeId}`;
  const token = await product.token('hr');
  const photo = { method: 'PUT', headers: { authorization: `Bearer ${token}` }, body: PNG };
  expect((await fetch(new URL(`${path}/photo`, product.url), photo)).status).toBe(200);
  return { ...one, subject: one.email, ask: product.as('reader', one.email), uploads: `${path}/photo/uploads` };
}

async function recorded(subject: string): Promise<ChangeRecord[]> {
  const [from, to] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
  const { body } = await operator('GET', `/api/operations/audit?from=${from}&to=${to}&top=1000`);
  return body.items.filter((item: ChangeRecord) => item.by === subject || item.subject === subject);
}

const statuses = (ask: Client, uploads: string) =>
  Promise.all(
    [
      ask('POST', '/api/grants', { body: ROW }),
      ask('POST', '/api/grants', { body: PARTITION }),
      ask('POST', uploads, { body: UPLOAD }),
      ask('POST', uploads.replace('uploads', 'grants')),
    ].map(async (reply) => (await reply).status),
  );

test('a grant tells a client of the SDK where the rows are', async () => {
  const { ask, email, employeeId } = await employee();
  const open = ({ endpoint, table, token }: { endpoint: string; table: string; token: string }) =>
    new TableClient(endpoint, table, new AzureSASCredential(token), { allowInsecureConnection: true });
  const { body: one } = await ask('POST', '/api/grants', { body: ROW });
  expect(await open(one).getEntity(one.partition, one.row)).toMatchObject({ email, EntityType: 'employees' });
  const { body: several } = await ask('POST', '/api/grants', { body: PARTITION });
  expect(several).not.toHaveProperty('row');
  const rows = open(several).listEntities({ queryOptions: { filter: `PartitionKey eq '${employeeId}'` } });
  expect(await Array.fromAsync(rows)).toEqual([]);
});

test('a grant is in the audit log before the response: caller, rows, permissions and expiry, never the signature', {
  tags: ['slow'],
}, async () => {
  const { ask, subject, employeeId, uploads } = await employee();
  const row = await ask('POST', '/api/grants', { body: ROW });
  const partition = await ask('POST', '/api/grants', { body: PARTITION });
  const upload = await ask('POST', uploads, { body: UPLOAD });
  const common = { by: subject, operation: 'grant' };
  const rowKey = { table: 'employees', partition: 'Granting', row: `empid_${employeeId}` };
  const records = await recorded(subject);
  expect(records).toMatchObject([
    { ...common, entity: 'employees', ...rowKey, permissions: 'r', until: row.body.expiresAt },
    { ...common, entity: 'expenses', partition: employeeId, permissions: 'ra', until: partition.body.expiresAt },
    { ...common, entity: 'employees', ...rowKey, fields: ['photo'], permissions: 'c', until: upload.body.expiresAt },
  ]);
  expect(records[1]).not.toHaveProperty('row');
  const names = await storageBlobs.listBlobs(product.storage, { container: storageBlobs.AUDIT_CONTAINER, prefix: '' });
  const lines = await Promise.all(
    names.map((name) =>
      Array.fromAsync(storageBlobs.readLines(product.storage, { container: storageBlobs.AUDIT_CONTAINER, name })),
    ),
  );
  const text = lines.flat().join('\n');
  expect(text).toContain(subject);
  for (const secret of [row.body.token, partition.body.token, new URL(upload.body.url).search.slice(1)]) {
    const signature = new URLSearchParams(secret).get('sig') ?? 'none';
    expect(signature.length).toBeGreaterThan(40);
    for (const form of [signature, encodeURIComponent(signature), 'sig=']) expect(text).not.toContain(form);
  }
});

test('an identity gets a limited number of grants a minute, and other identities are not affected', {
  tags: ['slow'],
}, async () => {
  const [busy, other] = [await employee(), await employee()];
  const replies = await Promise.all(
    Array.from({ length: accessChecks.GRANTS_PER_MINUTE + 5 }, (_, index) =>
      index % 2
        ? busy.ask('POST', busy.uploads.replace('uploads', 'grants'))
        : busy.ask('POST', busy.uploads, { body: UPLOAD }),
    ),
  );
  const refused = replies.filter(({ status }) => status !== 201);
  expect(refused).toHaveLength(5);
  for (const { status, headers, body } of refused) {
    expect([status, body.type]).toEqual([429, '/api/problems#too-many-requests']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60);
  }
  expect(await statuses(other.ask, other.uploads)).toEqual([201, 201, 201, 201]);
  expect((await recorded(busy.subject)).filter(({ operation }) => operation === 'grant')).toHaveLength(
    accessChecks.GRANTS_PER_MINUTE,
  );
});

test('an identity whose grants are revoked gets none until they are restored', { tags: ['slow'] }, async () => {
  const [one, other] = [await employee(), await employee()];
  const given = (await one.ask('POST', '/api/grants', { body: ROW })).body;
  expect((await one.ask('POST', '/api/grants', { body: ROW })).body).toEqual(given);
  const body = { subject: one.subject };
  for (const role of ['reader', 'hr'] as const)
    expect((await product.as(role)('POST', '/api/operations/grants/revoke', { body })).status).toBe(403);
  const before = Date.now();
  const revoked = await product.as('operator')('POST', '/api/operations/grants/revoke', { body });
  expect(revoked).toMatchObject({ status: 200, body });
  const grantsEndAt = Date.parse(revoked.body.grantsEndAt);
  expect(grantsEndAt).toBeGreaterThanOrEqual(before + accessChecks.VALID_FOR_MS);
  expect(grantsEndAt).toBeLessThanOrEqual(Date.now() + accessChecks.VALID_FOR_MS);
  expect(Date.parse(given.expiresAt)).toBeLessThanOrEqual(grantsEndAt);
  expect(await statuses(one.ask, one.uploads)).toEqual([403, 403, 403, 403]);
  expect(await statuses(other.ask, other.uploads)).toEqual([201, 201, 201, 201]);
  // Issued grants stay valid until they end, as documented.
  const headers = { accept: 'application/json' };
  expect((await fetch(`${given.url}?${given.token}`, { headers })).status).toBe(200);
  const restore = () => product.as('operator')('POST', '/api/operations/grants/restore', { body });
  expect((await restore()).status).toBe(204);
  expect((await restore()).status).toBe(404);
  expect(await statuses(one.ask, one.uploads)).toEqual([201, 201, 201, 201]);
  expect((await recorded(one.subject)).filter(({ subject }) => subject !== undefined)).toMatchObject([
    { operation: 'revoke', entity: 'grants', subject: one.subject },
    { operation: 'restore', entity: 'grants', subject: one.subject },
  ]);
});
