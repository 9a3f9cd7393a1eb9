import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Model,
  RowkeyError,
  total,
  type Values,
} from '../../lib/index.ts';
import { compareAll } from '../../local/walk/compare-answers.ts';
import { compareStored } from '../../local/walk/compare-stored.ts';
import { learnMessages } from '../../local/walk/known-messages.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { type Step, takeStep } from '../../local/walk/steps.ts';
import { roundsOf } from '../../local/walk/walk.ts';
import { openWorld, TIMING, type WalkWorld } from '../../local/walk/walk-world.ts';
import { model as deployed } from '../../model/model.ts';
import { deploy } from '../fixtures/deploy.ts';
import { model as fixtures } from '../fixtures/model.ts';
import { model as relations } from '../fixtures/relations.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { engineCore, engineRead, engineWrite } from '../kit/engine.ts';
import type { Internal } from '../kit/internal.ts';
import { operationsCheck, operationsModel, operationsMove, type VerifyPosition } from '../kit/operations.ts';
import { type KeyRing, storageKeys, storageRows, storageSlots, storageTables } from '../kit/storage.ts';
import { createAccounts, NAMES, type Several } from '../lib/storage/several-accounts.ts';
import { countTurns } from '../patient-clock.ts';
import { log as silent } from '../silent-log.ts';

countTurns();

/**
 * Writers, queue functions and the consistency check of several processes, beside movers of which some die: afterwards, every answer agrees
 * with the entities. The processes run concurrently, so a seed does not determine what happens.
 */

const WRITERS = 4;
const HANDLERS = 2;
const IDLE_MS = 10;
const PAUSE_MS = 40;
/** A mover that has died is followed by as many others at most, which may resume or abort. */
const SUCCESSORS = 8;
/** Accounts in memory execute no request late. */
const QUICK = { ...operationsMove.MOVE_TIMING, lateMs: 1_500, holdMs: 8_000, keepMs: 8_000 };

let folder: string;
let keys: KeyRing;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-moving-'));
  const keyFile = join(folder, 'keys.json');
  await storageKeys.rotateLocalKey(keyFile);
  keys = storageKeys.createLocalKeyRing(keyFile);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function createRandom(seed: number) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return { next, pick: <Item>(items: readonly Item[]) => items[Math.floor(next() * items.length)] as Item };
}

/** Accounts in memory whose messages a queue worker can show. */
function createWalkAccounts() {
  const accounts = createAccounts();
  for (const memory of accounts.memories)
    memory.intercept = async ({ method, url, body }, send) => {
      const reply = await send();
      const text = typeof body === 'string' ? body : '';
      if (reply.status < 300)
        learnMessages({ method, url, text }, reply.headers.get('x-ms-popreceipt') ?? '', reply.bodyAsText ?? '');
      return reply;
    };
  return accounts;
}

/** What writes to slots that are moved closed fails after fifteen seconds, if a busy machine takes that long, and can be repeated. */
async function repeatWhileClosed<Result>(work: () => Promise<Result>, attempts = 8): Promise<Result> {
  return work().catch((error: Error) => {
    if (attempts === 0 || !error.message.includes('does not end')) throw error;
    return repeatWhileClosed(work, attempts - 1);
  });
}

