import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  defineOperation,
  type ErrorCode,
  interPartitionIndex,
  RowkeyError,
} from '../../../lib/index.ts';
import { createTestStore } from '../../../lib/testing/index.ts';
import { openAccessApp } from '../../access-app.ts';

/** Mistakes in the code of an app: its callers learn that it failed, and its operators where. */

const SECRET = 'ann@example.com';

const notes = defineEntity('notes', {
  schema: z.object({
    owner: z.string(),
    noteId: z.string(),
    text: z.string().max(20),
    slug: z.string().min(1),
    odd: z
      .string()
      .refine((text) => {
        if (text === 'throw') throw new TypeError('of ann@example.com');
        return true;
      })
      .optional(),
    size: z.number().optional(),
  }),
  table: 'notes',
  key: { partition: '{owner}', row: '{noteId}' },
  derived: {
    size: (values) => {
      if (values.text === 'derive') throw new TypeError(`of ${SECRET}`);
      if (values.text === 'mistype') return `of ${SECRET}`;
      if (values.text === 'promise') return Promise.resolve(1);
      return String(values.text).length;
    },
  },
  indexes: {
    text: interPartitionIndex({
      table: 'notesbytext',
      partition: '{text}',
      row: '{owner}_{noteId}',
      when({ text }) {
        if (text === 'when') throw new TypeError(`of ${SECRET}`);
        if (text === 'nothing') throw undefined;
        if (text === 'later') return Promise.resolve(false) as never;
        return true;
      },
    }),
  },
  defaults: {
    slug: ({ text }) => {
      if (text === 'default') throw new TypeError(`of ${SECRET}`);
      if (text === 'number') return 5;
      if (text === 'async') return Promise.resolve('slug');
      return String(text).replace('!', '');
    },
  },
  access: { read: ['user'], write: ['user'] },
});

const input = z.object({
  how: z.string(),
  text: z
    .string()
    .max(50)
    .refine((text) => {
      if (text === 'throw') throw new TypeError('of ann@example.com');
      return true;
    })
    .optional(),
});
const blunder = defineOperation('blunder', {
  summary: 'Fail in some way',
  kind: 'write',
  roles: ['user'],
  input,
  output: z.object({ done: z.literal(true).refine(() => true) }),
});
const outer = defineOperation('outer', {
  summary: 'Call another operation',
  kind: 'write',
  roles: ['user'],
  input,
  output: z.object({}),
});
const model = defineModel({
  roles: ['user'],
  operatorRole: 'user',
  entities: [notes],
  operations: [blunder, outer],
});

const toRange = (store: { notes: { range(key: unknown): unknown } }) => store.notes.range({ ownr: SECRET });

/** What an implementation does, by name. */
// biome-ignore lint/suspicious/noExplicitAny: mistakes are not what the compiler accepts
const WAYS: Readonly<Record<string, (store: any, text?: string) => unknown>> = {
  'creates without a field': (store) => store.notes.create({ owner: 'ann', noteId: '1' }),
  'creates with an unknown field': (store) => store.notes.create({ owner: 'ann', noteId: '1', text: 'a', [SECRET]: 1 }),
  'gets by half a key': (store) => store.notes.get({ owner: 'ann' }),
  'lists by another field': async (store) => {
    // biome-ignore lint/suspicious/noExplicitAny: see above
    for await (const _ of toRange(store) as any) break;
  },
  'lists nothing': (store) => store.notes.range({ owner: 'ann' }, { where: { nope: 1 } }).page(),
  'deletes a range by another field': (store) => store.notes.deleteRange({ ownr: 'ann' }),
  'begins a listing at zero': (store) => store.notes.by.text.range({ text: 'a' }, { first: 0 }),
  'puts into a batch': (store) => store.notes.batch([{ crate: {} }], { atomic: true }),
  'calls another operation': (store) => store.operations.blunder({ haw: 1 }),
  'transacts nonsense': (store) => store.transact([{ nots: { create: {} } }]),
  'throws a TypeError': () => (undefined as unknown as string).length,
  'throws a text': () => {
    throw SECRET;
  },
  'throws nothing': () => {
    throw undefined;
  },
  'throws an unknown code': () => {
    throw new RowkeyError('no-such-code' as ErrorCode, SECRET);
  },
  'throws an inherited code': () => {
    throw new RowkeyError('constructor' as ErrorCode, SECRET);
  },
};

