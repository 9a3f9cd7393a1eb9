import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatInfraModel } from '../../local/cli/infra-model.ts';
import { MODEL_FILE } from '../../local/commands/infra-model.ts';
import { model } from '../../model/model.ts';
import { baseValues } from '../kit/base.ts';
import { featureFiles } from '../kit/features.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageBlobs } from '../kit/storage.ts';
import { ofApp, resources, theDeclaration, theResource, valueAt } from './bicep.ts';

const { tables, queues, containers }: Record<string, string[]> = JSON.parse(formatInfraModel(model));
const prefixed = JSON.parse(formatInfraModel({ ...model, prefix: 'shop' }));

test('infra/model.json follows from the model', () => {
  const hint = 'infra/model.json is stale: run npm run infra, and commit it';
  expect(readFileSync(MODEL_FILE, 'utf8'), hint).toBe(formatInfraModel(model));
});

test('it has every table, queue and container except the tables of periods', () => {
  const today = operationsModel.resourcesOf(model.list, Date.now());
  const ofPeriods = today.tables.filter((table) => !tables?.includes(table));
  expect(ofPeriods).not.toEqual([]);
  for (const table of ofPeriods) expect(table).toMatch(/\d{4}(\d\d){0,2}$/);
  for (const table of tables ?? []) expect(today.tables).toContain(table);
  expect(queues).toEqual([...today.queues].toSorted());
  expect(containers).toEqual([...today.containers].toSorted());
});

test('every name has the prefix of the model', () => {
  expect(prefixed).toEqual({
    tables: tables?.map((name) => `shop0${name}`),
    queues: queues?.map((name) => `shop-${name}`),
    containers: containers?.map((name) => `shop-${name}`),
    auditContainer: 'shop-audit',
    uploadsContainer: 'shop-uploads',
    archivesContainer: 'shop-period-archives',
    coolContainers: [],
    publicPaths: JSON.parse(formatInfraModel(model)).publicPaths,
    functionPrefix: 'shop-',
    backupContainer: 'shop-backup',
    backupDays: 0,
  });
});

test('every part of a queue is a queue, with a poison queue', () => {
  const divided = JSON.parse(formatInfraModel({ ...model, queueParts: 2 }));
  expect(divided.queues).toEqual(
    [...(queues ?? []), ...['index-changes-1', 'transfers-1'].flatMap((part) => [part, `${part}-poison`])].toSorted(),
  );
});

test('every queue has a poison queue', () => {
  const named = (queues ?? []).filter((queue) => !queue.endsWith('-poison'));
  expect(named).not.toEqual([]);
  expect(queues).toEqual(named.flatMap((queue) => [queue, `${queue}-poison`]).toSorted());
});

test.each([
  ['table', 'Microsoft.Storage/storageAccounts/tableServices/tables'],
  ['queue', 'Microsoft.Storage/storageAccounts/queueServices/queues'],
  ['container', 'Microsoft.Storage/storageAccounts/blobServices/containers'],
])('the template creates every %s of the model', (item, type) => {
  const [created] = resources(type).filter(({ list }) => list === `model.${item}s`);
  expect(created && valueAt(created, 'name')).toBe(item);
});

test('lifecycle rules delete old blobs of the audit log, of uploads and of archived periods, and of no other container', () => {
  const { auditContainer, uploadsContainer, archivesContainer } = JSON.parse(formatInfraModel(model));
  expect([auditContainer, uploadsContainer, archivesContainer]).toEqual([
    storageBlobs.AUDIT_CONTAINER,
    featureFiles.ARRIVALS_CONTAINER,
    storageBlobs.PERIOD_ARCHIVES_CONTAINER,
  ]);
  const { text } = theResource('Microsoft.Storage/storageAccounts/managementPolicies', ofApp());
  expect(text).toContain('rules: concat(deletions, coolings)');
  expect(theDeclaration('var', 'deletions').value).toContain(
    'map(filter(expiries, expiry => expiry.days > 0), expiry => {',
  );
  const expiries = theDeclaration('var', 'expiries', ofApp()).value.matchAll(
    /blobType: '(\w+)'\n +container: model\.(\w+)\n +days: (\w+)$/gm,
  );
  expect([...expiries].map(([, ...expiry]) => expiry)).toEqual([
    ['appendBlob', 'auditContainer', 'auditKeptDays'],
    ['blockBlob', 'uploadsContainer', 'uploadsKeptDays'],
    ['blockBlob', 'archivesContainer', 'archivesKeptDays'],
  ]);
});

test('lifecycle rules cool files after the days that their attachments declare', () => {
  const list = model.list.map((entity) => ({
    ...entity,
    attachments: baseValues.mapValues(entity.attachments, (declared) => ({ ...declared, coolAfterDays: 30 })),
  }));
  const { coolContainers } = JSON.parse(formatInfraModel({ ...model, list, prefix: 'shop' }));
  const names = list.flatMap(({ attachments }) =>
    Object.values(attachments).map(({ container }) => `shop-${container}`),
  );
  expect(coolContainers).toEqual([...new Set(names)].toSorted().map((name) => ({ name, days: 30 })));
  const { value } = theDeclaration('var', 'coolings');
  expect(value).toContain('map(model.coolContainers, container => {');
  // The tier of an append blob cannot be set: the service would reject such a rule.
  expect(value).toContain("blobTypes: ['blockBlob']");
});
