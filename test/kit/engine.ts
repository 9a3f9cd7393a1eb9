import {
  consumeIntent,
  consumePoison,
  consumerOf,
  consumeTransfer,
  delayOf,
  handleMessage,
  listReplacedMetadata,
  MAX_ATTEMPTS,
  reasonOf,
  toMessage,
} from '../../lib/engine/consume/consume.ts';
import { drainQueues } from '../../lib/engine/consume/drain.ts';
import {
  dropPoison,
  listPoison,
  POISON_TABLE,
  recordPoison,
  replayPage,
  replayPoison,
} from '../../lib/engine/consume/poison.ts';
import { createEngine, TIMING } from '../../lib/engine/engine.ts';
import { collectChanges, noteChange } from '../../lib/engine/note-change.ts';
import { fromContinuation, toContinuation } from '../../lib/engine/read/continuation.ts';
import { entityIn, FurtherRowLost, judgeRow } from '../../lib/engine/read/entity-rows.ts';
import { LIST_FORM, membersOf, readList } from '../../lib/engine/read/member-list.ts';
import { readByCopies, readByCopy, readByList, readByReference } from '../../lib/engine/read/read-through-index.ts';
import {
  periodsToRead,
  readEntities,
  readEntity,
  readWithChildren,
  scanEntities,
} from '../../lib/engine/read/retrieve.ts';
import {
  BlobGone,
  blobPrefix,
  createBlobName,
  formerBlobPrefix,
  LARGE_CONTAINER,
  toReferrer,
} from '../../lib/engine/read/text-blobs.ts';
import { markOf } from '../../lib/engine/read/unreadable-field.ts';
import { holdFor, holdWork, sendWork } from '../../lib/engine/reconcile/hold.ts';
import {
  INDEX_CHANGES_QUEUE,
  Intent,
  MESSAGE_VERSION,
  possibleItems,
  TRANSFERS_QUEUE,
} from '../../lib/engine/reconcile/intent.ts';
import { listParts } from '../../lib/engine/reconcile/queues.ts';
import { reconcile } from '../../lib/engine/reconcile/reconcile.ts';
import { searchForeign } from '../../lib/engine/search-foreign.ts';
import { noteShared } from '../../lib/engine/shared-tables.ts';
import { moveToKey } from '../../lib/engine/transfer/move-to-key.ts';
import { giveUpTransfer, requestArchive, requestMove, runTransfer } from '../../lib/engine/transfer/transfer.ts';
import { deleteRange, transact, writeBatch } from '../../lib/engine/write/entity-batch.ts';
import {
  changeEntity,
  createEntity,
  createOnce,
  deleteEntity,
  mergeEntity,
  patchEntity,
  putEntity,
  replaceEntity,
  transactOnce,
  writeAtomically,
} from '../../lib/engine/write/entity-store.ts';
import { commit } from '../../lib/engine/write/eventual-transaction.ts';
import {
  findOperation,
  newOperationId,
  operations,
  readOperation,
  writeOperation,
} from '../../lib/engine/write/operation.ts';
import { planPartition } from '../../lib/engine/write/plan.ts';
import { RULED_OUT } from '../../lib/engine/write/recorded-rules.ts';
import { toPlain } from '../../lib/engine/write/stored-values.ts';

export type { Engine, Timing } from '../../lib/engine/engine.ts';
export type { ChangeRecord } from '../../lib/engine/note-change.ts';
export type { Position } from '../../lib/engine/read/continuation.ts';
export type { Message } from '../../lib/engine/reconcile/hold.ts';
export { Transfer } from '../../lib/engine/reconcile/intent.ts';

/** Reads of entities, lists and texts (lib/engine/read). */
export const engineRead = {
  BlobGone,
  FurtherRowLost,
  LARGE_CONTAINER,
  LIST_FORM,
  blobPrefix,
  createBlobName,
  entityIn,
  formerBlobPrefix,
  fromContinuation,
  judgeRow,
  markOf,
  membersOf,
  periodsToRead,
  readByCopies,
  readByCopy,
  readByList,
  readByReference,
  readEntities,
  readEntity,
  readList,
  readWithChildren,
  scanEntities,
  toContinuation,
  toReferrer,
} as const;

/** Writes of one entity, batches and transactions (lib/engine/write). */
export const engineWrite = {
  RULED_OUT,
  changeEntity,
  commit,
  createEntity,
  createOnce,
  deleteEntity,
  deleteRange,
  findOperation,
  mergeEntity,
  newOperationId,
  operations,
  patchEntity,
  planPartition,
  putEntity,
  readOperation,
  replaceEntity,
  toPlain,
  transact,
  transactOnce,
  writeAtomically,
  writeBatch,
  writeOperation,
} as const;

/** Messages, their attempts and their poison (lib/engine/consume). */
export const engineConsume = {
  MAX_ATTEMPTS,
  POISON_TABLE,
  consumeIntent,
  consumePoison,
  consumeTransfer,
  consumerOf,
  delayOf,
  drainQueues,
  dropPoison,
  handleMessage,
  listPoison,
  listReplacedMetadata,
  reasonOf,
  recordPoison,
  replayPage,
  replayPoison,
  toMessage,
} as const;

/** Intents, and what settles them (lib/engine/reconcile). */
export const engineReconcile = {
  Intent,
  INDEX_CHANGES_QUEUE,
  MESSAGE_VERSION,
  TRANSFERS_QUEUE,
  holdFor,
  holdWork,
  listParts,
  possibleItems,
  reconcile,
  sendWork,
} as const;

/** Archives, and moves to another key (lib/engine/transfer). */
export const engineTransfer = {
  giveUpTransfer,
  moveToKey,
  requestArchive,
  requestMove,
  runTransfer,
} as const;

/** The engine itself (lib/engine). */
export const engineCore = {
  TIMING,
  collectChanges,
  createEngine,
  noteChange,
  noteShared,
  searchForeign,
} as const;
