import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { busy, NeverSucceeds, RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import { checkText, maskOf, parse } from '../../define/codec/validation.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import { type Entity, type EntityChange, formerOf } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { unlessRefused } from '../../storage/errors.ts';
import { settleAppends } from '../../storage/row-journal.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { journalNamed } from '../journal-named.ts';
import { authorOfChanges } from '../note-change.ts';
import { declarationOf, entityIn, readRowToWrite, requireWritable } from '../read/entity-rows.ts';
import { holdFor } from '../reconcile/hold.ts';
import { MESSAGE_VERSION, type Transfer } from '../reconcile/intent.ts';
import { CHECKS, type CheckedWrite, mayTellOf } from '../write/checks.ts';
import {
  addressOfOperation,
  findRecorded,
  newOperationId,
  type Operation,
  requesterOf,
  sendTransfer,
  writeOperation,
} from '../write/operation.ts';
import { type RecordedRules, RULED_OUT, recordedRules, rulesToRecord } from '../write/recorded-rules.ts';
import { toMoved } from '../write/stored-values.ts';
import { checkChildrenToMove, fieldsMoved } from './carried-children.ts';
import type { Work } from './hand-over.ts';
import { deleteLarge, openAgain } from './large-delete.ts';
import { departure, GONE, INTERRUPTED, transferEntity } from './transfer-entity.ts';

/**
 * Archive and move: an eventual transaction between two entities.
 *
 *   request    read the source -> record the operation -> send the message: 202
 *   consumer   insert or replace at the destination, closed to writers
 *              -> a move: hand over the rows of unique indexes
 *              -> if the source is unchanged, turn it into a tombstone that names the operation; else start over
 *              -> open the destination -> delete the tombstone
 *   rejected   a move hands the rows back -> delete the destination: the source is as before
 *
 * The entity always exists in at least one of the two places. The tombstone is the point of no return: a source that
 * disappeared without one was deleted by a caller, and then the destination is deleted too, because an acknowledged
 * deletion must last. A message names one incarnation of the entity, and the entity gets another at the destination, so a
 * duplicate or late message finds nothing to do.
 *
 * An entity with more children than fit into a transaction with it is closed first (`Leaving`), as for its delete (large-delete.ts). Then the children
 * are copied in several transactions, which require the ETag of the destination. `Left` is the point of no return, before the
 * first child is deleted at the source. Nothing can be rejected after it.
 *
 * The record of the operation has the rules on rows of the caller who requested it (recorded-rules.ts). They are asked again of each state of the
 * source that is copied, before the point of no return: the caller's rights are those of the request, and the rows are those that are found.
 * test/model/transfer-rules.ts is the specification. A move computes derived fields again, also those of children; an archive, a large delete
 * and the move to another key leave each value as it is. docs/internals/consistency.md says what else runs again.
 *
 * While entities are moved to another key (operations/rekey.ts), an operation that has begun at the former keys is finished or undone there,
 * and begins at the new keys once its entities are there. test/model/rekey-moves.ts is the specification.
 */

/**
 * Requests that an entity be archived and returns the id of the operation. A given `id` determines that id, so a request
 * that is repeated on the same day is executed once. Throws `not-found`, `referenced`.
 */
export async function requestArchive(engine: Engine, entity: Entity, key: Values, id?: string): Promise<string> {
  return requestTransfer(engine, entity, { operation: 'archive', key }, id);
}

/** Requests a move; `input` has new values of movable fields. Throws `not-found`, `invalid-input`, `referenced`. */
export async function requestMove(
  engine: Engine,
  entity: Entity,
  key: Values,
  input: unknown,
  id?: string,
): Promise<string> {
  const to: Values = parse(moveSchema(entity), input);
  for (const [field, value] of Object.entries(to)) checkText(field, value, true);
  const address = addressOf(entity, { ...key, ...to });
  if (isDeepStrictEqual(address, addressOf(entity, key)))
    throw new RowkeyError(
      'invalid-input',
      `A move must change ${entity.movable.map((field) => `"${field}"`).join(' or ')}.`,
      {
        field: entity.movable[0] ?? '',
        accepted: 'a value other than the current one',
      },
    );
  return requestTransfer(engine, entity, { operation: 'move', key, to }, id);
}

/** Returns the schema of the body of a move. */
export function moveSchema(entity: Entity): z.ZodObject {
  return entity.schema.pick(maskOf(entity.movable)).required().strict();
}

type Asked = Pick<Transfer, 'operation' | 'key' | 'to'>;

/** Of requests that are repeated concurrently, each with the same id. */
const REQUEST_ATTEMPTS = 5;

async function requestTransfer(engine: Engine, entity: Entity, asked: Asked, id?: string): Promise<string> {
  for (let attempt = 1; attempt <= REQUEST_ATTEMPTS; attempt += 1) {
    const operationId = await tryRequest(engine, entity, asked, id);
    if (operationId !== undefined) return operationId;
  }
  throw busy('The same operation is being requested by other requests.');
}

/** Undefined if the record of the operation has changed meanwhile. */
async function tryRequest(
  engine: Engine,
  declared: Entity,
  asked: Asked,
  id: string | undefined,
): Promise<string | undefined> {
  const entity = await declarationOf(engine, declared);
  const operationId = newOperationId(engine.now(), id);
  const named = { operation: asked.operation, operationId, entity: entity.name };
  const earlier = id === undefined ? undefined : await findRecorded(engine, named);
  if (earlier) await journalRecord(engine, operationId);
  if (earlier && earlier.values.status !== 'running') return operationId;
  const address = addressOf(entity, asked.key);
  const isDelete = asked.operation === 'archive';
  const isKnown = (values: Values) => mayTellOf(engine, { entity, isDelete }, values);
  const row = await readRowToWrite(engine, entity, address, {
    fields: Object.keys(entity.columns),
    isWhole: true,
    isKnown,
  });
  const found = row && entityIn(entity, row);
  const checked: CheckedWrite = {
    engine,
    write: {
      entity,
      address,
      key: asked.key,
      // A running operation may be in progress.
      expects: found || !earlier ? 'one' : 'any',
      conditions: {},
      read: undefined,
      isDelete,
      isTransfer: true,
      next: async (current) => current && asked.to && toMoved(engine, entity, current.values, asked.to),
    },
    current: found && isKnown(found.values) ? found : undefined,
    isRefused: false,
    after: undefined,
  };
  for (const { check } of CHECKS) await check(checked);
  const { current: source, after } = checked;
  // If the process of a running operation died before sending the message, the message is sent now.
  if (!source) return operationId;
  // The key may have derived fields.
  const to = after && { ...asked.to, ...pick(after, fieldsInKey(entity)) };
  const transfer: Transfer = {
    version: MESSAGE_VERSION,
    ...asked,
    ...(to ? { to } : {}),
    operationId,
    entity: entity.name,
    incarnation: source.system.Incarnation,
  };
  const rules = rulesToRecord(engine, entity, transfer);
  const leaving = departure(entity, transfer, address, source);
  const arrival = after && to && arrivalOf(entity, { to, before: source.values, after });
  for (const { write } of entity.features)
    await write?.checkRelated?.(engine, entity, [leaving, ...(arrival ? [arrival] : [])], []);
  if (to && arrival) await checkChildrenToMove(engine, { entity, from: address, arrival, to, rules });
  const as = earlier ? { etag: earlier.etag } : 'insert';
  const recording = recordStatus(engine, transfer, 'running', { rules, by: requesterOf(authorOfChanges()), as });
  // The operation may have ended since its record was read.
  if (!(await unlessRefused(['exists', 'changed', 'missing'], recording))) return undefined;
  const { operation } = asked;
  const change = { operation, entity: entity.name, address, fields: Object.keys(asked.to ?? {}), etag: source.etag };
  await sendTransfer(engine, transfer, change);
  return operationId;
}

/** Executes a message of the queue `transfers`, which may be a duplicate or late. Throws to be retried. */
export const runTransfer = inPattern(
  'archive or move',
  async (
    engine: Engine,
    declared: Entity,
    transfer: Transfer,
    { hold }: { readonly hold: Hold } = { hold: holdFor(engine) },
  ): Promise<void> => {
    const entity = await declarationOf(engine, declared);
    await requireWritable(engine, entity);
    const isDelete = transfer.operation === 'delete';
    const destination = transfer.operation === 'archive' ? entity.archive : entity;
    if (!destination) throw new NeverSucceeds(`"${entity.name}" has no archive.`);
    const recorded = await findRecord(engine, transfer);
    if (!recorded)
      throw new NeverSucceeds(
        'Operation not found: the message does not match a recorded operation, or the operation ended too long ago.',
      );
    const { status, by } = recorded.values;
    if (status === 'succeeded') return journalRecord(engine, transfer.operationId);
    const from = addressOf(entity, transfer.key);
    const to = addressOf(destination, { ...transfer.key, ...transfer.to });
    const rules = recordedRules(recorded.values);
    const work = { engine, entity, destination, transfer, from, to, hold, rules };
    const isRekeyed = entity.formerKey && (await engine.rekey?.phaseOf(engine, entity.name)) === 'moving';
    const isDone = isRekeyed && (await leaveFormerKeys(work));
    const reason = await (isDelete
      ? deleteLarge(engine, entity, transfer, { hold, rules })
      : isDone
        ? undefined
        : transferEntity(work));
    if (reason === undefined) {
      // A message whose operation has succeeded is not handled again, so nothing would add what the journal lacks.
      await settleAppends();
      await recordStatus(engine, transfer, 'succeeded', { by });
    } else await failTransfer(engine, transfer, rules && reason === GONE ? RULED_OUT : reason);
  },
);

/** Ends an operation whose message is recorded as poison, unless a duplicate has succeeded or no such operation is recorded. */
export async function giveUpTransfer(
  engine: Engine,
  entity: Entity,
  transfer: Transfer,
  reason: string,
): Promise<void> {
  const recorded = await findRecord(engine, transfer);
  if (!recorded || recorded.values.status === 'succeeded') return;
  await openAgain(engine, entity, transfer);
  await failTransfer(engine, transfer, reason);
}

/** Records a failure, unless a duplicate has succeeded. The ETag of the record keeps what a duplicate records meanwhile. */
async function failTransfer(engine: Engine, transfer: Transfer, reason: string): Promise<void> {
  for (let isRecorded = false; !isRecorded; ) {
    const recorded = await findRecord(engine, transfer);
    if (!recorded || recorded.values.status === 'succeeded') return;
    const { values, etag } = recorded;
    const more = { reason, rules: recordedRules(values), by: values.by, as: { etag } };
    isRecorded = (await unlessRefused(['changed', 'missing'], recordStatus(engine, transfer, 'failed', more))) ?? false;
  }
}

/** Adds a record that is found to the journal of a backup: its writer may have died before. */
async function journalRecord(engine: Engine, operationId: string): Promise<void> {
  const address = addressOfOperation(operationId);
  if (address) await journalNamed(engine, [address]);
}

/**
 * Returns the operation as recorded at the time of the request, when its key and new values were checked. Undefined if the
 * message differs from the record: anyone who can write to the queue can name any key.
 */
async function findRecord(engine: Engine, transfer: Transfer): Promise<Live | undefined> {
  const recorded = await findRecorded(engine, transfer);
  const isSame = isDeepStrictEqual([recorded?.values.key, recorded?.values.to], [transfer.key, transfer.to]);
  return isSame ? recorded : undefined;
}

/**
 * Ends what an operation has begun at the former keys, which its entities then leave. Returns true if it has been done there. Nobody begins
 * anything at these keys any more.
 */
async function leaveFormerKeys(work: Work): Promise<boolean> {
  const { transfer } = work;
  const { rekey, ...engine } = work.engine;
  const [entity, destination] = [formerOf(work.entity), formerOf(work.destination)];
  if (!rekey || !entity || !destination) return false;
  const [from, to] = [addressOf(entity, transfer.key), addressOf(destination, { ...transfer.key, ...transfer.to })];
  if ((await transferEntity({ ...work, engine, entity, destination, from, to }, INTERRUPTED)) === undefined)
    return true;
  await rekey.find(work.engine, work.entity.name, work.from);
  await rekey.find(work.engine, work.destination.name, work.to);
  return false;
}

/** The change that a move will make at the destination: a request is rejected for a reference that the move would break. */
function arrivalOf(
  entity: Entity,
  { to, before, after }: { readonly to: Values; readonly before: Values; readonly after: Values },
): EntityChange {
  const arrival = { incarnation: '', movingFrom: '', moves: fieldsMoved(entity, to, { before, after }) };
  return { entity, address: addressOf(entity, after), before: { state: 'absent' }, after, arrival };
}

function fieldsInKey({ keyFields, derived }: Entity): readonly string[] {
  return keyFields.filter((field) => field in derived);
}

async function recordStatus(
  engine: Engine,
  transfer: Transfer,
  status: Operation['status'],
  // A failed operation keeps its rules: its message may be handled again.
  {
    reason,
    rules,
    by,
    as,
  }: {
    readonly reason?: string;
    readonly rules?: RecordedRules | undefined;
    readonly by: unknown;
    readonly as?: Parameters<typeof writeOperation>[2];
  },
): Promise<true> {
  const { operation, operationId, entity, key, to } = transfer;
  const more = { ...(to ? { to } : {}), ...(reason === undefined ? {} : { reason }), ...(rules ? { rules } : {}) };
  const requester = typeof by === 'string' ? { by } : {};
  await writeOperation(engine, { operationId, operation, entity, key, status, ...more, ...requester }, as);
  return true;
}
