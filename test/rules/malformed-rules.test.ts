import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  between,
  defineClaims,
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  memberOf,
  oneOf,
  own,
  startsWith,
  subject,
  total,
} from '../../lib/define.ts';
import { openAccessApp } from '../access-app.ts';
import type { Term } from '../kit/define.ts';
import { sampleRuns } from '../points.ts';

/** A rule that the compiler has not checked: the model refuses it, or requests work. */

const claims = defineClaims({ regions: { verifiedBy: {} } });

const people = defineEntity('people', {
  schema: z.object({ personId: z.string(), site: z.string(), rank: z.int32() }),
  table: 'people',
  key: { partition: '{site}', row: '{personId}' },
  indexes: { personId: interPartitionIndex({ table: 'peoplebyid', partition: '{personId}', row: 'p', unique: true }) },
  access: { read: ['root'], write: ['root'], own: { claim: 'sub', index: 'personId' } },
});

const crew = defineEntity('crew', {
  schema: z.object({ userId: z.string(), shipId: z.string(), rank: z.enum(['captain', 'mate']) }),
  table: 'crew',
  key: { partition: '{userId}', row: '{shipId}' },
  access: { read: ['root'], write: ['root'] },
});

const logs = (term: Term, field: string, { action, lists }: { action: string; lists: 'bounded' | 'filtered' }) => {
  const rule = [{ role: 'user', where: { [field]: term }, lists }] as const;
  return defineEntity('logs', {
    schema: z.object({
      // No path of another route begins so.
      ship: z.string().regex(/^s/),
      log: z.string(),
      state: z.enum(['draft', 'open']),
      day: z.iso.date(),
      at: z.iso.datetime().optional(),
      level: z.int32(),
      long: z.int(),
      size: z.number().optional(),
      isOpen: z.boolean(),
      tags: z.array(z.string()).optional(),
    }),
    table: 'logs',
    key: { partition: '{ship}', row: '{log}_{level:2}' },
    indexes: {
      day: interPartitionIndex({
        table: 'logsbyday',
        appends: true,
        partition: '{day}',
        row: '{ship}_{log}_{level:2}',
      }),
      state: indexEntity({ table: 'logsbystate', partition: '{state}', row: 'list', holds: '{ship}_{log}_{level:2}' }),
    },
    totals: { perDay: total({ table: 'logtotals', partition: '{ship}', row: '{day}' }) },
    access: {
      read: action === 'read' ? ['root', ...rule] : ['root', 'user'],
      write:
        action === 'field'
          ? ['root']
          : {
              create: action === 'create' ? rule : ['user'],
              update: action === 'update' ? rule : action === 'pair' ? { before: rule, after: rule } : ['user'],
              delete: action === 'delete' ? rule : ['user'],
            },
      ...(action === 'set' ? { set: { [field]: term } } : {}),
      ...(action === 'field' ? { restricted: { size: ['root', ...rule] } } : {}),
    },
  } as never);
};

const text = fc.constantFrom(
  's1',
  'draft',
  '2026-11-01',
  '2026',
  '2026-11-01T09:00:00Z',
  '',
  '.',
  '%2F',
  'a\0',
  '\ud800',
  '\uffff',
  '\u{10ffff}',
  "o'x",
  'x'.repeat(600),
);
const number = fc.constantFrom(
  0,
  1,
  -1,
  1.5,
  -0,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  2 ** 31,
  2 ** 60,
  1e300,
  5e-324,
);
const anything = fc.oneof(
  text,
  number,
  fc.boolean(),
  fc.constantFrom(null, undefined, [], {}, ['a'], 10n, () => 'a', Symbol.iterator),
);
const values = fc.array(
  fc.oneof({ weight: 4, arbitrary: fc.oneof(text, number, fc.boolean()) }, { weight: 1, arbitrary: anything }),
  { maxLength: 20 },
);
const made = fc.oneof(
  anything,
  values.map((given) => oneOf(...(given as [string]))),
  anything.map((given) => startsWith(given as string)),
  text.map(startsWith),
  fc.tuple(anything, anything).map(([from, to]) => between(from as string, to as string)),
  fc.tuple(text, text).map(([from, to]) => between(from, to)),
  fc.tuple(number, number).map(([from, to]) => between(from, to)),
  fc.constant(subject()),
  fc.constant(claims.regions),
  fc.constantFrom('site', 'rank', 'other').map((field) => own(people, field as 'site')),
  fc
    .tuple(fc.constantFrom('shipId', 'rank', 'userId'), anything)
    .map(([field, rank]) => memberOf(crew, field as 'shipId', { rank: rank as string })),
  fc.constant(memberOf(crew, 'shipId')),
  fc.record(
    {
      is: fc.oneof(
        fc.constantFrom('one of', 'prefix', 'between', 'subject', 'claim', 'own', 'member', 'constructor', 'none'),
        anything,
      ),
      values: fc.oneof(values, anything),
      prefix: anything,
      from: anything,
      to: anything,
      claim: anything,
      verifiedBy: fc.oneof(anything, fc.constantFrom({ sure: true }, { sure: [] }, { sure: [true] })),
      of: fc.oneof(anything, fc.constantFrom(crew, people)),
      field: fc.oneof(anything, fc.constantFrom('shipId', 'site')),
      where: fc.oneof(anything, fc.constant({ rank: 'mate' })),
    },
    { requiredKeys: ['is'] },
  ),
);

