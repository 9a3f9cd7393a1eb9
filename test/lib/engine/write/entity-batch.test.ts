import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type BatchAction, type BatchOutcome, writeBatch } from '../../../../lib/engine/write/entity-batch.ts';
import {
  defineEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  RowkeyError,
  type Values,
} from '../../../../lib/index.ts';
import { costOf } from '../../../cost-of.ts';
import { CRASHES, outcomeOf, tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { interruptedHttpClient } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineRead, engineWrite } from '../../../kit/engine.ts';
import { sampleRuns } from '../../../points.ts';
import { expectIndexesToAgree, openWorld, rowsOf } from '../../../world.ts';

const access = { read: ['hr'], write: ['hr'] };
const id = z.string().regex(/^\d{1,3}$/);
/** An entity that is one row. */
const plain = defineEntity('plains', {
  schema: z.object({ a: z.string(), id, text: z.string().optional(), size: z.int32().max(1_000).optional() }),
  table: 'plains',
  key: { partition: '{a}', row: '{id}' },
  access,
});
/** Two rows. */
const copied = defineEntity('copied', {
  schema: z.object({ a: z.string(), id, text: z.string(), big: z.string().optional(), more: z.string().optional() }),
  table: 'copied',
  key: { partition: '{a}', row: 'id_{id}' },
  indexes: { text: intraPartitionIndex({ row: 'text_{text}' }) },
  access,
});
/** A unique copy and a list in the partition, and an index in another partition. */
const indexed = defineEntity('indexed', {
  schema: z.object({ a: z.string(), id, text: z.string(), group: z.string(), size: z.int32().max(1_000).optional() }),
  table: 'indexed',
  key: { partition: '{a}', row: 'id_{id}' },
  indexes: {
    text: intraPartitionIndex({ row: 'text_{text}' }),
    group: indexEntity({ row: 'group_{group}', holds: '{id}' }),
    everywhere: interPartitionIndex({ table: 'indexedbygroup', partition: '{group}', row: '{a}_{id}' }),
  },
  access,
});
const unique = defineEntity('uniques', {
  schema: z.object({ a: z.string(), id, email: z.string() }),
  table: 'uniques',
  key: { partition: '{a}', row: 'id_{id}' },
  indexes: {
    email: interPartitionIndex({ table: 'uniquesbyemail', partition: '{email#}', row: '{email}', unique: true }),
  },
  access,
});

const { plains, copied: copies, indexed: alls, uniques } = deploy(plain, copied, indexed, unique);

const world = await openWorld(import.meta.url, [plains, copies, alls, uniques]);

let counter = 0;
function newPartition(): string {
  counter += 1;
  return `p${counter}`;
}

const resultOf = (outcome: BatchOutcome) => (outcome instanceof RowkeyError ? outcome.code : outcome.outcome);
async function batch(entity: Entity, actions: readonly BatchAction[]): Promise<string[]> {
  return (await writeBatch(world.engine, entity, actions)).map(resultOf);
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => String(index));
const codeOf = (error: RowkeyError) => error.code;

