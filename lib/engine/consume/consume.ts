import { hash } from 'node:crypto';
import type { InvocationContext } from '@azure/functions';
import { context, SpanKind, trace } from '@opentelemetry/api';
import { z } from 'zod';
import { framesOf } from '../../base/app-mistake.ts';
import { NeverSucceeds, RowkeyError } from '../../base/errors.ts';
import { isDeeperThan, jsonText } from '../../base/json-text.ts';
import { DAY_MS } from '../../base/time.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import { type Entity, formerOf, withArchives } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { kindOf } from '../../storage/errors.ts';
import type { Address } from '../../storage/rows.ts';
import { record } from '../../telemetry/metrics.ts';
import { contextOf, inSpan } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { journalNamed } from '../journal-named.ts';
import {
  type HeldWork,
  type History,
  holdWork,
  type Message,
  sendWork,
  unlessUnavailable,
  unwrap,
} from '../reconcile/hold.ts';
import {
  INDEX_CHANGES_QUEUE,
  Intent,
  type IntentItem,
  isPossible,
  possibleItems,
  TRANSFERS_QUEUE,
  Transfer,
} from '../reconcile/intent.ts';
import { existingPart, partFor, queueOfPart } from '../reconcile/queues.ts';
import { reconcile } from '../reconcile/reconcile.ts';
import { keyAt } from '../transfer/move-to-key.ts';
import { giveUpTransfer, runTransfer } from '../transfer/transfer.ts';
import { recordPoison } from './poison.ts';

/**
 * A message that cannot succeed is removed from its queue and recorded (poison.ts). This happens immediately if no retry can help, else after
 * the last attempt. If storage is unavailable or other writers are in the way, the message is delayed instead, longer each time, for up to a
 * day.
 */

/** Equals `maxDequeueCount` in host.json: after this attempt the host would move the message to its poison queue. */
export const MAX_ATTEMPTS = 5;
/** Failures that the message does not cause, with the minimum delay in seconds. */
const TEMPORARY = new Map<string, number>([
  ['busy', 5],
  ['identity-unavailable', 5],
  // The service spends at most 30 s on a request, so a write whose reply was lost is done by then.
  ['storage-unavailable', 30],
  ['not-provisioned', 30],
]);
const LONGEST_DELAY_SECONDS = 300;
/** A message that is delayed for longer is recorded for an operator. */
const PATIENCE_MS = DAY_MS;
/** Equals `visibilityTimeout` in host.json. */
const RETRY_AFTER_SECONDS = 5;
/** Failures that every retry repeats, like a `NeverSucceeds`. */
const POINTLESS = new Set<string>(['too-large', 'invalid-input']);

export interface Log {
  warn(text: string): void;
  error(text: string): void;
}

/** The dependencies of the queue functions, which do the work of a message or record the message as poison. */
export interface Consumer {
  readonly engine: Engine;
  readonly entities: readonly Entity[];
  readonly log: Log;
}

/**
 * Messages of the app nest 6 levels. At about 2,000 levels, @azure/functions overflows the stack before it calls the
 * function.
 */
const MAX_NESTING = 1_000;

const Sender = z.object({ traceparent: z.string() });

/** Returns the function that handles the messages of a queue or of a part of it. */
export function consumerOf(queue: string): typeof consumeIntent {
  return queueOfPart(queue) === TRANSFERS_QUEUE ? consumeTransfer : consumeIntent;
}

