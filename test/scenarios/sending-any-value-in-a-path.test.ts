import type { HttpMethod } from '@azure/functions';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../lib/client/index.ts';
import { defineEntity, defineModel, defineSeries, interPartitionIndex, total } from '../../lib/define.ts';
import { PNG } from '../../local/walk/png.ts';
import { type Ask, openAccessApp } from '../access-app.ts';
import { anyText } from '../any-text.ts';
import type { TestHost } from '../hosted-path.ts';

/** A value in a path reaches its own row, or the request is refused: it never reaches the row of another value. */

const text = z.string().max(512);
const access = { read: ['member'], write: ['member'] } as const;

const contacts = defineEntity('contacts', {
  schema: z.object({ id: text, handle: text, note: text.optional() }),
  table: 'contacts',
  key: { partition: '{id#}', row: '{id}' },
  indexes: {
    handle: interPartitionIndex({ table: 'contactsbyhandle', partition: '{handle#}', row: '{handle}_{id}' }),
    sorted: interPartitionIndex({ table: 'contactssorted', partition: '{handle#}', row: '{note}_{id}' }),
  },
  totals: { perHandle: total({ table: 'contactsperhandle', partition: '{handle#}', row: '{handle}' }) },
  attachments: { photo: { container: 'photos', maxBytes: 1_000, types: ['image/png'] } },
  archive: { table: 'formercontacts' },
  access,
});
const visits = defineSeries('visits', {
  schema: z.object({ page: text }),
  table: 'visits',
  key: { partition: '{page#}', row: '{page}' },
  slots: { name: 'hour', first: 0, last: 23 },
  access,
});
const tasks = defineEntity('tasks', {
  schema: z.object({ box: text, name: text, note: text.optional() }),
  table: 'tasks',
  key: { partition: '{box#}', row: 'task_{box}_{name}' },
  movable: ['box'],
  access,
});
const model = defineModel({
  roles: ['member', 'operator'],
  operatorRole: 'operator',
  entities: [contacts, visits, tasks],
});

const member = { roles: ['member'] };
/** Pairs that differ by what a host, a proxy or a URL changes. */
const PARTS = [
  '/',
  '%2F',
  '%2f',
  '%252F',
  '%',
  '%25',
  '\\',
  '%5C',
  '.',
  '..',
  '%2e',
  '+',
  ' ',
  '%20',
  ';',
  '?',
  '#',
  'a',
  '\u{1f600}',
  '\u0001',
  '\0',
  '\ud800',
  'photo',
  'by',
];
const value = fc.oneof(
  { weight: 4, arbitrary: fc.array(fc.constantFrom(...PARTS), { maxLength: 3 }).map((parts) => parts.join('')) },
  anyText({ maxLength: 4 }),
  fc.constantFrom('\u4e2d'.repeat(512), '\u{1f600}'.repeat(256), 'x'.repeat(512)),
);
const RUNS = Number(process.env.POINTS === 'all' ? 300 : 25);

let first: Ask;
beforeAll(async () => {
  ({ ask: first } = await openAccessApp(import.meta.url, model));
});