describe('a batch', () => {
  test('takes one transaction for 100 entities that are one row each, without a read', async () => {
    const a = newPartition();
    const put = (text: string) => upTo(100).map((each) => ({ put: { a, id: each, text } }));
    for (const text of ['new', 'again']) expect(await costOf(() => batch(plains, put(text)))).toBe(1);
    const patches = upTo(100).map((each) => ({ patch: { a, id: each, size: 1 } }));
    expect(await costOf(() => batch(plains, patches))).toBe(1);
    expect((await engineRead.readEntity(world.engine, plains, { a, id: '99' })).values).toEqual({
      a,
      id: '99',
      text: 'again',
      size: 1,
    });
    expect(
      await costOf(() =>
        batch(
          plains,
          upTo(100).map((each) => ({ delete: { a, id: each } })),
        ),
      ),
    ).toBe(1);
    expect((await rowsOf(world.storage, 'plains')).filter(({ partitionKey }) => partitionKey === a)).toEqual([]);
  });

  test('takes as few transactions as the rows of its entities fit into', async () => {
    const a = newPartition();
    const creates = upTo(100).map((each) => ({ create: { a, id: each, text: `t${each}` } }));
    expect(await costOf(() => batch(copies, creates))).toBe(2);
    const partitions = [newPartition(), newPartition()];
    const mixed = upTo(100).map((each, at) => ({ create: { a: partitions[at % 2], id: each, text: `t${each}` } }));
    expect(await costOf(() => batch(copies, mixed))).toBe(2);
    for (const partition of partitions)
      expect((await engineRead.readEntities(world.engine, copies, { a: partition }, { top: 100 })).items).toHaveLength(
        50,
      );
  });

  test('takes as few transactions as its bytes fit into', async () => {
    const a = newPartition();
    const big = 'x'.repeat(32_000);
    // Each entity and its copy take 128 KB, so that 31 of them are within 4 MiB, and 50 have as many rows as a transaction.
    const creates = upTo(100).map((each) => ({ create: { a, id: each, text: `t${each}`, big, more: big } }));
    expect(await costOf(() => batch(copies, creates))).toBe(4);
    const b = newPartition();
    const tooMany = creates
      .slice(0, 50)
      .map(({ create }) => ({ create: { ...create, a: b, text: big + create.text } }));
    await expect(engineWrite.writeAtomically(world.engine, plains, tooMany)).rejects.toMatchObject({
      code: 'invalid-input',
    });
  });

  test('returns an outcome for each action, in order', async () => {
    const a = newPartition();
    await engineWrite.createEntity(world.engine, alls, { a, id: '1', text: 'one', group: 'g' });
    const actions = [
      { put: { a, id: '1', text: 'one', group: 'g' } },
      { put: { a, id: '2', text: 'two', group: 'g' } },
      { create: { a, id: '2', text: 'other', group: 'g' } },
      { patch: { a, id: '2', size: 5 } },
      { patch: { a, id: '9', size: 5 } },
      { patch: { a, id: '2', size: 5_000 } },
      { put: { a, id: '3', text: 'two', group: 'g' } },
      { delete: { a, id: '1' }, ifMatch: 'W/"other"' },
      { delete: { a, id: '1' }, ifMatch: '*' },
      { delete: { a, id: '1' } },
    ];
    expect(await batch(alls, actions)).toEqual([
      'unchanged',
      'created',
      'duplicate-key',
      'stored',
      'not-found',
      'invalid-input',
      'duplicate-value',
      'etag-mismatch',
      'deleted',
      'not-found',
    ]);
    await expectIndexesToAgree(world.storage, alls);
  });

  test('writes under the ETag of an action, also without a read', async () => {
    const a = newPartition();
    const first = await engineWrite.putEntity(world.engine, plains, { a, id: '1' }, { text: 'one' });
    const [put] = await writeBatch(world.engine, plains, [{ put: { a, id: '1', text: 'two' }, ifMatch: first.etag }]);
    expect(put).toMatchObject({ outcome: 'stored' });
    const stale = { ifMatch: first.etag };
    const actions = [
      { put: { a, id: '1', text: 'three' }, ...stale },
      { patch: { a, id: '1', text: 'three' }, ...stale },
      { delete: { a, id: '1' }, ...stale },
      { put: { a, id: '2' }, ifMatch: '*' },
    ];
    expect(await batch(plains, actions)).toEqual(actions.map(() => 'etag-mismatch'));
    expect((await engineRead.readEntity(world.engine, plains, { a, id: '1' })).values).toEqual({
      a,
      id: '1',
      text: 'two',
    });
    const { etag } = await engineRead.readEntity(world.engine, plains, { a, id: '1' });
    expect(await batch(plains, [{ delete: { a, id: '1' }, ifMatch: etag }])).toEqual(['deleted']);
  });

  test('replaces an entity that another request creates at any storage call', async () => {
    const set = async () => {
      const [key, text] = [{ a: newPartition(), id: '1' }, 'put'];
      return {
        act: async (through: Engine) => {
          const [outcome] = await writeBatch(through, copies, [{ put: { ...key, text } }]);
          expect(outcome && resultOf(outcome)).toMatch(/^(created|stored)$/);
        },
        // Fails if the batch was faster.
        interrupt: () => engineWrite.createEntity(world.engine, copies, { ...key, text: 'other' }).catch(codeOf),
        check: async (label: string) =>
          expect((await engineRead.readEntity(world.engine, copies, key)).values.text, label).toBe(text),
      };
    };
    await tryInterruptions(world, set, { size: 3, sides: ['before'] });
    await expectIndexesToAgree(world.storage, copies);
  });

  test('gives a unique value to one of its entities', async () => {
    const a = newPartition();
    const email = `${a}@contoso.com`;
    const create = (each: string) => ({ create: { a, id: each, email } });
    expect(await batch(uniques, [create('1'), create('2')])).toEqual(['created', 'duplicate-value']);
    await world.settle();
    await expectIndexesToAgree(world.storage, uniques);
  });

  test('rejects an item that would replace another kind of entity under the same key', async () => {
    const thing = <const Name extends string>(name: Name, row: '{b}' | 'own_{b}') =>
      defineEntity(name, {
        schema: z.object({ a: z.string(), b: z.string() }),
        table: 'things',
        key: { partition: '{a}', row },
        indexes: { copy: intraPartitionIndex({ row: `${String(name)}_{b}` }) },
        access,
      });
    const { things, others } = deploy(thing('things', '{b}'), thing('others', 'own_{b}'));
    const { engine } = await openWorld(import.meta.url, [things, others]);
    const other = { a: 'one', b: '1' };
    await engineWrite.createEntity(engine, others, other);
    const [outcome] = await writeBatch(engine, things, [{ put: { a: 'one', b: 'own_1' } }]);
    expect(outcome).toMatchObject({ code: 'duplicate-key' });
    expect((await engineRead.readEntity(engine, others, other)).values).toEqual(other);
  });
});

