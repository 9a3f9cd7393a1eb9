import { beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import {
  between,
  type Caller,
  defineClaims,
  defineEntity,
  defineModel,
  interPartitionIndex,
  oneOf,
  startsWith,
  subject,
} from '../../lib/index.ts';
import { openAccessApp } from '../access-app.ts';

/** What a signature opens in storage: what the rules let its holder read. */

const claims = defineClaims({ kind: { verifiedBy: {} } });

/** Roles with rules that are a range of row keys, and roles whose rules are not. */
const RANGED = ['kind', 'month', 'days', 'sizes', 'prefix', 'claim'] as const;
const MIXED = ['state', 'day', 'kinds', 'other'] as const;

const people = defineEntity('people', {
  schema: z.object({
    place: z.string(),
    userId: z.string(),
    phone: z.string().optional(),
    salary: z.int32().optional(),
    code: z.string().optional(),
    health: z.string().optional(),
  }),
  table: 'people',
  key: { partition: '{place}', row: 'person_{userId}' },
  indexes: { sub: interPartitionIndex({ table: 'peoplebysub', partition: '{userId}', row: 's', unique: true }) },
  split: { medical: ['health'] },
  encrypted: ['code'],
  access: {
    read: ['all', 'user', 'payroll', ...RANGED, ...MIXED, { role: 'local', where: { place: 'here' } }],
    write: ['all'],
    restricted: {
      salary: ['all', 'payroll', { role: 'user', where: { userId: subject(), place: 'here' } }],
      code: ['all'],
      health: ['all'],
    },
    own: { claim: 'sub', index: 'sub' },
  },
});

const mine = { userId: subject() };
const notes = defineEntity('notes', {
  schema: z.object({
    userId: z.string(),
    kind: z.string(),
    day: z.iso.date(),
    size: z.int32(),
    state: z.enum(['draft', 'final']),
  }),
  table: 'notes',
  key: { partition: '{userId}', row: 'note_{kind}_{day}_{size:3}' },
  access: {
    read: [
      'all',
      { role: 'user', where: mine },
      { role: 'kind', where: { ...mine, kind: 'work' } },
      { role: 'month', where: { ...mine, kind: 'work', day: startsWith('2026-11') } },
      { role: 'days', where: { ...mine, kind: 'work', day: between('2026-11-01', '2026-11-20') } },
      { role: 'sizes', where: { ...mine, kind: 'work', day: '2026-11-20', size: between(2, 10) } },
      { role: 'prefix', where: { ...mine, kind: startsWith('work') } },
      { role: 'claim', where: { ...mine, kind: claims.kind } },
      { role: 'state', where: { ...mine, state: 'final' } },
      { role: 'day', where: { ...mine, day: '2026-11-20' } },
      { role: 'kinds', where: { ...mine, kind: oneOf('work', 'home') } },
      { role: 'other', where: { userId: 'bob' } },
    ],
    write: ['all'],
    own: { through: people, permissions: 'r' },
  },
});

const papers = defineEntity('papers', {
  schema: z.object({ userId: z.string(), paperId: z.string(), state: z.string(), secret: z.string().optional() }),
  table: 'papers',
  key: { partition: '{userId}', row: 'paper_{paperId}' },
  access: {
    read: ['all', 'user', 'kind', 'month'],
    write: ['all'],
    restricted: { secret: ['all', { role: 'user', where: mine }, { role: 'kind', where: { state: 'final' } }] },
    own: { through: people, permissions: 'r' },
  },
});

/** Its roles do not name those who get signatures: they are the readers of people. */
const drafts = defineEntity('drafts', {
  schema: z.object({ userId: z.string(), draftId: z.string() }),
  table: 'drafts',
  key: { partition: '{userId}', row: 'draft_{draftId}' },
  access: { read: ['all'], write: ['all'], own: { through: people, permissions: 'raud' } },
});

const model = defineModel({
  roles: ['all', 'payroll', 'local', 'user', ...RANGED, ...MIXED],
  operatorRole: 'all',
  entities: [people, notes, papers, drafts],
});

type Note = Readonly<Record<'userId' | 'kind' | 'day' | 'state', string>> & { readonly size: number };
const NOTES: readonly Note[] = ['ann', 'bob'].flatMap((userId) =>
  (userId === 'ann' ? ['work', 'works', 'work_', 'wor', 'home'] : ['work']).flatMap((kind) =>
    ['2026-10-31', '2026-11-01', '2026-11-20', '2026-11-21'].flatMap((day, at) =>
      [1, 2, 11].map((size) => ({ userId, kind, day, size, state: at % 2 ? 'final' : 'draft' })),
    ),
  ),
);

let app: Awaited<ReturnType<typeof openAccessApp>>;
const all = { subject: 'all', roles: ['all'] };
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model);
  for (const [userId, place] of [
    ['ann', 'here'],
    ['bob', 'there'],
  ] as const) {
    const person = { userId, place, salary: 5, code: 'c', health: 'h' };
    expect((await app.ask(all, 'POST', 'people', person)).status).toBe(201);
  }
  const actions = NOTES.map((note) => ({ create: note }));
  const { body } = await app.ask(all, 'POST', 'notes/batch', { actions });
  expect(body.results.map(({ status }: { status: number }) => status)).toEqual(actions.map(() => 201));
});

