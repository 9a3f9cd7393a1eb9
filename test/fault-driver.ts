import { expect, inject } from 'vitest';
import { RowkeyError } from '../lib/index.ts';
import {
  FAULTS,
  type Fault,
  type FaultyHttpClient,
  faultyHttpClient,
  interruptedHttpClient,
} from './faulty-http-client.ts';
import type { Engine, Timing } from './kit/engine.ts';
import { IS_EVERY_POINT, samplePoints } from './points.ts';
import { countEach } from './tried-faults.ts';
import { QUICK, type World } from './world.ts';

/**
 * Runs an operation once undisturbed, to count its storage calls, and then once for each fault or interruption at each call. A
 * suite states its operation and what must hold. A usual run takes a sample of the calls (points.ts).
 */

interface Options<Trial> {
  /** The name of the trials in the table of tried faults. Without a name, they are not counted there. */
  readonly what?: string | ((trial: Trial) => string);
  /** Fails if the operation makes only this many storage calls. */
  readonly moreCallsThan?: number;
  /** The number of calls in a usual run, for each fault. */
  readonly size?: number;
  /** The trials that run concurrently; one by default. */
  readonly concurrency?: number;
}

/** True if small operations are tried at each of their calls: in memory, a trial takes milliseconds. */
export const IS_EVERY_CALL = IS_EVERY_POINT || inject('storage') === 'memory';
/** The options for a small operation. */
export const SMALL = { size: IS_EVERY_CALL ? Number.POSITIVE_INFINITY : 1, moreCallsThan: 10 };

/** One run of an operation. */
export interface FaultTrial {
  /** Undefined in the run that counts. */
  readonly fault: Fault | undefined;
  readonly at: number;
  /** For messages of failed assertions. */
  readonly label: string;
  /** Injects the fault: the client of the operation, and of nothing else. */
  readonly client: FaultyHttpClient;
  /** Short limits for a process that dies; undefined for the usual ones. */
  readonly timing: Timing | undefined;
}

/** Runs `play` with each fault at each storage call of its operation. Returns the results, without that of the run that counts. */
export async function tryFaults<Result>(
  play: (trial: FaultTrial) => Promise<Result>,
  { faults = FAULTS, ...options }: Options<FaultTrial> & { readonly faults?: readonly Fault[] } = {},
): Promise<Result[]> {
  const trial = (fault: Fault | undefined, at: number): FaultTrial => ({
    fault,
    at,
    label: fault ? `${fault} at call ${at}` : 'no fault',
    client: faultyHttpClient(fault, at),
    timing: fault?.startsWith('crash') ? QUICK : undefined,
  });
  const counting = trial(undefined, 0);
  await play(counting);
  const points = pointsOf(counting.client.calls, faults, options);
  return countEach(
    points.map(([fault, at]) => trial(fault, at)),
    play,
    { what: options.what, concurrency: options.concurrency },
  );
}

/** Returns 'done', the code of the error of a write, or 'dead' if its process crashed. */
export function outcomeOf(write: Promise<unknown>): Promise<string> {
  return write.then(
    () => 'done',
    (error: unknown) => (error instanceof RowkeyError ? error.code : 'dead'),
  );
}

export const CRASHES: readonly Fault[] = ['crash before', 'crash after'];
/** The faults that a queue function leaves to its next delivery. */
export const CONSUMER_FAULTS: readonly Fault[] = [...CRASHES, 'reply lost'];
/** An insert is sent once. After these faults its outcome is unknown, unless its row is found. */
export const UNANSWERED_INSERT: readonly Fault[] = ['reset', 'server error'];

/** The SDKs retry every fault but a crash, and the retry must succeed. After the faults `unanswered`, the outcome may be unknown. */
export function expectRetried({ fault, label }: FaultTrial, outcome: string, unanswered: readonly Fault[] = []): void {
  if (fault?.startsWith('crash')) return;
  const isUnknown = fault && unanswered.includes(fault);
  expect(isUnknown ? ['done', 'storage-unavailable'] : ['done'], label).toContain(outcome);
}

const SIDES = ['before', 'after'] as const;
type Side = (typeof SIDES)[number];

export interface Scene {
  /** The work of the interrupted party, through its own engine. */
  readonly act: (through: Engine) => Promise<unknown>;
  readonly interrupt: () => Promise<unknown>;
  /** Fails if the scene has not ended as it should; the label is for messages. */
  readonly check?: (label: string) => Promise<unknown>;
}

/** Sets a scene for each storage call of its act, and interrupts the act right before and right after the call. */
export async function tryInterruptions(
  { engineThrough }: Pick<World, 'engineThrough'>,
  set: () => Promise<Scene>,
  { sides = SIDES, ...options }: Options<{ readonly side: Side }> & { readonly sides?: readonly Side[] } = {},
): Promise<void> {
  const play = async ({ at, side }: { readonly at: number; readonly side: Side }) => {
    const { act, interrupt, check } = await set();
    const client = interruptedHttpClient(at, interrupt, side);
    await act(engineThrough(client));
    // The run that counts, or a run with fewer calls than counted: every message is handled.
    if (client.calls < at || at === 0) await interrupt();
    await check?.(`${side} call ${at}`);
    return client.calls;
  };
  const points = pointsOf(await play({ at: 0, side: 'before' }), sides, options);
  await countEach(
    points.map(([side, at]) => ({ side, at })),
    play,
    { what: options.what, concurrency: options.concurrency },
  );
}

function pointsOf<Kind>(
  calls: number,
  kinds: readonly Kind[],
  { moreCallsThan = 0, size }: Pick<Options<never>, 'moreCallsThan' | 'size'>,
): (readonly [Kind, number])[] {
  expect(calls).toBeGreaterThan(moreCallsThan);
  return kinds.flatMap((kind) => samplePoints(calls, size).map((at) => [kind, at] as const));
}
