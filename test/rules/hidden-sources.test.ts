import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex, subject } from '../../lib/define.ts';
import { openAccessApp, type Reply } from '../access-app.ts';

/** What a caller learns of hidden rows by further rows, by copies, and by an index without the fields of a rule: nothing. */

const mine = { role: 'user', where: { owner: subject() }, lists: 'filtered' } as const;
const fields = { team: z.string(), owner: z.string() };

const reports = defineEntity('reports', {
  schema: z.object({ ...fields, reportId: z.string(), title: z.string(), body: z.string().optional() }),
  table: 'reports',
  key: { partition: '{team}', row: 'report_{reportId}' },
  split: { text: ['body'] },
  indexes: {
    title: interPartitionIndex({
      table: 'reportsbytitle',
      partition: '{title}',
      row: '{team}_{reportId}',
      copies: ['owner'],
    }),
    bare: interPartitionIndex({ table: 'reportsbare', partition: '{title}', row: '{team}_{reportId}', copies: [] }),
  },
  access: { read: ['root', mine], write: ['root', mine] },
});
/** One row of a team, with the title of a report. */
const covers = defineEntity('covers', {
  schema: z.object({
    ...fields,
    reportId: z.string().optional(),
    title: z.string().optional(),
    note: z.string().optional(),
  }),
  table: 'reports',
  key: { partition: '{team}', row: 'cover' },
  denormalized: { reportId: { source: reports, copies: { title: ({ title }) => title } } },
  access: { read: ['root', mine], write: ['root', mine], discloses: ['title'] },
});
const model = defineModel({ roles: ['user', 'root'], operatorRole: 'root', entities: [reports, covers] });

const root = { subject: 'root', roles: ['root'] };
const ann = { subject: 'ann', roles: ['user'] };
let app: Awaited<ReturnType<typeof openAccessApp>>;
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
  for (const [reportId, owner] of [
    ['1', 'ann'],
    ['2', 'bob'],
  ]) {
    const report = { team: 't', reportId, owner, title: 'x', body: 'y' };
    expect((await app.ask(root, 'POST', 'reports', report)).status).toBe(201);
  }
});

/** All that a response says, but the id of the report. */
const said = ({ status, headers, text }: Reply, id: string) => ({
  status,
  text: text.replaceAll(`t/${id}`, 't/…'),
  timing: /"(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1],
});

test.each([
  ['GET', 'include=text', undefined],
  ['PATCH', '', { body: 'z' }],
  ['PATCH', '', { title: 'z' }],
  ['DELETE', '', undefined],
] as const)(
  '%s of a hidden row costs what that of an absent one does, also with further rows: %s',
  async (method, query, body) => {
    const ask = async (id: string) => said(await app.ask(ann, method, `reports/t/${id}?${query}`, body), id);
    const [hidden, absent] = [await ask('2'), await ask('9')];
    expect(hidden).toEqual(absent);
    expect(hidden.status).toBe(404);
    expect((await app.ask(root, 'GET', 'reports/t/2?include=text')).body.body).toBe('y');
  },
);

test('a copy of a hidden row is rejected like one of an absent row, and one that is there already stays', async () => {
  const put = (reportId: string) => app.ask(ann, 'PUT', 'covers/t', { team: 't', owner: 'ann', reportId });
  const [hidden, absent] = [await put('2'), await put('9')];
  expect(said(hidden, '2')).toEqual(said(absent, '9'));
  expect([hidden.status, hidden.body.field]).toEqual([400, 'reportId']);
  expect((await put('1')).body.title).toBe('x');
  expect((await app.ask(root, 'PATCH', 'covers/t', { reportId: '2' })).status).toBe(200);
  expect((await app.ask(ann, 'PATCH', 'covers/t', { note: 'n' })).status).toBe(200);
  expect((await put('2')).body.title).toBe('x');
});

test('an index without a field of the rule is closed, and one with the field shows the rows within reach', async () => {
  expect((await app.ask(ann, 'GET', 'reports/by/bare/x')).status).toBe(403);
  const { status, body } = await app.ask(ann, 'GET', 'reports/by/title/x');
  expect([status, body.items.map(({ reportId }: { reportId: string }) => reportId)]).toEqual([200, ['1']]);
});
