import { z } from 'zod';
import { isoInstant } from '../../base/time.ts';
import type { Engine } from '../../engine/engine.ts';
import { readAccountStates } from '../../operations/overview.ts';
import { bind } from '../bind.ts';
import { NO_STORE, type Route } from '../route.ts';

const Count = z.int().min(0);
const Instant = z.iso.datetime();

const Account = z.object({
  name: z.string(),
  isAway: z.boolean().describe('The account does not respond, and what it owns is not known'),
  slots: Count.optional().describe('Those that it owns, of 4,096'),
  layers: z
    .array(z.object({ name: z.string(), slots: Count }))
    .describe('Slots of tenants and entities that have their own'),
  containers: z.array(z.string()).describe('Containers that the model places in this account'),
});
const Move = z.object({
  move: z.string(),
  from: z.string(),
  to: z.string(),
  slots: Count,
  gone: Count.describe('Slots that have left'),
  phase: z.enum(['fencing', 'copying', 'handing over', 'gone']),
  goneAt: Instant.optional().describe('When the last slot left'),
});
const Mover = z.object({
  isAlive: z.boolean().describe('False if it has said nothing for half a minute'),
  startedAt: Instant,
  saidAt: Instant.describe('When it last wrote these numbers'),
  phase: z.enum(['waiting', 'copying', 'handing over']).describe('It waits for late requests before it copies'),
  secondsLeft: Count.optional().describe('Of the wait or the hand-over of one move, if known'),
  table: z.string().optional().describe('The table or container that it compares'),
  pass: Count.optional().describe('The number of the comparison, of which the last finds no difference'),
  rows: Count.describe('Rows compared'),
  rowsPerSecond: Count,
  written: Count.describe('Rows written'),
  blobs: Count.describe('Blobs copied'),
  slots: Count.describe('Slots handed over'),
  pauseMilliseconds: Count.describe('How long writes to a slot have waited at most; each fails after 15 s'),
});
const Accounts = z.object({
  items: z.array(Account),
  moves: z.array(Move).describe('Those under way, and those that can be undone'),
  mover: Mover.optional().describe('The command that moves slots, or the last one that has died'),
  unowned: z.array(z.string()).describe('Slots without an owner: a mover has died, or hands them over now'),
  advice: z.array(z.string()).describe('Commands that end what a dead mover has left, or make a move final'),
});

/** The storage accounts, for operators. Slots are hashes of keys. */
export function accountsRoute(operatorRole: string): Route {
  return bind(
    {
      name: 'operations-accounts',
      summary: 'List the storage accounts with the slots that each owns, and the progress of moves between them',
      kind: 'read',
      roles: [operatorRole],
      output: () => Accounts,
      run: ({ engine }) => present(engine),
    },
    {
      method: 'GET',
      path: 'operations/accounts',
      success: { status: 200, description: 'The accounts' },
      read: () => undefined,
      present: (body) => ({ status: 200, headers: NO_STORE, body }),
    },
  );
}

async function present(engine: Engine): Promise<z.infer<typeof Accounts>> {
  const { moves, mover, ...states } = await readAccountStates(engine);
  return {
    ...states,
    moves: moves.map(({ goneAt, ...move }) => ({ ...move, ...(goneAt ? { goneAt: isoInstant(goneAt) } : {}) })),
    ...(mover ? { mover: presentMover(mover) } : {}),
  };
}

function presentMover({
  startedAt,
  saidAt,
  leftMs,
  pauseMs,
  ...counts
}: NonNullable<Awaited<ReturnType<typeof readAccountStates>>['mover']>): z.infer<typeof Mover> {
  const instants = { startedAt: isoInstant(startedAt), saidAt: isoInstant(saidAt) };
  const left = leftMs > 0 ? { secondsLeft: Math.ceil(leftMs / 1_000) } : {};
  return { ...counts, ...instants, ...left, pauseMilliseconds: pauseMs };
}
