import { randomUUID } from 'node:crypto';
import { type HttpClient, RestError } from '@azure/core-rest-pipeline';
import { afterAll, expect, test } from 'vitest';
import { RowkeyError, type Values } from '../../lib/index.ts';
import { httpClient } from '../../local/walk/known-messages.ts';
import { doorevents, doorminutes, employees, messagehours, messageyears, model, sales } from '../fixtures/model.ts';
import { accessChecks } from '../kit/access.ts';
import { baseValues } from '../kit/base.ts';
import { type Engine, engineConsume, engineRead, engineWrite } from '../kit/engine.ts';
import { featureSeries } from '../kit/features.ts';
import { samplePoints } from '../points.ts';
import { log } from '../silent-log.ts';
import { countEach } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld } from '../world.ts';

/**
 * Loses the reply to each storage call of a write, or the call itself, while another writer changes the same data before the
 * SDK can repeat the call. A write takes effect at most once: it must not undo the other change, and a rejected write must not
 * have taken effect.
 */

const CONCURRENCY = 6;
const LOSSES = ['reply lost', 'request lost'] as const;

const world = await openWorld(import.meta.url);
afterAll(async () => {
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
  await expectIndexesToAgree(world.storage, sales);
});

/** Each trial has its own keys, which are made of `tag`. */
interface Kind {
  readonly prepare?: (tag: string) => Promise<unknown>;
  readonly act: (engine: Engine, tag: string) => Promise<unknown>;
  readonly other: (tag: string) => Promise<unknown>;
  /** The state that both change. */
  readonly read: (tag: string) => Promise<unknown>;
}

function person(tag: string): Values & { employeeId: string } {
  const email = `${tag}@contoso.com`;
  return { department: `D${tag}`, employeeId: tag, email, firstName: 'A', lastName: `L${tag}` };
}
const renamed = (tag: string) => ({ ...person(tag), lastName: 'New', email: `new${tag}@contoso.com` });

const EVENT = randomUUID();
const event = (tag: string, door: string) => {
  return { department: 'D', employeeId: tag, hour: '2026112008', eventId: EVENT, door };
};
const sale = (tag: string, amount: number) => {
  return { branch: `B${tag}`, saleId: `S${tag}`, soldOn: '2026-03-07', amount };
};
const hours = (tag: string) => ({ employeeId: tag, day: '2026-11-20' });
const years = (tag: string) => ({ employeeId: tag, year: 2026 });
const minutes = (tag: string) => ({ department: `D${tag}`, day: '2026-11-20' });
const counts = (...pairs: [number, number][]) => new Map(pairs);

const valuesOf = async (reading: Promise<{ readonly values: Values }>) => (await reading).values;
const hire = (tag: string) => engineWrite.createEntity(world.engine, employees, person(tag));
const readPerson = (tag: string) => valuesOf(engineRead.readEntity(world.engine, employees, person(tag)));
const putEvent = (tag: string, door = 'first') =>
  engineWrite.putEntity(world.engine, doorevents, event(tag, door), event(tag, door));
const readEvent = (tag: string) => valuesOf(engineRead.readEntity(world.engine, doorevents, event(tag, '')));
const readCounts = (of: Parameters<typeof featureSeries.readSeries>[1], key: Values) => async () =>
  (await featureSeries.readSeries(world.engine, of, key)).counts.filter((count) => count > 0);
const readHours = (tag: string) => readCounts(messagehours, hours(tag))();
const setHours = (tag: string) => featureSeries.setCounts(world.engine, messagehours, hours(tag), counts([1, 10]));
const subject = (tag: string) => `subject${tag}`;
const readRevocation = (tag: string) =>
  accessChecks.admitGrant(world.engine, subject(tag)).then(
    () => 'admitted',
    () => 'revoked',
  );

/** Consumes the intent of `prepare`. An intent whose consumer fails returns to its queue. */
async function consuming(engine: Engine, tag: string): Promise<void> {
  const message = await world.take('index-changes', tag);
  try {
    await engineConsume.consumeIntent({ engine, entities: model.list, log }, message);
  } catch (error) {
    await world.storage.queue('index-changes').sendMessage(JSON.stringify(message.body));
    throw baseValues.unavailable('The consumer failed.', error);
  }
}

