import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, intraPartitionIndex, type Values } from '../../lib/index.ts';
import { costOf } from '../cost-of.ts';
import { CRASHES, outcomeOf, tryFaults, tryInterruptions } from '../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient, lateHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { employees, reviews } from '../fixtures/model.ts';
import type { Entity } from '../kit/define.ts';
import { engineConsume, engineRead, engineTransfer, engineWrite, type Transfer } from '../kit/engine.ts';
import { storageAccounts, storageRows } from '../kit/storage.ts';
import { samplePoints } from '../points.ts';
import { putAll } from '../put-all.ts';
import { log } from '../silent-log.ts';
import { expectIndexesToAgree, openWorld, QUICK, rowsOf, somebody } from '../world.ts';

const former = employees.archive as Entity;
const CONCURRENCY = 8;
const access = { read: ['hr'], write: ['hr'] } as const;
const declaredProjects = defineEntity('projects', {
  schema: z.object({ area: z.string(), projectId: z.string(), title: z.string().optional() }),
  table: 'projects',
  key: { partition: '{area}', row: 'project_{projectId}' },
  archive: { table: 'formerprojects' },
  movable: ['area'],
  access,
});
const declaredTasks = defineEntity('tasks', {
  schema: z.object({ area: z.string(), projectId: z.string(), task: z.string(), note: z.string().optional() }),
  table: 'projects',
  key: { partition: '{area}', row: 'project_{projectId}_{task}' },
  childOf: declaredProjects,
  access,
});
const declaredNotes = defineEntity('notes', {
  schema: z.object({ noteId: z.string(), area: z.string().optional(), projectId: z.string().optional() }),
  table: 'notes',
  key: { partition: '{noteId}', row: 'note' },
  indexes: {
    project: interPartitionIndex({ table: 'notesbyproject', partition: '{area}_{projectId}', row: '{noteId}' }),
  },
  references: { projectId: { to: declaredProjects, onDelete: 'refuse' } },
  access,
});
/** The keys of other lots begin with the key of a lot, and storage cannot compare its number in each row. */
const declaredLots = defineEntity('lots', {
  schema: z.object({ area: z.string(), lot: z.int32(), isOpen: z.boolean().optional() }),
  table: 'projects',
  key: { partition: '{area}', row: 'lot_{lot}' },
  indexes: {
    all: intraPartitionIndex({ row: 'alllots_{lot:8}' }),
    open: intraPartitionIndex({ row: 'openlots_{lot:8}', when: ({ isOpen }) => isOpen === true }),
  },
  access,
});
const declaredItems = defineEntity('items', {
  schema: z.object({ area: z.string(), lot: z.int32(), item: z.string() }),
  table: 'projects',
  key: { partition: '{area}', row: 'lot_{lot}_{item}' },
  childOf: declaredLots,
  access,
});
/** In the area "one", all stops of a tour have the same key. */
const declaredTours = defineEntity('tours', {
  schema: z.object({ area: z.string(), tour: z.string() }),
  table: 'projects',
  key: { partition: '{area}', row: 'tour_{tour}' },
  movable: ['area'],
  access,
});
const declaredStops = defineEntity('stops', {
  schema: z.object({ area: z.string(), tour: z.string(), place: z.string(), at: z.string().optional() }),
  table: 'projects',
  key: { partition: '{area}', row: 'tour_{tour}_{at}' },
  childOf: declaredTours,
  derived: { at: ({ area, place }) => (area === 'one' ? 'one' : String(place)) },
  access,
});
const declared = [
  declaredTours,
  declaredStops,
  declaredProjects,
  declaredTasks,
  declaredNotes,
  declaredLots,
  declaredItems,
] as const;
const { tours, stops, projects, tasks, notes, lots, items } = deploy(...declared);

const world = await openWorld(import.meta.url, [tours, stops, projects, tasks, notes, lots, items]);
const engine = world.queued;

