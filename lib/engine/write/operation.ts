import { hash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { toProperties } from '../../define/codec/entity-codec.ts';
import type { Live } from '../../define/declaration/change.ts';
import { defineEntity } from '../../define/define-entity.ts';
import { linkEntity } from '../../define/define-model.ts';
import { periodOf } from '../../define/keys/calendar.ts';
import { addressIfAny, addressOf } from '../../define/places/index-entries.ts';
import { type Address, submit } from '../../storage/rows.ts';
import { traceContext } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { makeAndNote, type NotedChange } from '../note-change.ts';
import { withPeriodTable } from '../period-tables.ts';
import { readLive } from '../read/entity-rows.ts';
import { sendWork } from '../reconcile/hold.ts';
import { TRANSFERS_QUEUE, type Transfer } from '../reconcile/intent.ts';
import { partFor } from '../reconcile/queues.ts';
import { RecordedRules } from './recorded-rules.ts';

export const Operation = z.strictObject({
  /** Begins with the date that selects the table. */
  operationId: z.string().regex(/^\d{4}-\d{2}-\d{2}-[0-9a-f-]{36}$/, 'an id of an operation is needed'),
  operation: z.enum(['archive', 'move', 'delete', 'create']),
  entity: z.string(),
  status: z.enum(['running', 'succeeded', 'failed']),
  reason: z.string().optional(),
  /** The key of the entity at the time of the request. */
  key: z.record(z.string(), z.unknown()),
  /** The new values of a move, with the derived fields of the key. */
  to: z.record(z.string(), z.unknown()).optional(),
  rules: RecordedRules.optional(),
  /** Who has requested it: see `requesterOf`. Absent in a record of an earlier version, and for what nobody has requested. */
  by: z.string().optional(),
});

/**
 * The state of a request that was accepted before its work was done (see `Transfer`), and the generated key of a
 * create that may be repeated. Each day has a table.
 */
export const operations = linkEntity(
  defineEntity('operations', {
    schema: Operation,
    table: 'operations',
    key: { partition: '{operationId}', row: 'status' },
    period: { per: 'day', field: 'operationId', keep: 30 },
    access: { read: [], write: [] },
  }),
);

export type Operation = z.infer<typeof Operation>;
type OperationKey = Pick<Operation, 'operation' | 'entity' | 'operationId'>;

/** A digest of the subject of the caller, as a record that outlives the request needs no name of a person. */
export function requesterOf(subject: string | undefined): string | undefined {
  return subject === undefined ? undefined : hash('sha256', subject, 'base64url');
}

/** Returns the id of an operation that begins at `now` (milliseconds): the same for one `id` on one day (UTC). */
export function newOperationId(now: number, id: string = randomUUID()): string {
  return `${periodOf('day', now)}-${id}`;
}

/** True for an id of an operation that a caller has requested, and not for what the engine does by itself. */
export function isOperationId(id: string): boolean {
  return Operation.shape.operationId.safeParse(id).success;
}

/** Records the state of an operation. Throws `StorageConflict` with `insert` if there is one, and with an ETag if it has changed. */
export async function writeOperation(
  engine: Engine,
  operation: Operation,
  as: 'upsert' | 'insert' | { readonly etag: string } = 'upsert',
): Promise<void> {
  const { table, partition, row } = addressOf(operations, operation);
  const system = { WriteId: operation.operationId, Incarnation: operation.operationId };
  const properties = toProperties(operations, operation, system);
  const kind = typeof as === 'string' ? { kind: as } : ({ kind: 'replace', ...as } as const);
  const transaction = { table, partition, actions: [{ ...kind, row, properties }], isRepeatable: true };
  const write = () => submit(engine.storage, transaction);
  await withPeriodTable(engine, operations, { table, write });
}

/** Sends the message of a change that an operation makes, and notes the change. */
export async function sendTransfer(engine: Engine, transfer: Transfer, change: NotedChange): Promise<void> {
  const part = await partFor(engine, TRANSFERS_QUEUE, change.address);
  await makeAndNote(engine, change, () => sendWork(engine, part, { ...transfer, ...traceContext() }));
}

/** Returns undefined if the operation does not exist or is of another entity: the id alone gives no access. */
export async function findOperation(engine: Engine, of: OperationKey): Promise<Values | undefined> {
  return (await findRecorded(engine, of))?.values;
}

/** Returns the operation with the ETag of its record. */
export async function findRecorded(engine: Engine, of: OperationKey): Promise<Live | undefined> {
  const found = await findById(engine, of.operationId);
  return found?.values.entity === of.entity && found.values.operation === of.operation ? found : undefined;
}

/** Returns the record of this id with its ETag, whatever it is of. */
export async function findById(engine: Engine, operationId: string): Promise<Live | undefined> {
  const address = addressOfOperation(operationId);
  return address && readLive(engine, operations, address);
}

/** The address of a record. Undefined for what is no id: one of the right form may begin with an invalid date. */
export function addressOfOperation(operationId: string): Address | undefined {
  return isOperationId(operationId) ? addressIfAny(operations, { operationId }) : undefined;
}

/** Returns an operation. Throws `not-found`. */
export async function readOperation(engine: Engine, of: OperationKey): Promise<Operation> {
  const found = await findOperation(engine, of);
  if (found) return Operation.parse(found);
  throw new RowkeyError('not-found', 'Operation not found: the id is wrong, or the operation ended too long ago.');
}
