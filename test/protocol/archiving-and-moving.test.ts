import { randomUUID } from 'node:crypto';
import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, RowkeyError, type Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { departments, employees, reviews } from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import { defineCodec, definePlaces, type Entity } from '../kit/define.ts';
import {
  type Engine,
  engineConsume,
  engineRead,
  engineReconcile,
  engineTransfer,
  engineWrite,
  type Transfer,
} from '../kit/engine.ts';
import { featureFiles } from '../kit/features.ts';
import { storageBlobs } from '../kit/storage.ts';
import { IS_EVERY_POINT, samplePoints } from '../points.ts';
import { log } from '../silent-log.ts';
import { countEach, countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, laterBy, openWorld, rowsOf, somebody } from '../world.ts';

const former = employees.archive as Entity;
const CONCURRENCY = 8;

const { desks } = deploy(
  defineEntity('desks', {
    schema: z.object({ department: z.string(), employeeId: z.string(), desk: z.string() }),
    table: 'desks',
    key: { partition: '{department}', row: '{employeeId}' },
    indexes: {
      desk: interPartitionIndex({ table: 'desksbydesk', partition: '{department}', row: '{desk}', unique: true }),
    },
    movable: ['department'],
    access: { read: [], write: [] },
  }),
);

/**
 * Like employees, but with numbers that are not unique across departments, so that a move can free a key for another
 * entity.
 */
const { movers } = deploy(
  defineEntity('movers', {
    schema: z.object({
      department: z.string(),
      employeeId: z.string(),
      email: z.string(),
      firstName: z.string(),
      lastName: z.string(),
      phone: z.string().optional(),
    }),
    table: 'movers',
    key: { partition: '{department}', row: '{employeeId}' },
    indexes: {
      email: interPartitionIndex({ table: 'moversbyemail', partition: '{email#}', row: '{email}', unique: true }),
    },
    archive: { table: 'formermovers' },
    movable: ['department'],
    access: { read: [], write: [] },
  }),
);

const declaredApplicants = defineEntity('applicants', {
  schema: z.object({
    city: z.string(),
    applicantId: z.string(),
    name: z.string(),
    phone: z.string(),
    initial: z.string().optional(),
    secret: z.string().optional(),
    letter: z.string().optional(),
    notes: z.string().optional(),
  }),
  table: 'applicants',
  key: { partition: '{city}', row: 'applicant_{applicantId}' },
  derived: { initial: ({ name }) => String(name).slice(0, 1) },
  encrypted: ['secret'],
  large: ['letter', 'notes'],
  compressed: ['letter'],
  attachments: { photo: { container: 'applicantphotos', maxBytes: 10_000, types: ['image/png'] } },
  archive: { table: 'formerapplicants', without: ['phone', 'secret', 'letter', 'photo'] },
  access: { read: ['hr'], write: ['hr'], restricted: { secret: ['hr'], phone: ['hr'] } },
});
const { applicants } = deploy(declaredApplicants);

const world = await openWorld(import.meta.url, [desks, movers, applicants]);
const engine = world.queued;

const hire = async (over: Values = {}, entity: Entity = employees) => {
  const one = somebody(over);
  await engineWrite.createEntity(engine, entity, one);
  return one;
};
const valuesOf = (entity: Entity, key: Values) =>
  engineRead.readEntity(engine, entity, key).then(
    ({ values }) => values,
    () => undefined,
  );
const there = (one: Values) => ({ ...one, department: `${one.department}2` });
const statusOf = async (operation: 'archive' | 'move', operationId: string, { name }: Entity = employees) => {
  const { status, reason } = await engineWrite.readOperation(engine, { operation, operationId, entity: name });
  return { status, reason };
};

/** Sends a request and returns its message, so that the test can consume it. */
async function transferOf(operation: 'archive' | 'move', one: Values, entity: Entity = employees): Promise<Transfer> {
  const operationId = await (operation === 'archive'
    ? engineTransfer.requestArchive(engine, entity, one)
    : engineTransfer.requestMove(engine, entity, one, { department: there(one).department }));
  return (await world.take('transfers', operationId)).body as Transfer;
}

/**
 * A move waits for the claims of unfinished writers. The claims of this file are finished, so this clock lets them
 * expire.
 */