/** Handles a message of `index-changes`. */
export async function consumeIntent({ engine, entities, log }: Consumer, message: Message): Promise<void> {
  await handle(engine, message, log, async (take) => {
    const { dependents = [], ...named } = read(Intent, message.body);
    const parts = [
      named,
      ...dependents.map((dependent) => ({ ...named, isNew: false, fanOut: undefined, ...dependent })),
    ];
    const checked = parts.map((intent) => {
      const declared = findEntity(entities, intent.entity);
      const all = [declared, formerOf(declared)].flatMap((entity) =>
        entity ? [{ intent, entity, ...possibleItems(entity, intent) }] : [],
      );
      // An intent of an entity at its former key is of the former declaration.
      return (
        all.find(({ refused }) => refused === undefined) ?? {
          intent,
          entity: declared,
          ...possibleItems(declared, intent),
        }
      );
    });
    const hold = await take();
    if (!hold) return;
    await journalNamed(engine, checked.flatMap(namedIn));
    for (const { intent, entity, items } of checked) {
      for (const part of await byKey(engine, findEntity(entities, intent.entity), { entity, items }))
        await reconcile(engine, part.entity, { ...intent, items: part.items }, { hold });
      for (const { partition, row } of items)
        for (const { fanOut } of entity.features)
          await fanOut?.afterSettled(engine, entity, { table: intent.table, partition, row });
      if (intent.fanOut) await continueFanOut({ engine, entity, log, hold }, intent, intent.fanOut);
    }
    const refused = checked.find((part) => part.refused !== undefined)?.refused;
    if (refused !== undefined)
      throw new NeverSucceeds(
        `Part of the message is rejected: ${refused}. The message is forged, or of another declaration. The rest is done.`,
      );
    record.reconcileLag(engine.now() - unwrap(message).history.since);
  });
}

const namedIn = ({ intent: { table }, items }: Pick<Reconciled, 'items'> & { readonly intent: Intent }) =>
  items.map(({ partition, row }): Address => ({ table, partition, row }));

interface Reconciled {
  readonly entity: Entity;
  readonly items: readonly IntentItem[];
}

/**
 * The work of an intent. A member of a list does not tell the key of its entity. So in a late intent of an entity that has left its former
 * key, the members are those of the entity at its new key.
 */
async function byKey(engine: Engine, declared: Entity, { entity, items }: Reconciled): Promise<Reconciled[]> {
  const phase = await engine.rekey?.phaseOf(engine, declared.name);
  if (entity !== formerOf(declared) || phase === 'former' || phase === 'waiting') return [{ entity, items }];
  const withEntries = (item: IntentItem, isMember: boolean) => {
    const indexEntries = item.indexEntries.filter(({ member }) => (member !== undefined) === isMember);
    return { ...item, indexEntries };
  };
  const moved = items.flatMap((item) => {
    const key = keyAt(entity, item);
    const { indexEntries } = withEntries(item, true);
    if (!key || indexEntries.length === 0) return [];
    const { partition, row } = addressOf(declared, key);
    return [{ partition, row, indexEntries }];
  });
  return [
    { entity, items: items.map((item) => withEntries(item, false)) },
    { entity: declared, items: moved },
  ];
}

interface FanOutWork extends Pick<Consumer, 'engine' | 'log'> {
  readonly entity: Entity;
  readonly hold: Hold;
}

/** Does a part of a fan-out and sends a message for the rest, or for the last pass. */
async function continueFanOut(
  { engine, entity, log, hold }: FanOutWork,
  intent: Intent,
  { sources, position, isLastPass }: NonNullable<Intent['fanOut']>,
): Promise<void> {
  const step = {
    sources: sources
      .map(({ partition, row }) => ({ table: intent.table, partition, row }))
      .filter((address) => isPossible(entity, address)),
    position,
    hold,
    fail: (why: string) => log.error(`An entity keeps stale copies of ${entity.name}: ${why}`),
  };
  const feature = entity.features.find(({ fanOut }) => fanOut);
  const next = await feature?.fanOut?.run(engine, entity, step);
  const rest = { ...intent, items: [] };
  const part = await partFor(engine, INDEX_CHANGES_QUEUE, {
    table: intent.table,
    partition: sources[0]?.partition ?? '',
  });
  if (next) {
    await sendWork(engine, part, { ...rest, fanOut: { sources, position: next, isLastPass } });
  } else if (!isLastPass) {
    const delaySeconds = engine.timing.hideIntentForSeconds;
    await sendWork(engine, part, { ...rest, fanOut: { sources, isLastPass: true } }, { delaySeconds });
  }
}

/** Handles a message of `transfers`. */
export async function consumeTransfer({ engine, entities, log }: Consumer, message: Message): Promise<void> {
  let transfer: Transfer | undefined;
  let entity: Entity | undefined;
  const work = async (take: TakeHold) => {
    transfer = read(Transfer, message.body);
    entity = findEntity(entities, transfer.entity);
    const hold = await take();
    if (hold) await runTransfer(engine, entity, transfer, { hold });
  };
  await handle(engine, message, log, work, async (reason) => {
    if (transfer && entity) await giveUpTransfer(engine, entity, transfer, reason);
  });
}

