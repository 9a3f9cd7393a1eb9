import { z } from 'zod';
import { busy, isOutcomeUnknown } from '../../base/errors.ts';
import { abortIn, MINUTE_MS } from '../../base/time.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import { deleteMessage, hideMessage, type SentMessage, sendMessage, sendMessageOnce } from '../../storage/messages.ts';
import type { Engine } from '../engine.ts';

/**
 * The functions host hides a message for ten minutes while a function works on it, and does not show it earlier when the
 * instance dies. So every piece of work has a second message, its reminder, which is hidden for a minute at a time:
 *
 *   sender     send the message hidden (the reminder) -> send it again, visible, with the receipt of the reminder
 *   function   first delivery within seconds by the clock of storage: work, because nobody else can have the work while its
 *              reminder is hidden
 *              otherwise hide the reminder for another minute; conflict -> another holder has the work, so do nothing
 *              (a message without a reminder, such as the reminder itself: send a hidden copy first)
 *              -> work; hide the reminder again from time to time -> delete the reminder -> the host deletes the message
 *   failed     write the delay and the number of attempts into the reminder, and send a new message for it
 *
 * The visible message is sent once: after a lost reply it is not sent again, because both could be a first delivery. The work then
 * waits for its reminder.
 *
 * If a process dies, the reminder becomes visible within a minute. The message that the process held returns after ten
 * minutes, finds no reminder, and is deleted. Each holder writes under a message of its own: two live
 * reconcilers never hold one message. test/model/protocol.mjs checks this.
 */

/** The largest time value of a `Date`. */
const LAST_INSTANT = 8_640_000_000_000_000;
/** More than a day of retries can reach. */
const MAX_COUNT = 1_000_000;

/** The state that earlier attempts leave in the message. */
const History = z.object({
  /** The first message of this work, which names its poison record. */
  id: z.string().regex(/^[\w-]{1,64}$/),
  /** Milliseconds: when the first message was inserted. */
  since: z.int().min(0).max(LAST_INSTANT),
  /** Attempts that failed or whose process died. */
  attempts: z.int().min(0).max(MAX_COUNT),
  /** How often the work was postponed because storage was unavailable or a writer was active. */
  waits: z.int().min(0).max(MAX_COUNT),
});
export type History = z.infer<typeof History>;

/** The SDK puts the id in the path of its requests, where `..` means the queue itself. */
const Receipt = z.object({
  id: z.string().regex(/^[\w-]{1,64}$/),
  popReceipt: z.string().min(1).max(256),
  /** Milliseconds by the clock of storage. Absent in messages of earlier releases, which may be sent twice. */
  hiddenUntil: z.int().min(0).max(LAST_INSTANT).optional(),
});
/** Top-level fields of a message body that belong to this module. */
const Envelope = z.object({
  reminder: Receipt.optional().catch(undefined),
  history: History.optional().catch(undefined),
});

/** Reserved for the fields that this module adds to a message. */
export const ENVELOPE_BYTES = 1_024;
/** The fraction of the hold after which it is renewed. */
const RENEW_AFTER = 0.4;

/** For work without a message, such as a repair. The next consistency check finds unfinished work. */
const UNHELD_MS = 4 * MINUTE_MS;

/** A hold that ends `milliseconds` from now and cannot be renewed. */
export function holdFor({ now }: Pick<Engine, 'now'>, milliseconds = UNHELD_MS): Hold {
  const until = now() + milliseconds;
  return {
    async keep() {
      const left = until - now();
      if (left <= 0) throw busy('The hold on the message is running out.');
      return AbortSignal.timeout(left);
    },
  };
}

/** Sends work to a queue, with its reminder. The work starts after `delaySeconds`. */
export async function sendWork(
  engine: Engine,
  queue: string,
  body: object,
  { delaySeconds = 0 }: { readonly delaySeconds?: number } = {},
): Promise<void> {
  const reminder = await sendMessage(engine.storage, queue, body, delaySeconds + engine.timing.hideIntentForSeconds);
  await unlessUnavailable(sendWorkOf(engine, reminder, { delaySeconds }));
}

/** Sends the work of a hidden message, which stays hidden as its reminder. Throws `storage-unavailable` if the work may have to wait for it. */
export async function sendWorkOf(
  { storage }: Engine,
  { queue, id, popReceipt, text, sentAt, hiddenUntil }: SentMessage,
  { delaySeconds = 0 }: { readonly delaySeconds?: number } = {},
): Promise<void> {
  // The reminder may be received without having been rewritten. Both messages then name the same poison record.
  const history = sentAt === undefined ? {} : { history: { id, since: sentAt, attempts: 0, waits: 0 } };
  const reminder = { id, popReceipt, hiddenUntil };
  await sendMessageOnce(storage, queue, { ...history, ...JSON.parse(text), reminder }, delaySeconds);
}