const as = (subject: string, roles: readonly string[], more: Caller['claims'] = {}): Caller => ({
  subject,
  roles: [...roles],
  claims: { sub: subject, ...more },
});
const grant = (caller: Caller, entity: string) =>
  app.ask(caller, 'POST', 'grants', { entity, scope: 'own', renew: true });

/** Azurite does not check the bounds of a signature, so there only the bounds are compared. */
const isChecked = inject('storage') === 'memory';

/** The notes that the signature opens: those of a list of everything, and each that can be read by its key. */
async function opened({ url, token }: { url: string; token: string }): Promise<Note[]> {
  const bounds = new URLSearchParams(token);
  const keyOf = ({ kind, day, size }: Note) =>
    `note_${kind.replaceAll('_', '!5f')}_${day}_${String(size).padStart(3, '0')}`;
  const within = NOTES.filter((note) => {
    expect(bounds.get('spk')).toBe(bounds.get('epk'));
    return (
      note.userId === bounds.get('spk') &&
      keyOf(note) >= (bounds.get('srk') ?? '') &&
      keyOf(note) <= (bounds.get('erk') ?? '')
    );
  });
  if (!isChecked) return within;
  const headers = { accept: 'application/json;odata=nometadata' };
  const list = await fetch(`${url}()?${token}`, { headers });
  const { value: rows } = (await list.json()) as { value: { RowKey: string; PartitionKey: string }[] };
  expect(rows.map(({ PartitionKey, RowKey }) => `${PartitionKey} ${RowKey}`).sort()).toEqual(
    within.map((note) => `${note.userId} ${keyOf(note)}`).sort(),
  );
  for (const note of [within[0], within.at(-1), ...NOTES.filter((one, at) => at % 9 === 0 && !within.includes(one))]) {
    if (!note) continue;
    const row = await fetch(
      `${url}(PartitionKey='${note.userId}',RowKey='${encodeURIComponent(keyOf(note))}')?${token}`,
      { headers },
    );
    expect(row.status, keyOf(note)).toBe(within.includes(note) ? 200 : 403);
  }
  return within;
}

