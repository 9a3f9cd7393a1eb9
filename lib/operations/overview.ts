import pMap from 'p-map';
import type { Entity } from '../define/declaration/entity.ts';
import { boundsOf, keptPeriods, periodOfTable } from '../define/keys/calendar.ts';
import type { Engine } from '../engine/engine.ts';
import { listParts } from '../engine/reconcile/queues.ts';
import { ofAccount, storageCall } from '../storage/errors.ts';
import { listTables } from '../storage/provision.ts';
import { accountOfQueue } from '../storage/storage.ts';
import { readShapes } from './model-guard.ts';

/** What operators see at a glance. Instants are in milliseconds. */

/**
 * Describes the queues of the engine and their poison queues. `messages` is the estimate of storage, with the hidden messages: intents of
 * writes in progress, reminders and delayed messages. Two storage transactions each.
 */
export function readQueueStates(engine: Engine) {
  const { storage } = engine;
  const names = listParts(engine).flatMap((queue) => [queue, `${queue}-poison`]);
  return pMap(names, async (queue) => {
    const client = storage.queue(queue);
    const both = Promise.all([
      storageCall(client.getProperties(), client.name),
      storageCall(client.peekMessages({ numberOfMessages: 1 }), client.name),
    ]);
    const [properties, peeked] = await ofAccount(accountOfQueue(storage, queue), both);
    return {
      queue,
      messages: properties.approximateMessagesCount ?? 0,
      /** When the oldest message that a consumer could receive was sent; undefined if none waits. */
      oldestWaitingSince: peeked.peekedMessageItems[0]?.insertedOn.getTime(),
    };
  });
}

/**
 * What is left to do after changes of the model: compares the declared entities with what the model guard stored. One range query.
 */
export async function readModelState(engine: Engine, entities: readonly Entity[]) {
  const shapes = await readShapes(engine);
  return [...shapes].map(([entity, { shape }]) => ({
    entity,
    /** False if the model no longer has the entity, whose rows still exist. */
    isDeclared: entities.some(({ name }) => name === entity),
    version: shape.version,
    /** Indexes and copies that are not yet built from the existing entities. */
    unbuilt: shape.unbuilt,
    /** Former indexes whose rows still exist. */
    leftOver: Object.keys(shape.leftOver),
  }));
}

/**
 * Lists the tables of all periods by their names in the account, the oldest first for each entity. A table is due if it is past retention:
 * the timer archives or deletes it at its next run. One storage transaction per entity with a period.
 */
export async function listPeriodTables(engine: Engine, entities: readonly Entity[]) {
  const listed = await Promise.all(
    entities.map(async ({ name, table: declared, period: kept }) => {
      if (!kept) return [];
      const { first } = keptPeriods(kept, engine.now());
      return (await listTables(engine.storage, declared)).flatMap((table) => {
        const period = periodOfTable(kept.per, declared, table);
        if (period === undefined) return [];
        const from = Date.parse(boundsOf(kept.per, period).first);
        return [{ entity: name, table: engine.storage.table(table).tableName, period, from, isDue: period < first }];
      });
    }),
  );
  return listed.flat();
}
