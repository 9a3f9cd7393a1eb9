import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, indexEntity, interPartitionIndex, memberOf, subject } from '../../lib/index.ts';
import { openAccessApp } from '../access-app.ts';
import { openApp } from '../open-app.ts';

/** An index that no role may list: the start says why, and so does the 403. */

const members = defineEntity('members', {
  schema: z.object({ houseId: z.string(), userId: z.string() }),
  table: 'members',
  key: { partition: '{houseId}', row: '{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{houseId}' }) },
  access: { read: ['operator'], write: ['operator'] },
});
const inHouse = memberOf(members, 'houseId');

function toolsWith(
  index: object,
  access: object = { read: [{ role: 'user', where: { houseId: inHouse } }], write: [] },
) {
  return defineEntity('tools', {
    schema: z.object({ houseId: z.string(), toolId: z.string(), kind: z.string(), secret: z.string() }),
    table: 'tools',
    key: { partition: '{houseId}', row: '{toolId}' },
    indexes: { kind: index as ReturnType<typeof interPartitionIndex> },
    access: access as never,
  });
}
const common = { roles: ['user', 'support', 'operator'], operatorRole: 'operator' } as const;
const modelOf = (tools: ReturnType<typeof toolsWith>, more: { readonly steward?: 'support' } = {}) =>
  defineModel({ ...common, ...more, entities: [members, tools] });

const place = { table: 'toolsbykind', partition: '{kind}', row: '{houseId}_{toolId}' };
const closed = [
  [
    'whose key does not begin with what the rules compare',
    interPartitionIndex({ table: 'toolsbykind', partition: '{kind}', row: '{toolId}_{houseId}' }),
    "the rules to read compare houseId, with which its key does not begin. Let its partition key be {houseId}, or say lists: 'filtered' in a rule.",
  ],
  [
    'whose rows lead to others',
    interPartitionIndex({ ...place, copies: 'keys' }),
    'the rules to read compare houseId, with which its key does not begin. Let its partition key be {houseId}.',
  ],
  [
    'whose rows do not have what the rules compare',
    interPartitionIndex({ ...place, copies: [] }),
    'its rows do not have secret, which the rules to read compare. Add it to its copies.',
    { read: [{ role: 'user', where: { secret: 'x' }, lists: 'filtered' }], write: [] },
  ],
  [
    'that is a list',
    indexEntity({ table: 'toolsbykind', partition: '{kind}', row: 'kind', holds: '{houseId}_{toolId}' }),
    'the rules to read compare houseId, with which its key does not begin. Let its partition key be {houseId}.',
  ],
] as const;

