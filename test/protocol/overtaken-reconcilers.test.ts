import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { type Scene, tryInterruptions } from '../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../faulty-http-client.ts';
import { customers, employees } from '../fixtures/model.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { type Engine, engineConsume, engineWrite, type Message } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { samplePoints } from '../points.ts';
import { log } from '../silent-log.ts';
import { countEach, countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, laterBy, openWorld, somebody } from '../world.ts';

const CONCURRENCY = 8;
/** The number of the storage call that commits a patch which takes a row back. */
const WRITE_CALL = 6;

const world = await openWorld(import.meta.url);
const engine = world.queued;

const hire = (values: Values) => engineWrite.createEntity(engine, employees, values);
const patch = (one: Values, change: Values) => engineWrite.patchEntity(engine, employees, one, change);
const intentOf = (one: Values) => world.take('index-changes', String(one.employeeId));
const consume = (through: Engine, message: Message) =>
  engineConsume.consumeIntent({ engine: through, entities: [employees, customers], log }, message);

/** Verifies and repairs one department. */
const repairDepartment = (through: Engine, department: string) =>
  operationsCheck.verifyPage(through, employees, {
    position: { table: 0, after: { partition: department, row: '' }, left: 0 },
    top: 4,
    repair: true,
    patience: 10,
  });

const WHAT = 'Reconciler or writer overtaken by another, before and after each storage call';
/** Checks every index after the trials of a test. */
const expectAgreement = (entity: Entity) =>
  countTried({ what: WHAT, times: 0 }, () => expectIndexesToAgree(world.storage, entity));

/** Runs a scene with the interruption right before and right after each storage call of its act. */
function everywhere(set: () => Promise<Scene>, concurrency = CONCURRENCY): Promise<void> {
  return tryInterruptions(world, set, { what: WHAT, moreCallsThan: 3, concurrency });
}

/**
 * Changes the email of an employee and takes the intent of the change, so that the queues contain no other intent of
 * it.
 */
async function changedEmail() {
  const one = somebody();
  const other = { email: `other-${one.email}`, lastName: `Other${one.employeeId}` };
  await hire(one);
  await consume(engine, await intentOf(one));
  await patch(one, other);
  return { one, other, intent: await intentOf(one) };
}

/** Interrupts the reconciler of a changed email at each of its storage calls. */
function overtakeReconciler(interrupt: (one: Values, intent: Message) => Promise<unknown>): Promise<void> {
  return everywhere(async () => {
    const { one, intent } = await changedEmail();
    return { act: (through) => consume(through, intent), interrupt: () => interrupt(one, intent) };
  });
}

/** A client of a patch that takes a row back, which stops after its claim and before its transaction. */
function pauseBeforeCommit() {
  const { promise: goOn, resolve: release } = Promise.withResolvers<void>();
  const { promise: claimed, resolve: hasClaimed } = Promise.withResolvers<void>();
  // Read, intent, claim (rejected because the row exists; read; replaced), and then the transaction.
  const client = interruptedHttpClient(WRITE_CALL, () => {
    hasClaimed();
    return goOn;
  });
  return { client, claimed, release };
}

