import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { anyText } from '../any-text.ts';
import { departments, employees } from '../fixtures/model.ts';
import { defineCodec, type Entity } from '../kit/define.ts';
import { engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { featureUpkeep } from '../kit/features.ts';
import type { Internal } from '../kit/internal.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { storageKeys } from '../kit/storage.ts';
import { sampleRuns } from '../points.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody } from '../world.ts';

/** Storage contains only the ciphertext of an encrypted property, which decrypts only in its own entity. */

const SECRET = '295847284';
const world = await openWorld(import.meta.url);

const hire = async (over: Values = {}) =>
  (await engineWrite.createEntity(world.engine, employees, somebody({ nationalId: SECRET, ...over }))).values;
const opened = async (entity: Entity, key: Values) =>
  (await engineWrite.toPlain(world.engine, entity, (await engineRead.readEntity(world.engine, entity, key)).values))
    .nationalId;
const former = () => {
  if (!employees.archive) throw new Error('Employees have an archive.');
  return employees.archive;
};

/** Replaces properties directly in storage. */
const breakSecret = ({ department, employeeId }: Values, nationalId = 'v1.broken') => {
  const key = { partitionKey: String(department), rowKey: `empid_${employeeId}` };
  return world.storage.table('employees').updateEntity({ ...key, nationalId }, 'Merge');
};

async function everyRow(): Promise<Record<string, unknown>[]> {
  const tables = ['employees', 'employeesbyemail', 'employeesbyid', 'employeesbylastname', 'formeremployees'];
  return (await Promise.all(tables.map((table) => rowsOf(world.storage, table)))).flat();
}

describe('an encrypted property', () => {
  test('is never stored in plain text, and decrypts through the key and through each copy', async () => {
    const one = await hire();
    await world.settle();
    expect(JSON.stringify(await everyRow())).not.toContain(SECRET);
    expect(await opened(employees, one)).toBe(SECRET);
    for (const name of ['email', 'emailCompanyWide'] as const) {
      const index = employees.indexes[name];
      const copy = await engineRead.readByCopy(world.engine, employees, index, one);
      expect((await engineWrite.toPlain(world.engine, employees, copy)).nationalId).toBe(SECRET);
    }
  });

  test('has different ciphertexts for equal values, and does not decrypt for another key, field or table', async () => {
    const texts = anyText({ minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const key = { department: 'Sales', employeeId: '000001' };
        const { nationalId: sealed } = await featureUpkeep.seal(world.engine, employees, key, { nationalId: text });
        const { nationalId: again } = await featureUpkeep.seal(world.engine, employees, key, { nationalId: text });
        if (!sealed || !again) throw new Error('Sealed.');
        expect(sealed).not.toEqual(again);
        expect(await featureUpkeep.open(world.engine, employees, key, { field: 'nationalId', sealed })).toBe(text);
        const remote: [Entity, Values, string][] = [
          [employees, { ...key, employeeId: '000002' }, 'nationalId'],
          [employees, { ...key, department: 'Sale' }, 'nationalId'],
          [employees, key, 'phone'],
          [former(), key, 'nationalId'],
          [departments, key, 'nationalId'],
        ];
        for (const [entity, where, field] of remote)
          await expect(featureUpkeep.open(world.engine, entity, where, { field, sealed })).rejects.toThrow(
            'cannot be decrypted',
          );
        const [, keyId, wrapped, nonce, ciphertext = ''] = sealed.sealed.split('.');
        const flipped = Buffer.from(ciphertext, 'base64url');
        flipped[0] = (flipped[0] ?? 0) ^ 1;
        const changed = { sealed: ['v1', keyId, wrapped, nonce, flipped.toString('base64url')].join('.') };
        await expect(
          featureUpkeep.open(world.engine, employees, key, { field: 'nationalId', sealed: changed }),
        ).rejects.toThrow();
      }),
      sampleRuns(30),
    );
  });

  test('is a binary property, of less than half of the bytes of a text, in its row and in each copy', async () => {
    const { nationalId, employeeId } = await hire();
    await world.settle();
    const stored = (await everyRow()).filter((row) => row.employeeId === employeeId && 'nationalId' in row);
    expect(stored.length).toBeGreaterThan(2);
    // A character of a text takes two bytes.
    const bytesOfText = 2 * (nationalId as Internal['Sealed']).sealed.length;
    for (const row of stored) {
      expect(row.nationalId).toBeInstanceOf(Uint8Array);
      expect((row.nationalId as Uint8Array).length).toBeLessThan(bytesOfText / 2);
    }
  });

  test('is read from a row of an earlier release, which has it as text, and binary after the next write', async () => {
    const one = await hire();
    await world.settle();
    const rows = () => rowsOf(world.storage, 'employees').then((all) => all.filter((row) => row.email === one.email));
    for (const { rowKey } of await rows())
      await world.storage.table('employees').updateEntity(
        {
          partitionKey: String(one.department),
          rowKey: String(rowKey),
          nationalId: (one.nationalId as Internal['Sealed']).sealed,
        },
        'Merge',
      );
    expect((await rows()).map(({ nationalId }) => typeof nationalId)).toEqual(['string', 'string']);
    expect(await opened(employees, one)).toBe(SECRET);
    await expectIndexesToAgree(world.storage, employees);
    expect(await putAll(world.engine, employees, [{ ...one, nationalId: SECRET }])).toEqual(['unchanged']);
    await engineWrite.patchEntity(world.engine, employees, one, { phone: '5' });
    await world.settle();
    for (const { nationalId } of await rows()) expect(nationalId).toBeInstanceOf(Uint8Array);
    expect(await opened(employees, one)).toBe(SECRET);
  });

  test('is rejected in a PATCH, and kept by a PATCH of other fields', async () => {
    const one = await hire();
    for (const nationalId of ['other', null, SECRET])
      await expect(engineWrite.patchEntity(world.engine, employees, one, { nationalId })).rejects.toMatchObject({
        code: 'invalid-input',
        field: 'nationalId',
      });
    const { values } = await engineWrite.patchEntity(world.engine, employees, one, {
      phone: '5',
      email: `${randomUUID()}@contoso.com`,
    });
    expect(values.nationalId).toEqual(one.nationalId);
    expect(await opened(employees, one)).toBe(SECRET);
  });

  test('is replaced with its entity, and keeps its ciphertext when the value is the same', async () => {
    const one = await hire();
    const plain = { ...one, nationalId: SECRET };
    const same = await engineWrite.replaceEntity(world.engine, employees, one, plain);
    expect(same.values).toEqual(one);
    expect(await putAll(world.engine, employees, [plain])).toEqual(['unchanged']);
    await engineWrite.replaceEntity(world.engine, employees, one, { ...plain, nationalId: 'another' });
    expect(await opened(employees, one)).toBe('another');
    const { nationalId: _, ...without } = plain;
    await engineWrite.replaceEntity(world.engine, employees, one, without);
    expect(await opened(employees, one)).toBeUndefined();
  });

  test('can be replaced and removed when it does not decrypt', async () => {
    for (const nationalId of ['another', undefined]) {
      const one = await hire();
      await world.settle();
      await breakSecret(one);
      const { nationalId: _, ...plain } = one;
      await engineWrite.replaceEntity(world.engine, employees, one, {
        ...plain,
        ...(nationalId ? { nationalId } : {}),
      });
      expect(await opened(employees, one)).toBe(nationalId);
    }
  });

  test('is kept by a move and by archiving', async () => {
    const moved = await hire();
    const archived = await hire();
    await world.settle();
    await engineTransfer.requestMove(world.engine, employees, moved, { department: 'Elsewhere' });
    await engineTransfer.requestArchive(world.engine, employees, archived);
    await world.settle();
    expect(await opened(employees, { ...moved, department: 'Elsewhere' })).toBe(SECRET);
    expect(await opened(former(), archived)).toBe(SECRET);
    await expectIndexesToAgree(world.storage, employees);
  });
});

