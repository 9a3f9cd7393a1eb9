import { hash } from 'node:crypto';
import type { Address } from '../../storage/rows.ts';
import { ownerOf } from '../../storage/slot-map.ts';
import { accountsOf, queueIn } from '../../storage/storage.ts';
import type { Engine } from '../engine.ts';
import { INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE } from './intent.ts';

/**
 * Each queue of the engine has as many parts as the model declares, because one queue handles at most 2,000 messages a second. The
 * first part has the name of the queue, and the others a number behind it: `index-changes`, `index-changes-1`. Each account has all parts,
 * those of another account than the first with its name: `second/index-changes-1`. All work on a partition goes to one part in the account
 * of the partition, so an account that is away stops only the work on its own partitions. A message may be in any part: when the number of
 * parts or the account of a partition changes, the messages of before stay where they are, with their reminders.
 */

/** The queues of the engine, without their parts. */
const QUEUES = [INDEX_CHANGES_QUEUE, TRANSFERS_QUEUE] as const;
type Queue = (typeof QUEUES)[number];

const PART = new RegExp(`^([^/]+/)?(${QUEUES.join('|')})(?:-(\\d+))?(?:-poison)?$`);

/** The names of all parts of all queues in an account. */
export function partNames(queueParts: number): string[] {
  return QUEUES.flatMap((queue) => Array.from({ length: queueParts }, (_, number) => partName(queue, number)));
}

/** All parts of all queues, in each account. */
export function listParts({ storage, queueParts }: Pick<Engine, 'storage' | 'queueParts'>): string[] {
  const names = partNames(queueParts);
  return accountsOf(storage).flatMap((account) => names.map((name) => queueIn(account, name)));
}

/** The part for the work on a partition. */
export async function partFor(
  { storage, queueParts }: Pick<Engine, 'storage' | 'queueParts'>,
  queue: Queue,
  { table, partition }: Pick<Address, 'table' | 'partition'>,
): Promise<string> {
  // Other digits of the hash than those of the slot, of which an account has a range.
  const number = queueParts === 1 ? 0 : Number.parseInt(hash('sha256', partition).slice(-8), 16) % queueParts;
  return queueIn(await ownerOf(storage, partition, table), partName(queue, number));
}

/** The queue of a part. */
export function queueOfPart(part: string): Queue {
  return readPart(part)?.queue ?? INDEX_CHANGES_QUEUE;
}

/** True for each part of a queue of the engine in each account, and for the part of exactly this name. */
export function isPartOf(part: string, name: string): boolean {
  return part === name || readPart(part)?.queue === name;
}

/** A part that exists, for work that was in a part of a model with more of them, or in an account that the app no longer has. */
export function existingPart({ storage, queueParts }: Pick<Engine, 'storage' | 'queueParts'>, part: string): string {
  const { account, queue, number } = readPart(part) ?? {};
  if (queue === undefined || number === undefined) return part;
  const owner = accountsOf(storage).find(({ name }) => name === account) ?? storage;
  return queueIn(owner, partName(queue, number % queueParts));
}

/** True for a part that the model no longer declares, and for its poison queue. */
export function isFormerPart(name: string, queueParts: number): boolean {
  return (readPart(name)?.number ?? 0) >= queueParts;
}

/** Undefined for the name of another queue. */
function readPart(part: string) {
  const [, account, queue, number = 0] = PART.exec(part) ?? [];
  if (queue === undefined) return undefined;
  return { account: account?.slice(0, -1), queue: queue as Queue, number: Number(number) };
}

function partName(queue: Queue, number: number): string {
  return number === 0 ? queue : `${queue}-${number}`;
}