describe('a reconciler that is overtaken at any storage call', () => {
  test('by a later change and its reconciler leaves no stale entry', { tags: ['slow'] }, async () => {
    await overtakeReconciler(async (one) => {
      await patch(one, { email: `third-${one.email}`, lastName: `Third${one.employeeId}` });
      await consume(engine, await intentOf(one));
    });
    // No message is left that could repair a difference.
    await expectAgreement(employees).catch(async (error) => {
      await world.settle();
      throw error;
    });
  });

  test('by a delete and its reconciler leaves no entry', async () => {
    await overtakeReconciler(async (one) => {
      await engineWrite.deleteEntity(engine, employees, one);
      await consume(engine, await intentOf(one));
    });
    await expectAgreement(employees);
  });

  test('by a writer that claims the value again does not delete the claim', { tags: ['slow'] }, async () => {
    const takenBack: Values[] = [];
    await overtakeReconciler(async (one) => {
      await patch(one, { email: one.email });
      takenBack.push(one);
    });
    for (const { email } of takenBack)
      await expect(hire(somebody({ email }))).rejects.toMatchObject({ code: 'duplicate-value' });
    await world.settle();
    await expectAgreement(employees);
  });

  test('by a writer that claims the value again, and its reconciler, keeps the entry', { tags: ['slow'] }, async () => {
    await overtakeReconciler(async (one) => {
      await patch(one, { email: one.email });
      await consume(engine, await intentOf(one));
    });
    await expectAgreement(employees);
  });

  test('by a writer whose claim expires after it was read keeps the row', { tags: ['slow'] }, async () => {
    let skew = 0;
    await everywhere(async () => {
      skew = 0;
      const { one, intent } = await changedEmail();
      const { client, claimed, release } = pauseBeforeCommit();
      const writing = engineWrite.patchEntity(world.engineThrough(client), employees, one, { email: one.email });
      await claimed;
      return {
        act: (through) =>
          consume(
            laterBy(through, () => skew),
            intent,
          ),
        interrupt: async () => {
          release();
          await writing;
          skew = 2 * engine.timing.claimForMs;
        },
      };
    }, 1);
    await world.settle();
    await expectAgreement(employees);
  });

  test.each([
    ['ahead', { writer: 0, reconciler: 7_200_000 }],
    ['behind', { writer: -7_200_000, reconciler: 0 }],
  ])('leaves a row to the claim of a live writer, although a clock is hours %s', async (_, wrongBy) => {
    const { one, intent } = await changedEmail();
    const { client, claimed, release } = pauseBeforeCommit();
    const wrong = (of: Engine, by: number): Engine => ({ ...of, now: () => Date.now() + by });
    const writer = wrong(world.engineThrough(client), wrongBy.writer);
    const writing = engineWrite.patchEntity(writer, employees, one, { email: one.email });
    await claimed;
    await consume(wrong(engine, wrongBy.reconciler), intent);
    release();
    await writing;
    await world.settle();
    await expectAgreement(employees);
    await expect(hire(somebody({ email: one.email }))).rejects.toMatchObject({ code: 'duplicate-value' });
  });

  test('leaves the claim of an entity that is created again while it reconciles the delete of several', async () => {
    const partitionOf = (of: Values) =>
      definePlaces.indexEntriesOf(employees, of).find(({ index }) => index === 'emailCompanyWide')?.partition;
    const one = somebody();
    let other = somebody();
    // Only entries in one partition are deleted together.
    while (partitionOf(other) !== partitionOf(one)) other = somebody();
    for (const each of [one, other]) {
      await hire(each);
      await consume(engine, await intentOf(each));
    }
    await engineWrite.writeBatch(engine, employees, [{ delete: one }, { delete: other }]);
    const deleted = await intentOf(one);
    const isOfClaims = ({ url, body }: { readonly url: string; readonly body?: unknown }) =>
      url.includes('$batch') && String(body).includes('/employeesbyemail(');
    const dying = world.engineThrough(faultyHttpClient('crash after', isOfClaims));
    const isCommit = ({ url }: { readonly url: string }) => url.includes('$batch');
    // The writer has claimed the value, and commits over its tombstone if that is still there.
    const client = interruptedHttpClient(isCommit, () => consume(dying, deleted).catch(() => undefined));
    await engineWrite.createEntity(world.engineThrough(client), employees, one);
    await consume(engine, deleted);
    await world.settle();
    await expectAgreement(employees);
  });

  test('by a change that releases the value does not overwrite the row of the next owner', {
    tags: ['slow'],
  }, async () => {
    await everywhere(async () => {
      const one = somebody();
      await hire(one);
      const intent = await intentOf(one);
      const heir = somebody({ email: one.email });
      return {
        act: (through) => consume(through, intent),
        interrupt: async () => {
          await consume(engine, intent);
          await patch(one, { email: `gone-${one.email}` });
          await consume(engine, await intentOf(one));
          await hire(heir);
          await consume(engine, await intentOf(heir));
        },
      };
    });
    await expectAgreement(employees);
  });

  test('by a writer that claims the released value keeps the claim', { tags: ['slow'] }, async () => {
    await overtakeReconciler(async (one, intent) => {
      const heir = somebody({ email: one.email });
      await consume(engine, { ...intent });
      await hire(heir);
    });
    await world.settle();
    await expectAgreement(employees);
  });
});