async function walkBesideMovers(model: Model, seed: number, forMs: number) {
  const { next, pick } = createRandom(seed);
  const { open, openWith, requests } = createWalkAccounts();
  const resources = () => operationsModel.resourcesOf(model.list, Date.now(), model);
  const given = () => ({ resources: resources(), timing: QUICK });
  await storageTables.provision(open(), resources());
  const openProcess = () =>
    openWorld(model, engineCore.createEngine(open(), { timing: TIMING, keys, queueParts: model.queueParts }));
  const problems: string[] = [];
  const done = new Map<string, number>();
  const count = (what: string) => done.set(what, (done.get(what) ?? 0) + 1);
  const taken: (Step & { readonly outcome: string })[] = [];
  const rounds = roundsOf(model, { seed, writes: Number.POSITIVE_INFINITY });
  const queue: Step[] = [];
  let hasLeft = false;
  let isOver = false;

  async function write(): Promise<void> {
    let world = openProcess();
    while (!isOver) {
      if (next() < 0.01) world = openProcess();
      if (queue.length === 0) queue.push(...(rounds.next().value?.steps ?? []));
      const step = queue.shift() as Step;
      const outcome = await repeatWhileClosed(() => takeStep(world, step)).catch((error: Error) => {
        problems.push(`${step.of} ${step.do}: ${error.stack}`);
        return error.message;
      });
      taken.push({ ...step, outcome });
      await sleep(next() * PAUSE_MS);
    }
  }

  async function handle({ worker }: WalkWorld): Promise<void> {
    while (!isOver) if ((await worker.handleVisible()) === 0) await sleep(IDLE_MS);
  }

  async function verify(): Promise<void> {
    const entities = model.list.filter(operationsCheck.canVerify);
    while (!isOver) {
      const { engine } = openProcess();
      const entity = pick(entities);
      for (let position: VerifyPosition | undefined, isFirst = true; isFirst || position; isFirst = false)
        position = (
          await repeatWhileClosed(() => operationsCheck.verifyPage(engine, entity, { position, top: 50, repair: true }))
        ).next;
      await sleep(5 * PAUSE_MS);
    }
  }

  /** Some slots in which there are partitions, of all layers, and some empty ones. */
  async function chooseSlots(storage: Several): Promise<string[]> {
    const slots = new Set<string>();
    for (const account of storage.accounts.list)
      for (const table of resources().tables) {
        const pages = account.table(table).listEntities().byPage({ maxPageSize: 500 });
        for (const { partitionKey } of (await pages.next()).value ?? [])
          slots.add(storageSlots.slotOf(partitionKey ?? ''));
      }
    const numbers = operationsMove
      .layersIn(await operationsMove.readPlacement(storage.accounts))
      .map(({ number }) => `${number}-`);
    const share = next();
    return [
      ...[...slots].filter(() => next() < share).flatMap((slot) => ['', ...numbers].map((layer) => layer + slot)),
      ...Array.from({ length: 10 }, () => storageSlots.slotAt(Math.floor(next() * storageSlots.SLOTS))),
    ];
  }

  function placeSome(): readonly Internal['PlacedLayer'][] {
    const { table } = pick(model.list);
    const entities = model.list.filter((entity) => entity.table === table).map(({ name }) => name);
    const some = next() < 0.6 ? { entities } : { from: pick(['0', '5', 'A', 'E', 'a']), to: '~' };
    return next() < 0.2
      ? []
      : definePlaces.layersOf({ list: model.list, placement: { some: { ...some, account: pick(NAMES) } } });
  }

  /** As the command `balance` does for what a model places, and `remove` for what it places no more. */
  async function place(storage: Several): Promise<Internal['MoveReport']> {
    const placed = placeSome();
    await operationsMove.arrangeLayers(storage, placed, given());
    const placements = await operationsMove.readPlacement(storage.accounts);
    const report = await operationsMove.moveSlots(
      storage,
      [
        ...operationsMove.planLayers(placements, placed),
        ...(placed.length === 0 ? operationsMove.planToLayer0(placements, 'some') : []),
      ],
      given(),
    );
    await operationsMove.arrangeLayers(storage, placed, { ...given(), isTidying: true });
    return report;
  }

  const works = {
    async move(storage: Several) {
      return operationsMove.moveSlots(
        storage,
        [{ slots: await chooseSlots(open() as Several), to: pick(NAMES) }],
        given(),
      );
    },
    async moveClosed(storage: Several) {
      const slots = (await chooseSlots(open() as Several)).slice(-12);
      return operationsMove.moveSlots(storage, [{ slots, to: pick(NAMES) }], { ...given(), isClosed: true });
    },
    back: (storage: Several) => operationsMove.moveBack(storage, undefined, given()),
    cleanUp: (storage: Several) => operationsMove.cleanUp(storage, given()),
    place,
  };

  async function move(): Promise<void> {
    while (!isOver) {
      requests.length = 0;
      const isFirst = done.size === 0;
      const what = isFirst
        ? 'move'
        : pick(['move', 'move', 'move', 'moveClosed', 'back', 'cleanUp', 'place', 'place'] as const);
      const dies = !isFirst && next() < 0.3;
      const mover = openWith(
        dies ? pick(['crash before', 'crash after']) : undefined,
        20 + Math.floor(next() ** 2 * 2_000),
      );
      try {
        const report = await works[what](mover.storage);
        if ('left' in report) hasLeft ||= report.left.length > 0;
        count(what);
      } catch (error) {
        count(`${what} fails`);
        if (!dies && !(error instanceof RowkeyError)) problems.push(`mover: ${(error as Error).stack}`);
        for (let attempt = 1; attempt <= SUCCESSORS; attempt += 1) {
          const [name, end] = pick([
            ['resume', operationsMove.resumeMoves] as const,
            ['abort', operationsMove.abortMoves] as const,
          ]);
          const ended = await end(open(), given()).then(
            () => name,
            () => undefined,
          );
          if (ended) count(ended);
          if (ended) break;
        }
      }
      await sleep(10 * next() * PAUSE_MS);
    }
  }

  /** Rows in accounts that do not own them. */
  async function listStrays(): Promise<string[]> {
    const storage = open() as Several;
    const strays: string[] = [];
    for (const account of storage.accounts.list)
      for (const table of await storageTables.listTables(account, ''))
        for await (const { partitionKey = '', rowKey = '', ...found } of account.table(table).listEntities())
          if (
            storageSlots.isOfApp({
              table,
              partition: partitionKey,
              row: rowKey,
              properties: storageRows.toRowProperties(found),
            }) &&
            (await storageSlots.ownerOf(storage, partitionKey, table)) !== account
          )
            strays.push(`${account.name} has ${table}/${partitionKey}/${rowKey}, which it does not own`);
    return strays;
  }

  setTimeout(() => {
    isOver = true;
  }, forMs);
  const work = [
    ...Array.from({ length: WRITERS }, write),
    ...Array.from({ length: HANDLERS }, () => handle(openProcess())),
    verify(),
    move(),
  ];
  await Promise.all(work);
  await operationsMove.resumeMoves(open(), given());
  const world = openProcess();
  await world.worker.settle();
  await operationsMove.cleanUp(open(), { ...given(), timing: { ...QUICK, keepMs: 0 } });
  if (!hasLeft) problems.push(...(await listStrays()));
  problems.push(...(await compareAll(world, model.list, { steps: taken, isInOrder: false })));
  return { problems, done };
}