const reviewOf = ({ department, employeeId }: Values, year: number, over: Values = {}) => ({
  department,
  employeeId,
  year,
  rating: 3,
  ...over,
});
const review = (one: Values, year: number) => engineWrite.createEntity(engine, reviews, reviewOf(one, year));
const withReviews = (entity: Entity, one: Values) =>
  engineRead.readWithChildren(engine, entity, one, [reviews]).then(
    ({ values }) => values,
    () => undefined,
  );
const moved = (one: Values) => ({ ...one, department: `${one.department}2` });

const consumer = {
  get engine() {
    return engine;
  },
  entities: [employees, reviews],
  log,
};

async function hire(department: string) {
  const one = somebody({ department });
  await engineWrite.createEntity(engine, employees, one);
  return one;
}

/** Returns the reviews without an employee. */
async function orphans(): Promise<unknown[]> {
  const rows = [...(await rowsOf(world.storage, 'employees')), ...(await rowsOf(world.storage, 'formeremployees'))];
  const masters = new Set(
    rows
      .filter(({ EntityType }) => EntityType === 'employees' || EntityType === 'formeremployees')
      .map(({ partitionKey, rowKey }) => `${partitionKey}/${rowKey}`),
  );
  return rows.filter(
    ({ EntityType, partitionKey, rowKey }) =>
      EntityType === 'reviews' && !masters.has(`${partitionKey}/${String(rowKey).slice(0, -5)}`),
  );
}

describe('an employee and its reviews', () => {
  test('are read in one query, and one review by its key', async () => {
    const one = await hire('Reviewed');
    const other = await hire('Reviewed');
    const years = [2010, 2011, 2012];
    for (const year of [2012, 2010, 2011]) await review(one, year);
    await review(other, 2010);
    expect(await withReviews(employees, one)).toEqual({ ...one, reviews: years.map((year) => reviewOf(one, year)) });
    expect(await costOf(() => withReviews(employees, one))).toBe(1);
    expect(await costOf(() => engineRead.readEntity(engine, reviews, reviewOf(one, 2011)))).toBe(1);
    // This process wrote the employee last, and each review touches the employee.
    expect(await costOf(() => review(one, 2013))).toBe(1);
    const { values } = await engineWrite.patchEntity(engine, reviews, reviewOf(one, 2011), { rating: 5 });
    expect(values).toEqual(reviewOf(one, 2011, { rating: 5 }));
    await engineWrite.deleteEntity(engine, reviews, reviewOf(one, 2010));
    await world.settle();
    expect((await withReviews(employees, one))?.reviews).toEqual([values, reviewOf(one, 2012), reviewOf(one, 2013)]);
    await expect(review({ department: 'Reviewed', employeeId: '999999' }, 2010)).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'employeeId',
    });
  });

  test('are read without the rows between them, and without an "or" of row keys', async () => {
    const area = 'Between';
    const keys = ['P', 'P1', 'P!', 'P-1'];
    await putAll(
      engine,
      projects,
      keys.map((projectId) => ({ area, projectId })),
    );
    const all = keys.map((projectId) => ({ area, projectId, task: `of ${projectId}` }));
    for (const task of all) await engineWrite.createEntity(engine, tasks, task);
    const readP = () => engineRead.readWithChildren(engine, projects, { area, projectId: 'P' }, [tasks]);
    expect((await readP()).values.tasks).toEqual([all[0]]);
    const [step, ...others] = await storageAccounts.explain(readP);
    expect(others).toEqual([]);
    const filter = step && 'filter' in step ? step.filter : '';
    expect(filter).toContain("RowKey ge 'project_P' and RowKey lt 'project_P`'");
    expect(filter.match(/projectId eq 'P'/g)).toHaveLength(2);
    expect(filter).not.toMatch(/RowKey le|\(RowKey|or RowKey/);
  });

  test('are read in a second query if rows between them fill the first', { tags: ['slow'] }, async () => {
    const area = 'Full';
    for (const lot of [1, 2]) await engineWrite.createEntity(engine, lots, { area, lot });
    const own = ['a', 'b'].map((item) => ({ area, lot: 1, item }));
    for (const item of own) await engineWrite.createEntity(engine, items, item);
    const readLot = () => engineRead.readWithChildren(engine, lots, { area, lot: 1 }, [items]);
    expect(await costOf(readLot)).toBe(1);
    for (let first = 10_000; first < 11_100; first += 100) {
      const numbers = Array.from({ length: 100 }, (_, index) => first + index);
      await storageRows.submit(engine.storage, {
        table: 'projects',
        partition: area,
        actions: numbers.map((lot) => ({
          kind: 'insert',
          row: `lot_${lot}`,
          properties: { lot, EntityType: 'lots', EntityVersion: 1, WriteId: 'w', Incarnation: 'i' },
        })),
      });
    }
    expect((await readLot()).values).toEqual({ area, lot: 1, items: own });
    // Storage returns the first 1,001 rows in two calls.
    expect(await costOf(readLot)).toBe(3);
  });

  test.each([
    ['all', [1, 2, 3]],
    ['open', [2]],
  ] as const)(
    'are not read by a list of parents through the index "%s": storage reads the listed rows only',
    async (name, listed) => {
      const area = `Dense ${name}`;
      for (const lot of [1, 2, 3]) {
        await engineWrite.createEntity(engine, lots, { area, lot, isOpen: lot === 2 });
        for (const item of ['a', 'b']) await engineWrite.createEntity(engine, items, { area, lot, item });
      }
      const list = () => engineRead.readByCopies(engine, lots, lots.indexes[name], { area }, { top: 100 });
      expect((await list()).items.map(({ lot }) => lot)).toEqual(listed);
      const [step] = await storageAccounts.explain(list);
      const bounds = /RowKey ge '(.+?)' and RowKey lt '(.+?)'/.exec(step && 'filter' in step ? step.filter : '');
      const [, from = '', before = ''] = bounds ?? [];
      const { rows } = await storageRows.readRange(engine.storage, {
        table: 'projects',
        partition: area,
        from,
        before,
      });
      expect(rows).toHaveLength(listed.length);
    },
  );

  test('are all stored when forty are written concurrently', async () => {
    const one = await hire('Busy');
    // Each review touches the employee. The constant clock keeps callers from timing out on a slow machine.
    const now = Date.now();
    const patient = { ...engine, now: () => now };
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => engineWrite.createEntity(patient, reviews, reviewOf(one, 1980 + index))),
    );
    expect((await withReviews(employees, one))?.reviews).toHaveLength(40);
  });
});

