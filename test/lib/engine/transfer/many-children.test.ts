import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, intraPartitionIndex, type Values } from '../../../../lib/index.ts';
import { httpClient } from '../../../../local/walk/known-messages.ts';
import { IS_EVERY_CALL, outcomeOf } from '../../../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { employees, reviews } from '../../../fixtures/model.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineTransfer, engineWrite, type Transfer } from '../../../kit/engine.ts';
import { sampleItems } from '../../../points.ts';
import { putAll } from '../../../put-all.ts';
import { laterBy, openWorld, QUICK, rowsOf, somebody } from '../../../world.ts';

/** Deletes, archives and moves of an entity with more children than a transaction has rows, beside others. */

const declaredTrays = defineEntity('trays', {
  schema: z.object({ shelf: z.string(), trayId: z.string(), note: z.string().optional() }),
  table: 'trays',
  key: { partition: '{shelf}', row: 't_{trayId}' },
  archive: { table: 'oldtrays' },
  movable: ['shelf'],
  access: { read: [], write: [] },
});
const declaredCups = defineEntity('traycups', {
  schema: z.object({
    shelf: z.string(),
    trayId: z.string(),
    cupId: z.string(),
    text: z.string().optional(),
    more: z.string().optional(),
  }),
  table: 'trays',
  key: { partition: '{shelf}', row: 't_{trayId}_{cupId}' },
  childOf: declaredTrays,
  access: { read: [], write: [] },
});
const declaredBoxes = defineEntity('boxes', {
  schema: z.object({ shelf: z.string(), boxId: z.string() }),
  table: 'boxes',
  key: { partition: '{shelf}', row: 'b_{boxId}' },
  indexes: Object.fromEntries(
    Array.from({ length: 60 }, (_, at) => [`n${at}`, intraPartitionIndex({ row: `n${at}_{boxId}` })]),
  ),
  movable: ['shelf'],
  access: { read: [], write: [] },
});
const declaredLids = defineEntity('lids', {
  schema: z.object({ shelf: z.string(), boxId: z.string(), lidId: z.string() }),
  table: 'boxes',
  key: { partition: '{shelf}', row: 'b_{boxId}_{lidId}' },
  childOf: declaredBoxes,
  access: { read: [], write: [] },
});
const {
  trays,
  traycups: cups,
  boxes,
  lids,
} = deploy(declaredTrays, declaredCups, declaredBoxes, declaredLids) as unknown as Readonly<
  Record<'trays' | 'traycups' | 'boxes' | 'lids', Entity>
>;
const world = await openWorld(import.meta.url, [trays, cups, boxes, lids]);
const { engine } = world;
const later = (of: Engine): Engine => laterBy(of, () => 2 * of.timing.claimForMs);
const handle = (transfer: Transfer, by: Engine = engine) => engineTransfer.runTransfer(later(by), trays, transfer);

const OPERATIONS = ['delete', 'archive', 'move'] as const;
type Operation = (typeof OPERATIONS)[number];
/** With their parent, they need two transactions. */
const FEW = 101;
let made = 0;

const cupsOf = (tray: Values, count: number, over: Values = {}) =>
  Array.from({ length: count }, (_, at) => ({ ...tray, cupId: String(at).padStart(4, '0'), ...over }));

async function request(operation: Operation, tray: Values): Promise<Transfer> {
  const operationId =
    operation === 'delete'
      ? ((await engineWrite.deleteEntity(engine, trays, tray)) ?? '')
      : operation === 'archive'
        ? await engineTransfer.requestArchive(engine, trays, tray)
        : await engineTransfer.requestMove(engine, trays, tray, { shelf: `${tray.shelf}z` });
  return (await world.take('transfers', operationId)).body as Transfer;
}