/** A message that a queue function received. */
export interface Message {
  readonly queue: string;
  readonly id: string;
  /** How often the message was received, including this time. */
  readonly attempts: number;
  /** In milliseconds. */
  readonly insertedAt: number;
  /** The body that the host delivered: parsed if it is JSON. */
  readonly body: unknown;
}

/** The work of a message, and the history of all its messages. */
interface Unwrapped {
  readonly body: unknown;
  readonly history: History;
}

/** Separates the work from its envelope. The history counts this attempt. */
export function unwrap({ id, attempts, insertedAt, body }: Message): Unwrapped {
  const envelope = Envelope.safeParse(body).data;
  if (!envelope) return { body, history: { id, since: insertedAt, attempts, waits: 0 } };
  const { reminder: _, history: __, ...work } = body as Record<string, unknown>;
  const { reminder, history } = envelope;
  const earlier = history ?? { id: reminder?.id ?? id, since: insertedAt, attempts: 0, waits: 0 };
  // A forged history must not make the message younger.
  const since = Math.min(earlier.since, insertedAt);
  return { body: work, history: { ...earlier, since, attempts: earlier.attempts + attempts } };
}

/** The hold of a queue function on its work. */
export interface HeldWork extends Hold {
  /** Ends the hold of work that is done or recorded as poison. */
  release(): Promise<void>;
  /** Postpones the work, with this history. False if the hold is lost: another holder then continues. */
  putOff(history: History, delaySeconds: number): Promise<boolean>;
}

/**
 * Returns how many milliseconds of a reminder's time have passed at most, by the clock of storage. The time is counted back from
 * its end, so a sender with another timing does no harm. Undefined if storage's clock is unknown, or if the reminder is hidden
 * for longer than this engine hides one.
 */
function timePassed({ storage, timing }: Engine, receipt: z.infer<typeof Receipt> | undefined): number | undefined {
  const latest = storage.clock.latestTime();
  if (latest === undefined || receipt?.hiddenUntil === undefined) return undefined;
  const milliseconds = latest + timing.hideIntentForSeconds * 1_000 - receipt.hiddenUntil;
  return milliseconds < 0 ? undefined : milliseconds;
}

/** Takes the hold on the work of a message. Undefined if another message has the work or the work is done. Throws `storage-unavailable`. */
export async function holdWork(engine: Engine, message: Message): Promise<HeldWork | undefined> {
  const { storage, now, timing } = engine;
  const { queue } = message;
  const { body, history } = unwrap(message);
  const receipt = Envelope.safeParse(message.body).data?.reminder;
  const text = JSON.stringify({ ...(body as object), history });
  const renewAfterMs = timing.settleWithinMs * RENEW_AFTER;
  let hiddenAt = now();
  let reminder: SentMessage | undefined;
  const passed = message.attempts === 1 ? timePassed(engine, receipt) : undefined;
  if (receipt && passed !== undefined && passed < renewAfterMs) {
    hiddenAt -= passed;
    reminder = { queue, ...receipt, text };
  } else if (receipt) reminder = await hideMessage(storage, { queue, ...receipt, text }, timing.hideIntentForSeconds);
  else reminder = await sendMessage(storage, queue, text, timing.hideIntentForSeconds);
  if (!reminder) return undefined;
  let renewal: Promise<void> | undefined;

  async function renew(): Promise<void> {
    const since = now();
    reminder = reminder && (await hideMessage(storage, reminder, timing.hideIntentForSeconds));
    if (!reminder) throw busy('Another message has taken over the work.');
    hiddenAt = since;
  }

  return {
    async keep() {
      if (now() >= hiddenAt + renewAfterMs) {
        renewal ??= renew().finally(() => {
          renewal = undefined;
        });
        await renewal;
      }
      return abortIn(hiddenAt + timing.settleWithinMs - now());
    },
    async release() {
      // A reminder that stays becomes visible in a minute and finds nothing to do.
      if (reminder) await unlessUnavailable(deleteMessage(storage, reminder));
    },
    async putOff(next, delaySeconds) {
      await renewal?.catch(() => undefined);
      if (!reminder) return false;
      const later = { ...reminder, text: JSON.stringify({ ...(body as object), history: next }) };
      const hidden = await hideMessage(storage, later, delaySeconds + timing.hideIntentForSeconds);
      if (hidden) await unlessUnavailable(sendWorkOf(engine, hidden, { delaySeconds }));
      return hidden !== undefined;
    },
  };
}

/** Ignores `storage-unavailable`: hidden messages become visible by themselves, and the change is already committed. */
export async function unlessUnavailable(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
  }
}