/** A repository may have no entities yet. */
const MODELS = { ...(deployed.list.length > 0 && { deployed }), fixtures, relations };

test.concurrent.each(Object.entries(MODELS))(
  'every answer agrees with the entities after random writes beside movers that die: %s',
  async (_, model) => {
    const { problems, done } = await walkBesideMovers(model, Number(inject('seed')), 30_000);
    expect(problems.slice(0, 10)).toEqual([]);
    expect([...done.keys()]).toContain('move');
  },
);

const OLD = { partition: '{studio}', row: '{title}_{year:4}' } as const;
const NEW = { partition: '{studio}_{year:4}', row: '{title}_reel' } as const;
const declareReels = (key: { partition: string; row: string; former?: { partition: string; row: string } }): Entity =>
  deploy(
    defineEntity('reels', {
      schema: z.object({
        studio: z.string(),
        title: z.string(),
        year: z.int32(),
        code: z.string(),
        minutes: z.int32(),
        script: z.string().optional(),
      }),
      table: 'reels',
      key,
      large: ['script'],
      indexes: {
        code: interPartitionIndex({ table: 'reelsbycode', partition: '{code}', row: 'code', unique: true }),
        minutes: intraPartitionIndex({ row: 'min_{minutes:4}_{title}_{year:4}', copies: 'keys' }),
        titles: indexEntity({ table: 'reelsbytitle', partition: '{title}', row: 'all', holds: '{year:4}_{studio}' }),
      },
      totals: { perStudio: total({ table: 'reelsperstudio', partition: '{studio}', row: 'all', sum: ['minutes'] }) },
      access: { read: [], write: [] },
    }),
  ).reels;

