import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';
import { replaceField } from '../doors/doors.ts';
import { type Field, INPUTS } from '../doors/inputs.ts';
import { sampleItems } from '../points.ts';

/** Any value arrives in a table of another program as it does in one of Rowkey, whatever the names of its properties spell. */

const declared = {
  schema: z.object({
    room: z.string(),
    id: z.string(),
    handle: z.string(),
    label: z.string(),
    amount: z.number().optional(),
    at: z.iso.datetime({ offset: true }).optional(),
    free: z.json().optional(),
  }),
  key: { partition: '{room}', row: '{id}' },
  access: { read: ['editor'], write: ['editor'] },
} as const;
const indexesOf = (name: string) => ({
  label: interPartitionIndex({ table: `${name}bylabel`, partition: '{label}', row: '{room}_{id}' }),
});
const plain = defineEntity('plain', { ...declared, table: 'plain', indexes: indexesOf('plain') });
const renamed = defineEntity('renamed', {
  ...declared,
  table: 'renamed',
  indexes: indexesOf('renamed'),
  existing: { properties: { handle: 'Handle', label: 'LABEL', amount: 'Amount', at: 'at_', free: '_free' } },
});
/** The names that the engine and the SDK have for other things. */
const owned = defineEntity('owned', {
  ...declared,
  table: 'owned',
  indexes: indexesOf('owned'),
  existing: {
    properties: { handle: 'EntityType', label: 'WriteId', amount: 'Incarnation', at: 'EntityVersion', free: 'Carried' },
  },
});
const sdk = defineEntity('sdk', {
  ...declared,
  table: 'sdk',
  indexes: indexesOf('sdk'),
  existing: {
    properties: { handle: 'etag', label: 'timestamp', amount: 'partitionKey', at: 'rowKey', free: 'constructor' },
  },
});
const model = defineModel({
  roles: ['editor', 'operator'],
  operatorRole: 'operator',
  entities: [plain, renamed, owned, sdk],
});
const { ask } = await openAccessApp(import.meta.url, model);
const editor = { subject: 'ann', roles: ['editor'] };

async function trace(entity: string, number: number, field: Field, text: string) {
  const base = { room: `room${number}`, id: `id${number}`, handle: `h${number}`, label: `l${number}` };
  const body = Buffer.from(replaceField(base, field, text));
  const log: unknown[] = [];
  const step = async (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, sent?: unknown) => {
    const { status, body: got } = await ask(editor, method, `${entity}${path}`, sent, {
      'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
    });
    log.push({ method, status, got: JSON.stringify(got)?.replaceAll(entity, 'plain') });
  };
  await step('POST', '', body);
  await step('GET', `/room${number}`);
  await step('GET', `/room${number}/id${number}`);
  await step('GET', `/by/label/l${number}`);
  await step('PATCH', `/room${number}/id${number}`, { handle: 'patched' });
  await step('GET', `/room${number}`);
  await step('PATCH', `/room${number}/id${number}`, Buffer.from(`{${JSON.stringify(field)}:${text}}`));
  await step('GET', `/room${number}`);
  await step('DELETE', `/room${number}/id${number}`);
  await step('GET', `/room${number}`);
  return log;
}

const written = INPUTS.flatMap(({ title, field, text }, number) =>
  text === undefined ? [] : [{ title: `${field}: ${title}`, field, text, number }],
);

test.each(sampleItems(written, 'any value in a table of another program', 15))(
  '$title',
  async ({ field, text, number }) => {
    const expected = await trace('plain', number, field, text);
    expect(expected[0]).toMatchObject({ status: expect.toBeOneOf([201, 400, 413]) });
    for (const entity of ['renamed', 'owned', 'sdk'])
      expect(await trace(entity, number, field, text)).toEqual(expected);
  },
);