describe.each<TestHost>(['local', 'azure', 'tools'])('under the host %s', (host) => {
  let ask: Ask;
  beforeAll(async () => {
    ({ ask } = await openAccessApp(import.meta.url, model, { host }));
  });
  const send = (method: HttpMethod, path: string, body?: unknown) =>
    ask(member, method, new URL(path, 'https://x/').href.slice('https://x/'.length), body);
  const client = () =>
    createClient<typeof model>({
      url: 'https://example.org/api',
      token: 'x',
      async fetch(url, { method = 'GET', headers, body } = {}) {
        const { pathname, search } = new URL(String(url));
        const content =
          body instanceof Blob ? new Uint8Array(await body.arrayBuffer()) : body && JSON.parse(String(body));
        const path = pathname.slice('/api/'.length) + search;
        const reply = await ask(member, method as HttpMethod, path, content, headers as Record<string, string>);
        return new Response(reply.status === 204 ? null : reply.text, { status: reply.status, headers: reply.headers });
      },
    });
  /** What a call of the client returns; undefined if it was refused. */
  const call = <Result>(work: Promise<Result>): Promise<Result | undefined> =>
    work.catch((error) => {
      expect(error).toMatchObject({
        name: 'RowkeyClientError',
        code: expect.not.stringMatching(/unexpected|internal/),
      });
      return undefined;
    });
  /** The body of a reply; undefined if the request was refused with a problem. */
  const bodyOf = ({ status, body, text: sent }: Awaited<ReturnType<Ask>>) => {
    if (status < 400) return body ?? {};
    expect(status, sent).toBeLessThan(500);
    expect(body.detail).toEqual(expect.any(String));
    return undefined;
  };
  const encode = (each: string) => (each.isWellFormed() ? encodeURIComponent(each) : '%ED%A0%80');
  /** Runs a property over two values of which one has a row. */
  const forAny = (check: (one: string, other: string) => Promise<void>) =>
    fc.assert(fc.asyncProperty(value, value, check), {
      numRuns: RUNS,
      examples: [
        ['a/b', 'a%2Fb'],
        ['a%2Fb', 'a/b'],
        ['a/photo', 'a'],
        ['a', 'a/photo'],
        ['%', '%25'],
        ['', 'by'],
      ],
    });
  let number = 0;

  test('a write by key changes the row of its value alone', { tags: ['slow'] }, async () => {
    await forAny(async (one, other) => {
      if (one === other) return;
      number += 1;
      const note = `${number}`;
      const made = (await first(member, 'POST', 'contacts', { id: one, handle: 'h' })).status;
      if (made !== 201 && made !== 409) return;
      const row = async () =>
        (await first(member, 'POST', 'query', { reads: { row: { get: 'contacts', key: { id: one } } } })).body.reads.row
          .entity;
      const before = await row();
      const path = `contacts/${encode(other)}`;
      bodyOf(await send('PUT', path, { handle: 'h', note }));
      bodyOf(await send('PATCH', path, { note }));
      bodyOf(await send('PUT', `${path}/photo`, PNG));
      bodyOf(await send('DELETE', `${path}/photo`));
      bodyOf(await send('POST', `${path}/archive`));
      bodyOf(await send('DELETE', path));
      await call(client().contacts.put({ id: other }, { handle: 'h', note }));
      await call(client().contacts.update({ id: other }, { note }));
      await call(client().contacts.files.photo.put({ id: other }, new Blob([PNG], { type: 'image/png' })));
      await call(client().contacts.archive({ id: other }));
      await call(client().contacts.delete({ id: other }));
      expect(await row(), JSON.stringify([one, other])).toEqual(before);
    });
  });

  test('a read returns the row, the list and the total of its value', { tags: ['slow'] }, async () => {
    await forAny(async (id, handle) => {
      number += 1;
      const note = `${number}`;
      const made = await first(member, 'POST', 'contacts', { id: `id${number}`, handle, note });
      await first(member, 'PUT', `contacts/${encode(id)}`, { handle: 'h', note });
      const own = [
        bodyOf(await send('GET', `contacts/${encode(id)}`)),
        (await call(client().contacts.get({ id })))?.values,
      ];
      for (const found of own) if (found) expect(found.id, JSON.stringify(id)).toBe(id);
      if (made.status !== 201) return;
      const lists = [
        bodyOf(await send('GET', `contacts/by/handle/${encode(handle)}`)),
        await call(client().contacts.by.handle.range({ handle }).page()),
        bodyOf(await send('GET', `contacts/by/sorted/${encode(handle)}?from=${note}`)),
      ];
      for (const list of lists)
        for (const item of list?.items ?? []) expect(item.handle, JSON.stringify(handle)).toBe(handle);
      const totals = [
        bodyOf(await send('GET', `contacts/totals/perHandle/${encode(handle)}`)),
        await call(client().contacts.totals.perHandle.get({ handle })),
      ];
      for (const one of totals) if (one) expect(one, JSON.stringify(handle)).toMatchObject({ group: { handle } });
    });
  });

  test('a count of a series is of its key', { tags: ['slow'] }, async () => {
    await forAny(async (one, other) => {
      if (one === other) return;
      const read = async (page: string) => (await call(client().visits.get({ page })))?.counts;
      const before = await read(one);
      bodyOf(await send('POST', `visits/${encode(other)}/8/increments`, { by: 1 }));
      bodyOf(await send('PUT', `visits/${encode(other)}/9`, { count: 3 }));
      await call(client().visits.increment({ page: other }, 8, 1));
      expect(await read(one), JSON.stringify([one, other])).toEqual(before);
      bodyOf(await send('DELETE', `visits/${encode(other)}`));
    });
  });

  test('a move is of the entity with its key', { tags: ['slow'] }, async () => {
    await forAny(async (one, other) => {
      if (one === other) return;
      const key = { box: one, name: 'n' };
      if ((await first(member, 'POST', 'tasks', key)).status === 400) return;
      const row = async () =>
        (await first(member, 'POST', 'query', { reads: { row: { get: 'tasks', key } } })).body.reads.row.status;
      expect(await row()).toBe(200);
      bodyOf(await send('POST', `tasks/${encode(other)}/n/move`, { box: 'z' }));
      await call(client().tasks.move({ box: other, name: 'n' }, { box: 'z' }));
      bodyOf(await send('DELETE', `tasks/${encode(other)}/n`));
      expect(await row(), JSON.stringify([one, other])).toBe(200);
    });
  });
});
