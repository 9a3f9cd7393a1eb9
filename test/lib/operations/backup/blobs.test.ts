// @module-tag long

import { createHttpHeaders } from '@azure/core-rest-pipeline';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define.ts';
import { createMemoryStorage } from '../../../../lib/testing/index.ts';
import { costOf } from '../../../cost-of.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { baseValues } from '../../../kit/base.ts';
import { engineCore } from '../../../kit/engine.ts';
import { operationsBackup } from '../../../kit/operations.ts';
import { type Storage, storageAccounts, storageBlobs, storageTables } from '../../../kit/storage.ts';
import { createAccounts } from '../../storage/several-accounts.ts';
import { blobIn } from '../storage-to-move.ts';

const { visits } = deploy(
  defineEntity('visits', {
    schema: z.object({ place: z.string(), id: z.string(), at: z.iso.datetime(), note: z.string().optional() }),
    table: 'visits',
    key: { partition: '{place}', row: '{id}' },
    period: { per: 'day', field: 'at', keep: 60, archiveTo: 'blob' },
    access: { read: ['hr'], write: ['hr'] },
  }),
);
const CONTAINERS = ['large', 'audit', 'period-archives', 'uploads', 'backup'];
const DAYS = 35;
/** Not the first day of a period. */
const NOW = Date.parse('2026-11-29T12:30:00Z');
const FOLDER = 'blobs/2026-10-29';

async function openBackup(names = ['first']) {
  const accounts = createAccounts(names);
  const backupMemory = createMemoryStorage({ account: 'backup' });
  const backup = storageAccounts.openStorage({ accounts: [{ ...backupMemory, name: 'backup' }] });
  const storage: Storage = { ...accounts.open(), backup };
  await storageTables.provision(storage, { tables: ['system'], queues: [], containers: CONTAINERS });
  const clock = { now: NOW };
  const engine = engineCore.createEngine(storage, { now: () => clock.now });
  return {
    ...{ ...accounts, backupMemory, backup, storage, clock, engine },
    copy: (until?: number) => operationsBackup.copyToBackup(engine, [visits], { days: DAYS, until }),
    copies: (prefix = 'blobs/') => storageBlobs.listBlobs(backup, { container: 'backup', prefix }),
  };
}

const text = (container: string, name: string) => ({ container, name });
const write = (storage: Storage, container: string, name: string, metadata = {}, bytes = name) =>
  storageBlobs.writeBlob(storage, text(container, name), Buffer.from(bytes), { type: 'text/plain', metadata });
async function append(storage: Storage, container: string, name: string, ...lines: readonly string[]): Promise<void> {
  const at = text(container, name);
  const length = await storageBlobs.blobLength(storage, at);
  if (length === undefined) await storageBlobs.createAppendBlob(storage, at);
  const bytes = Buffer.from(lines.join(''));
  await storageBlobs.appendBlock(storage, at, { bytes, position: length ?? 0 });
}

test('copies the blobs of the app that change no more, and each once', async () => {
  const { storage, backup, copy, copies, clock } = await openBackup();
  const [one, other] = [blobIn('07a', 1), blobIn('07a', 2)];
  await write(storage, 'large', one, { table: 'visits' });
  await write(storage, 'large', 'of-another-program');
  await write(storage, 'uploads', other);
  await write(storage, 'period-archives', 'visits/2026-09-01/1.ndjson.gz', { state: 'verified' });
  await write(storage, 'period-archives', 'visits/2026-09-02/1.ndjson.gz', { state: 'partial' });
  await append(storage, 'audit', '0ab/2026/11/29/1000/000001.log', 'a\n', 'b\n');
  await append(storage, 'audit', '0ab/2026/11/29/1100/000001.log', 'c\n');
  const wanted = [
    `${FOLDER}/audit/0ab/2026/11/29/1000/000001.log`,
    `${FOLDER}/large/${one}`,
    `${FOLDER}/period-archives/visits/2026-09-01/1.ndjson.gz`,
  ];
  expect(await copy()).toEqual({
    copied: 3,
    copiedBytes: 4 + one.length + 29,
    isComplete: true,
    blobs: {
      large: { count: 1, bytes: one.length },
      'period-archives': { count: 1, bytes: 29 },
      audit: { count: 1, bytes: 4 },
    },
  });
  expect(await copies()).toEqual(wanted);
  const client = backup.container('backup').getBlobClient(`${FOLDER}/large/${one}`);
  expect(await client.getProperties()).toMatchObject({ contentType: 'text/plain', metadata: { table: 'visits' } });
  expect((await client.downloadToBuffer()).toString()).toBe(one);
  // A listing of each container and of its copies.
  expect(await costOf(copy)).toBe(6);
  await write(storage, 'large', other);
  clock.now += 40 * baseValues.MINUTE_MS;
  expect(await copy()).toMatchObject({ copied: 2, blobs: { large: { count: 2 }, audit: { count: 2 } } });
});

test('copies all blobs again when the retention has passed', async () => {
  const { storage, copy, copies, clock } = await openBackup();
  await write(storage, 'large', blobIn('07a', 1));
  await copy();
  clock.now += DAYS * baseValues.DAY_MS;
  expect(await copy()).toMatchObject({ copied: 1 });
  expect(await copies()).toEqual([`${FOLDER}/large/${blobIn('07a', 1)}`, `blobs/2026-12-03/large/${blobIn('07a', 1)}`]);
});