const later = (of: Engine): Engine => laterBy(of, () => 2 * of.timing.claimForMs);

/** Handles only the intent of the last change of an employee. */
async function reconciled(one: Values): Promise<void> {
  const consumer = { engine, entities: [employees, movers], log };
  await engineConsume.consumeIntent(consumer, await world.take('index-changes', String(one.employeeId)));
}

/** Repeats a transfer once for each of its storage calls, with an interruption right before that call. */
async function interruptEverywhere(
  operation: 'archive' | 'move',
  happen: (one: Values, transfer: Transfer) => Promise<unknown>,
  check: (one: Values, happened: boolean, operationId: string) => Promise<void>,
  {
    prepare = async () => undefined,
    entity = employees,
    points = 1,
  }: { prepare?: (one: Values) => Promise<unknown>; entity?: Entity; points?: number } = {},
): Promise<number> {
  const run = async (at: number) => {
    const one = await hire({ department: 'Here' }, entity);
    await reconciled(one);
    await prepare(one);
    const transfer = await transferOf(operation, one, entity);
    let happened = false;
    const client = interruptedHttpClient(at, () =>
      happen(one, transfer).then(
        () => (happened = true),
        () => undefined,
      ),
    );
    await engineTransfer.runTransfer(later(world.engineThrough(client)), entity, transfer).catch(() => undefined);
    await engineTransfer.runTransfer(later(engine), entity, transfer);
    return { client, one, check: () => check(one, happened, transfer.operationId) };
  };
  const { client } = await run(0);
  const runs = await pMap(samplePoints(client.calls, points), run, { concurrency: CONCURRENCY });
  await world.settle();
  const what = `${operation === 'move' ? 'Move' : 'Archive'}: a caller or a duplicate message in the middle`;
  await countEach(runs, (each) => each.check(), { what, concurrency: CONCURRENCY });
  await countTried({ what, times: 0 }, () => expectIndexesToAgree(world.storage, entity));
  return client.calls;
}

describe.each(['archive', 'move'] as const)('in the middle of an %s', (operation) => {
  const destination = operation === 'archive' ? former : employees;
  const arrived = (one: Values) => (operation === 'archive' ? one : there(one));

  test('a delete by a caller is never undone', { tags: ['slow'] }, async () => {
    const calls = await interruptEverywhere(
      operation,
      (one) => engineWrite.deleteEntity(engine, employees, one),
      async (one, deleted) => {
        expect(await valuesOf(employees, one)).toBeUndefined();
        expect(await valuesOf(destination, arrived(one))).toEqual(deleted ? undefined : arrived(one));
      },
    );
    expect(calls).toBeGreaterThan(10);
  });

  test('a change by a caller is transferred too, or rejected', { tags: ['slow'] }, async () => {
    await interruptEverywhere(
      operation,
      (one) => engineWrite.patchEntity(engine, employees, one, { phone: '5', email: `p${one.email}` }),
      async (one, changed) => {
        expect(await valuesOf(employees, one)).toBeUndefined();
        const wanted = changed ? { ...arrived(one), phone: '5', email: `p${one.email}` } : arrived(one);
        expect(await valuesOf(destination, arrived(one))).toEqual(wanted);
      },
    );
  });
});

test('a delete in a batch at the destination of a move is rejected until the entity has arrived', {
  tags: ['slow'],
}, async () => {
  const deleted = new Set<unknown>();
  await interruptEverywhere(
    'move',
    async (one) => {
      const [outcome] = await engineWrite.writeBatch(world.engine, movers, [{ delete: { ...there(one) } }]);
      if (outcome instanceof RowkeyError) expect(['busy', 'not-found']).toContain(outcome.code);
      else deleted.add(one.employeeId);
    },
    async (one, _, operationId) => {
      expect(await valuesOf(movers, one)).toBeUndefined();
      expect(await valuesOf(movers, there(one))).toEqual(deleted.has(one.employeeId) ? undefined : there(one));
      expect(await statusOf('move', operationId, movers)).toEqual({ status: 'succeeded', reason: undefined });
    },
    { entity: movers, points: 6 },
  );
});

