import { describe, expect, test } from 'vitest';
import type { Values } from '../lib/index.ts';
import { expectRetried, outcomeOf, tryFaults, UNANSWERED_INSERT } from './fault-driver.ts';
import type { Fault } from './faulty-http-client.ts';
import type { Entity } from './kit/define.ts';
import { type Engine, engineRead, engineWrite } from './kit/engine.ts';
import { countTried } from './tried-faults.ts';
import { expectIndexesToAgree, type World } from './world.ts';

/** What holds for the writes of every form of entity, whichever storage call fails. */

const CONCURRENCY = 8;

export interface WriteSubject {
  readonly world: () => World;
  readonly entity: Entity;
  /** As the counts of tried faults name the entity. */
  readonly what: string;
  /** Returns an entity that no other test uses, in a partition for the tests of that name. */
  readonly newcomer: (name: string) => Values;
  /** Reads an entity with all its fields; by default those of a read by its key. */
  readonly whole?: (one: Values, entity?: Entity) => Promise<Values>;
}

interface Change {
  /** Creates the prerequisites without faults; by default the entity itself. */
  readonly prepare?: (one: Values) => Promise<unknown>;
  readonly act: (engine: Engine, one: Values) => Promise<unknown>;
  /** The entity after the change; undefined if it is deleted. A field without a value is absent. */
  readonly after: (one: Values) => Values | undefined;
  /** The faults after which the outcome may be unknown. */
  readonly unanswered?: readonly Fault[];
}

export const creating = (entity: Entity, change: Partial<Change> = {}): Change => ({
  prepare: async () => undefined,
  act: (engine, one) => engineWrite.createEntity(engine, entity, one),
  after: (one) => one,
  unanswered: UNANSWERED_INSERT,
  ...change,
});
export const patching = (entity: Entity, fields: Values, change: Partial<Change> = {}): Change => ({
  act: (engine, one) => engineWrite.patchEntity(engine, entity, one, fields),
  after: (one) => ({ ...one, ...fields }),
  ...change,
});
export const replacing = (entity: Entity, next: (one: Values) => Values, change: Partial<Change> = {}): Change => ({
  act: (engine, one) => engineWrite.replaceEntity(engine, entity, one, next(one)),
  after: next,
  ...change,
});
export const deleting = (entity: Entity): Change => ({
  act: (engine, one) => engineWrite.deleteEntity(engine, entity, one),
  after: () => undefined,
});

/** After a fault at each call of a change, the entity is as it was, or as it should be, and its indexes follow. */
export function testWrites(subject: WriteSubject, changes: Readonly<Record<string, Change>>): void {
  const { world, entity, what, newcomer } = subject;
  const stateOf = async (one: Values) => plainOf(await wholeOf(subject, one).catch(() => undefined));
  const create = (one: Values) => engineWrite.createEntity(world().engine, entity, one);

  describe('any fault at any call', () => {
    test.each(Object.entries(changes))(
      'of %s leaves it done completely or not at all, and the indexes agree',
      async (name, { prepare = create, act, after, unanswered }) => {
        await tryFaults(
          async (trial) => {
            const { client, fault, timing, label } = trial;
            const one = newcomer(`Faults ${name}`);
            await prepare(one);
            const before = await stateOf(one);
            const outcome = await outcomeOf(act(world().engineThrough(client, timing), one));
            expectRetried(trial, outcome, unanswered);
            const [state, wanted] = [await stateOf(one), plainOf(after(one))];
            if (outcome === 'done') expect(state, label).toEqual(wanted);
            else if (timing || fault === 'reply lost') expect([before, wanted], label).toContainEqual(state);
            else expect(state, label).toEqual(before);
          },
          { what: ({ fault }) => `${what}, each storage call: ${fault}`, concurrency: CONCURRENCY },
        );
        await world().settle();
        // Children are entities of their own.
        const agree = () => expectIndexesToAgree(world().storage, { ...entity, children: [] });
        await countTried({ what: `${what}: indexes agree afterwards` }, agree);
      },
    );
  });
}

/** A patch removes a field with null, and a create leaves out those that are undefined. */
const plainOf = (values: Values | undefined): unknown =>
  values === undefined ? null : JSON.parse(JSON.stringify(values, (_, value) => value ?? undefined));

/** Reads an entity as its subject does. */
export async function wholeOf({ world, entity, whole }: WriteSubject, one: Values, of = entity): Promise<Values> {
  return whole ? whole(one, of) : (await engineRead.readEntity(world().engine, of, one)).values;
}