let app: Awaited<ReturnType<typeof openAccessApp<typeof model>>>;
const implement = async (call: { store: unknown; input: { how: string; text?: string | undefined } }) => {
  await WAYS[call.input.how]?.(call.store, call.input.text);
  return { done: true } as const;
};
const operations = { blunder: implement, outer: implement };
const ann = { subject: 'ann', roles: ['user'] };
beforeAll(async () => {
  app = await openAccessApp(import.meta.url, model, { operations: operations as never });
});

test.each(Object.keys(WAYS))('an operation that %s is wrong, and the log says where', async (how) => {
  for (const name of ['blunder', 'outer']) {
    const { status, body, text, logged } = await app.ask(ann, 'POST', name, { how });
    expect([status, body?.code], text).toEqual([500, 'wrong-operation']);
    expect(body.field).toBeUndefined();
    expect(text).not.toContain(SECRET);
    expect(logged).toHaveLength(1);
    // The name of the operation is that of the one that has the mistake.
    expect(logged[0]).toMatch(/^The operation "(blunder|outer)" (threw|gives)/);
    expect(logged[0]).not.toContain(SECRET);
    if (!/text|nothing/.test(how)) expect(logged[0]).toContain('    at ');
  }
});

test('a mistake in process is the same error, with the cause', async () => {
  const { store } = await createTestStore(model, { operations: operations as never });
  const call = store.as({ ...ann, claims: {} }).operations.blunder({ how: 'creates without a field' });
  await expect(call).rejects.toMatchObject({ code: 'wrong-operation', cause: { code: 'invalid-input' } });
});

test('a check of the schema of the input that throws is a mistake, and an input that it rejects is not', async () => {
  const wrong = await app.ask(ann, 'POST', 'blunder', { how: '', text: 'throw' });
  expect([wrong.status, wrong.body.code]).toEqual([500, 'wrong-operation']);
  expect(wrong.logged[0]).not.toContain(SECRET);
  const invalid = await app.ask(ann, 'POST', 'blunder', { how: '', text: 'x'.repeat(51) });
  expect([invalid.status, invalid.body.field]).toEqual([400, 'text']);
  expect((await app.ask(ann, 'POST', 'blunder', { hw: '' })).status).toBe(400);
});

test('what an operation throws for its caller reaches the caller', async () => {
  const told: Record<string, RowkeyError> = {
    invalid: new RowkeyError('invalid-input', 'The code is too old.', { field: 'code' }),
    absent: new RowkeyError('not-found', 'The code does not exist.'),
  };
  const { ask } = await openAccessApp(import.meta.url, model, {
    operations: {
      blunder: async ({ input: { how } }: { input: { how: string } }) => {
        throw told[how];
      },
      outer: implement,
    } as never,
  });
  const invalid = await ask(ann, 'POST', 'blunder', { how: 'invalid' });
  expect([invalid.status, invalid.body.field, invalid.logged]).toEqual([400, 'code', []]);
  expect((await ask(ann, 'POST', 'blunder', { how: 'absent' })).status).toBe(404);
  // A row that does not exist, or that others write, is no mistake.
  const gone = await app.ask(ann, 'DELETE', 'notes/ann/9');
  expect(gone.status).toBe(404);
});

test.each<[string, object]>([
  ['a header that cannot be sent', { etag: '"a\nb"' }],
  ['a header that is not Latin', { etag: '"\u{1f600}"' }],
  ['what JSON does not have', { accepted: 10n }],
])('an error with %s is a problem', async (_, fields) => {
  const { ask } = await openAccessApp(import.meta.url, model, {
    operations: {
      blunder: async () => {
        throw new RowkeyError('etag-mismatch', 'x', fields as never);
      },
      outer: implement,
    } as never,
  });
  const { status, body } = await ask(ann, 'POST', 'blunder', { how: '' });
  expect([status, body.code]).toEqual([500, 'internal']);
});

/** What makes a function of the declaration throw, and how the log names the function. */
const THROWS = {
  'a check of the schema': [{ text: 'a', slug: 's', odd: 'throw' }, 'A check of the schema of notes threw TypeError.'],
  'a derived field': [{ text: 'derive', slug: 's' }, 'The derived field "size" of notes threw TypeError.'],
  'a condition': [{ text: 'when', slug: 's' }, 'The condition "when" of an index or a total threw TypeError.'],
  'a default': [{ text: 'default' }, 'The default of "slug" of notes threw TypeError.'],
} as const;