/** A tray, with the message of an operation. */
async function begin(operation: Operation, count = FEW, over: Values = {}) {
  made += 1;
  const tray: Values = { shelf: `${operation}${made}`, trayId: 't' };
  await engineWrite.createEntity(engine, trays, tray);
  await putAll(engine, cups, cupsOf(tray, count, over));
  return { operation, tray, count, transfer: await request(operation, tray) };
}
type Begun = Awaited<ReturnType<typeof begin>>;

const statusOf = async ({ operation, operationId }: Transfer) => {
  const { status, reason } = await engineWrite.readOperation(engine, { operation, operationId, entity: 'trays' });
  return { status, reason };
};
const SUCCEEDED = { status: 'succeeded', reason: undefined };

const rowsIn = async (table: string, shelf: unknown) =>
  (await rowsOf(world.storage, table)).filter(({ partitionKey }) => partitionKey === shelf);

/** Nothing is left at the source, and all are at the destination. */
async function expectEnded({ operation, tray, transfer }: Begun, wanted: readonly Values[], label = ''): Promise<void> {
  expect(await statusOf(transfer), label).toEqual(SUCCEEDED);
  // The tombstone of a delete is deleted by the message of the last transaction.
  const kinds = (await rowsIn('trays', tray.shelf)).map(({ EntityType }) => EntityType);
  expect(
    kinds.filter((kind) => operation !== 'delete' || kind !== 'tombstone'),
    label,
  ).toEqual([]);
  if (operation === 'delete') return;
  const [table, shelf] = operation === 'move' ? ['trays', `${tray.shelf}z`] : ['oldtrays', tray.shelf];
  const keys = wanted.map(({ cupId }) => `t_t_${cupId}`);
  const found = await rowsIn(table, shelf);
  expect(
    found.map(({ rowKey }) => rowKey),
    label,
  ).toEqual(['t_t', ...keys]);
  expect(
    found.map((row) => row.shelf),
    label,
  ).toEqual(Array(found.length).fill(shelf));
  expect(found[0]?.MovingFrom, label).toBe('');
}

/** Runs `run` with a client for each request that changes storage: `isPoint` matches the request. */
async function atEachWrite(run: (isPoint: (request: { method: string }) => boolean, at: number) => Promise<number>) {
  const nth = (at: number) => {
    let seen = 0;
    return ({ method }: { readonly method: string }) => method !== 'GET' && ++seen === at;
  };
  let at = 1;
  while ((await run(nth(at), at)) > 0) at += IS_EVERY_CALL ? 1 : 3;
  expect(at).toBeGreaterThan(5);
}

describe.each(OPERATIONS)('the %s of an entity with many children', (operation) => {
  test('ends after a crash at any write', { tags: ['slow'] }, async () => {
    await atEachWrite(async (isPoint, at) => {
      const begun = await begin(operation);
      const by = world.engineThrough(faultyHttpClient('crash after', isPoint), QUICK);
      const outcome = await outcomeOf(handle(begun.transfer, by));
      for (const _ of [1, 2]) await handle(begun.transfer);
      await expectEnded(begun, cupsOf(begun.tray, FEW), `write ${at}`);
      return outcome === 'done' ? 0 : 1;
    });
  });

  test('is done once if another process handles its message meanwhile', { tags: ['slow'] }, async () => {
    await atEachWrite(async (isPoint, at) => {
      const begun = await begin(operation);
      let happened = 0;
      const client = interruptedHttpClient(isPoint, async () => {
        happened = 1;
        await handle(begun.transfer);
      });
      await handle(begun.transfer, world.engineThrough(client));
      await handle(begun.transfer);
      await expectEnded(begun, cupsOf(begun.tray, FEW), `write ${at}`);
      return happened;
    });
  });

  test('takes all of 1,100 children', { tags: ['slow'] }, async () => {
    const begun = await begin(operation, 1_100);
    await handle(begun.transfer);
    await expectEnded(begun, cupsOf(begun.tray, 1_100));
  });

  test('is not opened by another operation that is given up', async () => {
    const { tray, transfer } = await begin(operation);
    const other = await request(operation === 'delete' ? 'archive' : 'delete', tray);
    const isClosed = ({ body }: { readonly body?: unknown }) => String(body).includes('"Leaving":"2');
    await outcomeOf(handle(transfer, world.engineThrough(faultyHttpClient('crash after', isClosed), QUICK)));
    await engineTransfer.giveUpTransfer(engine, trays, other, 'It has failed.');
    const late = engineWrite.createEntity(engine, cups, { ...tray, cupId: 'late' });
    await expect(late).rejects.toMatchObject({ code: 'busy' });
    await engineTransfer.giveUpTransfer(engine, trays, transfer, 'It has failed.');
    await engineWrite.createEntity(engine, cups, { ...tray, cupId: 'late' });
  });
});

