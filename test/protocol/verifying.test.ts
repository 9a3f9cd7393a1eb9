import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, type IndexEntity, indexEntity, interPartitionIndex, type Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { type FaultTrial, tryFaults } from '../fault-driver.ts';
import { deploy } from '../fixtures/deploy.ts';
import { departments, employees } from '../fixtures/model.ts';
import { definePlaces, type Entity, type Finding } from '../kit/define.ts';
import { type Engine, engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { featureFiles } from '../kit/features.ts';
import { operationsCheck, type VerifyPosition } from '../kit/operations.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody } from '../world.ts';

/** A check finds every manual change, and repairs it while writers run. */

const text = z.string().min(1);
const { marks } = deploy(
  defineEntity('marks', {
    schema: z.object({ pupil: text, year: z.int32().min(0).max(9999), grade: text }),
    table: 'marks',
    key: { partition: '{pupil}', row: 'y_{year:4}' },
    indexes: { grade: indexEntity({ row: 'grade_{grade}', holds: '{year:4}' }) },
    access: { read: [], write: [] },
  }),
);
const { badges } = deploy(
  defineEntity('badges', {
    schema: z.object({ office: text, holder: text, badge: text, floor: text }),
    table: 'badges',
    key: { partition: '{office}', row: '{holder}' },
    indexes: {
      badge: interPartitionIndex({ table: 'badgesbynumber', partition: '{badge#}', row: '{badge}', unique: true }),
      floor: indexEntity({ table: 'badgesbyfloor', partition: '{floor}', row: 'all', holds: '{office}/{holder}' }),
    },
    access: { read: [], write: [] },
  }),
);
const world = await openWorld(import.meta.url, [marks, badges]);

const hire = async (over: Values = {}) =>
  (await engineWrite.createEntity(world.engine, employees, somebody(over))).values;

async function audit(
  entity: Entity,
  repair: boolean,
  { only, engine = world.engine, patience = 200 }: { only?: string; engine?: Engine; patience?: number } = {},
): Promise<Finding[]> {
  const findings: Finding[] = [];
  let position: VerifyPosition | undefined;
  do {
    const page = await operationsCheck.verifyPage(engine, entity, { position, top: 40, repair, only, patience });
    findings.push(...page.findings);
    position = page.next;
  } while (position);
  return findings;
}

const table = (name: string) => world.storage.table(name);
const keyOf = (one: Values) => definePlaces.addressOf(employees, one);

/** A list of a restored table, whose blob was deleted with the newer list. */
const lostList = (partitionKey: string, rowKey: string) => ({
  partitionKey,
  rowKey,
  EntityType: 'list',
  MembersBlob: JSON.stringify({ blob: `gone/${partitionKey}`, length: 40_000, sha256: 'x' }),
});

/** A manual change to an employee and the expected finding: one, also if both sides show the difference. */
const BREAKS: readonly [string, (one: Values) => Promise<unknown>, Partial<Finding>][] = [
  [
    'a missing copy in the partition',
    (one) => table('employees').deleteEntity(String(one.department), `email_${one.email}`),
    { kind: 'missing', of: 'email' },
  ],
  [
    'a stale copy in the partition',
    (one) =>
      table('employees').updateEntity(
        { partitionKey: String(one.department), rowKey: `email_${one.email}`, firstName: 'Wrong' },
        'Merge',
      ),
    { kind: 'stale', of: 'email' },
  ],
  [
    'a copy in the partition without an entity',
    (one) =>
      table('employees').createEntity({
        partitionKey: String(one.department),
        rowKey: 'email_nobody@contoso.com',
        EntityType: 'employees',
        SourcePartition: one.department,
        SourceRow: 'empid_999999',
      }),
    { kind: 'orphaned', of: 'email' },
  ],
  [
    'a list in the partition without one of its members',
    (one) =>
      table('employees').updateEntity(
        { partitionKey: String(one.department), rowKey: `lastname_${one.lastName}`, Members: '[]' },
        'Merge',
      ),
    { kind: 'missing', of: 'lastName' },
  ],
  [
    'a list in the partition with a member that does not exist',
    (one) =>
      table('employees').updateEntity(
        {
          partitionKey: String(one.department),
          rowKey: `lastname_${one.lastName}`,
          Members: JSON.stringify([one.employeeId, '999998']),
        },
        'Merge',
      ),
    { kind: 'orphaned', of: 'lastName' },
  ],
  [
    'a list in the partition whose blob is missing',
    (one) => table('employees').updateEntity(lostList(String(one.department), `lastname_${one.lastName}`), 'Replace'),
    { kind: 'missing', of: 'lastName' },
  ],
  [
    'a remote list whose blob is missing',
    (one) => table('employeesbylastname').updateEntity(lostList(String(one.lastName), 'ids'), 'Replace'),
    { kind: 'missing', of: 'lastNameCompanyWide' },
  ],
  [
    'a list without entities whose blob is missing',
    (one) => table('employees').createEntity(lostList(String(one.department), 'lastname_Nobody')),
    { kind: 'lost-list', of: 'lastName' },
  ],
  [
    'a truncated list',
    (one) =>
      table('employees').updateEntity(
        { partitionKey: String(one.department), rowKey: `lastname_${one.lastName}`, Members: '["0000' },
        'Merge',
      ),
    { kind: 'missing', of: 'lastName' },
  ],
  [
    'a missing unique row',
    async (one) => {
      const indexEntry = definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
      await table('employeesbyemail').deleteEntity(indexEntry?.partition ?? '', indexEntry?.row ?? '');
    },
    { kind: 'missing', of: 'emailCompanyWide' },
  ],
  [
    'a stale unique row',
    async (one) => {
      const indexEntry = definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
      const keys = { partitionKey: indexEntry?.partition ?? '', rowKey: indexEntry?.row ?? '' };
      await table('employeesbyemail').updateEntity({ ...keys, lastName: 'Before' }, 'Merge');
    },
    { kind: 'stale', of: 'emailCompanyWide' },
  ],
  [
    'a unique row without an entity',
    () =>
      table('employeesbyemail').createEntity({
        partitionKey: 'email_00',
        rowKey: 'ghost@contoso.com',
        EntityType: 'employees',
        SourcePartition: 'Nowhere',
        SourceRow: 'empid_000001',
        Confirmed: true,
      }),
    { kind: 'orphaned', of: 'emailCompanyWide' },
  ],
  [
    'a missing remote list',
    (one) => table('employeesbylastname').deleteEntity(String(one.lastName), 'ids'),
    { kind: 'missing', of: 'lastNameCompanyWide' },
  ],
  [
    'a remote list with a member that does not exist',
    (one) =>
      table('employeesbylastname').createEntity({
        partitionKey: `${one.lastName}x`,
        rowKey: 'ids',
        EntityType: 'list',
        Members: JSON.stringify([`${one.department}/${one.employeeId}`]),
      }),
    { kind: 'orphaned', of: 'lastNameCompanyWide' },
  ],
  [
    'a wrong count',
    (one) =>
      table('employees').updateEntity(
        { partitionKey: String(one.department), rowKey: 'department', employeeCount: 17 },
        'Merge',
      ),
    { kind: 'wrong-count', of: 'employeeCount' },
  ],
];

describe('a consistency check', () => {
  test.each(BREAKS)('finds, reports and repairs %s', { tags: ['slow'] }, async (name, breakIt, expected) => {
    const one = await hire({ department: `Broken ${name}` });
    await world.settle();
    await breakIt(one);
    expect(await audit(employees, false)).toEqual([expect.objectContaining({ ...expected, repaired: false })]);
    expect(await audit(employees, true)).toEqual([expect.objectContaining({ ...expected, repaired: true })]);
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
    expect(await audit(employees, false)).toEqual([]);
    // Each check takes lookups for every employee.
    await engineWrite.deleteEntity(world.engine, employees, one);
    await world.settle();
  });

  test('restores a lost list, so that rejected writes succeed again', { tags: ['slow'] }, async () => {
    const one = await hire({ department: 'Lost' });
    await world.settle();
    await table('employees').updateEntity(lostList('Lost', `lastname_${one.lastName}`), 'Replace');
    const other = somebody({ department: 'Lost', lastName: one.lastName });
    const index = employees.indexes.lastName as IndexEntity;
    const refused = expect.objectContaining({ code: 'needs-repair' });
    await expect(engineWrite.createEntity(world.engine, employees, other)).rejects.toEqual(refused);
    await expect(engineWrite.patchEntity(world.engine, employees, one, { lastName: 'Other' })).rejects.toEqual(refused);
    await expect(engineRead.readByList(world.engine, employees, index, one, { top: 10 })).rejects.toEqual(refused);
    expect((await engineRead.readEntity(world.engine, employees, one)).values).toEqual(one);
    // The email of a rejected writer is free immediately, and not only when the intent becomes visible.
    await world.handleVisible();
    await hire({ email: other.email });
    await audit(employees, true);
    await hire({ department: 'Lost', lastName: one.lastName });
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });

  test('repairs a list of numbers with an invalid member', async () => {
    for (const year of [2020, 2021])
      await engineWrite.createEntity(world.engine, marks, { pupil: 'Ann', year, grade: 'A' });
    const key = { partitionKey: 'Ann', rowKey: 'grade_A' };
    const Members = JSON.stringify(['2020', '20210', 'abcd', '']);
    await table('marks').updateEntity({ ...key, Members }, 'Merge');
    const index = marks.indexes.grade as IndexEntity;
    const given = { pupil: 'Ann', grade: 'A' };
    const read = async () => (await engineRead.readByList(world.engine, marks, index, given, { top: 10 })).items;
    expect(await read()).toHaveLength(1);
    const kinds = (await audit(marks, true)).map(({ kind, repaired }) => [kind, repaired]);
    expect(kinds).toEqual([...[1, 2, 3].map(() => ['orphaned', true]), ['missing', true]]);
    expect(await table('marks').getEntity('Ann', 'grade_A')).toMatchObject({ Members: '["2020","2021"]' });
    expect(await read()).toHaveLength(2);
  });

  test('finds stale copies of another entity', async () => {
    const one = await hire({ department: 'Led' });
    await engineWrite.createEntity(world.engine, departments, { department: 'Led', managerId: one.employeeId });
    await table('employees').updateEntity(
      { partitionKey: 'Led', rowKey: 'department', managerName: 'Someone Else' },
      'Merge',
    );
    const expected = { kind: 'stale-copy', of: 'managerId' };
    expect(await audit(departments, true)).toEqual([expect.objectContaining({ ...expected, repaired: true })]);
    const { values } = await engineRead.readEntity(world.engine, departments, { department: 'Led' });
    expect(values.managerName).toBe(`${one.firstName} ${one.lastName}`);
    expect(await audit(departments, false)).toEqual([]);
  });

  test('finds a lost blob, and reports that it cannot be restored', async () => {
    const one = await hire();
    const { values } = await featureFiles.putAttachment(
      world.engine,
      { entity: employees, key: one, field: 'photo' },
      PNG,
    );
    await world.settle();
    const { blob } = values.photo as { blob: string };
    await world.storage.blobs.getContainerClient('photos').deleteBlob(blob);
    const expected = { kind: 'lost-blob', row: keyOf(one).row, repaired: false };
    expect(await audit(employees, true)).toEqual([expect.objectContaining(expected)]);
    await engineWrite.deleteEntity(world.engine, employees, one);
    await world.settle();
  });

  test('reports a half-archived entity, and leaves it to its operation', async () => {
    const one = await hire({ department: 'Half' });
    await engineTransfer.requestArchive(world.engine, employees, one);
    await world.settle();
    const keys = { partitionKey: 'Half', rowKey: keyOf(one).row };
    await table('formeremployees').updateEntity({ ...keys, MovingFrom: '["Half","x"]' }, 'Merge');
    const expected = { kind: 'unfinished', table: 'formeremployees', row: keys.rowKey, repaired: false };
    expect(await audit(employees, true)).toEqual([expect.objectContaining(expected)]);
    await table('formeremployees').deleteEntity(keys.partitionKey, keys.rowKey);
  });

  test('reports a row that no key leads to, and repairs its index entries once the row is deleted', {
    tags: ['slow'],
  }, async () => {
    const one = { office: 'Oslo', holder: 'Ann', badge: 'B7', floor: '7' };
    await engineWrite.createEntity(world.engine, badges, one);
    await world.settle();
    const [entry] = definePlaces.indexEntriesOf(badges, one).filter(({ index }) => index === 'badge');
    const keys = { partitionKey: entry?.partition ?? '', rowKey: entry?.row ?? '' };
    // As if the partition key had been another template.
    const { etag: _, timestamp: __, ...row } = await table('badges').getEntity('Oslo', 'Ann');
    await table('badges').createEntity({ ...row, partitionKey: 'o_Oslo', rowKey: 'Ann' } as never);
    await table('badges').deleteEntity('Oslo', 'Ann');
    await table('badgesbynumber').updateEntity({ ...keys, SourcePartition: 'o_Oslo' }, 'Merge');
    const ghost = { kind: 'unreachable', of: 'badges', table: 'badges', partition: 'o_Oslo', row: 'Ann' };
    const ofGhost = async (repair: boolean) =>
      (await audit(badges, repair)).filter(({ kind }) => kind === 'unreachable');
    expect(await ofGhost(true)).toEqual([{ ...ghost, repaired: false }]);
    expect(await ofGhost(false)).toEqual([{ ...ghost, repaired: false }]);
    // The index is not built from it either.
    expect(await audit(badges, true, { only: 'badge' })).toEqual([]);
    await table('badges').deleteEntity('o_Oslo', 'Ann');
    await audit(badges, true);
    expect(await audit(badges, false)).toEqual([]);
    await expect(table('badgesbynumber').getEntity(keys.partitionKey, keys.rowKey)).rejects.toMatchObject({
      statusCode: 404,
    });
  });

  test('gives a unique row that names an entity without its value back, in one run', { tags: ['slow'] }, async () => {
    const [one, other] = [await hire(), await hire()];
    await world.settle();
    const indexEntry = definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
    const { partition, row } = keyOf(other);
    const keys = { partitionKey: indexEntry?.partition ?? '', rowKey: indexEntry?.row ?? '' };
    await table('employeesbyemail').updateEntity({ ...keys, SourcePartition: partition, SourceRow: row }, 'Merge');
    const found = await audit(employees, false);
    expect(found).toEqual([expect.objectContaining({ kind: 'stale', row: keys.rowKey, repaired: false })]);
    expect(await audit(employees, true)).toEqual([expect.objectContaining({ kind: 'stale', repaired: true })]);
    expect(await audit(employees, false)).toEqual([]);
    await expectIndexesToAgree(world.storage, employees);
  });

  test('reports a value that two entities have, and changes neither', { tags: ['slow'] }, async () => {
    const [one, other] = [await hire(), await hire()];
    await world.settle();
    const { partition: partitionKey, row: rowKey } = keyOf(other);
    await table('employees').updateEntity({ partitionKey, rowKey, email: one.email }, 'Merge');
    const found = await audit(employees, true);
    expect(found.filter(({ repaired }) => !repaired).map(({ kind, of }) => [kind, of])).toContainEqual([
      'conflict',
      'emailCompanyWide',
    ]);
    const indexEntry = definePlaces.indexEntriesOf(employees, one).find(({ index }) => index === 'emailCompanyWide');
    const held = await table('employeesbyemail').getEntity(indexEntry?.partition ?? '', indexEntry?.row ?? '');
    expect(held).toMatchObject({ SourcePartition: keyOf(one).partition, SourceRow: keyOf(one).row });
    await table('employees').updateEntity({ partitionKey, rowKey, email: other.email }, 'Merge');
    await audit(employees, true);
    await expectIndexesToAgree(world.storage, employees);
  });

  test('that dies at any storage call leaves only findings that the next check repairs', async () => {
    const one = { office: 'Rome', holder: 'Ann', badge: 'B1', floor: '1' };
    await engineWrite.createEntity(world.engine, badges, one);
    await world.settle();
    const indexEntry = definePlaces.indexEntriesOf(badges, one).find(({ index }) => index === 'badge');
    const dies = async ({ fault, at, client }: FaultTrial) => {
      await table('badgesbynumber').deleteEntity(indexEntry?.partition ?? '', indexEntry?.row ?? '');
      await table('badgesbyfloor').updateEntity(lostList('1', 'all'), 'Replace');
      const found = await audit(badges, true, { engine: world.engineThrough(client), patience: 1 }).catch(() => []);
      const isOver = !fault || client.calls < at;
      const repaired = expect.objectContaining({ kind: 'missing', repaired: true });
      if (isOver) expect(found).toEqual([repaired, repaired]);
      else await audit(badges, true, { patience: 1 });
      await expectIndexesToAgree(world.storage, badges);
      expect(await audit(badges, false, { patience: 1 })).toEqual([]);
    };
    const what = 'Consistency check with repair, each storage call: crash after';
    const play = (trial: FaultTrial) => (trial.fault ? dies(trial) : countTried({ what }, () => dies(trial)));
    await tryFaults(play, { what, faults: ['crash after'], moreCallsThan: 14 });
  });

  test('finds nothing while writers write, and repairs beside them', { tags: ['slow'] }, async () => {
    const people = await Promise.all(
      Array.from({ length: IS_EVERY_POINT ? 20 : 10 }, () => hire({ department: 'Busy' })),
    );
    for (const one of people.slice(0, 3)) await table('employees').deleteEntity('Busy', `email_${one.email}`);
    let isOver = false;
    const consuming = (async () => {
      while (!isOver) await world.handleVisible();
    })();
    const writing = Promise.all(
      people.map(async (one, index) => {
        await engineWrite.patchEntity(world.engine, employees, one, {
          lastName: `Busy${index % 3}`,
          email: `n${one.email}`,
        });
        if (index % 4 === 0) await engineWrite.deleteEntity(world.engine, employees, one);
        await hire({ department: 'Busy' });
      }),
    );
    await audit(employees, true);
    await writing;
    isOver = true;
    await consuming;
    await world.settle();
    await audit(employees, true);
    await expectIndexesToAgree(world.storage, employees);
    expect(await audit(employees, false)).toEqual([]);
  });
});

describe('a new index', () => {
  test('is built beside concurrent writers, and misses no entity', { tags: ['slow'] }, async () => {
    for (let count = 0; count < 3; count += 1) await hire({ department: 'Before' });
    await world.settle();
    for (const row of await rowsOf(world.storage, 'employeesbylastname'))
      await table('employeesbylastname').deleteEntity(String(row.partitionKey), String(row.rowKey));
    for (const row of await rowsOf(world.storage, 'employeesbyemail'))
      await table('employeesbyemail').deleteEntity(String(row.partitionKey), String(row.rowKey));
    const writing = (async () => {
      for (let count = 0; count < 10; count += 1) {
        const one = await hire({ department: 'Meanwhile' });
        await engineWrite.patchEntity(world.engine, employees, one, { lastName: 'Renamed' });
      }
    })();
    for (const index of ['lastNameCompanyWide', 'emailCompanyWide']) await audit(employees, true, { only: index });
    await writing;
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
    expect(await audit(employees, false)).toEqual([]);
  });
});