describe.each(['archive', 'move'] as const)('an %s whose message is delivered twice', (operation) => {
  const destination = operation === 'archive' ? former : employees;
  const arrived = (one: Values) => (operation === 'archive' ? one : there(one));

  test('is done once, however the two deliveries interleave, and keeps later writes', { tags: ['slow'] }, async () => {
    await interruptEverywhere(
      operation,
      async (one, transfer) => {
        await engineTransfer.runTransfer(engine, employees, transfer);
        if (operation === 'move') await engineWrite.patchEntity(engine, employees, there(one), { phone: '5' });
      },
      async (one, twice, operationId) => {
        expect(await valuesOf(employees, one)).toBeUndefined();
        const since = twice && operation === 'move' ? { phone: '5' } : {};
        expect(await valuesOf(destination, arrived(one))).toEqual({ ...arrived(one), ...since });
        expect(await statusOf(operation, operationId)).toEqual({ status: 'succeeded', reason: undefined });
      },
    );
  });

  test('does not restore an entity that was deleted in between', { tags: ['slow'] }, async () => {
    await interruptEverywhere(
      operation,
      async (one, transfer) => {
        await engineTransfer.runTransfer(engine, employees, transfer);
        await engineWrite.deleteEntity(engine, destination, arrived(one));
      },
      async (one, deleted, operationId) => {
        expect(await valuesOf(employees, one)).toBeUndefined();
        expect(await valuesOf(destination, arrived(one))).toEqual(deleted ? undefined : arrived(one));
        expect(await statusOf(operation, operationId)).toEqual({ status: 'succeeded', reason: undefined });
      },
    );
  });

  test('leaves a later entity with the same key and email unchanged', { tags: ['slow'] }, async () => {
    const heirs = new Map<unknown, Values>();
    await interruptEverywhere(
      operation,
      async (one, transfer) => {
        await engineTransfer.runTransfer(engine, movers, transfer);
        if (operation === 'move') await engineWrite.patchEntity(engine, movers, there(one), { email: `n${one.email}` });
        // Once for the departure and, in a move, for the arrival and the new email.
        for (let intents = operation === 'move' ? 3 : 1; intents > 0; intents -= 1) await reconciled(one);
        const heir = { ...one, firstName: 'Heir' };
        await engineWrite.createEntity(engine, movers, heir);
        heirs.set(one.employeeId, heir);
      },
      async (one) => {
        const heir = heirs.get(one.employeeId);
        expect(await valuesOf(movers, one)).toEqual(heir);
        if (heir)
          await expect(engineWrite.createEntity(engine, movers, somebody({ email: one.email }))).rejects.toMatchObject({
            code: 'duplicate-value',
          });
      },
      { entity: movers },
    );
    if (IS_EVERY_POINT) expect(heirs.size).toBeGreaterThan(5);
  });
});

