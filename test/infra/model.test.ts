import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { deployment } from '../../lib/model/deployment.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { infraModel, MODEL_FILE } from '../../local/infra-model.ts';

test('infra/model.json is what the model says', () => {
  const rewriteIt = 'infra/model.json does not follow from the model: run npm run infra-model, and commit it';
  expect(readFileSync(MODEL_FILE, 'utf8'), rewriteIt).toBe(infraModel());
});

test('it has every table, queue and container but the tables of days', () => {
  const { tables, queues, containers } = JSON.parse(infraModel());
  const today = resourcesOf(deployment, Date.now());
  const ofDays = today.tables.filter((table) => /\d{8}$/.test(table));
  expect(ofDays).not.toEqual([]);
  expect([...tables, ...ofDays].toSorted()).toEqual([...today.tables].toSorted());
  expect(queues).toEqual([...today.queues].toSorted());
  expect(containers).toEqual([...today.containers].toSorted());
});
