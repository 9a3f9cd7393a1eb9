import { readFileSync } from 'node:fs';
import type { HttpMethod } from '@azure/functions';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, subject } from '../../../../lib/define.ts';
import { CHECKS } from '../../../../lib/engine/write/checks.ts';
import { openAccessApp } from '../../../access-app.ts';
import type { Engine } from '../../../kit/engine.ts';
import { httpDoor } from '../../../kit/http.ts';

/** Of two checks that refuse a write, the earlier one answers, through every door. */

const schema = z.object({
  team: z.string(),
  at: z.iso.datetime(),
  owner: z.string(),
  state: z.enum(['shown', 'secret']),
  size: z.int32(),
});
const access = {
  read: ['root', { role: 'user', where: { state: 'shown' }, lists: 'none' }],
  write: ['root', { role: 'user', where: { owner: subject() } }],
} as const;
const checks = { 'size must not be 66': ({ size }: { readonly size: number }) => size !== 66 };
/** Can be closed, because it can move. */
const pages = defineEntity('pages', {
  schema: schema.extend({ label: z.string() }),
  table: 'pages',
  key: { partition: '{team}', row: '{at}' },
  movable: ['team'],
  archive: { table: 'formerpages' },
  derived: {
    label({ team, size }) {
      if (team === 'away' && size === 13) throw new Error('no label');
      return `${team} ${size}`;
    },
  },
  access,
  checks,
});
/** Has periods, and is one row, which a caller without rules writes without a read. */
const days = defineEntity('days', {
  schema,
  table: 'days',
  key: { partition: '{team}', row: '{at}' },
  period: { per: 'day', field: 'at', keep: 1 },
  access,
  checks,
});
/** Has a second row. */
const parts = defineEntity('parts', {
  schema: schema.extend({ body: z.string().optional() }),
  table: 'parts',
  key: { partition: '{team}', row: '{at}' },
  split: { text: ['body'] },
  movable: ['team'],
  archive: { table: 'formerparts' },
  access,
  checks,
});
const model = defineModel({ roles: ['user', 'root'], operatorRole: 'root', entities: [pages, days, parts] });

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-11-20T12:00:00Z');
const AT = new Date(NOW).toISOString();
let now = NOW;
let isMovingKeys = false;
let app: Awaited<ReturnType<typeof openAccessApp>>;
const root = { subject: 'root', roles: ['root'] };
const ann = { subject: 'ann', roles: ['user'] };

beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model, { now: () => now });
  const rekey: Engine['rekey'] = {
    has: () => isMovingKeys,
    phaseOf: async () => 'moving',
    find: async () => undefined,
  };
  Object.assign(app.engine, { rekey });
});

/** Why a write is refused: the positions in `CHECKS`, and what the insert finds out after them. */
const MOVING_KEYS = 0;
const ABSENT = 1;
const RULED_OUT = 2;
const CONDITION = 3;
const CLOSED = 4;
const BODY = 5;
const RESULT = 6;
const UNCHECKED = 7;
const PERIOD = 8;
const HIDDEN = 9;
const TAKEN = 10;

/** The code and a part of the text that each of them has. */
const SAYS: readonly (readonly [code: string, text: RegExp])[] = [
  ['busy', /not all at their key/],
  ['not-found', /not found/],
  ['forbidden', /do not let the caller/],
  ['etag-mismatch', /ETag mismatch|If-Match/],
  ['busy', /being deleted, archived or moved/],
  ['invalid-input', /size/],
  ['forbidden', /do not let the caller/],
  ['invalid-input', /The entity is not valid: size must not be 66\./],
  ['invalid-input', /outside the days/],
  ['not-found', /not found/],
  ['duplicate-key', /already exists/],
];

interface Sent {
  readonly kind: 'pages' | 'days';
  readonly key: { readonly team: string; readonly at: string };
  /** The fields to change. */
  readonly fields: object;
  readonly ifMatch: string | undefined;
}

interface Answer {
  readonly code: string;
  readonly text: string;
  readonly etag: unknown;
}

/** Sends a write as one caller. A write of several actions has one, whose answer is returned. */
type Send = (sent: Sent, caller: typeof ann) => Promise<Answer>;