test.concurrent('entities move to another key while their slots move to other accounts', async () => {
  const [before, after] = [declareReels(OLD), declareReels({ ...NEW, former: OLD })];
  const { next, pick } = createRandom(Number(inject('seed')));
  const { open, openWith } = createWalkAccounts();
  // Each process reads the map when it begins.
  const timing = { ...QUICK, leaseMs: 200, lateMs: 2_000, holdMs: 2_000 };
  const given = { resources: operationsModel.resourcesOf([after], Date.now()), timing };
  await storageTables.provision(open(), given.resources);
  const openProcess = () =>
    engineCore.createEngine(open(), { timing: TIMING, keys, rekey: operationsModel.createRekey([after]) });
  const known = new Map<string, Values>();
  const reels = Array.from({ length: 60 }, (_, at) => ({
    studio: `s${at % 5}`,
    title: `t${Math.floor(at / 5) % 6}`,
    year: 1914 + Math.floor(at / 30),
    code: `c${at}`,
    minutes: at,
    ...(at % 4 === 0 ? { script: 'x'.repeat(40_000) } : {}),
  }));
  const first = engineCore.createEngine(open(), { timing: TIMING, keys });
  for (const reel of reels) {
    await engineWrite.createEntity(first, before, reel);
    known.set(JSON.stringify(baseValues.pick(reel, after.keyFields)), reel);
  }
  await operationsModel.guardModel(first, [before], undefined);
  await operationsModel.guardModel(first, [after], undefined);
  await operationsModel.startRekey(first, after);
  await operationsModel.startMoves(first, after);
  const slots = [
    ...new Set(
      reels.flatMap((reel) =>
        [before, after].map((entity) => storageSlots.slotOf(definePlaces.addressOf(entity, reel).partition)),
      ),
    ),
    ...['t0', 't1', 'c1', 'c2', 's0', 'model'].map(storageSlots.slotOf),
  ];
  const MOVES = 3;
  let isOver = false;
  let round = 0;
  async function write(at: number): Promise<void> {
    const own = reels.filter((_, index) => index % WRITERS === at);
    while (!isOver) {
      const engine = openProcess();
      const key = baseValues.pick(pick(own), after.keyFields);
      const minutes = Math.floor(next() * 500);
      const last = known.get(JSON.stringify(key));
      try {
        await engineWrite.patchEntity(engine, after, key, { minutes });
        known.set(JSON.stringify(key), { ...last, minutes });
        expect((await engineRead.readEntity(engine, after, key)).values.minutes).toBe(minutes);
      } catch (error) {
        // Nothing has changed.
        if (!baseValues.hasCode(error, 'busy')) throw error;
      }
      await sleep(next() * PAUSE_MS);
    }
  }
  async function move(): Promise<void> {
    const since = performance.now();
    // On a busy machine a move takes long.
    while (round < MOVES || performance.now() - since < 30_000) {
      const some = slots.filter(() => next() < 0.6);
      const dies = next() < 0.3;
      const { storage } = openWith(dies ? 'crash after' : undefined, 20 + Math.floor(next() * 400));
      round += 1;
      await operationsMove
        .moveSlots(storage, [{ slots: [...new Set(some)], to: pick(NAMES) }], given)
        .catch(async (error) => {
          if (!dies && !(error instanceof RowkeyError)) throw error;
          for (let isDone = false; !isDone; )
            isDone = await pick([operationsMove.resumeMoves, operationsMove.abortMoves])(open(), given).then(
              () => true,
              () => false,
            );
        });
    }
  }
  const worker = () =>
    createQueueWorker({ engine: openProcess(), entities: [after], log: silent }, { lastLogged: () => '' });
  async function rekey(): Promise<void> {
    while (!isOver) {
      let position: VerifyPosition | undefined;
      try {
        // Slowly, so that entities are at both keys during several moves.
        for (let isFirst = true; isFirst || position; isFirst = false) {
          position = (await operationsModel.rekeyPage(openProcess(), after, { position, top: 3 })).next;
          if (round < 6) await sleep(400);
          if (isOver) return;
        }
      } catch (error) {
        if (!baseValues.hasCode(error, 'busy')) throw error;
      }
    }
  }
  async function handle(): Promise<void> {
    while (!isOver) if ((await worker().handleVisible()) === 0) await sleep(10 * IDLE_MS);
  }
  await Promise.all([
    ...Array.from({ length: WRITERS }, (_, at) => write(at)),
    move().finally(() => {
      isOver = true;
    }),
    rekey(),
    handle(),
  ]);
  await operationsMove.resumeMoves(open(), given);
  await worker().settle();
  const engine = openProcess();
  for (let position: VerifyPosition | undefined, isFirst = true; isFirst || position; isFirst = false)
    position = (await operationsModel.rekeyPage(engine, after, { position, top: 50 })).next;
  await worker().settle();
  await operationsMove.cleanUp(open(), { ...given, timing: { ...timing, keepMs: 0 } });
  const { values, differences } = await compareStored(open(), after);
  expect(differences).toEqual([]);
  const read = await Promise.all(
    values.map(
      async (one) => (await engineRead.readEntity(engine, after, baseValues.pick(one, after.keyFields))).values,
    ),
  );
  const shown = (all: Iterable<Values>) =>
    [...all].map((one) => JSON.stringify([one.studio, one.title, one.year, one.code, one.minutes])).sort();
  expect(shown(read)).toEqual(shown(known.values()));
});