const oneOfEach = fc.oneof(
  fc.record({
    kind: fc.constantFrom('create', 'put'),
    id: fc.constantFrom('1', '2', '3'),
    text: fc.constantFrom('x', 'y', 'z'),
    group: fc.constantFrom('g', 'h'),
  }),
  fc.record({ kind: fc.constant('patch'), id: fc.constantFrom('1', '2', '3'), text: fc.constantFrom('x', 'y', 'z') }),
  fc.record({
    kind: fc.constant('patch'),
    id: fc.constantFrom('1', '2', '3'),
    group: fc.constantFrom('g', 'h', ''),
    size: fc.constantFrom(1, 5_000),
  }),
  fc.record({ kind: fc.constant('delete'), id: fc.constantFrom('1', '2', '3') }),
);
const condition = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  '*',
  `W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"`,
);
const program = fc.array(fc.tuple(oneOfEach, condition), { minLength: 1, maxLength: 14 });

/** Executes one action by itself, as a request would. */
async function alone(entity: Entity, action: BatchAction): Promise<string> {
  const { engine } = world;
  const conditions = 'ifMatch' in action ? { ifMatch: action.ifMatch } : {};
  const done = async () => {
    if ('create' in action) return engineWrite.createEntity(engine, entity, action.create);
    if ('put' in action) return engineWrite.putEntity(engine, entity, action.put as Values, action.put, conditions);
    if ('patch' in action)
      return engineWrite.mergeEntity(engine, entity, action.patch as Values, action.patch, conditions);
    return engineWrite.deleteEntity(engine, entity, action.delete as Values, conditions);
  };
  return done().then(() => 'done', codeOf);
}