describe('reviews are transferred and deleted with their employee:', () => {
  test('deleted with it', async () => {
    const one = await hire('Leaving');
    for (const year of [2010, 2011]) await review(one, year);
    await engineWrite.deleteEntity(engine, employees, one);
    expect(await orphans()).toEqual([]);
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });

  test('none is left over or lost when one is written while the employee is deleted', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const one = await hire('Racing');
        const [written] = await Promise.allSettled([
          review(one, 2010),
          review(one, 2011),
          engineWrite.deleteEntity(engine, employees, one),
        ]);
        return written.status;
      }),
    );
    expect(outcomes.length).toBe(12);
    expect(await orphans()).toEqual([]);
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });

  test.each(['archive', 'move'] as const)(
    'along with an %s, whatever is written at whichever moment',
    { tags: ['slow'] },
    async (operation) => {
      const destination = operation === 'archive' ? former : employees;
      const arrived = (one: Values) => (operation === 'archive' ? one : moved(one));
      const run = async (at: number) => {
        const one = await hire('Going');
        // A move waits for the claim of a create that no reconciler has confirmed.
        await engineConsume.consumeIntent(consumer, await world.take('index-changes', String(one.employeeId)));
        await review(one, 2010);
        await review(one, 2011);
        const operationId = await (operation === 'archive'
          ? engineTransfer.requestArchive(engine, employees, one)
          : engineTransfer.requestMove(engine, employees, one, { department: 'Going2' }));
        const transfer = (await world.take('transfers', operationId)).body as Transfer;
        const done: number[] = [2010, 2011];
        const write = async () => {
          await review(one, 2012).then(
            () => done.push(2012),
            () => undefined,
          );
          await engineWrite.deleteEntity(engine, reviews, reviewOf(one, 2010)).then(
            () => done.shift(),
            () => undefined,
          );
        };
        const client = interruptedHttpClient(at, write);
        await engineTransfer.runTransfer(world.engineThrough(client), employees, transfer).catch(() => undefined);
        await engineTransfer.runTransfer(engine, employees, transfer);
        return { client, one, done };
      };
      const { client } = await run(0);
      const runs = await pMap(samplePoints(client.calls, 3), run, { concurrency: CONCURRENCY });
      await world.settle();
      for (const { one, done } of runs) {
        const values = await withReviews(destination, arrived(one));
        expect(values).toEqual({ ...arrived(one), reviews: done.map((year) => reviewOf(arrived(one), year)) });
        expect(await withReviews(employees, one)).toBeUndefined();
      }
      expect(await orphans()).toEqual([]);
      await expectIndexesToAgree(world.storage, employees);
    },
  );
});