const FIELDS = ['ship', 'log', 'state', 'day', 'at', 'level', 'long', 'size', 'isOpen', 'tags', 'other', 'constructor'];
const users = [
  { subject: 'ann', roles: ['user'], claims: { sub: 'ann', regions: ['s1', '', 'x'.repeat(2_000)] } },
  { subject: 'bob\u{10ffff}', roles: ['user'], claims: {} },
];
const log = { ship: 's1', log: 'a', state: 'draft', day: '2026-11-01', level: 1, long: 5, isOpen: true };
const tried = { refused: 0, works: 0 };

/** The model with the rule; undefined if it is refused with a sentence that names what is wrong. */
function modelWith(term: unknown, field: string, action: string, lists: 'bounded' | 'filtered') {
  try {
    const entity = logs(term as Term, field, { action, lists });
    return defineModel({ roles: ['user', 'root'], operatorRole: 'root', entities: [people, crew, entity as never] });
  } catch (error) {
    const { name, message } = error as Error;
    expect(name, message).toBe('DeclarationError');
    expect(message).toMatch(/Entity "logs": /);
    // An object with such a constructor is not a plain one, so the message names the place where it stands.
    expect(message).toContain(field === 'constructor' && typeof term === 'function' ? '"access.' : field);
    return undefined;
  }
}

test('a random rule is refused by the model, or no request fails', { tags: ['slow'], timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      made,
      fc.constantFrom(...FIELDS),
      fc.constantFrom('read', 'read', 'create', 'update', 'pair', 'delete', 'set', 'field'),
      fc.constantFrom('bounded' as const, 'filtered' as const, 'filtered' as const),
      async (term, field, action, lists) => {
        const model = modelWith(term, field, action, lists);
        tried[model ? 'works' : 'refused'] += 1;
        if (!model) return;
        const { ask } = await openAccessApp(import.meta.url, model as never);
        await ask({ subject: 'root', roles: ['root'] }, 'POST', 'people', { personId: 'ann', site: 's1', rank: 1 });
        for (const user of users)
          for (const [method, path, body] of [
            ['POST', 'logs', log],
            ['GET', 'logs/s1', undefined],
            ['GET', 'logs/s1?explain=true', undefined],
            ['GET', 'logs/s1/a/1', undefined],
            ['GET', 'logs', undefined],
            ['GET', 'logs/by/day/2026-11-01', undefined],
            ['GET', 'logs/by/state/draft', undefined],
            ['GET', 'logs/totals/perDay/s1', undefined],
            ['PATCH', 'logs/s1/a/1', { state: 'open' }],
            ['PUT', 'logs/s1/a/1', log],
            ['DELETE', 'logs/s1/a/1', undefined],
          ] as const) {
            const { status, body: told } = await ask(user, method, path, body);
            expect(status, `${method} ${path}: ${JSON.stringify(told)}`).toBeLessThan(500);
            expect([400], `${method} ${path}: ${JSON.stringify(told)}`).not.toContain(status);
          }
      },
    ),
    sampleRuns(500),
  );
});

afterAll(() => {
  // Neither of them alone would show anything.
  expect(tried.refused).toBeGreaterThan(0);
  expect(tried.works).toBeGreaterThan(0);
});