test('passes the bytes on where storage may not copy them', async () => {
  const { storage, backup, backupMemory, copy } = await openBackup();
  const name = blobIn('07a', 1);
  await write(storage, 'large', name, { table: 'visits' });
  let refusals = 0;
  backupMemory.intercept = async (request, send) => {
    if (!request.headers.get('x-ms-copy-source')) return send();
    refusals += 1;
    const headers = createHttpHeaders({ 'x-ms-error-code': 'CannotVerifyCopySource' });
    return { request, status: 403, headers, bodyAsText: '' };
  };
  expect(await copy()).toMatchObject({ copied: 1 });
  expect(refusals).toBe(1);
  const client = backup.container('backup').getBlobClient(`${FOLDER}/large/${name}`);
  expect(await client.getProperties()).toMatchObject({ contentType: 'text/plain', metadata: { table: 'visits' } });
  expect((await client.downloadToBuffer()).toString()).toBe(name);
});

test('ends in time, and continues', async () => {
  const { storage, copy, clock, copies } = await openBackup();
  for (let number = 1; number <= 3; number += 1) await write(storage, 'large', blobIn('07a', number));
  expect(await copy(clock.now)).toMatchObject({ copied: 0, isComplete: false });
  expect(await copy(clock.now + 1)).toMatchObject({ copied: 3, isComplete: true });
  expect(await copies()).toHaveLength(3);
});

test('copies from the account that has a blob, and the audit log of all accounts', async () => {
  const { storage, copy, copies } = await openBackup(['first', 'second']);
  const [first, second] = storageAccounts.accountsOf(storage);
  if (!first || !second) return expect.fail();
  const names = ['07a', '17a', '27a', '37a', '47a'].map((slot) => blobIn(slot, 1));
  for (const name of names) await write(storage, 'large', name);
  await append(first, 'audit', '0ab/2026/11/29/0900/000001.log', 'a\n');
  await append(second, 'audit', '0ab/2026/11/29/0900/000001-second.log', 'b\n');
  await append(second, 'audit', '0aa/2026/11/28/0900/000001-second.log', 'b\n');
  expect(await copy()).toMatchObject({ copied: 8, blobs: { large: { count: 5 }, audit: { count: 3, bytes: 6 } } });
  expect(await copies()).toHaveLength(8);
  expect(await copy()).toMatchObject({ copied: 0, blobs: { large: { count: 5 }, audit: { count: 3 } } });
});

describe('lines of the journal that wait in an account of the app', () => {
  const line = (id: string) =>
    `${JSON.stringify({ id, time: '2026-11-29T12:10:00.0000000Z', table: 'visits', dropped: true })}\n`;
  const at = (name: string) => `journal/2026/11/29/1200/${name}`;

  test('are carried to that of the backup, and again when there are more', async () => {
    const { storage, backup, engine, copies, clock } = await openBackup();
    const read = async () => {
      const span = { from: '2026-11-29T12:00:00Z', to: '2026-11-29T13:00:00Z' };
      const lines = await Array.fromAsync(operationsBackup.readJournal({ backup }, span));
      return lines.map(({ id }) => id).toSorted();
    };
    const waiting = () => storageBlobs.listBlobs(storage, { container: 'backup', prefix: '' });
    clock.now = Date.now();
    await append(backup, 'backup', at('000001.ndjson'), line('0'));
    await append(storage, 'backup', at('000001-app.ndjson'), line('1'));
    expect(await operationsBackup.carryLines(engine)).toEqual({ carried: 1, deleted: 0 });
    expect(await operationsBackup.carryLines(engine)).toEqual({ carried: 0, deleted: 0 });
    await append(storage, 'backup', at('000001-app.ndjson'), line('2'));
    expect(await operationsBackup.carryLines(engine)).toEqual({ carried: 1, deleted: 0 });
    expect(await read()).toEqual(['0', '1', '2']);
    expect(await waiting()).toEqual([at('000001-app.ndjson')]);
    clock.now += 3 * baseValues.HOUR_MS;
    expect(await operationsBackup.carryLines(engine)).toEqual({ carried: 0, deleted: 1 });
    expect(await waiting()).toEqual([]);
    expect(await copies('journal/')).toHaveLength(3);
  });

  test('are found when they are carried while the journal is read, with a listing of each account for a day', async () => {
    const { storage, backup, engine, clock, memoryOf } = await openBackup();
    await append(storage, 'backup', at('000001-app.ndjson'), line('1'));
    clock.now = Date.now() + 3 * baseValues.HOUR_MS;
    const memory = memoryOf('first');
    let listings = 0;
    memory.intercept = async (request, send) => {
      if (request.url.includes('comp=list')) listings += 1;
      else {
        memory.intercept = undefined;
        expect(await operationsBackup.carryLines(engine)).toEqual({ carried: 1, deleted: 1 });
      }
      return send();
    };
    const span = { from: '2026-11-29T00:00:00Z', to: '2026-11-29T23:00:00Z' };
    const lines = await Array.fromAsync(operationsBackup.readJournal({ backup, storage }, span));
    expect(lines.map(({ id }) => id)).toEqual(['1']);
    expect(listings).toBe(1);
  });

  test('stay where more are appended while they are carried', async () => {
    const { storage, engine, clock, memoryOf } = await openBackup();
    const name = at('000001-app.ndjson');
    await append(storage, 'backup', name, line('1'));
    clock.now = Date.now() + 3 * baseValues.HOUR_MS;
    const memory = memoryOf('first');
    memory.intercept = async (request, send) => {
      if (request.method !== 'DELETE') return send();
      memory.intercept = undefined;
      await append(storage, 'backup', name, line('2'));
      return send();
    };
    await operationsBackup.carryLines(engine);
    expect(memory.intercept).toBeUndefined();
    expect(await storageBlobs.blobLength(storage, text('backup', name))).toBe(2 * line('1').length);
  });
});