describe('a project and its tasks', () => {
  const area = 'North';
  const key = (projectId: string) => ({ area, projectId });
  const start = async (projectId: string) => {
    await engineWrite.createEntity(engine, projects, key(projectId));
    await engineWrite.createEntity(engine, tasks, { ...key(projectId), task: 'plan' });
  };
  const withTasks = async (entity: Entity, projectId: string) =>
    (await engineRead.readWithChildren(engine, entity, key(projectId), [tasks])).values;
  const project = (projectId: string) => ({ ...key(projectId), tasks: [{ ...key(projectId), task: 'plan' }] });
  const rows = async (table: string) => (await rowsOf(world.storage, table)).map(({ rowKey }) => rowKey);

  test('are found whatever characters the project id has, without those of another project', async () => {
    for (const projectId of ['road', 'road1', 'road_works', 'road_works_']) await start(projectId);
    for (const projectId of ['road', 'road1', 'road_works', 'road_works_'])
      expect(await withTasks(projects, projectId)).toEqual(project(projectId));
  });

  test('are deleted together, whatever characters the project id has', async () => {
    for (const projectId of ['old_road', 'old_rail']) await start(projectId);
    await engineWrite.deleteEntity(engine, projects, key('old_road'));
    await engineTransfer.requestArchive(engine, projects, key('old_rail'));
    await world.settle();
    expect((await rows('projects')).filter((row) => /old/.test(String(row)))).toEqual([]);
    expect(await withTasks(projects.archive as Entity, 'old_rail')).toEqual(project('old_rail'));
  });
});

describe('a project with more tasks than a transaction has rows', () => {
  const CHILDREN = 120;
  const project = { area: 'large', projectId: 'p1' };
  const limit = 'it has 120, and at most 99 are possible';

  test('is not deleted in a transaction with other actions', async () => {
    await createLarge(project, CHILDREN);
    await expect(engineWrite.writeAtomically(engine, projects, [{ delete: project }])).rejects.toMatchObject({
      code: 'too-large',
      message: expect.stringContaining(limit),
      accepted: 'at most 99 children; delete ranges of tasks first',
    });
  });

  test('is deleted after a range of its tasks', async () => {
    const range = { from: project.projectId, to: project.projectId };
    expect(await engineWrite.deleteRange(engine, tasks, project, range)).toMatchObject({
      deleted: CHILDREN,
      failed: [],
    });
    expect(await engineWrite.deleteEntity(engine, projects, project)).toBeUndefined();
    await world.settle();
    expect(await rowsIn('large')).toEqual([]);
  });
});

const tasksOf = (project: Values, count: number, note?: string) =>
  Array.from({ length: count }, (_, task) => ({ ...project, task: `t${String(task).padStart(4, '0')}`, note }));
async function createLarge(project: Values, count: number, note?: string) {
  await engineWrite.createEntity(engine, projects, project);
  await putAll(engine, tasks, tasksOf(project, count, note));
}
const rowsIn = async (area: string) =>
  (await rowsOf(world.storage, 'projects')).filter(({ partitionKey }) => partitionKey === area);