/**
 * Handles a message that the host moved to a poison queue: storage was unavailable at every attempt, or the process died.
 * The message may still succeed, so it is sent again until it is too old.
 */
export async function consumePoison({ engine, entities, log }: Consumer, message: Message): Promise<void> {
  const queue = message.queue.replace(/-poison$/, '');
  const { body, history } = unwrap({ ...message, queue });
  const unreadable = findPermanentFailure(queue, body, entities);
  if (unreadable === undefined && !isTooOld(engine, history)) {
    const later = { ...history, attempts: history.attempts - message.attempts, waits: history.waits + 1 };
    await sendWork(engine, existingPart(engine, queue), { ...(body as object), history: later });
    log.warn(`The message ${message.id} of ${queue} failed at every attempt of the host. It is sent again.`);
    return;
  }
  const reason = unreadable ?? 'Every attempt failed. See the log of that time for the reasons.';
  await recordPoison(engine, { ...message, queue }, reason);
  log.error(`The message ${message.id} of ${queue} is poison: ${reason}`);
}

/** Returns why a message can never succeed, or undefined. */
function findPermanentFailure(queue: string, body: unknown, entities: readonly Entity[]): string | undefined {
  try {
    findEntity(entities, read(queueOfPart(queue) === TRANSFERS_QUEUE ? Transfer : Intent, body).entity);
    return undefined;
  } catch (error) {
    if (error instanceof NeverSucceeds) return error.message;
    throw error;
  }
}

/** Takes the hold on the work of a message; undefined if another message has the work, or the work is done. */
type TakeHold = () => Promise<Hold | undefined>;

/**
 * Does the work of a message. After a failure the work continues with another message (hold.ts) until the last attempt, or
 * until a retry is pointless: then `giveUp` is called and the message is recorded. Throws if that fails too: then the host
 * retries, and finally moves the message to its own poison queue. Recording comes last, so a message is recorded once.
 */
export async function handleMessage(
  engine: Engine,
  message: Message,
  log: Log,
  work: (take: TakeHold) => Promise<void>,
  giveUp: (reason: string) => Promise<void> = async () => undefined,
): Promise<void> {
  const { queue } = message;
  const { history } = unwrap(message);
  const { id, attempts, waits } = history;
  let held: HeldWork | undefined;
  try {
    await work(async () => {
      held = await holdWork(engine, message);
      // Earlier attempts ended without a result: the process died or could not reach storage.
      if (held && attempts > MAX_ATTEMPTS)
        throw new NeverSucceeds('The process stopped at every attempt to handle the message.');
      return held;
    });
    await held?.release();
  } catch (error) {
    const code = error instanceof RowkeyError ? error.code : '';
    const reason = reasonOf(error);
    const wait = TEMPORARY.get(code);
    const isPointless = error instanceof NeverSucceeds || POINTLESS.has(code);
    const isRetried = wait === undefined ? !isPointless && attempts < MAX_ATTEMPTS : !isTooOld(engine, history);
    if (isRetried) {
      log.warn(
        withFrames(
          `The message ${id} of ${queue} failed at attempt ${attempts}, after ${waits} delays: ${reason}`,
          error,
        ),
      );
      const later = wait === undefined ? history : { ...history, attempts: attempts - 1, waits: waits + 1 };
      const delaySeconds = wait === undefined ? RETRY_AFTER_SECONDS : delayOf(wait, waits);
      if (await tryPutOff(held, later, delaySeconds)) return;
      // The host logs the error, and an SDK error may contain a key.
      throw new Error(reason);
    }
    await giveUp(reason);
    await recordPoison(engine, message, reason);
    await held?.release();
    log.error(withFrames(`The message ${id} of ${queue} is poison: ${reason}`, error));
  }
}

/** A line of the log, and where code of the app or the engine failed. */
function withFrames(line: string, error: unknown): string {
  return [line, ...framesOf(error)].join('\n');
}

/** True if a message has been delayed for so long that it is recorded even after a temporary failure. */
function isTooOld({ now }: Pick<Engine, 'now'>, { since }: History): boolean {
  return now() - since > PATIENCE_MS;
}