describe('a reconciler that stalls until another has handled its message, and dies after one more call', () => {
  const meet = () => {
    const customerId = `S${somebody().employeeId}`;
    return engineWrite.createEntity(engine, customers, {
      city: 'Bern',
      customerId,
      companyName: 'A',
      contactName: 'Ann First',
    });
  };

  // No ETag can reject a late insert, so the check repairs its result.
  test.each([
    ['overwrites nothing', { phone: '2' }, { phone: '3' }],
    ['deletes nothing', { contactName: null }, { contactName: 'Ann First', phone: '3' }],
  ])('%s', async (_, second, third) => {
    const play = async (at: number) => {
      const { values } = await meet();
      const id = String(values.customerId);
      const settleOne = async () => consume(engine, await world.take('index-changes', id));
      await settleOne();
      await engineWrite.patchEntity(engine, customers, values, second);
      const message = await world.take('index-changes', id);
      const overtake = async () => {
        await engineWrite.patchEntity(engine, customers, values, third);
        await settleOne();
        await consume(engine, message);
      };
      const dying = interruptedHttpClient(at, overtake, 'before', faultyHttpClient('crash after', at));
      await consume(world.engineThrough(dying), message).catch(() => undefined);
      return dying.calls;
    };
    const count = await play(0);
    expect(count).toBeGreaterThan(3);
    await countEach(samplePoints(count), play, { what: WHAT, concurrency: CONCURRENCY });
    // No message is left that could repair a difference.
    await expectAgreement(customers);
  });
});

describe('a writer that reconciles its own intent', () => {
  test('leaves no stale entry when a later change overtakes it at any call', async () => {
    await everywhere(async () => {
      const one = somebody();
      return {
        act: (through) => engineWrite.createEntity(through, employees, one),
        interrupt: () =>
          patch(one, { email: `later-${one.email}`, lastName: `Later${one.employeeId}` }).then(
            async () => consume(engine, await intentOf(one)),
            // The row does not exist yet, or is being claimed.
            () => undefined,
          ),
      };
    });
    // No message is left that could repair a difference.
    await expectIndexesToAgree(world.storage, employees);
  });

  test('leaves no entry when a delete overtakes it at any call', async () => {
    await everywhere(async () => {
      const one = somebody();
      await hire(one);
      await consume(engine, await intentOf(one));
      return {
        act: (through) =>
          engineWrite
            .patchEntity(through, employees, one, { email: `new-${one.email}`, lastName: `New${one.employeeId}` })
            .catch(() => undefined),
        interrupt: async () => {
          await engineWrite.deleteEntity(engine, employees, one);
          await consume(engine, await intentOf(one));
        },
      };
    });
    // The claim of a rejected writer.
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });
});