test('a project is read with at most 1,000 tasks', { tags: ['slow'] }, async () => {
  const project = { area: 'included', projectId: 'p' };
  await createLarge(project, 1_000);
  const read = () => engineRead.readWithChildren(engine, projects, project, [tasks]);
  expect((await read()).values.tasks).toHaveLength(1_000);
  await engineWrite.createEntity(engine, tasks, { ...project, task: 'one more' });
  await expect(read()).rejects.toMatchObject({ code: 'too-large', field: 'include' });
});

describe('the delete of a project with hundreds of tasks', () => {
  let counter = 0;
  const begin = async (count = 120) => {
    counter += 1;
    const project = { area: `huge${counter}`, projectId: 'p' };
    await createLarge(project, count);
    const operationId = (await engineWrite.deleteEntity(engine, projects, project)) ?? '';
    const transfer = (await world.take('transfers', operationId)).body as Transfer;
    const status = () => engineWrite.readOperation(engine, { entity: 'projects', operation: 'delete', operationId });
    return { project, transfer, operationId, status };
  };
  /** A task is never without its project. */
  const expectNoOrphans = async (area: string, label = '') => {
    const kinds = (await rowsIn(area)).map(({ EntityType }) => EntityType);
    if (kinds.includes('tasks')) expect(kinds, label).toContain('projects');
  };

  test('is an operation, which ends with the last task', async () => {
    const { project, transfer, status } = await begin();
    expect(await status()).toMatchObject({ operation: 'delete', status: 'running', key: project });
    expect((await engineRead.readWithChildren(engine, projects, project, [tasks])).values.tasks).toHaveLength(120);
    await engineTransfer.runTransfer(engine, projects, transfer);
    expect(await status()).toMatchObject({ status: 'succeeded' });
    await world.settle();
    expect(await rowsIn(project.area)).toEqual([]);
  });

  test('takes a transaction for each 99 tasks, and a few for all of them', { tags: ['slow'] }, async () => {
    // Of 403: one more transaction for each 99.
    const costs = [];
    for (const count of [205, 403]) {
      const { transfer } = await begin(count);
      costs.push(await costOf(() => engineTransfer.runTransfer(engine, projects, transfer)));
    }
    expect(costs).toEqual([16, 18]);
  });

  test('ends after any fault, without a task that has no project meanwhile', { tags: ['slow'] }, async () => {
    const outcomes = await tryFaults(
      async ({ client, timing, label }) => {
        const { project, transfer, status } = await begin();
        const through = world.engineThrough(client, timing);
        await engineTransfer.runTransfer(through, projects, transfer).catch(() => undefined);
        await expectNoOrphans(project.area, label);
        await engineTransfer.runTransfer(engine, projects, transfer);
        // A duplicate that is late.
        await engineTransfer.runTransfer(engine, projects, transfer);
        await expectNoOrphans(project.area, label);
        expect((await status()).status, label).toBe('succeeded');
        return project.area;
      },
      { what: 'delete of a parent with many children', moreCallsThan: 8 },
    );
    await world.settle();
    for (const area of outcomes) expect(await rowsIn(area), area).toEqual([]);
  });

  test('lets no writer and no duplicate in at any call, and a later project has no task of it', {
    tags: ['slow'],
  }, async () => {
    const seen = new Set<string>();
    await tryInterruptions(
      world,
      async () => {
        const { project, transfer } = await begin();
        const note = async (write: Promise<unknown>) => {
          const outcome = await outcomeOf(write);
          seen.add(outcome);
          return outcome;
        };
        return {
          act: (through) => engineTransfer.runTransfer(through, projects, transfer),
          async interrupt() {
            await expectNoOrphans(project.area);
            // Done before the project is closed.
            await note(engineWrite.createEntity(engine, tasks, { ...project, task: 'late' }));
            if ((await note(engineWrite.createEntity(engine, projects, project))) === 'done') {
              const { values } = await engineRead.readWithChildren(engine, projects, project, [tasks]);
              expect(values.tasks).toEqual([]);
            } else await engineTransfer.runTransfer(engine, projects, transfer).catch(() => undefined);
          },
          async check(label) {
            await engineTransfer.runTransfer(engine, projects, transfer);
            await expectNoOrphans(project.area, label);
            const left = (await rowsIn(project.area)).filter(({ EntityType }) => EntityType === 'tasks');
            expect(left, label).toEqual([]);
          },
        };
      },
      { what: 'delete of a parent with many children, interrupted', size: 2 },
    );
    expect([...seen].sort()).toEqual(expect.arrayContaining(['done', 'duplicate-key']));
  });

  test('does not begin if the project has changed since a conditional request, and else ignores new tasks', async () => {
    const projectOf = async (area: string) => {
      const project = { area, projectId: 'p' };
      await createLarge(project, 120);
      const { etag } = await engineRead.readEntity(engine, projects, project);
      const operationId = (await engineWrite.deleteEntity(engine, projects, project, { ifMatch: etag })) ?? '';
      const transfer = (await world.take('transfers', operationId)).body as Transfer;
      return { project, transfer, operation: { entity: 'projects', operation: 'delete', operationId } as const };
    };
    const one = await projectOf('conditional1');
    await engineWrite.createEntity(engine, tasks, { ...one.project, task: 'more' });
    await engineTransfer.runTransfer(engine, projects, one.transfer);
    expect(await engineWrite.readOperation(engine, one.operation)).toMatchObject({ status: 'succeeded' });
    const other = await projectOf('conditional2');
    await engineWrite.patchEntity(engine, projects, other.project, { title: 'changed' });
    await engineTransfer.runTransfer(engine, projects, other.transfer);
    expect(await engineWrite.readOperation(engine, other.operation)).toMatchObject({
      status: 'failed',
      reason: /changed/,
    });
    await engineWrite.createEntity(engine, tasks, { ...other.project, task: 'more' });
    await expect(
      engineWrite.deleteEntity(engine, projects, other.project, { ifMatch: 'W/"old"' }),
    ).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
  });

  test('deletes nothing of a later project if a transaction arrives late', { tags: ['slow'] }, async () => {
    const { project, transfer } = await begin();
    const client = lateHttpClient(({ url }) => url.includes('$batch'), { dies: true });
    await engineTransfer.runTransfer(world.engineThrough(client, QUICK), projects, transfer).catch(() => undefined);
    await engineTransfer.runTransfer(engine, projects, transfer);
    await world.settle();
    await createLarge(project, 120);
    await client.arrive();
    expect(await rowsIn(project.area)).toHaveLength(121);
  });

  test('is closed to writers while it runs, and open again if it is given up', async () => {
    const { project, transfer, status } = await begin();
    await engineTransfer
      .runTransfer(world.engineThrough(faultyHttpClient('crash after', 8), QUICK), projects, transfer)
      .catch(() => undefined);
    const busy = { code: 'busy' };
    await expect(engineWrite.patchEntity(engine, projects, project, { title: 'x' })).rejects.toMatchObject(busy);
    await expect(engineWrite.createEntity(engine, tasks, { ...project, task: 'x' })).rejects.toMatchObject(busy);
    await expect(engineWrite.deleteEntity(engine, tasks, { ...project, task: 't0119' })).rejects.toMatchObject(busy);
    await engineTransfer.giveUpTransfer(engine, projects, transfer, 'Storage is away.');
    expect(await status()).toMatchObject({ status: 'failed', reason: 'Storage is away.' });
    await engineWrite.createEntity(engine, tasks, { ...project, task: 'x' });
    expect(await engineWrite.deleteEntity(engine, projects, project)).toMatch(/^\d{4}-/);
    await world.settle();
    expect(await rowsIn(project.area)).toEqual([]);
  });

  test('is refused while an entity refers to the project, also if the reference is younger than the request', async () => {
    const { project, transfer, status } = await begin(120);
    await engineWrite.createEntity(world.engine, notes, {
      noteId: project.area,
      area: project.area,
      projectId: project.projectId,
    });
    await engineTransfer.runTransfer(engine, projects, transfer);
    expect(await status()).toMatchObject({ status: 'failed', reason: /refer/ });
    expect((await engineRead.readWithChildren(engine, projects, project, [tasks])).values.tasks).toHaveLength(120);
    await expect(engineWrite.deleteEntity(engine, projects, project)).rejects.toMatchObject({ code: 'referenced' });
    await engineWrite.createEntity(engine, tasks, { ...project, task: 'x' });
  });

  test('is accepted for an action of a batch and in a range', async () => {
    const project = { area: 'batch', projectId: 'p' };
    await createLarge(project, 120);
    expect(await engineWrite.writeBatch(engine, projects, [{ delete: project }])).toEqual([
      { outcome: 'accepted', operationId: expect.any(String) },
    ]);
    expect(await engineWrite.deleteRange(engine, projects, project, { all: true })).toMatchObject({
      deleted: 1,
      failed: [],
    });
    await world.settle();
    expect(await rowsIn('batch')).toEqual([]);
  });
});