describe('an index', () => {
  test.each(closed)('%s is told of at the start and in the 403', async (_, index, why, access?: object) => {
    const reason = `No role may list tools by "kind": ${why} Roles may list it of one houseId.`;
    const model = modelOf(toolsWith(index, access));
    expect(await warningsOf(model)).toEqual([reason]);
    const { ask } = await openAccessApp(import.meta.url, model);
    expect(await ask({ roles: ['user'] }, 'GET', 'tools/by/kind/saw')).toMatchObject({
      status: 403,
      body: { code: 'forbidden', detail: reason },
    });
  });

  test('that only the steward may list is told of, too', async () => {
    const [, index, why] = closed[0];
    const reason = `No role but support may list tools by "kind": ${why} Roles may list it of one houseId.`;
    const model = modelOf(toolsWith(index), { steward: 'support' });
    expect(await warningsOf(model)).toEqual([reason]);
    const { ask } = await openAccessApp(import.meta.url, model);
    expect((await ask({ roles: ['user'] }, 'GET', 'tools/by/kind/saw')).body.detail).toBe(reason);
    expect((await ask({ roles: ['support'] }, 'GET', 'tools/by/kind/saw')).status).toBe(200);
    const nobody = toolsWith(interPartitionIndex(place), { read: [], write: ['operator'] });
    expect(await warningsOf(modelOf(nobody, { steward: 'support' }))).toEqual([]);
  });

  test('that serves the rules is named in the 403 of a list by key', async () => {
    const tools = toolsWith(interPartitionIndex({ ...place, row: '{secret}_{houseId}_{toolId}' }), {
      read: [{ role: 'user', where: { kind: 'saw' } }],
      write: [],
    });
    const reason =
      'may list tools of one houseId: the rules to read compare kind, with which its key does not begin. Roles may list it by kind.';
    const { ask } = await openAccessApp(import.meta.url, modelOf(tools));
    expect((await ask({ roles: ['user'] }, 'GET', 'tools/h')).body).toMatchObject({
      code: 'forbidden',
      detail: `No role ${reason}`,
    });
    const withSteward = await openAccessApp(import.meta.url, modelOf(tools, { steward: 'support' }));
    expect((await withSteward.ask({ roles: ['user'] }, 'GET', 'tools/h')).body.detail).toBe(
      `No role but support ${reason}`,
    );
    expect((await withSteward.ask({ roles: ['support'] }, 'GET', 'tools/h')).status).toBe(200);
  });

  test('is no way to ask why, and the error says that no role reads every row', async () => {
    const { ask } = await openAccessApp(import.meta.url, modelOf(toolsWith(interPartitionIndex(place))));
    const question = {
      entity: 'tools',
      key: { houseId: 'h', toolId: 't' },
      caller: { subject: 'ann', roles: ['user'], claims: {} },
    };
    expect(await ask({ roles: ['operator'] }, 'POST', 'operations/why', question)).toMatchObject({
      status: 403,
      body: {
        accepted: 'a role that no rule on rows limits: the model declares none. Declare one as steward of defineModel',
      },
    });
  });

  test('is no way to read or import all rows, and the error names a role that may, or says to declare one', async () => {
    const rule = [{ role: 'user', where: { houseId: inHouse } }] as const;
    const access = { read: rule, write: rule, set: { secret: subject() } };
    const hidden = { ...access, restricted: { kind: ['user'] } };
    const acceptedBy = async (of: object, more: { readonly steward?: 'support' }) => {
      const { ask } = await openAccessApp(import.meta.url, modelOf(toolsWith(interPartitionIndex(place), of), more));
      const caller = { subject: 'ann', roles: ['user', 'operator'] };
      const scan = await ask(caller, 'GET', 'operations/scan/tools');
      const write = await ask(caller, 'POST', 'operations/import/tools', {
        actions: [{ put: { houseId: 'h', toolId: 't', kind: 'k', secret: 's' } }],
      });
      expect([scan.status, write.status]).toEqual([403, 403]);
      return [scan.body.accepted, write.body.accepted];
    };
    const nobody = 'a role that no rule on rows limits: the model declares none.';
    const declare = `${nobody} Declare one as steward of defineModel`;
    expect(await acceptedBy(access, {})).toEqual([declare, declare]);
    expect(await acceptedBy(access, { steward: 'support' })).toEqual(['support', 'support']);
    const named = `${declare}, and name it in access.restricted`;
    expect(await acceptedBy(hidden, {})).toEqual([named, named]);
    // Such a steward reads every row, and writes none.
    expect(await acceptedBy(hidden, { steward: 'support' })).toEqual([
      'support',
      `${nobody} Name support in every field of access.restricted of tools`,
    ]);
  });

  test('that is unique is read by its values, and not as a range that no rule bounds', async () => {
    const index = { table: 'toolsbykind', partition: '{houseId}_{kind}', row: '{secret}', unique: true } as const;
    const model = modelOf(toolsWith(interPartitionIndex(index)));
    expect(await warningsOf(model)).toEqual([]);
    const { ask } = await openAccessApp(import.meta.url, model);
    const [operator, user] = [{ roles: ['operator'] }, { roles: ['user'] }];
    expect((await ask(operator, 'POST', 'members', { houseId: 'h', userId: 'ann' })).status).toBe(201);
    expect((await ask(user, 'GET', 'tools/by/kind/h/saw/x')).status).toBe(404);
    expect(await ask(user, 'GET', 'tools/by/kind/h/saw')).toMatchObject({
      status: 403,
      body: { detail: expect.stringContaining('No role may list tools by "kind": the rules to read compare houseId') },
    });
    const open = modelOf(toolsWith(interPartitionIndex({ ...index, partition: '{houseId}', row: '{kind}_{secret}' })));
    const other = await openAccessApp(import.meta.url, open);
    expect(await other.ask(user, 'GET', 'tools/by/kind/h')).toMatchObject({ status: 200, body: { items: [] } });
  });

  test('by restricted fields is told of', async () => {
    const access = { read: ['user'], write: ['operator'], restricted: { kind: ['operator'] } };
    expect(await warningsOf(modelOf(toolsWith(interPartitionIndex(place), access)))).toEqual([
      'No role may list tools by "kind": no role may read all fields of its keys (restricted). Leave the restricted fields out of its keys. Roles may list it of one houseId.',
    ]);
  });

  test('that a role may list, or of what only the app reads, is not told of', async () => {
    expect(await warningsOf(modelOf(toolsWith(interPartitionIndex(place))))).toEqual([]);
    const nobody = { read: [], write: ['operator'] };
    expect(await warningsOf(modelOf(toolsWith(interPartitionIndex(place), nobody)))).toEqual([]);
  });
});

async function warningsOf(model: ReturnType<typeof modelOf>): Promise<unknown[]> {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  onTestFinished(() => warn.mockRestore());
  await openApp(import.meta.url, model).runtime.start();
  const said = warn.mock.calls.flat();
  warn.mockClear();
  return said;
}