describe('a signature for the rows of a partition', () => {
  test.each<[string, (note: Note) => boolean]>([
    ['user', () => true],
    ['kind', ({ kind }) => kind === 'work'],
    ['month', ({ kind, day }) => kind === 'work' && day.startsWith('2026-11')],
    ['days', ({ kind, day }) => kind === 'work' && day >= '2026-11-01' && day <= '2026-11-20'],
    ['sizes', ({ kind, day, size }) => kind === 'work' && day === '2026-11-20' && size >= 2 && size <= 10],
    ['prefix', ({ kind }) => kind.startsWith('work')],
    ['claim', ({ kind }) => kind === 'work_'],
  ])('opens those within the rule of the role %s, and no other', async (role, isWithin) => {
    const { status, body } = await grant(as('ann', [role], { kind: 'work_' }), 'notes');
    expect(status).toBe(201);
    expect(await opened(body)).toEqual(NOTES.filter((note) => note.userId === 'ann' && isWithin(note)));
  });

  test('opens all of them if another role of the caller reaches all', async () => {
    const { body } = await grant(as('ann', ['state', 'user']), 'notes');
    expect(await opened(body)).toEqual(NOTES.filter((note) => note.userId === 'ann'));
  });

  test.each([['state'], ['day'], ['kinds'], ['other'], ['kind', 'month'], ['kind', 'state']])(
    'is refused if the rules are no range of row keys: %s %s',
    async (...roles) => {
      const { status, body } = await grant(as('ann', roles), 'notes');
      expect([status, body.detail]).toEqual([
        403,
        'No grant can be issued: the rules of notes let the caller read some rows of the partition only, which are not one range of row keys. Read them through the API.',
      ]);
    },
  );

  test('is not repeated for another value of a claim that a rule compares', async () => {
    const ask = (kind: string) =>
      app.ask(as('ann', ['claim'], { kind }), 'POST', 'grants', { entity: 'notes', scope: 'own' });
    const [home, work] = [await ask('home'), await ask('work')];
    expect((await opened(home.body)).every(({ kind }) => kind === 'home')).toBe(true);
    expect((await opened(work.body)).every(({ kind }) => kind === 'work')).toBe(true);
    expect((await ask('home')).body).toEqual(home.body);
  });

  test('is refused if a field of the rows is restricted, unless a rule shows it in all of them', async () => {
    expect((await grant(as('ann', ['user']), 'papers')).status).toBe(201);
    for (const role of ['kind', 'month']) {
      const { status, body } = await grant(as('ann', [role]), 'papers');
      expect([status, body.field]).toEqual([403, 'secret']);
      expect(body.detail).toBe(
        'No grant can be issued: it opens whole rows, and "secret" of papers is restricted. Read the rows through the API; the model can keep the field in an entity of its own.',
      );
    }
  });
});

test('a claim that no row can have opens none', async () => {
  for (const kind of ['', '\ud800']) {
    const caller = as('ann', ['claim'], { kind });
    expect((await app.ask(caller, 'GET', 'notes/ann')).body).toEqual({ items: [] });
    expect((await grant(caller, 'notes')).status).toBe(403);
  }
});

test('no signature opens the partition of an entity that the rules hide from its owner', async () => {
  const answers = ['ann', 'bob'].map(async (subject) => (await grant(as(subject, ['local']), 'drafts')).status);
  expect(await Promise.all(answers)).toEqual([201, 404]);
});

describe('a signature for a row', () => {
  const read = async ({ url, token }: { url: string; token: string }) => {
    const headers = { accept: 'application/json;odata=nometadata' };
    return (await (await fetch(`${url}?${token}`, { headers })).json()) as Readonly<Record<string, unknown>>;
  };

  test('opens no restricted field that the caller may not see', async () => {
    const refused = await grant(as('bob', ['user']), 'people');
    expect([refused.status, refused.body.field]).toEqual([403, 'salary']);
    expect(refused.body.detail).toBe(
      'No grant can be issued: it opens whole rows, and "salary" of people is restricted. Read the rows through the API; the model can keep the field in a group of split or an entity of its own.',
    );
    const { body } = await grant(as('bob', ['payroll']), 'people');
    expect((await read(body)).salary).toBe(5);
  });

  test('opens a field that a rule shows to its owner, no group of split, and an encrypted field as it is stored', async () => {
    const { status, body } = await grant(as('ann', ['user']), 'people');
    expect([status, body.fields]).toEqual([201, expect.not.arrayContaining(['health', 'code'])]);
    const row = await read(body);
    expect(row.salary).toBe(5);
    expect(row).not.toHaveProperty('health');
    expect(row.code).not.toBe('c');
  });

  test('is not found if the rules do not reach the row', async () => {
    const caller = (subject: string) => as(subject, ['local']);
    expect((await grant(caller('bob'), 'people')).status).toBe(404);
    expect((await grant(caller('ann'), 'people')).body.field).toBe('salary');
  });
});
