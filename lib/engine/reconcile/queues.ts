import { hash } from 'node:crypto';
import type { Engine } from '../engine.ts';
import { INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE } from './intent.ts';

/**
 * Each queue of the engine has as many parts as the model declares, because one queue handles at most 2,000 messages a second. The
 * first part has the name of the queue, and the others a number behind it: `index-changes`, `index-changes-1`. All work on a
 * partition goes to one part. A message may be in any part: when the number of parts changes, the messages of before stay where they are, with
 * their reminders.
 */

/** The queues of the engine, without their parts. */
const QUEUES = [INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE] as const;
export type Queue = (typeof QUEUES)[number];

const PART = new RegExp(`^(${QUEUES.join('|')})(?:-(\\d+))?(?:-poison)?$`);

/** The parts of a queue, the first one first. */
export function partsOf(queue: Queue, queueParts: number): string[] {
  return Array.from({ length: queueParts }, (_, number) => partName(queue, number));
}

/** All parts of all queues. */
export function listParts(queueParts: number): string[] {
  return QUEUES.flatMap((queue) => partsOf(queue, queueParts));
}

/** The part for the work on a partition. */
export function partFor({ queueParts }: Pick<Engine, 'queueParts'>, queue: Queue, partition: string): string {
  if (queueParts === 1) return queue;
  return partName(queue, Number.parseInt(hash('sha256', partition).slice(-8), 16) % queueParts);
}

/** The queue of a part. */
export function queueOfPart(part: string): Queue {
  return part.startsWith(TRANSFERS_QUEUE) ? TRANSFERS_QUEUE : INDEX_CHANGES_QUEUE;
}

/** A part that exists, for work that was in a part of a model with more of them. */
export function existingPart({ queueParts }: Pick<Engine, 'queueParts'>, part: string): string {
  const number = numberOf(part);
  return number === undefined ? part : partName(queueOfPart(part), number % queueParts);
}

/** True for a part that the model no longer declares, and for its poison queue. */
export function isFormerPart(name: string, queueParts: number): boolean {
  return (numberOf(name) ?? 0) >= queueParts;
}

/** Undefined for the name of another queue. */
function numberOf(part: string): number | undefined {
  const [, queue, number = 0] = PART.exec(part) ?? [];
  return queue === undefined ? undefined : Number(number);
}

function partName(queue: Queue, number: number): string {
  return number === 0 ? queue : `${queue}-${number}`;
}
