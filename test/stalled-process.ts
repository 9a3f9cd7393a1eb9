import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../lib/define.ts';
import { faultyHttpClient, interruptedHttpClient, type Point } from './faulty-http-client.ts';
import { deploy } from './fixtures/deploy.ts';
import type { Engine, Timing } from './kit/engine.ts';
import { expectIndexesToAgree, type World } from './world.ts';

/** Deterministic schedules: one process stalls before a storage call while others run. Each holds one rule of docs/internals/consistency.md. */

const name = z.string().min(1);
/** A guest has an entry in one index, a car a row in a unique one, and a ticket an entry that its writer leaves to the queue, too. */
export const { guests, cars, tickets } = deploy(
  defineEntity('guests', {
    schema: z.object({ city: name, id: name, name }),
    table: 'guests',
    key: { partition: '{city}', row: '{id}' },
    indexes: { name: interPartitionIndex({ table: 'guestsbyname', partition: '{name}', row: '{id}' }) },
    access: { read: [], write: [] },
  }),
  defineEntity('cars', {
    schema: z.object({ city: name, id: name, plate: name }),
    table: 'cars',
    key: { partition: '{city}', row: '{id}' },
    indexes: { plate: interPartitionIndex({ table: 'carsbyplate', partition: '{plate}', row: 'car', unique: true }) },
    access: { read: [], write: [] },
  }),
  defineEntity('tickets', {
    schema: z.object({ team: name, id: name, owner: name, topic: name }),
    table: 'tickets',
    key: { partition: '{team}', row: '{id}' },
    indexes: {
      owner: interPartitionIndex({ table: 'ticketsbyowner', partition: '{owner}', row: '{id}' }),
      topic: interPartitionIndex({ table: 'ticketsbytopic', partition: '{topic}', row: '{id}', settle: 'queue' }),
    },
    access: { read: [], write: [] },
  }),
);

let counter = 0;
/** A guest that no other test uses. */
export function newGuest() {
  counter += 1;
  return { city: 'Bern', id: `G${counter}`, name: `Ann${counter}` };
}
/** A car that no other test uses. */
export function newCar() {
  counter += 1;
  return { city: 'Bern', id: `C${counter}`, plate: `BE${counter}` };
}

export interface Schedule {
  readonly act: (through: Engine) => Promise<unknown>;
  /** Others, while the process stalls. They run afterwards if `act` never makes the call. */
  readonly meanwhile?: () => Promise<unknown>;
  /** By default, the process dies right after the call before which it stalled. */
  readonly dies?: { readonly when: 'before' | 'after'; readonly at: Point } | 'never';
  readonly timing?: Timing;
}

/** Runs `act` in a process that stalls right before the call `stallsAt`, and then makes it unless it has given up. */
export async function stall(
  world: World,
  stallsAt: Point,
  { act, meanwhile = async () => undefined, dies = { when: 'after', at: stallsAt }, timing }: Schedule,
): Promise<void> {
  let hasStalled = false;
  const others = () => {
    hasStalled = true;
    return meanwhile();
  };
  const next = dies === 'never' ? faultyHttpClient() : faultyHttpClient(`crash ${dies.when}`, dies.at);
  const client = interruptedHttpClient(stallsAt, others, 'before', next);
  await act(world.engineThrough(client, timing)).catch(() => undefined);
  if (!hasStalled) await meanwhile();
}

/** Handles every message, and compares all indexes with their entities. */
export async function expectAgreement({ settle, storage }: Pick<World, 'settle' | 'storage'>): Promise<void> {
  await settle();
  for (const entity of [guests, cars, tickets]) await expectIndexesToAgree(storage, entity);
}