describe('a move', () => {
  test('is not mistaken for a delete when a caller creates an entity with the old key', async () => {
    await interruptEverywhere(
      'move',
      async (one) =>
        engineWrite.createEntity(engine, movers, somebody({ department: one.department, employeeId: one.employeeId })),
      async (one) => expect(await valuesOf(movers, there(one))).toEqual(there(one)),
      { entity: movers },
    );
  });

  test('never releases the email, and does not open the new key for writes too early', async () => {
    await interruptEverywhere(
      'move',
      async (one) => {
        await expect(engineWrite.createEntity(engine, employees, somebody({ email: one.email }))).rejects.toMatchObject(
          {
            code: 'duplicate-value',
          },
        );
        const early = await engineWrite
          .patchEntity(engine, employees, there(one), { phone: '1' })
          .catch((error) => error.code);
        if (await valuesOf(employees, one)) expect(['busy', 'not-found']).toContain(early);
      },
      async (one, asExpected) => {
        expect(asExpected).toBe(true);
        expect(await valuesOf(employees, there(one))).toMatchObject(there(one));
      },
    );
  });

  test('adds a missing entry of a unique index, also when another process adds it concurrently', {
    tags: ['slow'],
  }, async () => {
    const indexEntry = (one: Values) =>
      definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
    await interruptEverywhere(
      'move',
      (_, transfer) => engineTransfer.runTransfer(engine, employees, transfer),
      async (one, twice, operationId) => {
        expect(twice).toBe(true);
        expect(await statusOf('move', operationId)).toEqual({ status: 'succeeded', reason: undefined });
        expect(await valuesOf(employees, there(one))).toEqual(there(one));
      },
      {
        prepare: async (one) => {
          const { table, partition, row } = indexEntry(one) ?? {};
          await world.storage.table(table ?? '').deleteEntity(partition ?? '', row ?? '');
        },
      },
    );
  });

  test('fails with a reason and changes nothing when the new key is taken', async () => {
    const one = await hire({ department: 'Mover' }, movers);
    await hire({ department: 'Mover2', employeeId: one.employeeId }, movers);
    const taken = await engineTransfer.requestMove(engine, movers, one, { department: 'Mover2' });
    await world.settle();
    expect(await statusOf('move', taken, movers)).toEqual({
      status: 'failed',
      reason: expect.stringContaining('key'),
    });
    expect(await valuesOf(movers, one)).toEqual(one);
    await engineWrite.patchEntity(engine, movers, one, { phone: '7' });
    await world.settle();
    await expectIndexesToAgree(world.storage, movers);
  });

  test('keeps the employee number taken in every department until the employee is deleted', async () => {
    const one = await hire({ department: 'Numbered' });
    const same = { employeeId: one.employeeId };
    const taken = { code: 'duplicate-value', field: 'employeeId' };
    await expect(hire({ department: 'Elsewhere', ...same })).rejects.toMatchObject(taken);
    await engineTransfer.requestMove(engine, employees, one, { department: 'Numbered2' });
    await world.settle();
    for (const department of ['Numbered', 'Elsewhere'])
      await expect(hire({ department, ...same })).rejects.toMatchObject(taken);
    expect(await valuesOf(employees, there(one))).toEqual(there(one));
    await engineWrite.deleteEntity(engine, employees, there(one));
    await world.settle();
    await hire({ department: 'Elsewhere', ...same });
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });

  test('there and back is not repeated when a message is delivered twice', async () => {
    const one = await hire({ department: 'Back' });
    const first = await transferOf('move', one);
    await engineTransfer.runTransfer(later(engine), employees, first);
    await world.settle();
    await engineTransfer.requestMove(engine, employees, there(one), { department: 'Back' });
    await world.settle();
    await engineTransfer.runTransfer(engine, employees, first);
    await world.settle();
    expect(await valuesOf(employees, one)).toEqual(one);
    expect(await statusOf('move', first.operationId)).toMatchObject({ status: 'succeeded' });
    await expectIndexesToAgree(world.storage, employees);
  });

  test('of a manager clears the copies in the old department', async () => {
    const one = await hire({ department: 'Led' });
    await engineWrite.createEntity(engine, departments, { department: 'Led', managerId: one.employeeId });
    await engineTransfer.requestMove(engine, employees, one, { department: 'Led2' });
    await world.settle();
    expect(await valuesOf(departments, { department: 'Led' })).toEqual({ department: 'Led', employeeCount: 0 });
    expect(await valuesOf(employees, there(one))).toEqual(there(one));
  });
});

/** Calls `run` once for each of its storage calls, with `happen` right before that call, and `check` after it. */
async function tryEachCall(
  run: (of: Engine, one: Values, transfer: Transfer) => Promise<unknown>,
  happen: (one: Values, transfer: Transfer) => Promise<unknown>,
  prepare: (one: Values) => Promise<Transfer>,
): Promise<void> {
  for (let at = 1, isOver = false; !isOver; at += 1) {
    const one = await hire({ department: 'Between' }, movers);
    const transfer = await prepare(one);
    let happened = false;
    const client = interruptedHttpClient(at, async () => {
      happened = true;
      await happen(one, transfer);
    });
    await run(world.engineThrough(client), one, transfer);
    await world.settle();
    isOver = !happened;
    if (happened)
      expect(await statusOf('move', transfer.operationId, movers), `${at}`).toMatchObject({ status: 'succeeded' });
  }
}

/** What a duplicate of the message records last. */
const succeed = (_: Values, { version: _version, incarnation: _incarnation, ...transfer }: Transfer) =>
  engineWrite.writeOperation(engine, { ...transfer, status: 'succeeded' });
