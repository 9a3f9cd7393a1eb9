import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Caller, defineEntity, defineModel, interPartitionIndex } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { type Ask, openAccessApp } from '../access-app.ts';
import { type Engine, engineConsume } from '../kit/engine.ts';

/** Rights that overlap only in part: what a caller may not do by one route must not be possible by another. */

const text = z.string().min(1).max(100);
const id = z.string().regex(/^\d+$/);
const file = (container: string) => ({ container, maxBytes: 1_000, types: ['image/png'] });

const people = defineEntity('people', {
  schema: z.object({ city: text, id, sub: text, secret: text.optional() }),
  table: 'people',
  key: { partition: '{city}', row: 'person_{id}' },
  indexes: { sub: interPartitionIndex({ table: 'peoplebysub', partition: 'all', row: '{sub}', unique: true }) },
  attachments: { photo: file('photos'), report: file('reports') },
  access: {
    read: ['member', 'hr'],
    write: ['hr'],
    restricted: { report: ['hr'], secret: ['hr'] },
    own: { claim: 'sub', index: 'sub' },
  },
});
const badges = defineEntity('badges', {
  schema: z.object({ city: text, id, sub: text }),
  table: 'badges',
  key: { partition: '{city}', row: 'badge_{id}' },
  indexes: { sub: interPartitionIndex({ table: 'badgesbysub', partition: 'all', row: '{sub}', unique: true }) },
  access: { read: ['guest', 'hr'], write: ['hr'], own: { claim: 'sub', index: 'sub' } },
});
const tasks = defineEntity('tasks', {
  schema: z.object({ city: text, id, title: text }),
  table: 'tasks',
  key: { partition: '{city}', row: 'task_{id}' },
  archive: { table: 'formertasks' },
  movable: ['city'],
  access: { read: ['member', 'hr'], write: ['clerk', 'hr'] },
});
const remarks = defineEntity('remarks', {
  schema: z.object({ city: text, id, number: z.int32().min(0), remark: text }),
  table: 'tasks',
  key: { partition: '{city}', row: 'task_{id}_{number:4}' },
  childOf: tasks,
  access: { read: ['hr'], write: ['hr'] },
});
const model = defineModel({
  roles: ['member', 'guest', 'clerk', 'hr', 'operator'],
  operatorRole: 'operator',
  entities: [people, badges, tasks, remarks],
});

const hr = { roles: ['hr'] };
const clerk = { roles: ['clerk'] };
const owner = { roles: ['member'], claims: { sub: 'ann' } };
let ask: Ask;
let engine: Engine;
beforeAll(async () => {
  ({ ask, engine } = await openAccessApp(import.meta.url, model));
  expect(await ask(hr, 'POST', 'people', { city: 'Rome', id: '1', sub: 'ann' })).toMatchObject({ status: 201 });
  expect(await ask(hr, 'POST', 'badges', { city: 'Rome', id: '1', sub: 'ann' })).toMatchObject({ status: 201 });
});

describe('an owner', () => {
  beforeAll(async () => {
    for (const field of ['photo', 'report'])
      expect((await ask(hr, 'PUT', `people/Rome/1/${field}`, PNG)).status).toBe(200);
  });

  test.each([
    ['PUT', '', PNG],
    ['DELETE', '', undefined],
    ['POST', '/uploads', { type: 'image/png', bytes: PNG.length }],
    ['POST', '/uploads/00000000-0000-0000-0000-000000000000.1.image-png', undefined],
  ] as const)('who may not see a restricted file cannot change it: %s %s', async (method, rest, body) => {
    const { status, body: problem } = await ask(owner, method, `people/Rome/1/report${rest}`, body);
    expect({ status, field: problem.field }).toEqual({ status: 403, field: 'report' });
    expect((await ask(hr, 'GET', 'people/Rome/1/report')).status).toBe(200);
  });

  test('changes the files that the owner may see', async () => {
    expect((await ask(owner, 'PUT', 'people/Rome/1/photo', PNG)).status).toBe(200);
    expect((await ask(owner, 'DELETE', 'people/Rome/1/photo')).status).toBe(204);
  });

  test('gets grants only for the entities whose roles the owner has', async () => {
    const request = (entity: string) => ({ entity, scope: 'own' });
    expect((await ask({ ...owner, roles: ['hr'] }, 'POST', 'grants', request('people'))).status).toBe(201);
    const { status, body } = await ask(owner, 'POST', 'grants', request('badges'));
    expect({ status, accepted: body.accepted }).toEqual({ status: 403, accepted: 'guest, hr' });
    expect((await ask({ ...owner, roles: ['guest'] }, 'POST', 'grants', request('badges'))).status).toBe(201);
  });

  test('gets no grant of a row with a field that the owner may not see', async () => {
    const { status, body } = await ask(owner, 'POST', 'grants', { entity: 'people', scope: 'own' });
    expect({ status, field: body.field }).toEqual({ status: 403, field: 'report' });
    expect(body.detail).toContain('it opens whole rows, and "report" of people is restricted');
  });
});