test.each([
  ['one row', plains, ['group']],
  ['copies and lists', alls, []],
] as const)(
  'a batch of entities with %s equals its actions one after the other',
  async (_, entity, without) => {
    await fc.assert(
      fc.asyncProperty(program, async (steps) => {
        const actionsIn = (a: string): BatchAction[] =>
          steps.map(([{ kind, ...fields }, ifMatch]) => {
            const given = Object.fromEntries(
              Object.entries(fields).filter(([field]) => !(without as readonly string[]).includes(field)),
            );
            const values = { a, ...given };
            if (kind === 'create') return { create: values };
            if (kind === 'put') return { put: values, ifMatch };
            return kind === 'patch' ? { patch: values, ifMatch } : { delete: { a, id: fields.id }, ifMatch };
          });
        const [together, apart] = [newPartition(), newPartition()];
        const outcomes = await batch(entity, actionsIn(together));
        const singly: string[] = [];
        for (const action of actionsIn(apart)) singly.push(await alone(entity, action));
        const done = ['created', 'stored', 'unchanged', 'deleted'];
        expect(outcomes.map((outcome) => (done.includes(outcome) ? 'done' : outcome))).toEqual(singly);
        const stateOf = async (a: string) =>
          (await rowsOf(world.storage, entity.table))
            .filter(({ partitionKey, EntityType }) => partitionKey === a && EntityType !== 'tombstone')
            .map(
              ({
                partitionKey: _,
                etag: _e,
                timestamp: _t,
                WriteId: _w,
                Incarnation: _i,
                TouchedBy: _b,
                SourcePartition: _s,
                a: _a,
                ...row
              }) => row,
            );
        expect(await stateOf(together)).toEqual(await stateOf(apart));
      }),
      sampleRuns(40),
    );
    await world.settle();
    await expectIndexesToAgree(world.storage, entity);
  },
  1_800_000,
);