const ofGone = async (one: Values) => {
  const transfer = await transferOf('move', one, movers);
  await engineWrite.deleteEntity(engine, movers, one);
  return transfer;
};

test('a move that has failed does not overwrite the record of a duplicate that has succeeded', {
  tags: ['slow'],
}, async () => {
  await tryEachCall((of, _, transfer) => engineTransfer.runTransfer(later(of), movers, transfer), succeed, ofGone);
  await tryEachCall(
    (of, _, transfer) => engineTransfer.giveUpTransfer(of, movers, transfer, 'Poison.'),
    succeed,
    ofGone,
  );
});

test('a move that is requested again does not overwrite the record of its success', { tags: ['slow'] }, async () => {
  const ids = new Map<unknown, string>();
  const request = async (of: Engine, one: Values) => {
    const id = ids.get(one) ?? randomUUID();
    ids.set(one, id);
    // A repetition that comes late may find nothing to move.
    return engineTransfer
      .requestMove(of, movers, one, { department: there(one).department }, id)
      .catch(() => undefined);
  };
  await tryEachCall(
    request,
    async (one, transfer) => {
      await engineTransfer.runTransfer(later(engine), movers, transfer);
      // The message that the request sends again finds nothing.
      await engineWrite.deleteEntity(engine, movers, there(one));
    },
    async (one) => (await world.take('transfers', String(await request(engine, one)))).body as Transfer,
  );
});

test.each(['archive', 'move'] as const)(
  'what is lost of an entity, or does not open, does not keep it from its %s, and goes along as it is',
  async (operation) => {
    const one = await hire({ department: 'Lost', nationalId: '1' });
    const year = { department: one.department, employeeId: one.employeeId, year: 2025 };
    const { values } = await engineWrite.createEntity(engine, reviews, {
      ...year,
      rating: 3,
      comments: 'x'.repeat(400_000),
    });
    const { values: withPhoto } = await featureFiles.putAttachment(
      engine,
      { entity: employees, key: one, field: 'photo' },
      PNG,
    );
    const blobs = { large: values.comments, photos: withPhoto.photo } as Record<string, { blob: string }>;
    for (const [container, { blob }] of Object.entries(blobs))
      await world.storage.blobs.getContainerClient(container).deleteBlob(blob);
    const broken = { partitionKey: one.department, rowKey: `empid_${one.employeeId}`, nationalId: 'v1.broken' };
    await world.storage.table('employees').updateEntity(broken, 'Merge');
    const transfer = await transferOf(operation, one);
    await engineTransfer.runTransfer(later(engine), employees, transfer);
    await world.settle();
    expect(await statusOf(operation, transfer.operationId)).toMatchObject({ status: 'succeeded' });
    expect(await valuesOf(employees, one)).toBeUndefined();
    const [entity, key] = operation === 'archive' ? [former, one] : [employees, there(one)];
    const { values: arrived } = await engineRead.readWithChildren(engine, entity, key, entity.children, {
      select: { reviews: ['comments'] },
    });
    const { photo } = withPhoto;
    const details = [{ comments: values.comments }];
    expect(arrived).toMatchObject({ nationalId: { sealed: 'v1.broken' }, photo, reviews: details });
  },
);

test('a move claims a unique value of the new partition, or fails if it is taken there', async () => {
  const sit = (department: string, employeeId: string, desk: string) =>
    engineWrite.createEntity(engine, desks, { department, employeeId, desk });
  const status = async (operationId: string) =>
    (await engineWrite.readOperation(engine, { operation: 'move', operationId, entity: 'desks' })).status;
  await sit('East', '1', 'A');
  await sit('East', '2', 'B');
  await sit('West', '3', 'B');
  const go = (employeeId: string) =>
    engineTransfer.requestMove(engine, desks, { department: 'East', employeeId }, { department: 'West' });
  const [free, taken] = [await go('1'), await go('2')];
  await world.settle();
  expect([await status(free), await status(taken)]).toEqual(['succeeded', 'failed']);
  const people = await expectIndexesToAgree(world.storage, desks);
  expect(people.map(({ department, employeeId }) => `${department} ${employeeId}`).sort()).toEqual([
    'East 2',
    'West 1',
    'West 3',
  ]);
  await expect(sit('West', '4', 'A')).rejects.toMatchObject({ code: 'duplicate-value', field: 'desk' });
  await sit('East', '5', 'A');
});

