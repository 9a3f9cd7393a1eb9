import pMap from 'p-map';
import { expect, test } from 'vitest';
import type { Values } from '../../../../lib/index.ts';
import { type BackedUp, dump, openBackedUp } from '../../../backed-up.ts';
import { departments, employees, model, reviews } from '../../../fixtures/model.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineRead, engineTransfer, engineWrite } from '../../../kit/engine.ts';
import { storageBlobs } from '../../../kit/storage.ts';
import { somebody } from '../../../world.ts';

/** All writes of an operation are in a second or two. */
const STEP_MS = 10;
/** The instants at which a clock that is ahead makes a difference. */
const LAST = 8;

/** Lets time pass before each change of rows, and returns the instants between them. */
function noteInstants(app: BackedUp): string[] {
  const instants: string[] = [];
  const toInstant = () => new Date(app.now()).toISOString().replace('Z', '5000Z');
  app.memory.intercept = async (request, send) => {
    if (request.method === 'GET' || !request.url.startsWith('http://127.0.0.1:1/')) return send();
    instants.push(toInstant());
    app.advance(STEP_MS);
    const response = await send();
    app.advance(STEP_MS);
    return response;
  };
  return instants;
}

interface Line {
  readonly table: string;
  readonly partition: string;
  readonly time: string;
  readonly rows: readonly { readonly row: string; readonly time: string; deleted?: true; properties?: Values }[];
}

async function changeJournal({ backup }: BackedUp, change: (line: Line) => Line): Promise<void> {
  const container = backup.container('backup');
  for (const name of await storageBlobs.listBlobs(backup, { container: 'backup', prefix: 'journal/' })) {
    const lines = await Array.fromAsync(storageBlobs.readLines(backup, { container: 'backup', name }), (text) =>
      JSON.stringify(change(JSON.parse(text))),
    );
    await container.deleteBlob(name);
    await container.getBlockBlobClient(name).uploadData(Buffer.from(`${lines.join('\n')}\n`));
  }
}

/** Gives the delete of a tombstone the earliest time that the journal may give it: the instant after the version that it deletes. */
async function deleteEarly(app: BackedUp): Promise<void> {
  const tombstones = new Map<string, string>();
  await changeJournal(app, (line) => {
    const idOf = (row: string) => JSON.stringify([line.table, line.partition, row]);
    for (const { row, time, properties } of line.rows)
      if (properties?.EntityType === 'tombstone') tombstones.set(idOf(row), time);
    const [only] = line.rows;
    const before = line.rows.length === 1 && only?.deleted ? tombstones.get(idOf(only.row)) : undefined;
    if (!only || before === undefined) return line;
    const time = before.replace(/\dZ$/, '9Z');
    return { ...line, time, rows: [{ ...only, time }] };
  });
}

/** Gives the rows of a partition the times of an account whose clock is ahead. */
function putAhead(app: BackedUp, partition: string, byMs: number): Promise<void> {
  const later = <T extends { readonly time: string }>(one: T): T => ({
    ...one,
    time: `${new Date(Date.parse(one.time) + byMs).toISOString().slice(0, -1)}${one.time.slice(-5)}`,
  });
  return changeJournal(app, (line) =>
    line.partition === partition ? { ...later(line), rows: line.rows.map(later) } : line,
  );
}

const there = (one: Values) => ({ ...one, department: 'Later' });

async function isAt(engine: Engine, entity: Entity, key: Values): Promise<boolean> {
  return engineRead.readEntity(engine, entity, key).then(
    () => true,
    () => false,
  );
}

const countReviews = async (engine: Engine, { department, employeeId }: Values) => {
  const years = Array.from({ length: 130 }, (_, index) => ({ department, employeeId, year: 1900 + index }));
  const found = await pMap(years, (key) => isAt(engine, reviews, key), { concurrency: 16 });
  return found.filter((is) => is).length;
};

async function openEmployee(children: number) {
  const app = await openBackedUp(model);
  const one = somebody({ department: 'First', jobTitle: 'Manager', nationalId: 'secret' });
  await engineWrite.createEntity(app.engine, departments, { department: 'First' });
  await engineWrite.createEntity(app.engine, employees, one);
  const { department, employeeId } = one;
  const all = Array.from({ length: children }, (_, index) => ({
    department,
    employeeId,
    year: 1900 + index,
    rating: 1,
  }));
  for (let at = 0; at < all.length; at += 50)
    await engineWrite.writeBatch(
      app.engine,
      reviews,
      all.slice(at, at + 50).map((create) => ({ create })),
    );
  await app.settle();
  await app.snapshot();
  return { app, one };
}