/** Returns seconds: more after each delay, and random, so that messages do not return together. */
export function delayOf(least: number, waits: number): number {
  return Math.round(Math.min(least * 2 ** Math.min(waits, 10), LONGEST_DELAY_SECONDS) * (1 + Math.random() / 2));
}

/** Returns false without a hold or after an unknown error. If storage is unavailable, the reminder is not changed. */
async function tryPutOff(held: HeldWork | undefined, history: History, delaySeconds: number): Promise<boolean> {
  if (!held) return false;
  try {
    await unlessUnavailable(held.putOff(history, delaySeconds));
    return true;
  } catch {
    return false;
  }
}

/** The message of a RowkeyError or NeverSucceeds, which is safe to show; of any other error only its kind, because its message may contain data. */
export function reasonOf(error: unknown): string {
  if (error instanceof RowkeyError || error instanceof NeverSucceeds) return error.message;
  return `an unexpected ${kindOf(error)}`;
}

/** Handles a message in the trace of its sender, with a link to this invocation. */
function handle(...handling: Parameters<typeof handleMessage>): Promise<void> {
  const [, message] = handling;
  const sender = Sender.safeParse(message.body).data?.traceparent;
  if (!sender) return handleMessage(...handling);
  const invocation = trace.getSpanContext(context.active());
  return inSpan(`${message.queue} process`, () => handleMessage(...handling), {
    parent: contextOf(sender),
    kind: SpanKind.CONSUMER,
    links: invocation ? [{ context: invocation }] : [],
  });
}

function read<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  if (isDeeperThan(MAX_NESTING, body))
    throw new NeverSucceeds(`The message cannot be read: it is nested more than ${MAX_NESTING} deep.`);
  const [replaced] = listReplacedMetadata(body);
  if (replaced !== undefined)
    throw new NeverSucceeds(
      `The message cannot be read: it has the property ${replaced}, which the Functions host reserves.`,
    );
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new NeverSucceeds(`The message cannot be read: ${describeError(body, parsed.error)}.`);
}

function describeError(body: unknown, error: z.ZodError): string {
  const [issue] = error.issues;
  if (typeof body !== 'string') return `${issue?.path.join('.') || 'it'}: ${issue?.message}`;
  const decoded = /^[\w+/]+=*$/.test(body) ? Buffer.from(body, 'base64').toString('utf8') : '';
  return decoded.startsWith('{') ? 'it is base64, and this queue takes plain JSON' : 'it is not JSON';
}

function findEntity(entities: readonly Entity[], name: string): Entity {
  // Archives have messages too: the deletion of an archived entity leaves a tombstone.
  const entity = withArchives(entities).find((candidate) => candidate.name === name);
  if (entity) return entity;
  throw new NeverSucceeds('The message names an entity that the model does not declare.');
}

/** Reads a message from the queue trigger. Ignores metadata that the body may have replaced. */
export function toMessage(queue: string, body: unknown, { triggerMetadata = {} }: InvocationContext): Message {
  const replaced = new Set(listReplacedMetadata(body));
  const readMetadata = (name: string) => (replaced.has(name.toLowerCase()) ? undefined : triggerMetadata[name]);
  const attempts = Number(readMetadata('dequeueCount'));
  const insertedAt = Date.parse(String(readMetadata('insertionTime')));
  return {
    queue,
    id: String(readMetadata('id') ?? hash('sha256', jsonText(body)).slice(0, 32)),
    attempts: Number.isSafeInteger(attempts) ? attempts : MAX_ATTEMPTS,
    insertedAt: Number.isNaN(insertedAt) ? Date.now() : insertedAt,
    body,
  };
}

/**
 * The names of the metadata that the Functions host passes with a message. Top-level properties of a JSON body replace
 * metadata of the same name, ignoring case. No message of the app has such a property.
 */
const TRIGGER_METADATA = new Set([
  'queuetrigger',
  'id',
  'dequeuecount',
  'insertiontime',
  'nextvisibletime',
  'expirationtime',
  'popreceipt',
]);

/** Returns the names of the metadata that a message body replaces, in lower case. */
export function listReplacedMetadata(body: unknown): string[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return [];
  return Object.keys(body)
    .map((name) => name.toLowerCase())
    .filter((name) => TRIGGER_METADATA.has(name));
}