const KINDS: Readonly<Record<string, Kind>> = {
  'a create and a delete': {
    act: (engine, tag) => engineWrite.createEntity(engine, employees, person(tag)),
    other: (tag) => engineWrite.deleteEntity(world.engine, employees, person(tag)),
    read: readPerson,
  },
  'a create and a patch': {
    act: (engine, tag) => engineWrite.createEntity(engine, employees, person(tag)),
    other: (tag) => engineWrite.patchEntity(world.engine, employees, person(tag), { firstName: 'Other' }),
    read: readPerson,
  },
  'two creates with the same unique value': {
    act: (engine, tag) => engineWrite.createEntity(engine, employees, person(tag)),
    other: (tag) =>
      engineWrite.createEntity(world.engine, employees, { ...person(tag), employeeId: `1${tag.slice(1)}` }),
    read: async (tag) => {
      const both = [person(tag), { ...person(tag), employeeId: `1${tag.slice(1)}` }];
      const found = both.map((one) => engineRead.readEntity(world.engine, employees, one).catch(() => undefined));
      return (await Promise.all(found)).map((one) => one !== undefined);
    },
  },
  'a replace and a patch': {
    prepare: hire,
    act: (engine, tag) => engineWrite.replaceEntity(engine, employees, person(tag), renamed(tag)),
    other: (tag) => engineWrite.patchEntity(world.engine, employees, person(tag), { firstName: 'Other' }),
    read: readPerson,
  },
  'a patch and a replace': {
    prepare: hire,
    act: (engine, tag) => engineWrite.patchEntity(engine, employees, person(tag), { firstName: 'Patched' }),
    other: (tag) => engineWrite.replaceEntity(world.engine, employees, person(tag), renamed(tag)),
    read: readPerson,
  },
  'a delete and a create': {
    prepare: hire,
    act: (engine, tag) => engineWrite.deleteEntity(engine, employees, person(tag)),
    other: (tag) => engineWrite.createEntity(world.engine, employees, { ...person(tag), firstName: 'Other' }),
    read: readPerson,
  },
  'a create of a row and its delete': {
    act: (engine, tag) => engineWrite.createEntity(engine, doorevents, event(tag, 'first')),
    other: (tag) => engineWrite.deleteEntity(world.engine, doorevents, event(tag, '')),
    read: readEvent,
  },
  'two puts of a row': {
    prepare: putEvent,
    act: (engine, tag) => engineWrite.putEntity(engine, doorevents, event(tag, ''), event(tag, 'second')),
    other: (tag) => putEvent(tag, 'third'),
    read: readEvent,
  },
  'a merge into a row and a put': {
    prepare: putEvent,
    act: (engine, tag) => engineWrite.mergeEntity(engine, doorevents, event(tag, 'first'), { door: 'second' }),
    other: (tag) => putEvent(tag, 'third'),
    read: readEvent,
  },
  'a delete of a row and a put': {
    prepare: putEvent,
    act: (engine, tag) => engineWrite.deleteEntity(engine, doorevents, event(tag, '')),
    other: (tag) => putEvent(tag, 'third'),
    read: readEvent,
  },
  'a delete of a row under its ETag and a put': {
    prepare: putEvent,
    act: async (engine, tag) => {
      const { etag } = await engineRead.readEntity(engine, doorevents, event(tag, ''));
      await engineWrite.deleteEntity(engine, doorevents, event(tag, ''), { ifMatch: etag });
    },
    other: (tag) => putEvent(tag, 'third'),
    read: readEvent,
  },
  'a batch of creates and a delete': {
    act: (engine, tag) =>
      engineWrite.writeBatch(engine, doorevents, [
        { create: event(tag, 'first') },
        { create: { ...event(tag, 'x'), eventId: randomUUID() } },
      ]),
    other: (tag) => engineWrite.deleteEntity(world.engine, doorevents, event(tag, '')),
    read: readEvent,
  },
  'an atomic batch and a put': {
    prepare: putEvent,
    act: (engine, tag) =>
      engineWrite.writeAtomically(engine, doorevents, [
        { put: event(tag, 'second') },
        { create: { ...event(tag, 'x'), eventId: randomUUID() } },
      ]),
    other: (tag) => putEvent(tag, 'third'),
    read: readEvent,
  },
  'a create that is added to a total and a delete': {
    act: (engine, tag) => engineWrite.createEntity(engine, sales, sale(tag, 10)),
    other: (tag) => engineWrite.deleteEntity(world.engine, sales, sale(tag, 10)),
    read: (tag) => valuesOf(engineRead.readEntity(world.engine, sales, sale(tag, 10))),
  },
  'two settings of a count': {
    prepare: setHours,
    act: (engine, tag) => featureSeries.setCounts(engine, messagehours, hours(tag), counts([1, 20])),
    other: (tag) => featureSeries.setCounts(world.engine, messagehours, hours(tag), counts([1, 30])),
    read: readHours,
  },
  'a setting and an increment of a count': {
    prepare: setHours,
    act: (engine, tag) => featureSeries.setCounts(engine, messagehours, hours(tag), counts([1, 20])),
    other: (tag) => featureSeries.increment(world.engine, messagehours, hours(tag), { slot: 1, by: 1 }),
    read: readHours,
  },
  'a first increment of a count and a delete': {
    act: (engine, tag) => featureSeries.increment(engine, messagehours, hours(tag), { slot: 1, by: 1 }),
    other: (tag) => featureSeries.deleteSeries(world.engine, messagehours, hours(tag)),
    read: readHours,
  },
  'a delete and a setting of counts': {
    prepare: setHours,
    act: (engine, tag) => featureSeries.deleteSeries(engine, messagehours, hours(tag)),
    other: (tag) => featureSeries.setCounts(world.engine, messagehours, hours(tag), counts([2, 30])),
    read: readHours,
  },
  'a delete and a setting of counts in two rows': {
    prepare: (tag) => featureSeries.setCounts(world.engine, messageyears, years(tag), counts([1, 10], [366, 10])),
    act: (engine, tag) => featureSeries.deleteSeries(engine, messageyears, years(tag)),
    other: (tag) => featureSeries.setCounts(world.engine, messageyears, years(tag), counts([2, 30], [365, 30])),
    read: (tag) => readCounts(messageyears, years(tag))(),
  },
  'a delete and a setting of counts that may be in a blob': {
    prepare: (tag) => featureSeries.setCounts(world.engine, doorminutes, minutes(tag), counts([1, 10])),
    act: (engine, tag) => featureSeries.deleteSeries(engine, doorminutes, minutes(tag)),
    other: (tag) => featureSeries.setCounts(world.engine, doorminutes, minutes(tag), counts([2, 30])),
    read: (tag) => readCounts(doorminutes, minutes(tag))(),
  },
  'an intent and a change': {
    prepare: async (tag) => {
      await hire(tag);
      await engineWrite.patchEntity(world.queued, employees, person(tag), { email: `old${tag}@contoso.com` });
    },
    act: (engine, tag) => consuming(engine, tag),
    other: (tag) => engineWrite.replaceEntity(world.engine, employees, person(tag), renamed(tag)),
    read: readPerson,
  },
  'a revocation of grants and its end': {
    act: (engine, tag) => accessChecks.revokeGrants(engine, subject(tag)),
    other: (tag) => accessChecks.restoreGrants(world.engine, subject(tag)),
    read: readRevocation,
  },
  'the end of a revocation and another revocation': {
    prepare: (tag) => accessChecks.revokeGrants(world.engine, subject(tag)),
    act: (engine, tag) => accessChecks.restoreGrants(engine, subject(tag)),
    other: (tag) => accessChecks.revokeGrants(world.engine, subject(tag)),
    read: readRevocation,
  },
};