const request = {
  archive: (engine: Engine, one: Values) => engineTransfer.requestArchive(engine, employees, one),
  move: (engine: Engine, one: Values) => engineTransfer.requestMove(engine, employees, one, { department: 'Later' }),
};

/** Restores the app as it was before and after each request of an operation, and returns what became of that. With a clock that is ahead, the last ones. */
async function restoreEach(operation: keyof typeof request, children: number, aheadMs = 0): Promise<Set<string>> {
  const { app, one } = await openEmployee(children);
  const instants = noteInstants(app);
  const operationId = await request[operation](app.engine, one);
  await app.settle();
  instants.push(app.cut());
  app.memory.intercept = undefined;
  await deleteEarly(app);
  if (aheadMs > 0) await putAhead(app, one.department, aheadMs);
  const outcomes: string[] = [];
  for (const at of aheadMs > 0 ? instants.slice(-LAST) : instants) {
    const target = await app.openTarget({ accounts: 1, prefix: '' });
    const report = await app.restore(target, at);
    expect([at, report.findings, report.settled.left]).toEqual([at, [], []]);
    const { engine } = target;
    const archive = employees.archive as Entity;
    const places = {
      source: await isAt(engine, employees, one),
      there: await (operation === 'move' ? isAt(engine, employees, there(one)) : isAt(engine, archive, one)),
    };
    const recorded = await engineWrite.findOperation(engine, { operation, operationId, entity: 'employees' });
    const status = recorded?.status ?? 'none';
    outcomes.push(String(status));
    expect([at, status, places]).toEqual([
      at,
      status,
      { source: status !== 'succeeded', there: status === 'succeeded' },
    ]);
    if (operation === 'move')
      expect(await countReviews(engine, status === 'succeeded' ? there(one) : one)).toBe(children);
    // Nothing is busy.
    if (status !== 'succeeded') {
      await request[operation](engine, one);
      await target.settle();
      expect(await isAt(engine, employees, one)).toBe(false);
    }
  }
  return new Set(outcomes);
}

test.each([
  ['archive', 2],
  ['move', 2],
  ['archive', 120],
  ['move', 120],
] as const)(
  'finishes or undoes the %s of an entity with %i children, wherever it was cut',
  { tags: ['slow'] },
  async (operation, children) => {
    expect(await restoreEach(operation, children)).toEqual(new Set(['none', 'failed', 'succeeded']));
  },
);

test.each([2, 120])(
  'finishes or undoes the move of %i children, wherever it was cut, if the clock of the source is ahead',
  async (children) => {
    const outcomes = await restoreEach('move', children, 12 * STEP_MS);
    expect([...outcomes]).toEqual(expect.arrayContaining(['failed', 'succeeded']));
  },
);

test('finishes or undoes the delete of an entity with many children, wherever it was cut', {
  tags: ['slow'],
}, async () => {
  const { app, one } = await openEmployee(120);
  const instants = noteInstants(app);
  await engineWrite.deleteEntity(app.engine, employees, one).catch(() => undefined);
  await app.settle();
  instants.push(app.cut());
  app.memory.intercept = undefined;
  await deleteEarly(app);
  const outcomes = new Set<boolean>();
  for (const at of instants) {
    const target = await app.openTarget({ accounts: 1, prefix: '' });
    const report = await app.restore(target, at);
    expect([at, report.findings, report.settled.left]).toEqual([at, [], []]);
    const is = await isAt(target.engine, employees, one);
    outcomes.add(is);
    expect(await countReviews(target.engine, one)).toBe(is ? 120 : 0);
    if (is) await engineWrite.patchEntity(target.engine, employees, one, { lastName: 'Free' });
  }
  expect(outcomes).toEqual(new Set([true, false]));
});

test('deletes the tombstone of a delete whose message is gone', async () => {
  const { app, one } = await openEmployee(0);
  await engineWrite.deleteEntity({ ...app.engine, settleInline: 0 }, employees, one);
  const tombstonesIn = async ({ storage }: Pick<BackedUp, 'storage'>) =>
    Object.values(await dump(storage)).filter((text) => JSON.parse(text).EntityType === 'tombstone');
  expect(await tombstonesIn(app)).toHaveLength(1);
  const target = await app.openTarget();
  const { settled, findings } = await app.restore(target, app.cut());
  expect([settled.tombstones, findings, await tombstonesIn(target)]).toEqual([1, [], []]);
});