describe.each(Object.entries(THROWS))('%s that throws does not blame the caller', (name, [fields, line]) => {
  const note = { owner: 'ann', noteId: `of ${name}`, ...fields };
  const good = { owner: 'ann', noteId: `good ${name}`, text: 'b', slug: 's' };
  const { owner, noteId, ...values } = note;
  const path = `notes/ann/${encodeURIComponent(noteId)}`;
  const expectTold = (logged: readonly string[], text: string) => {
    expect(text).not.toContain(SECRET);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain(line);
    expect(logged[0]).toMatch(/\. {5}at .*app-mistakes/);
    expect(logged[0]).not.toContain(SECRET);
  };

  test.each([
    ['POST', 'notes', note],
    ['PUT', path, values],
    ['POST', 'transact', { actions: [{ notes: { create: good } }, { notes: { create: note } }] }],
    ['POST', 'notes/batch', { atomic: true, actions: [{ put: good }, { put: note }] }],
  ] as const)('by %s %s', async (method, at, body) => {
    const { status, body: problem, text, logged } = await app.ask(ann, method, at, body);
    expect([status, problem.code, problem.field?.startsWith('actions.') ?? true], text).toEqual([
      500,
      'wrong-operation',
      true,
    ]);
    expectTold(logged, text);
    expect((await app.ask(ann, 'GET', `notes/ann/${encodeURIComponent(good.noteId)}`)).status).toBe(404);
  });

  test('by PATCH', async () => {
    const { slug: _, ...patch } = { slug: '', ...values };
    await app.ask(ann, 'PUT', path, { text: 'a', slug: 's' });
    const { status, body, text, logged } = await app.ask(ann, 'PATCH', path, {
      ...patch,
      ...(name === 'a default' ? { slug: null } : {}),
    });
    expect([status, body.code], text).toEqual([500, 'wrong-operation']);
    expectTold(logged, text);
    await app.ask(ann, 'DELETE', path);
  });

  test('by a batch, whose other actions are done', async () => {
    const actions = [{ put: note }, { create: good }, { create: { ...note, noteId: 'x' } }];
    const { status, body, text, logged } = await app.ask(ann, 'POST', 'notes/batch', { actions });
    expect(status, text).toBe(200);
    expect(body.results.map((one: { status: number }) => one.status)).toEqual([500, 201, 500]);
    expect(body.results[0].problem.code).toBe('wrong-operation');
    expectTold(logged, text);
    await app.ask(ann, 'DELETE', `notes/ann/${encodeURIComponent(good.noteId)}`);
  });
});

test.each([
  ['a derived field', { text: 'mistype', slug: 's' }, 'The derived field "size"'],
  ['a derived field in a promise', { text: 'promise', slug: 's' }, 'The derived field "size"'],
  ['a default', { text: 'number' }, 'The default of the field "slug"'],
  ['a default in a promise', { text: 'async' }, 'The default of the field "slug"'],
])('%s of another type is a mistake, and nothing is stored', async (_, fields, subject) => {
  const { status, body, text, logged } = await app.ask(ann, 'PUT', 'notes/ann/typed', fields);
  expect([status, body.code], text).toEqual([500, 'wrong-operation']);
  expect(logged).toEqual([expect.stringContaining(`${subject} of notes has a value of another type.`)]);
  expect(text + logged).not.toContain(SECRET);
  expect((await app.ask(ann, 'GET', 'notes/ann/typed')).status).toBe(404);
});

test('a condition in a promise is a mistake, and nothing is stored', async () => {
  const { status, logged } = await app.ask(ann, 'PUT', 'notes/ann/typed', { text: 'later', slug: 's' });
  expect([status, logged]).toEqual([
    500,
    [expect.stringContaining('index or a total returned neither true nor false.')],
  ]);
  expect((await app.ask(ann, 'GET', 'notes/ann/typed')).status).toBe(404);
});

test('a condition that throws nothing is a mistake, and fails no other action', async () => {
  const actions = ['nothing', 'b'].map((text) => ({
    put: { owner: 'ann', noteId: `thrown ${text}`, text, slug: 's' },
  }));
  const { body, logged } = await app.ask(ann, 'POST', 'notes/batch', { actions });
  expect(body.results.map((one: { status: number }) => one.status)).toEqual([500, 201]);
  expect(logged).toHaveLength(1);
});

test('a check of a schema rejects what is not valid', async () => {
  const note = { owner: 'ann', noteId: '7', text: '!' };
  expect((await app.ask(ann, 'POST', 'notes', { ...note, slug: '' })).status).toBe(400);
  expect((await app.ask(ann, 'POST', 'notes', { ...note, text: 'x'.repeat(21) })).status).toBe(400);
});