let counter = 0;
/** Six digits that no other trial has. */
function newTag(): string {
  counter += 1;
  return `0${String(counter).padStart(5, '0')}`;
}

/** Loses the `at`-th call or its reply, and calls `meanwhile` before the SDK can repeat it. */
function losing(loss: (typeof LOSSES)[number], at: number, meanwhile: () => Promise<unknown>) {
  let calls = 0;
  const client: HttpClient = {
    async sendRequest(request) {
      calls += 1;
      if (calls !== at) return httpClient.sendRequest(request);
      if (loss === 'reply lost') await httpClient.sendRequest(request);
      await meanwhile();
      throw new RestError(loss, { code: 'ECONNRESET', request });
    },
  };
  return { client, calls: () => calls };
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (error: unknown) => {
      if (error instanceof RowkeyError) return error.code;
      throw error;
    },
  );
}

/** The state without what differs between trials. */
async function stateOf({ read }: Kind, tag: string): Promise<string> {
  const state = await read(tag).catch(() => 'none');
  return JSON.stringify(state).replaceAll(tag, '#');
}

/** The state after these steps. */
async function after(kind: Kind, steps: readonly ('act' | 'other')[]): Promise<string> {
  const tag = newTag();
  await kind.prepare?.(tag);
  for (const step of steps) await codeOf(step === 'act' ? kind.act(world.engine, tag) : kind.other(tag));
  return stateOf(kind, tag);
}

test.each(Object.entries(KINDS))('%s: each takes effect once', { tags: ['slow'] }, async (name, kind) => {
  const before = await after(kind, []);
  const acted = await after(kind, ['act']);
  const states = {
    othered: await after(kind, ['other']),
    actedFirst: await after(kind, ['act', 'other']),
    actedLast: await after(kind, ['other', 'act']),
  };
  const counting = losing('reply lost', 0, async () => undefined);
  const counted = newTag();
  await kind.prepare?.(counted);
  await kind.act(world.engineThrough(counting.client), counted);
  const points = LOSSES.flatMap((loss) => samplePoints(counting.calls()).map((at) => ({ loss, at })));
  const play = async ({ loss, at }: (typeof points)[number]) => {
    const tag = newTag();
    await kind.prepare?.(tag);
    let then = '';
    let overtaking = '';
    const { client } = losing(loss, at, async () => {
      then = await stateOf(kind, tag);
      overtaking = await codeOf(kind.other(tag));
    });
    const outcome = await codeOf(kind.act(world.engineThrough(client), tag));
    const found = await stateOf(kind, tag);
    const label = `${loss} at call ${at}: ${outcome}, the other ${overtaking}`;
    const hasActed = then === acted && acted !== before;
    const isOvertaken = overtaking === 'done';
    if (hasActed) {
      expect(['done', 'storage-unavailable'], label).toContain(outcome);
      expect(found, label).toBe(isOvertaken ? states.actedFirst : acted);
    } else if (outcome === 'done') expect(found, label).toBe(isOvertaken ? states.actedLast : acted);
    else if (outcome === 'storage-unavailable')
      expect(isOvertaken ? [states.othered, states.actedLast] : [before, acted], label).toContain(found);
    else expect(found, label).toBe(isOvertaken ? states.othered : before);
  };
  await countEach(points, play, {
    what: `Reply or request lost, and another writer: ${name}`,
    concurrency: CONCURRENCY,
  });
});