describe('an atomic batch', () => {
  test('is one transaction, with one intent for all index entries', async () => {
    const a = newPartition();
    const creates = upTo(3).map((each) => ({ create: { a, id: each, text: `t${each}`, group: 'g' } }));
    // The list, the intent, the transaction, each entry, the entities, and the intent again.
    const cost = await costOf(() => engineWrite.writeAtomically(world.engine, alls, creates));
    expect(cost).toBe(1 + 1 + 3 + 3 + 1);
    expect(
      await costOf(() =>
        engineWrite.writeAtomically(
          world.engine,
          plains,
          upTo(100).map((each) => ({ put: { a, id: each } })),
        ),
      ),
    ).toBe(1);
  });

  test('changes nothing if one action fails, and says which', async () => {
    const a = newPartition();
    await engineWrite.createEntity(world.engine, alls, { a, id: '1', text: 'one', group: 'g' });
    const before = await rowsOf(world.storage, 'indexed');
    const good = { create: { a, id: '2', text: 'two', group: 'g' } };
    const failing: [BatchAction, string][] = [
      [{ create: { a, id: '1', text: 'three', group: 'g' } }, 'duplicate-key'],
      [{ create: { a, id: '3', text: 'one', group: 'g' } }, 'duplicate-value'],
      [{ patch: { a, id: '9', size: 1 } }, 'not-found'],
      [{ patch: { a, id: '1', size: 5_000 } }, 'invalid-input'],
      [{ delete: { a, id: '1' }, ifMatch: 'W/"other"' }, 'etag-mismatch'],
      [{ create: { a: `${a}x`, id: '4', text: 'four', group: 'g' } }, 'invalid-input'],
      [{ patch: { a, id: '2', size: 1 } }, 'invalid-input'],
    ];
    for (const [action, code] of failing)
      await expect(engineWrite.writeAtomically(world.engine, alls, [good, action])).rejects.toMatchObject({ code });
    await expect(
      engineWrite.writeAtomically(world.engine, alls, [good, failing[2]?.[0] as BatchAction]),
    ).rejects.toThrow('at 1');
    expect(await rowsOf(world.storage, 'indexed')).toEqual(before);
    const conditional = [{ put: { a, id: '1' } }, { delete: { a, id: '2' }, ifMatch: `W/"datetime'x'"` }];
    await expect(engineWrite.writeAtomically(world.engine, plains, conditional)).rejects.toMatchObject({
      code: 'invalid-input',
    });
  });

  test.each(['with', 'without'])(
    'meets a change of an entity that it leaves unchanged before its transaction, %s an ETag',
    async (condition) => {
      const hasETag = condition === 'with';
      const set = async () => {
        const a = newPartition();
        const ofEach = (id: string) => ({ a, id, text: `t${id}`, group: 'g' });
        const [one, kept] = [ofEach('0'), ofEach('1')];
        await batch(alls, [{ create: one }, { create: kept }]);
        const read = (of: Values) => engineRead.readEntity(world.engine, alls, of);
        const sizeOf = async (of: Values) => (await read(of)).values.size;
        const ifMatch = hasETag ? { ifMatch: (await read(kept)).etag } : {};
        let isEarly = false;
        let outcome = '';
        return {
          act: async (through: Engine) => {
            const actions = [{ patch: { a, id: '0', size: 1 } }, { put: kept, ...ifMatch }];
            outcome = await engineWrite.writeAtomically(through, alls, actions).then(() => 'done', codeOf);
          },
          interrupt: async () => {
            isEarly = (await sizeOf(one)) === undefined;
            await engineWrite.patchEntity(world.engine, alls, kept, { size: 2 });
          },
          check: async (label: string) => {
            const isRejected = hasETag && isEarly;
            const expected = isRejected ? ['etag-mismatch', undefined] : ['done', 1];
            expect([outcome, await sizeOf(one)], label).toEqual(expected);
            // Without an ETag, the batch puts the other entity after the change.
            expect(await sizeOf(kept), label).toBe(!hasETag && isEarly ? undefined : 2);
          },
        };
      };
      await tryInterruptions(world, set, { size: 3, sides: ['before'] });
    },
  );

  test('returns the new ETag of an entity that it leaves unchanged, whose indexes stay', async () => {
    const a = newPartition();
    const one = { a, id: '1', text: 't1', group: 'g' };
    await engineWrite.createEntity(world.engine, alls, one);
    const { etag } = await engineRead.readEntity(world.engine, alls, one);
    const actions = [{ create: { a, id: '2', text: 't2', group: 'g' } }, { put: one, ifMatch: etag }];
    const [, kept] = await engineWrite.writeAtomically(world.engine, alls, actions);
    expect(kept).toEqual({ outcome: 'unchanged', etag: (await engineRead.readEntity(world.engine, alls, one)).etag });
    expect(kept?.etag).not.toBe(etag);
    // Alone, it needs no write.
    expect(await costOf(() => engineWrite.writeAtomically(world.engine, alls, [{ put: one }]))).toBe(1);
  });

  test('rejects more rows than one transaction holds', async () => {
    const a = newPartition();
    const creates = upTo(51).map((each) => ({ create: { a, id: each, text: `t${each}` } }));
    await expect(engineWrite.writeAtomically(world.engine, copies, creates)).rejects.toMatchObject({
      code: 'too-large',
    });
  });

  test('is done as a whole or not at all after a crash at any storage call, and its indexes follow', {
    tags: ['slow'],
  }, async () => {
    const prepare = async () => {
      const a = newPartition();
      const ofEach = (each: string) => ({ a, id: each, text: `t${each}`, group: 'g' });
      await batch(
        alls,
        upTo(3).map((each) => ({ create: ofEach(each) })),
      );
      const actions = [
        { create: ofEach('7') },
        { put: { ...ofEach('0'), group: 'h' } },
        { patch: { a, id: '1', text: 'other' } },
        { delete: { a, id: '2' } },
      ];
      return { a, actions };
    };
    const after = [
      ['0', 't0', 'h'],
      ['1', 'other', 'g'],
      ['7', 't7', 'g'],
    ];
    const before = [
      ['0', 't0', 'g'],
      ['1', 't1', 'g'],
      ['2', 't2', 'g'],
    ];
    await tryFaults(
      async ({ label, client, timing }) => {
        const { a, actions } = await prepare();
        const outcome = await outcomeOf(
          engineWrite.writeAtomically(world.engineThrough(client, timing), alls, actions),
        );
        await world.settle();
        const found = (await rowsOf(world.storage, 'indexed'))
          .filter(({ partitionKey, rowKey }) => partitionKey === a && String(rowKey).startsWith('id_'))
          .map(({ id: each, text, group }) => [each, text, group]);
        expect(outcome === 'done' ? [after] : [before, after], label).toContainEqual(found);
        await expectIndexesToAgree(world.storage, alls);
      },
      { faults: CRASHES, size: 3 },
    );
  });
});

