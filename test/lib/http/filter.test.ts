import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { accessChecks } from '../../kit/access.ts';
import { defineCodec } from '../../kit/define.ts';
import { httpDoor } from '../../kit/http.ts';

const { things } = deploy(
  defineEntity('things', {
    schema: z.object({
      place: z.string(),
      id: z.string(),
      name: z.string().optional(),
      age: z.int32().optional(),
      isOld: z.boolean().optional(),
      top: z.int32().optional(),
      explain: z.string().optional(),
      secret: z.string().optional(),
      salary: z.number().optional(),
    }),
    table: 'things',
    key: { partition: '{place}', row: '{id}' },
    encrypted: ['secret'],
    access: { read: ['reader', 'hr'], write: ['hr'], restricted: { secret: ['hr'], salary: ['hr'] } },
  }),
);
const filters = httpDoor.filterParameters(things, { without: ['place'], query: httpDoor.PAGE_QUERY });

function read(query: string, role = 'reader') {
  const caller = { subject: 'x', roles: [role], claims: {} };
  const asked = httpDoor.readFilter({ query: new URLSearchParams(query) }, things, filters);
  accessChecks.requireFields(things, caller, defineCodec.askedFields(asked));
  return defineCodec.compileFilter(things, asked);
}

describe('the filter of a query', () => {
  test.each([
    ['name=Ann', [['name', 'eq', 'Ann']]],
    ['name=eq:ge:x', [['name', 'eq', 'ge:x']]],
    ['name=ge:eq:x', [['name', 'ge', 'eq:x']]],
    ['name=GE:x', [['name', 'eq', 'GE:x']]],
    ['name=like:x', [['name', 'eq', 'like:x']]],
    ['name=gt:', [['name', 'gt', '']]],
    ['name=', [['name', 'eq', '']]],
    ['name=ne:a%0Ab', [['name', 'ne', 'a\nb']]],
    [
      'age=ge:30&age=lt:40',
      [
        ['age', 'ge', 30],
        ['age', 'lt', 40],
      ],
    ],
    ['age=in:1,2.0,3e0', [['age', 'in', 1, 2, 3]]],
    ['isOld=ne:true', [['isOld', 'ne', true]]],
    ['name=in:', [['name', 'in', '']]],
    ['name=in:a,,b', [['name', 'in', 'a', '', 'b']]],
    ['name=in:Lee%5C%2C%20Ann,C%5C%5Cy', [['name', 'in', 'Lee, Ann', 'C\\y']]],
    ['name=in:a%5C', [['name', 'in', 'a\\']]],
    ['name=in:%5C%F0%9F%98%80,%C3%A9', [['name', 'in', '\u{1f600}', 'é']]],
    ['name=a,b', [['name', 'eq', 'a,b']]],
  ])('%s', (query, expected) => {
    expect(read(query).map(({ field, operator, values }) => [field, operator, ...values])).toEqual(expected);
  });

  test.each([
    ['age=ge:x', 'age'],
    ['age=in:1,', 'age'],
    ['age=x', 'age'],
    ['isOld=lt:true', 'isOld'],
    [Array.from({ length: 21 }, () => 'age=1').join('&'), 'age'],
    [`age=in:${Array.from({ length: 101 }, (_, at) => at).join(',')}`, 'age'],
  ])('%.30s is rejected', (query, field) => {
    expect(() => read(query)).toThrow(expect.objectContaining({ code: 'invalid-input', field }));
  });

  test('by a restricted field requires a role that may read the field', () => {
    for (const query of ['salary=1', 'salary=ge:1', 'salary=in:1,2', 'salary=ge:x'])
      expect(() => read(query), query).toThrow(expect.objectContaining({ code: 'forbidden' }));
    expect(read('salary=ge:1', 'hr')).toHaveLength(1);
  });

  test('has no parameter for a field that the path gives or that is named like another parameter', () => {
    expect(Object.keys(filters)).toEqual(['id', 'name', 'age', 'isOld', 'secret', 'salary']);
    expect(filters.secret).toEqual({ refused: 'is encrypted, so storage cannot compare it' });
    expect(read('top=5&explain=x')).toEqual([]);
    expect(Object.keys(httpDoor.filterParameters(things, { prefix: 'things.', query: httpDoor.PAGE_QUERY }))).toContain(
      'things.top',
    );
  });
});