describe('a writer that is overtaken at any storage call', () => {
  test('by a consumer of the visible messages keeps its claim', async () => {
    await everywhere(async () => {
      const one = somebody();
      return {
        act: (through) => engineWrite.createEntity(through, employees, one),
        interrupt: () => world.handleVisible(),
      };
    });
    await world.settle();
    await expectAgreement(employees);
  });

  test('by the reconciler of an earlier change keeps the value that it claimed', { tags: ['slow'] }, async () => {
    const takenBack: Values[] = [];
    await everywhere(async () => {
      const { one, intent } = await changedEmail();
      takenBack.push(one);
      return {
        act: (through) => engineWrite.patchEntity(through, employees, one, { email: one.email }),
        interrupt: () => consume(engine, intent),
      };
    });
    for (const { email } of takenBack)
      await expect(hire(somebody({ email }))).rejects.toMatchObject({ code: 'duplicate-value' });
    await world.settle();
    await expectAgreement(employees);
  });

  test('by another writer during a repair or the building of an index leaves no finding', {
    tags: ['slow'],
  }, async () => {
    await everywhere(async () => {
      const one = somebody();
      const department = `Repaired${one.employeeId}`;
      await hire({ ...one, department });
      await consume(engine, await intentOf(one));
      const table = world.storage.table('employees');
      await table.deleteEntity(department, `email_${one.email}`);
      await table.deleteEntity(department, `lastname_${one.lastName}`);
      return {
        act: async (through) => {
          const { findings } = await repairDepartment(through, department);
          expect(findings).toEqual(findings.map((finding) => ({ ...finding, repaired: true })));
        },
        interrupt: () => patch({ ...one, department }, { phone: '9' }),
      };
    });
    await world.settle();
    await expectAgreement(employees);
  });

  /** A list, in its own department, with a member that does not exist. */
  async function staleMember() {
    const one = { ...somebody(), department: `Stale${randomUUID()}` };
    const list = { EntityType: 'list', Members: JSON.stringify([one.employeeId]) };
    await world.storage
      .table('employees')
      .createEntity({ partitionKey: one.department, rowKey: `lastname_${one.lastName}`, ...list });
    return one;
  }
  test('by the create of a list member that it is removing keeps the member', async () => {
    await everywhere(async () => {
      const one = await staleMember();
      return { act: (through) => repairDepartment(through, one.department), interrupt: () => hire(one) };
    });
    await world.settle();
    await expectAgreement(employees);
  });

  test('by a repair of the list to which it adds a member keeps the member', async () => {
    await everywhere(async () => {
      const one = await staleMember();
      return {
        act: (through) => engineWrite.createEntity(through, employees, one),
        interrupt: () => repairDepartment(engine, one.department),
      };
    });
    await world.settle();
    await expectAgreement(employees);
  });

  test('by a writer that claims the address of a copy that it is restoring keeps the claim', {
    tags: ['slow'],
  }, async () => {
    await everywhere(async () => {
      const one = { ...somebody(), department: `Taken${randomUUID()}` };
      const other = { ...somebody(), department: one.department, email: one.email };
      const indexEntry = definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
      await hire(one);
      await consume(engine, await intentOf(one));
      await world.storage.table('employees').deleteEntity(one.department, `email_${one.email}`);
      await world.storage.table('employeesbyemail').deleteEntity(indexEntry?.partition ?? '', indexEntry?.row ?? '');
      let hired = false;
      return {
        act: async (through) => {
          await repairDepartment(through, one.department);
          const copy = await world.storage.table('employees').getEntity(one.department, `email_${one.email}`);
          expect(copy.SourceRow).toBe(`empid_${hired ? other.employeeId : one.employeeId}`);
          // No check can repair two entities with the same value.
          for (const each of [one, other])
            await engineWrite.deleteEntity(engine, employees, each).catch(() => undefined);
        },
        interrupt: async () => {
          hired = await hire(other).then(
            () => true,
            () => false,
          );
        },
      };
    }, 1);
  });

  test('by another writer of the same entity loses neither change', { tags: ['slow'] }, async () => {
    const all: Values[] = [];
    await everywhere(async () => {
      const one = somebody();
      await hire(one);
      all.push(one);
      return {
        act: (through) => engineWrite.patchEntity(through, employees, one, { email: `mine-${one.email}` }),
        interrupt: () => patch(one, { phone: '9', lastName: 'Both' }),
      };
    });
    await world.settle();
    const values = await expectAgreement(employees);
    for (const one of all)
      expect(values.find(({ employeeId }) => employeeId === one.employeeId)).toMatchObject({
        email: `mine-${one.email}`,
      });
    expect(values.filter(({ lastName, phone }) => lastName === 'Both' && phone === '9')).toHaveLength(all.length);
  });
});