async function send(
  caller: typeof ann,
  [method, path]: readonly [HttpMethod, string],
  body: unknown,
  headers: Readonly<Record<string, string | undefined>> = {},
): Promise<Answer> {
  const given = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
  const reply = await app.ask(caller, method, path, body, Object.fromEntries(given));
  const problem = reply.body?.results?.[0]?.problem ?? reply.body?.results?.[0] ?? reply.body;
  const code = String(problem?.code ?? problem?.type ?? reply.status).replace(/^.*[/#]/, '');
  return { code, text: JSON.stringify(reply.body), etag: problem?.etag ?? reply.headers.get('etag') ?? undefined };
}

const pathOf = ({ kind, key }: Sent) => `${kind}/${key.team}/${key.at}`;
const whole = ({ fields }: Sent) => ({ owner: 'ann', state: 'shown', size: 2, ...fields });
const put: Send = (sent, caller) => send(caller, ['PUT', pathOf(sent)], whole(sent), { 'if-match': sent.ifMatch });
const putNew: Send = (sent, caller) => send(caller, ['PUT', pathOf(sent)], whole(sent), { 'if-none-match': '*' });
const patchWith =
  (headers: object): Send =>
  (sent, caller) =>
    send(caller, ['PATCH', pathOf(sent)], { size: 2, ...sent.fields }, { 'if-match': sent.ifMatch, ...headers });
const remove: Send = (sent, caller) => send(caller, ['DELETE', pathOf(sent)], undefined, { 'if-match': sent.ifMatch });
const create: Send = (sent, caller) => send(caller, ['POST', sent.kind], { ...sent.key, ...whole(sent) });
const transfer =
  (name: 'move' | 'archive'): Send =>
  (sent, caller) =>
    send(caller, ['POST', `${pathOf(sent)}/${name}`], name === 'move' ? { team: 'away' } : undefined);

const [move, archive] = [transfer('move'), transfer('archive')];

type ToAction = (sent: Sent) => object;
const actions: Readonly<Record<string, ToAction>> = {
  create: (sent) => ({ create: { ...sent.key, ...whole(sent) } }),
  put: (sent) => ({ put: { ...sent.key, ...whole(sent) }, ifMatch: sent.ifMatch }),
  patch: ({ key, fields, ifMatch }) => ({ patch: { ...key, size: 2, ...fields }, ifMatch }),
  delete: ({ key, ifMatch }) => ({ delete: key, ifMatch }),
};
const inBatch =
  (toAction: ToAction, atomic: boolean): Send =>
  (sent, caller) =>
    send(caller, ['POST', `${sent.kind}/batch`], { actions: [toAction(sent)], atomic });
const inTransaction =
  (toAction: ToAction): Send =>
  (sent, caller) =>
    send(caller, ['POST', 'transact'], { actions: [{ [sent.kind]: toAction(sent) }] });

const PUT = [MOVING_KEYS, RULED_OUT, CONDITION, CLOSED, BODY, RESULT, UNCHECKED, PERIOD];
const PATCH = [MOVING_KEYS, ABSENT, HIDDEN, RULED_OUT, CONDITION, CLOSED, BODY, RESULT, UNCHECKED, PERIOD];
const DELETE = [MOVING_KEYS, ABSENT, HIDDEN, RULED_OUT, CONDITION, CLOSED, PERIOD];
/** The key is in the body. */
const CREATE = [BODY, MOVING_KEYS, RESULT, UNCHECKED, PERIOD, TAKEN];
const PUT_NEW = CREATE.filter((reason) => reason !== TAKEN);
const orders: Readonly<Record<string, readonly number[]>> = { create: CREATE, put: PUT, patch: PATCH, delete: DELETE };

/** Each door with the checks in their order. */
const doors: readonly (readonly [name: string, order: readonly number[], send: Send])[] = [
  ['PUT', PUT, put],
  ['PATCH', PATCH, patchWith({})],
  ['PATCH that returns nothing', PATCH, patchWith({ prefer: 'return=minimal' })],
  ['DELETE', DELETE, remove],
  ['POST', CREATE, create],
  ['PUT of a new entity', PUT_NEW, putNew],
  ['a move', [MOVING_KEYS, ABSENT, HIDDEN, RULED_OUT], move],
  ['an archive', [MOVING_KEYS, ABSENT, HIDDEN, RULED_OUT], archive],
  ...Object.entries(actions).flatMap(([name, toAction]) => {
    const order = orders[name] ?? [];
    // A transaction deletes under no ETag.
    const inOne = name === 'delete' ? order.filter((one) => one !== CONDITION) : order;
    return [
      [`${name} in a batch`, order, inBatch(toAction, false)],
      [`${name} in an atomic batch`, inOne, inBatch(toAction, true)],
      [`${name} in a transaction`, inOne, inTransaction(toAction)],
    ] as const;
  }),
];

const creating = new Set(doors.flatMap(([, order, door]) => (order[0] === BODY ? [door] : [])));

let rows = 0;

/** Makes a row and a request with these reasons to refuse it, and returns the answer. */
async function refuse(door: Send, caller: typeof ann, kind: Sent['kind'], reasons: readonly number[]): Promise<Answer> {
  rows += 1;
  const is = (reason: number) => reasons.includes(reason);
  const key = { team: `t${rows}`, at: AT };
  if (creating.has(door) ? is(TAKEN) : !is(ABSENT)) {
    const owner = is(RULED_OUT) || is(HIDDEN) ? 'bob' : 'ann';
    const state = is(HIDDEN) ? 'secret' : 'shown';
    const { status } = await app.ask(root, 'POST', kind, { ...key, owner, state, size: 1 });
    expect(status).toBe(201);
  }
  if (is(CLOSED)) {
    const table = app.storage.table('pages');
    for await (const { partitionKey, rowKey } of table.listEntities({
      queryOptions: { filter: `PartitionKey eq '${key.team}' and EntityType eq 'pages'` },
    }))
      await table.updateEntity({ partitionKey: partitionKey ?? '', rowKey: rowKey ?? '', Leaving: 'x' }, 'Merge');
  }
  const fields = {
    ...(is(UNCHECKED) ? { size: 66 } : {}),
    ...(is(BODY) ? { size: 'large' } : {}),
    ...(is(RESULT) ? { owner: 'cid' } : {}),
  };
  const ifMatch = is(CONDITION) ? `W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"` : undefined;
  try {
    if (is(PERIOD)) now = NOW + 10 * DAY_MS;
    isMovingKeys = is(MOVING_KEYS);
    return await door({ kind, key, fields, ifMatch }, caller);
  } finally {
    now = NOW;
    isMovingKeys = false;
  }
}

const REASONS = SAYS.map((_, reason) => reason);
const CALLERS = [
  ['a caller with rules', ann, REASONS],
  ['a caller without rules', root, REASONS.filter((reason) => ![RULED_OUT, RESULT, HIDDEN].includes(reason))],
] as const;

describe.each(doors)('%s', (_, order, door) => {
  test.each(CALLERS)('of %s is refused by the first check that refuses it', async (_caller, caller, reasons) => {
    for (const kind of ['pages', 'days'] as const) {
      const others: readonly number[] = kind === 'pages' ? [PERIOD] : [CLOSED];
      const possible = order.filter((reason) => reasons.includes(reason) && !others.includes(reason));
      if (kind === 'days' && (door === move || door === archive)) continue;
      for (const [position, first] of possible.entries())
        for (const later of possible.slice(position)) {
          if (isImpossible(first, later)) continue;
          const { code, text } = await refuse(door, caller, kind, [first, later]);
          const [expected = '', part = /./] = SAYS[first] ?? [];
          expect([code, text], `${kind}: ${first} before ${later}`).toEqual([expected, expect.stringMatching(part)]);
        }
    }
  });
});

/** An absent row is not closed, and has no owner. */
function isImpossible(first: number, later: number): boolean {
  return [ABSENT, HIDDEN].includes(first) && [ABSENT, HIDDEN, RULED_OUT, CLOSED].includes(later) && first !== later;
}

describe('a put on a row that the caller may not know of', () => {
  const HIDDEN_PUT = [MOVING_KEYS, CONDITION, BODY, RESULT, UNCHECKED, PERIOD];

  test.each(['pages', 'days'] as const)(
    'is refused as if there were no row, and last as a create is: %s',
    async (kind) => {
      const order = HIDDEN_PUT.filter((reason) => reason !== (kind === 'pages' ? PERIOD : CLOSED));
      for (const first of order) {
        const hidden = await refuse(put, ann, kind, [first, HIDDEN]);
        const absent = await refuse(put, ann, kind, [first, ABSENT]);
        const said = ({ text, ...answer }: Answer) => ({ ...answer, text: text.replaceAll(/t\d+/g, 't') });
        expect(said(hidden), `${first}`).toEqual(said(absent));
        expect(hidden.code).toBe(SAYS[first]?.[0]);
      }
      expect(await refuse(put, ann, kind, [HIDDEN])).toMatchObject({ code: 'duplicate-key', etag: undefined });
    },
  );

  test.each(['pages', 'days'] as const)('does not tell its ETag with If-None-Match: %s', async (kind) => {
    expect(await refuse(putNew, ann, kind, [HIDDEN, TAKEN])).toMatchObject({ code: 'duplicate-key', etag: undefined });
    expect(await refuse(putNew, ann, kind, [RULED_OUT, TAKEN])).toMatchObject({ code: 'etag-mismatch' });
  });
});

test('a move does not tell that the fields of a hidden row fail', async () => {
  const key = { team: 'here', at: AT };
  await app.ask(root, 'POST', 'pages', { ...key, owner: 'bob', state: 'secret', size: 13 });
  const sent = { kind: 'pages', key, fields: {}, ifMatch: undefined } as const;
  expect((await move(sent, ann)).code).toBe('not-found');
  expect((await move(sent, root)).code).toBe('wrong-operation');
});

test.each([
  ['a move', move],
  ['an archive', archive],
])('%s of a closed row is accepted, and waits', async (_, door) => {
  expect((await refuse(door, ann, 'pages', [CLOSED])).code).toBe('202');
});

test('a write does not tell that a part of a hidden row is lost', async () => {
  const key = { team: 'here', at: AT };
  await app.ask(root, 'POST', 'parts', { ...key, owner: 'bob', state: 'secret', size: 1, body: 'x' });
  await app.storage.table('parts').deleteEntity('here', `${AT}!-text`);
  for (const [method, path, body] of [
    ['PATCH', '', { body: 'y' }],
    ['POST', '/move', { team: 'away' }],
    ['POST', '/archive', undefined],
  ] as const) {
    const at = [method, `parts/here/${AT}${path}`] as const;
    expect([(await send(ann, at, body)).code, (await send(root, at, body)).code]).toEqual([
      'not-found',
      'needs-repair',
    ]);
  }
});

test('a write of a closed row tells a caller who may not know of the row nothing', async () => {
  for (const door of [patchWith({}), remove])
    expect((await refuse(door, ann, 'pages', [HIDDEN, CLOSED])).code).toBe('not-found');
  expect((await refuse(put, ann, 'pages', [HIDDEN, CLOSED])).code).toBe('duplicate-key');
});

test.each([
  ['PUT', put],
  ['PATCH', patchWith({})],
  ['PATCH that returns nothing', patchWith({ prefer: 'return=minimal' })],
])('%s cannot change a key', async (_, door) => {
  for (const kind of ['pages', 'days'] as const) {
    rows += 1;
    const key = { team: `t${rows}`, at: AT };
    await app.ask(root, 'POST', kind, { ...key, owner: 'ann', state: 'shown', size: 1 });
    const { code, text } = await door({ kind, key, fields: { team: 'other' }, ifMatch: undefined }, root);
    expect([code, text]).toEqual(['invalid-input', expect.stringContaining('part of the key')]);
  }
});

test('the page lists the checks in their order', () => {
  const [, below = ''] = readFileSync('docs/internals/consistency.md', 'utf8').split('\n### What a write must pass\n');
  const [section = ''] = below.split('\n### ');
  const listed = section.split('\n').filter((line) => /^\| \d/.test(line));
  const rows = CHECKS.map(({ requires, otherwise, tells }, position) => {
    const { status } = httpDoor.PROBLEMS[otherwise];
    return `| ${position + 1} | ${requires} | ${status} \`${otherwise}\` | ${tells} |`;
  });
  expect(listed).toEqual(rows);
});