describe.each(['archive', 'move'] as const)('the %s of an entity with many children', (operation) => {
  test('leaves no child at its destination that was deleted after it had been given up', async () => {
    const begun = await begin(operation);
    const isCopied = ({ url, body }: { readonly url: string; readonly body?: unknown }) =>
      url.includes('$batch') && String(body).includes('t_t_0005');
    await outcomeOf(handle(begun.transfer, world.engineThrough(faultyHttpClient('crash after', isCopied), QUICK)));
    await engineTransfer.giveUpTransfer(engine, trays, begun.transfer, 'It has failed.');
    await engineWrite.deleteEntity(engine, cups, { ...begun.tray, cupId: '0005' });
    await engineWrite.createEntity(engine, cups, { ...begun.tray, cupId: '0005b' });
    await handle(begun.transfer);
    const wanted = cupsOf(begun.tray, FEW).map((cup) => (cup.cupId === '0005' ? { ...cup, cupId: '0005b' } : cup));
    await expectEnded(begun, wanted);
  });

  test('copies as many of them in a transaction as its bytes allow', async () => {
    const over = { text: 'x'.repeat(30_000), more: 'y'.repeat(20_000) };
    const begun = await begin(operation, 120, over);
    const sizes: number[] = [];
    const sizer = {
      sendRequest: (sent: Parameters<typeof httpClient.sendRequest>[0]) => {
        if (sent.url.includes('$batch')) sizes.push(Buffer.byteLength(String(sent.body)));
        return httpClient.sendRequest(sent);
      },
    };
    await handle(begun.transfer, world.engineThrough(sizer));
    await expectEnded(begun, cupsOf(begun.tray, 120));
    const large = sizes.filter((size) => size > 1_000_000);
    expect(large.length).toBe(2);
    expect(Math.max(...sizes)).toBeLessThan(4 * 1024 * 1024);
  });
});

test('a move whose source is gone deletes no entity that a caller has created at its destination meanwhile', async () => {
  const begun = await begin('move');
  const { tray, transfer } = begun;
  const isCopied = ({ url, body }: { readonly url: string; readonly body?: unknown }) =>
    url.includes('$batch') && String(body).includes('t_t_0099');
  await outcomeOf(handle(transfer, world.engineThrough(faultyHttpClient('crash after', isCopied), QUICK)));
  await engineTransfer.giveUpTransfer(engine, trays, transfer, 'It has failed.');
  await handle(await request('delete', tray));
  const isFirstDelete = ({ url, body }: { readonly url: string; readonly body?: unknown }) =>
    url.includes('$batch') && String(body).includes('DELETE');
  const there = { ...tray, shelf: `${tray.shelf}z` };
  const client = interruptedHttpClient(isFirstDelete, async () => {
    await handle(transfer);
    await engineWrite.createEntity(engine, trays, there);
  });
  await handle(transfer, world.engineThrough(client));
  expect((await statusOf(transfer)).status).toBe('failed');
  expect(await rowsIn('trays', there.shelf)).toEqual([expect.objectContaining({ EntityType: 'trays', trayId: 't' })]);
});