describe('a rotation of the key', () => {
  test('needs no downtime: old values decrypt, new ones use the new key, and a run rewraps the rest', async () => {
    const before = await hire();
    await storageKeys.rotateLocalKey(world.keyFile);
    const after = await hire();
    const current = Buffer.from(await world.engine.keys.currentKeyId()).toString('base64url');
    const wrappedBy = ({ nationalId }: Values) => (nationalId as { sealed: string }).sealed.split('.')[1];
    expect(wrappedBy(before)).not.toBe(current);
    expect(wrappedBy(after)).toBe(current);
    expect(await opened(employees, before)).toBe(SECRET);

    const changes = Array.from({ length: 5 }, (_, count) =>
      engineWrite.patchEntity(world.engine, employees, before, { phone: `${count}` }),
    );
    let rewrapped = 0;
    let next: Awaited<ReturnType<typeof operationsModel.rewrapEntities>>['next'];
    do {
      const page = await operationsModel.rewrapEntities(world.engine, employees, { top: 7, after: next });
      rewrapped += page.rewrapped;
      next = page.next;
    } while (next);
    await Promise.all(changes);
    await world.settle();
    expect(rewrapped).toBeGreaterThan(0);
    expect((await operationsModel.rewrapEntities(world.engine, employees, { top: 1_000 })).rewrapped).toBe(0);
    expect(await opened(employees, before)).toBe(SECRET);
    await expectIndexesToAgree(world.storage, employees);

    // Every copy is re-encrypted, so that the old key can be deleted.
    const stored = (await everyRow()).filter((row) => row.EntityType === 'employees' && row.nationalId !== undefined);
    expect(new Set(stored.map((row) => wrappedBy(defineCodec.toValues(employees, row))))).toEqual(new Set([current]));
  });

  test('skips values that do not decrypt, and counts them', async () => {
    const [broken, stranger, good] = [await hire(), await hire(), await hire()];
    await world.settle();
    await breakSecret(broken);
    const unknown = `v1.${Buffer.from('none').toString('base64url')}.AA.${'A'.repeat(16)}.${'A'.repeat(32)}`;
    await breakSecret(stranger, unknown);
    await storageKeys.rotateLocalKey(world.keyFile);
    const page = await operationsModel.rewrapEntities(world.engine, employees, { top: 1_000 });
    expect(page).toMatchObject({ failed: 2, next: undefined });
    expect(page.rewrapped).toBeGreaterThan(0);
    expect((await operationsModel.rewrapEntities(world.engine, employees, { top: 1_000 })).rewrapped).toBe(0);
    expect(await opened(employees, good)).toBe(SECRET);
    for (const one of [broken, stranger]) await engineWrite.deleteEntity(world.engine, employees, one);
    await world.settle();
  });

  test('keeps values whose key is missing, and reports them', async () => {
    const one = await hire();
    const stranger = { ...world.engine, keys: storageKeys.createLocalKeyRing(`${world.keyFile}.none`) };
    await expect(engineWrite.toPlain(stranger, employees, one)).rejects.toMatchObject({ code: 'wrong-setting' });
  });
});

test('a repair, or a build of an index, keeps the copies of a value whose own form is unreadable', async () => {
  const one = await hire();
  await world.settle();
  await breakSecret(one);
  for (const only of ['emailCompanyWide', undefined]) {
    const page = await operationsCheck.verifyPage(world.engine, employees, {
      top: 1_000,
      repair: true,
      patience: 0,
      only,
    });
    const found = page.findings.filter(({ row }) => row === `empid_${one.employeeId}`);
    expect(found).toEqual([expect.objectContaining({ kind: 'unreadable', of: 'nationalId', repaired: false })]);
  }
  const copy = await engineRead.readByCopy(world.engine, employees, employees.indexes.emailCompanyWide, one);
  expect((await engineWrite.toPlain(world.engine, employees, copy)).nationalId).toBe(SECRET);
});
