import { context, SpanKind, trace } from '@opentelemetry/api';
import { z } from 'zod';
import { NeverSucceeds } from '../../base/errors.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import { type Entity, withArchives } from '../../define/declaration/entity.ts';
import { recordReconcileLag } from '../../telemetry/metrics.ts';
import { contextOf, inSpan } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { isDeeperThan } from '../json-text.ts';
import { sendWork, unwrap } from '../reconcile/hold.ts';
import { INDEX_CHANGES_QUEUE, Intent, TRANSFERS_QUEUE } from '../reconcile/intent.ts';
import { isPossible, possibleItems } from '../reconcile/possible-entries.ts';
import { reconcile } from '../reconcile/reconcile.ts';
import { failTransfer, runTransfer, Transfer } from '../transfer/transfer.ts';
import { handleMessage, isTooOld, type Log, type Message, recordPoison, type TakeHold } from './poison.ts';
import { listReplacedMetadata } from './queue-message.ts';

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

/** Handles a message of `index-changes`. */
export async function consumeIntent({ engine, entities, log }: Consumer, message: Message): Promise<void> {
  await handle(engine, message, log, async (take) => {
    const { dependents = [], ...named } = read(Intent, message.body);
    const parts = [
      named,
      ...dependents.map((dependent) => ({ ...named, isNew: false, fanOut: undefined, ...dependent })),
    ];
    const checked = parts.map((intent) => {
      const entity = findEntity(entities, intent.entity);
      return { intent, entity, ...possibleItems(entity, intent) };
    });
    const hold = await take();
    if (!hold) return;
    for (const { intent, entity, items } of checked) {
      await reconcile(engine, entity, { ...intent, items }, { hold });
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
    recordReconcileLag(engine.now() - unwrap(message).history.since);
  });
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
  if (next) {
    await sendWork(engine, INDEX_CHANGES_QUEUE, { ...rest, fanOut: { sources, position: next, isLastPass } });
  } else if (!isLastPass) {
    const delaySeconds = engine.timing.hideIntentForSeconds;
    await sendWork(engine, INDEX_CHANGES_QUEUE, { ...rest, fanOut: { sources, isLastPass: true } }, { delaySeconds });
  }
}

/** Handles a message of `transfers`: an archive or a move. */
export async function consumeTransfer({ engine, entities, log }: Consumer, message: Message): Promise<void> {
  let transfer: Transfer | undefined;
  const work = async (take: TakeHold) => {
    transfer = read(Transfer, message.body);
    const entity = findEntity(entities, transfer.entity);
    const hold = await take();
    if (hold) await runTransfer(engine, entity, transfer, { hold });
  };
  await handle(engine, message, log, work, async (reason) => {
    if (transfer) await failTransfer(engine, transfer, reason);
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
    await sendWork(engine, queue, { ...(body as object), history: later });
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
    findEntity(entities, read(queue === TRANSFERS_QUEUE ? Transfer : Intent, body).entity);
    return undefined;
  } catch (error) {
    if (error instanceof NeverSucceeds) return error.message;
    throw error;
  }
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
