import { z } from 'zod';
import { canReadWhole } from '../../access/rule.ts';
import type { View } from '../../api/operation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { type HotSpot, readHeat } from '../../operations/heat.ts';
import { bind } from '../bind.ts';
import { NO_STORE, type Route } from '../route.ts';

const MAX_ITEMS = 20;

const Rate = z.number().min(0);
const Partition = z.object({
  service: z.enum(['table', 'queue']),
  resource: z.string().describe('The table or the queue, as the account names it'),
  account: z.string().optional().describe('If the app has several'),
  slot: z.string().describe('Stands for the partition key in metrics and alerts'),
  partition: z
    .string()
    .optional()
    .describe('The partition key; absent if the caller may not read every entity whose rows or index entries it has'),
  kind: z.enum(['entity', 'index', 'list', 'totals', 'expiry', 'queue', 'engine']),
  entities: z.array(z.string()).describe('The entities whose rows or index entries the partition has'),
  index: z.string().optional().describe('The name of the index, the list or the totals'),
  load: Rate.describe('Reads, and changed entities'),
  error: Rate.describe('The load may be too high by as much'),
  requests: Rate,
  written: Rate.describe('Changed entities'),
  throttled: Rate.describe('Responses with 429 or 503'),
  share: z.number().min(0).max(1).describe('The part of the load of this process'),
  isHot: z.boolean().describe('At a tenth of the limit of a partition in this process, or rejected by storage'),
  advice: z.array(z.string()).describe('What helps if the partition is at its limit'),
});

const Heat = z.object({
  load: Rate.describe('Of all partitions'),
  items: z.array(Partition).describe('Rates a minute over the last minutes, the largest load first'),
});

/** The busiest partitions, for operators. */
export function heatRoute(entities: readonly Entity[], operatorRole: string): Route {
  return bind(
    {
      name: 'operations-heat',
      summary: 'List the busiest partitions of the last minutes with advice: those of one process of the app',
      kind: 'read',
      roles: [operatorRole],
      output: () => Heat,
      async run({ engine, caller }) {
        const { load, items } = readHeat(engine.storage, entities, MAX_ITEMS);
        return { load: round(load), items: items.map((item) => present(item, caller)) };
      },
    },
    {
      method: 'GET',
      path: 'operations/heat',
      success: { status: 200, description: 'The busiest partitions' },
      read: () => undefined,
      present: (body) => ({ status: 200, headers: NO_STORE, body }),
    },
  );
}

function present(item: HotSpot, caller: View['caller']): z.infer<typeof Partition> {
  const { service, resource, account, slot, partition, kind, entities, index, isHot, advice, share } = item;
  // The engine's rows may be about a person, such as one whose grants are revoked.
  const isVisible = entities.length > 0 && (!caller || entities.every((entity) => canReadWhole(entity, caller)));
  return {
    service,
    resource,
    ...(account === undefined ? {} : { account }),
    slot,
    ...(isVisible ? { partition } : {}),
    kind,
    entities: entities.map(({ name }) => name),
    ...(index === undefined ? {} : { index }),
    load: round(item.load),
    error: round(item.error),
    requests: round(item.requests),
    written: round(item.written),
    throttled: round(item.throttled),
    share: Math.min(1, share),
    isHot,
    advice: [...advice],
  };
}

function round(rate: number): number {
  return Math.round(rate * 10) / 10;
}