/** An employee with all rows of indexes that there can be, and reviews. */
async function employWith(count: number, over: Values = {}) {
  made += 1;
  const employee = somebody({ department: `L${made}`, jobTitle: 'Manager', hireDate: '2020-01-01' });
  const { department, employeeId } = employee;
  await engineWrite.createEntity(engine, employees, employee);
  const years = Array.from({ length: count }, (_, index) => 1900 + index);
  await putAll(
    engine,
    reviews,
    years.map((year) => ({ department, employeeId, year, rating: 1, ...over })),
  );
  return { employee, key: { department, employeeId } };
}

const OF_EMPLOYEES = {
  move: (key: Values) => engineTransfer.requestMove(engine, employees, key, { department: `${key.department}z` }),
  archive: (key: Values) => engineTransfer.requestArchive(engine, employees, key),
  delete: async (key: Values) => (await engineWrite.deleteEntity(engine, employees, key)) ?? '',
};

const reviewsIn = async (table: string, department: unknown) =>
  (await rowsOf(world.storage, table)).filter(
    ({ partitionKey, EntityType }) => partitionKey === department && EntityType === 'reviews',
  ).length;

// With its copies, its lists and the count of its department, an employee needs more than one row of a transaction.
test.each(
  Object.entries(OF_EMPLOYEES).flatMap(([operation, ask]) =>
    [97, ...sampleItems([93, 94, 95, 96, 98, 99, 100, 101, 198], `children of an employee to ${operation}`)].map(
      (count) => [operation, count, ask] as const,
    ),
  ),
)('the %s of an employee with %i reviews ends with all of them', async (operation, count, ask) => {
  const { key } = await employWith(count);
  const operationId = await ask(key);
  if (operationId !== '') {
    const { body } = await world.take('transfers', operationId);
    await engineTransfer.runTransfer(later(engine), employees, body as Transfer);
    const found = await engineWrite.readOperation(engine, {
      operation: operation as Operation,
      operationId,
      entity: 'employees',
    });
    expect(found).toMatchObject({ status: 'succeeded' });
  } else expect([operation, count < 95]).toEqual(['delete', true]);
  await world.settle();
  expect(await reviewsIn('employees', key.department)).toBe(0);
  if (operation === 'move') expect(await reviewsIn('employees', `${key.department}z`)).toBe(count);
  if (operation === 'archive') expect(await reviewsIn('formeremployees', key.department)).toBe(count);
});

test('moves an entity whose children fit into a transaction by their number and not by their bytes', async () => {
  const over = { text: 'x'.repeat(30_000), more: 'y'.repeat(30_000) };
  const begun = await begin('move', 90, over);
  await handle(begun.transfer);
  await expectEnded(begun, cupsOf(begun.tray, 90));
});

test('loses no child of an entity that needs the whole last transaction for its rows of indexes', async () => {
  const COPIES = 60;
  // After a transaction of 99, fewer are left than fit into the last one beside an entity without indexes.
  const LIDS = 148;
  const tray = { shelf: 'wide', boxId: 'b' };
  await engineWrite.createEntity(engine, boxes, tray);
  await putAll(
    engine,
    lids,
    Array.from({ length: LIDS }, (_, at) => ({ ...tray, lidId: String(at).padStart(4, '0') })),
  );
  expect((await rowsIn('boxes', 'wide')).length).toBe(1 + COPIES + LIDS);
  const operationId = await engineTransfer.requestMove(engine, boxes, tray, { shelf: 'wider' });
  const { body } = await world.take('transfers', operationId);
  await engineTransfer.runTransfer(later(engine), boxes, body as Transfer);
  await world.settle();
  expect(await rowsIn('boxes', 'wide')).toEqual([]);
  expect((await rowsIn('boxes', 'wider')).length).toBe(1 + COPIES + LIDS);
});