describe('the delete of a range', () => {
  const fill = async (entity: Entity, ids: readonly string[]) => {
    const a = newPartition();
    await batch(
      entity,
      ids.map((each) => ({ create: { a, id: each, text: `t${each}` } })),
    );
    return a;
  };
  const idsIn = async (table: string, a: string) =>
    (await rowsOf(world.storage, table)).filter(({ partitionKey }) => partitionKey === a).map(({ id: each }) => each);

  test('ends at its time limit after a transaction, and goes on from there', async () => {
    const a = await fill(plains, upTo(150));
    const whole = { all: true, until: 0 };
    const first = await engineWrite.deleteRange(world.engine, plains, { a }, whole);
    expect(first).toEqual({ deleted: 100, failed: [], skipped: 0, next: expect.anything() });
    expect(await idsIn('plains', a)).toHaveLength(50);
    const second = await engineWrite.deleteRange(world.engine, plains, { a }, { ...whole, after: first.next });
    expect(second).toEqual({ deleted: 50, failed: [], skipped: 0, next: undefined });
    expect(await idsIn('plains', a)).toEqual([]);
  });

  test('is that between its bounds, each a prefix, or the whole partition', async () => {
    const a = await fill(plains, ['1', '12', '2', '20', '3']);
    const options = [{}, { all: true, from: '1' }, { from: '', to: '' }, { all: true, to: '1' }];
    for (const each of options)
      await expect(
        engineWrite.deleteRange(world.engine, plains, { a }, each),
        `${Object.keys(each)}`,
      ).rejects.toMatchObject({
        code: 'invalid-input',
        field: 'from',
      });
    expect(await engineWrite.deleteRange(world.engine, plains, { a }, { from: '2', to: '2' })).toMatchObject({
      deleted: 2,
    });
    expect(await idsIn('plains', a)).toEqual(['1', '12', '3']);
    expect(await engineWrite.deleteRange(world.engine, plains, { a }, { to: '1' })).toMatchObject({ deleted: 2 });
    expect(await engineWrite.deleteRange(world.engine, plains, { a }, { from: '1', to: '' })).toMatchObject({
      deleted: 1,
    });
  });

  test.each(['plains', 'copied'])('of %s leaves out what another request has deleted', async (name) => {
    const entity = name === 'plains' ? plains : copies;
    const a = await fill(entity, ['1', '2', '3']);
    const client = interruptedHttpClient(
      ({ url }) => url.includes('$batch'),
      () => engineWrite.deleteEntity(world.engine, entity, { a, id: '2' }),
    );
    const done = await engineWrite.deleteRange(world.engineThrough(client), entity, { a }, { all: true });
    expect(done).toEqual({ deleted: 2, failed: [], skipped: 0, next: undefined });
    expect(await idsIn(name, a)).toEqual([]);
  });
});