describe('an archive', () => {
  test('fails and keeps both when the archive already has an entity with the key', async () => {
    const one = await hire({ department: 'Twice' });
    await engineTransfer.requestArchive(engine, employees, one);
    await world.settle();
    const second = await hire({ department: 'Twice', employeeId: one.employeeId });
    const operationId = await engineTransfer.requestArchive(engine, employees, second);
    await world.settle();
    expect(await statusOf('archive', operationId)).toMatchObject({ status: 'failed' });
    expect(await valuesOf(former, one)).toEqual(one);
    expect(await valuesOf(employees, second)).toEqual(second);
  });

  test('does not affect an entity that was deleted and created again since the request', async () => {
    const one = await hire({ department: 'Anew' });
    const transfer = await transferOf('archive', one);
    await engineWrite.deleteEntity(engine, employees, one);
    await world.settle();
    const anew = await hire({ department: 'Anew', employeeId: one.employeeId });
    await engineTransfer.runTransfer(engine, employees, transfer);
    await world.settle();
    expect(await valuesOf(employees, anew)).toEqual(anew);
    expect(await valuesOf(former, one)).toBeUndefined();
    expect(await statusOf('archive', transfer.operationId)).toMatchObject({ status: 'failed' });
  });

  test('never succeeds without a recorded request', async () => {
    const operationId = '2026-11-20-00000000-0000-0000-0000-000000000000';
    const transfer: Transfer = {
      version: engineReconcile.MESSAGE_VERSION,
      operation: 'archive',
      operationId,
      entity: 'employees',
      key: { department: 'X', employeeId: '1' },
      incarnation: 'x',
    };
    await expect(engineTransfer.runTransfer(engine, employees, transfer)).rejects.toThrow(baseValues.NeverSucceeds);
  });
});

describe('an archive without some fields', () => {
  const archive = applicants.archive as Entity;

  test('has the others, and neither the values nor the files of those', async () => {
    const key = { city: 'Oslo', applicantId: 'A1' };
    const long = 'x'.repeat(400_000);
    const blobsIn = async () => {
      const all = ['large', 'applicantphotos'].map((name) =>
        Array.fromAsync(storageBlobs.listContainer(world.storage, name)),
      );
      return (await Promise.all(all)).flat().map(({ name }) => name);
    };
    const before = await blobsIn();
    const others = { ...key, name: 'Ada', notes: `n${long}` };
    await engineWrite.createEntity(engine, applicants, { ...others, phone: '555', secret: '1234', letter: `l${long}` });
    await featureFiles.putAttachment(engine, { entity: applicants, key, field: 'photo' }, PNG);
    const operationId = await engineTransfer.requestArchive(engine, applicants, key);
    await world.settle();
    expect(await statusOf('archive', operationId, applicants)).toEqual({ status: 'succeeded' });
    expect(await valuesOf(applicants, key)).toBeUndefined();
    const { values } = await engineRead.readEntity(engine, archive, key);
    expect(await engineWrite.toPlain(engine, archive, values)).toEqual({ ...others, initial: 'A' });
    const [row] = await rowsOf(world.storage, archive.table);
    for (const field of ['phone', 'secret', 'letter', 'photo'])
      expect(Object.keys(row ?? {}).filter((name) => name.endsWith(field))).toEqual([]);
    const added = (await blobsIn()).filter((name) => !before.includes(name));
    expect(added).toEqual([(values.notes as { blob: string }).blob]);
  });

  test('is described, and reads, filters and validates the others only', () => {
    const left = ['city', 'applicantId', 'name', 'initial', 'notes'];
    expect(Object.keys(archive.columns)).toEqual(left);
    expect(Object.keys(archive.schema.shape)).toEqual(left);
    expect(archive).toMatchObject({ encrypted: [], large: ['notes'], compressed: [], attachments: {} });
    expect(archive.access.restricted).toEqual({});
    expect(archive.features.map(({ name }) => name)).not.toContain('encrypted properties');
    expect(() => defineCodec.compileFilter(archive, { phone: '555' })).toThrow('"phone"');
  });
});