describe.each(['archive', 'move'] as const)('the %s of a project', (operation) => {
  const there = (project: Values) => ({
    ...project,
    area: `${project.area}${operation === 'archive' ? '' : 'z'}`,
  });
  const destination = operation === 'archive' ? (projects.archive as Entity) : projects;
  let counter = 0;
  const begin = async (count: number, note?: string) => {
    counter += 1;
    const project = { area: `${operation}${counter}`, projectId: 'p' };
    await createLarge(project, count, note);
    const operationId = await (operation === 'archive'
      ? engineTransfer.requestArchive(engine, projects, project)
      : engineTransfer.requestMove(engine, projects, project, { area: there(project).area }));
    const transfer = (await world.take('transfers', operationId)).body as Transfer;
    const status = () => engineWrite.readOperation(engine, { entity: 'projects', operation, operationId });
    return { project, transfer, status };
  };
  const tasksAt = async (entity: Entity, project: Values) =>
    engineRead.readWithChildren(engine, entity, project, [tasks]).then(
      ({ values }) => (values.tasks as Values[]).length,
      () => undefined,
    );
  /** Every task is stored, here or there, and none without its project. */
  const expectAll = async (project: Values, count: number, label: string) => {
    const [here, arrived] = [await tasksAt(projects, project), await tasksAt(destination, there(project))];
    expect(Math.max(here ?? 0, arrived ?? 0), label).toBeGreaterThanOrEqual(count);
    const rows = [...(await rowsIn(String(project.area))), ...(await rowsIn(String(there(project).area)))];
    for (const at of [project.area, there(project).area]) {
      const kinds = rows.filter(({ partitionKey }) => partitionKey === at).map(({ EntityType }) => EntityType);
      if (kinds.includes('tasks')) expect(kinds, label).toContain('projects');
    }
  };
  const expectMoved = async (project: Values, count: number, label = '') => {
    expect(await tasksAt(destination, there(project)), label).toBe(count);
    expect(await rowsIn(String(project.area)), label).toEqual([]);
    const { etag, values } = await engineRead.readEntity(engine, destination, there(project));
    // It is open to writers.
    if (operation === 'move')
      await engineWrite.patchEntity(engine, destination, values, { title: 'there' }, { ifMatch: etag });
  };

  test('with 120 large tasks ends with all of them, as they were', async () => {
    const { project, transfer, status } = await begin(120, 'x'.repeat(20_000));
    await engineTransfer.runTransfer(engine, projects, transfer);
    expect((await status()).status).toBe('succeeded');
    await expectMoved(project, 120);
    const { values } = await engineRead.readWithChildren(engine, destination, there(project), [tasks]);
    const moved = tasksOf(there(project), 120, 'x'.repeat(20_000));
    expect(values.tasks).toEqual(moved.map((one) => expect.objectContaining(one)));
  });

  test('with 120 tasks is undone for a key that is taken, and open again', async () => {
    const { project, transfer, status } = await begin(120);
    await engineWrite.createEntity(world.engine, notes, { noteId: `${project.area}`, ...project });
    await engineTransfer.runTransfer(engine, projects, transfer);
    expect((await status()).status).toBe('failed');
    expect([await tasksAt(projects, project), await tasksAt(destination, there(project))]).toEqual([120, undefined]);
    await engineWrite.createEntity(engine, tasks, { ...project, task: 'more' });
  });

  test.each([2, 120])('with %i tasks ends with all of them after any fault', { tags: ['slow'] }, async (count) => {
    await tryFaults(
      async ({ client, timing, label }) => {
        const { project, transfer, status } = await begin(count);
        await engineTransfer
          .runTransfer(world.engineThrough(client, timing), projects, transfer)
          .catch(() => undefined);
        await expectAll(project, count, label);
        await engineTransfer.runTransfer(engine, projects, transfer);
        await engineTransfer.runTransfer(engine, projects, transfer);
        expect((await status()).status, label).toBe('succeeded');
        await expectMoved(project, count, label);
      },
      { what: `${operation} of a parent with ${count} children`, moreCallsThan: 8 },
    );
  });

  test.each([2, 120])(
    'with %i tasks loses none when a duplicate of the message runs at any call',
    { tags: ['slow'] },
    async (count) => {
      await tryInterruptions(
        world,
        async () => {
          const { project, transfer } = await begin(count);
          return {
            act: (through) => engineTransfer.runTransfer(through, projects, transfer),
            interrupt: () => engineTransfer.runTransfer(engine, projects, transfer),
            check: (label) => expectMoved(project, count, label),
          };
        },
        { what: `${operation} of a parent with ${count} children, by two consumers`, size: 2 },
      );
    },
  );

  test('with 120 tasks is undone for a key that is taken, also after a crash at any call', {
    tags: ['slow'],
  }, async () => {
    await tryFaults(
      async ({ client, timing, label }) => {
        const { project, transfer, status } = await begin(120);
        // Found when the tasks have been copied.
        await engineWrite.createEntity(world.engine, notes, { noteId: `${project.area}`, ...project });
        await engineTransfer
          .runTransfer(world.engineThrough(client, timing), projects, transfer)
          .catch(() => undefined);
        await engineTransfer.runTransfer(engine, projects, transfer);
        expect((await status()).status, label).toBe('failed');
        expect(await tasksAt(projects, project), label).toBe(120);
        if (operation === 'move')
          for (const { EntityType } of await rowsIn(there(project).area)) expect(EntityType, label).toBe('tombstone');
        expect(await tasksAt(destination, there(project)), label).toBe(undefined);
        await engineWrite.createEntity(engine, tasks, { ...project, task: 'more' });
      },
      { faults: CRASHES, what: `${operation} of a parent with many children, undone`, moreCallsThan: 8 },
    );
  });

  test('with 120 tasks takes a few transactions more than with 99', { tags: ['slow'] }, async () => {
    const costs = [];
    for (const count of [99, 120, 219]) {
      const { transfer } = await begin(count);
      costs.push(await costOf(() => engineTransfer.runTransfer(engine, projects, transfer)));
    }
    expect(costs).toEqual([17, 31, 33]);
  });
});

describe.each([
  [2, []],
  [120, ['slow']],
])('the move of a tour with %i stops', (count, tags) => {
  test('is refused if two of them would get the same key', { tags }, async () => {
    const tour = { area: `tour${count}`, tour: 't' };
    await engineWrite.createEntity(engine, tours, tour);
    for (let nth = 0; nth < count; nth += 1)
      await engineWrite.createEntity(engine, stops, { ...tour, place: `p${nth}` });
    const operationId = await engineTransfer.requestMove(engine, tours, tour, { area: 'one' });
    const transfer = (await world.take('transfers', operationId)).body as Transfer;
    await engineTransfer.runTransfer(engine, tours, transfer);
    expect(await engineWrite.readOperation(engine, { entity: 'tours', operation: 'move', operationId })).toMatchObject({
      status: 'failed',
      reason: 'Two children of an entity of tours would get the same key.',
    });
    const { values } = await engineRead.readWithChildren(engine, tours, tour, [stops]);
    expect(values.stops).toHaveLength(count);
    await engineWrite.createEntity(engine, stops, { ...tour, place: 'another' });
  });
});