describe('a role that writes a parent and not its children', () => {
  const task = { city: 'Rome', id: '7', title: 'a' };
  beforeAll(async () => {
    expect((await ask(clerk, 'POST', 'tasks', task)).status).toBe(201);
    const remark = { city: 'Rome', id: '7', number: 1, remark: 'b' };
    expect((await ask(hr, 'POST', 'remarks', remark)).status).toBe(201);
  });

  test.each([
    ['DELETE', 'tasks/Rome/7', undefined],
    ['DELETE', 'tasks/Rome?all=true', undefined],
    ['POST', 'tasks/batch', { actions: [{ delete: task }] }],
    ['POST', 'tasks/batch', { actions: [{ delete: task }], atomic: true }],
    ['POST', 'tasks/Rome/7/archive', undefined],
    ['POST', 'tasks/Rome/7/move', { city: 'Oslo' }],
  ] as const)('cannot delete, archive or move the parent: %s %s', async (method, path, body) => {
    const { status, body: problem } = await ask(clerk, method, path, body);
    expect({ status, accepted: problem.accepted }).toEqual({ status: 403, accepted: 'hr' });
    expect((await ask(hr, 'GET', 'remarks/Rome/7/1')).status).toBe(200);
  });

  test('can change the parent', async () => {
    expect((await ask(clerk, 'PATCH', 'tasks/Rome/7', { title: 'c' })).status).toBe(200);
    expect((await ask(clerk, 'PUT', 'tasks/Rome/7', { title: 'd' })).status).toBe(200);
  });

  test('can be one of several roles of a caller that together write both', async () => {
    const both = { roles: ['clerk', 'hr'] };
    expect((await ask(both, 'DELETE', 'tasks/Rome/7')).status).toBe(204);
    expect((await ask(hr, 'GET', 'remarks/Rome/7/1')).status).toBe(404);
  });
});

describe('an operator', () => {
  const operator = { roles: ['operator'] };
  const all = { roles: ['operator', 'hr'] };
  /** The app after a deployment without `badges`. */
  let later: Ask;

  beforeAll(async () => {
    const entities = [people, tasks, remarks];
    const without = defineModel({ roles: model.roles, operatorRole: 'operator', entities });
    ({ ask: later } = await openAccessApp(import.meta.url, without));
    const bodies = [
      { entity: 'badges', items: [{ row: 'badge_Zsecret' }] },
      { entity: 'people', items: [{ row: 'person_Zsecret' }] },
      { note: 'Zsecret' },
      'Zsecret {',
    ];
    for (const [index, body] of bodies.entries()) {
      const message = { queue: 'index-changes', id: `m${index}`, attempts: 5, insertedAt: Date.now(), body };
      await engineConsume.recordPoison(engine, message, 'a reason');
    }
  });

  const listed = async (caller: Partial<Caller>) => {
    const { status, text } = await later(caller, 'GET', 'operations/poison');
    expect(status).toBe(200);
    return text.match(/Zsecret/g)?.length ?? 0;
  };

  test('sees no key in messages of entities that are not declared, or of none, without reading everything', async () => {
    expect(await listed(operator)).toBe(0);
    // A member reads people without their restricted fields.
    expect(await listed({ roles: ['operator', 'member'] })).toBe(0);
    expect(await listed(all)).toBe(4);
  });

  test('sees no key of an entity that is not declared in the audit log without reading everything', async () => {
    const [from, to] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
    const keysOf = async (caller: Partial<Caller>) => {
      const { body } = await later(caller, 'GET', `operations/audit?from=${from}&to=${to}`);
      const badge = body.items.filter(({ entity }: { entity: string }) => entity === 'badges');
      expect(badge.length).toBeGreaterThan(0);
      return new Set(badge.map(({ row }: { row?: string }) => row));
    };
    expect(await keysOf(operator)).toEqual(new Set([undefined]));
    expect(await keysOf(all)).toEqual(new Set(['badge_1']));
  });
});
