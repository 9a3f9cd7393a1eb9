import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';

/** The past of rows that another program writes too, which a backup has in snapshots alone. */

const parts = defineEntity('parts', {
  schema: z.object({ rack: z.string(), partId: z.string(), name: z.string() }),
  table: 'warehouse',
  key: { partition: '{rack}', row: '{partId}' },
  existing: { properties: { name: 'Name' } },
  access: { read: ['clerk'], write: ['clerk'] },
});
const model = defineModel({
  roles: ['clerk', 'operator'],
  operatorRole: 'operator',
  entities: [parts],
  backup: { days: 7, roles: ['clerk'] },
});
const { ask } = await openAccessApp(import.meta.url, model);
const clerk = { subject: 'carl', roles: ['clerk', 'operator'] };

describe('the past of rows that another program writes', () => {
  const at = new Date(Date.now() - 1_000).toISOString();

  test.each([
    ['a read by key', 'GET', `parts/a/1?at=${at}`, undefined],
    ['a list', 'GET', `parts/a?at=${at}`, undefined],
    ['the history of a row', 'GET', 'operations/history/parts/a/1', undefined],
    ['an undelete', 'POST', 'operations/undelete/parts', { from: at, to: new Date().toISOString() }],
    ['a comparison', 'POST', 'operations/differences/parts', { at }],
  ] as const)('%s is refused, and says where it can be had', async (_, method, path, sent) => {
    expect((await ask(clerk, 'PUT', 'parts/a/1', { rack: 'a', partId: '1', name: 'bolt' })).status).toBeLessThan(300);
    const { status, body } = await ask(clerk, method, path, sent);
    expect({ status, ...body }).toMatchObject({
      status: 400,
      detail: 'Another program writes parts, and a backup has what it wrote in snapshots only.',
      accepted: 'a restore to another place',
    });
  });
});
