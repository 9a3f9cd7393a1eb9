import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import { appendBlock, createAppendBlob, listBlobs, readLines } from '../../lib/storage/append-blobs.ts';
import {
  AUDIT_CONTAINER,
  accountOfBlob,
  PERIOD_ARCHIVES_CONTAINER,
  placeOfBlob,
} from '../../lib/storage/blob-owner.ts';
import {
  BLOCK_UPLOAD_PERMISSIONS,
  blobLength,
  copyBlob,
  deleteBlob,
  listContainer,
  readBlob,
  readBlobRange,
  setBlobHeaders,
  signBlobUrl,
  streamBlob,
  UPLOAD_PERMISSIONS,
  writeBlob,
} from '../../lib/storage/blobs.ts';
import { createConnections, hideCost, measureCost } from '../../lib/storage/cost.ts';
import { storageCall } from '../../lib/storage/errors.ts';
import { explain } from '../../lib/storage/explain.ts';
import { fenceOf, isFenceRow, markOf, nameOfMove, newMoveId } from '../../lib/storage/fence-rows.ts';
import { UnwrapFailed } from '../../lib/storage/key-ring.ts';
import { inBackground } from '../../lib/storage/load.ts';
import { createLocalKeyRing, rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { deleteMessage, hideMessage, receiveMessages, sendMessage } from '../../lib/storage/messages.ts';
import { compareResources, createTable, dropTable, listTables, provision } from '../../lib/storage/provision.ts';
import { prefixWithHyphen } from '../../lib/storage/resource-names.ts';
import {
  BACKUP_CONTAINER,
  journalFound,
  journalRows,
  padTime,
  timeOf,
  toTime,
  withDeferredAppends,
} from '../../lib/storage/row-journal.ts';
import { literal, toRowProperties } from '../../lib/storage/row-query.ts';
import { ANY_ETAG, readRange, readRow, scanTable, submit, tryAction } from '../../lib/storage/rows.ts';
import { LEASE_MS, lookAt, ownerOf, ownerOfPlace } from '../../lib/storage/slot-map.ts';
import {
  changeLayers,
  changeSlots,
  indexIn,
  isOfApp,
  isOwned,
  readOwned,
  requireRoom,
  SYSTEM_TABLE,
} from '../../lib/storage/slot-row.ts';
import { layerMatcher, placeOf, SLOTS, slotAt, slotIndex, slotOf, subtractLayers } from '../../lib/storage/slots.ts';
import {
  accountsOf,
  createServiceClock,
  FIRST_ACCOUNT,
  isOnThisMachine,
  openStorage,
  queueIn,
  through,
  toLegacyHttpClient,
} from '../../lib/storage/storage.ts';
import { accountKeySigner, locateRow, tableSasSigner, userDelegationSigner } from '../../lib/storage/table-sas.ts';

export type { KeyRing } from '../../lib/storage/key-ring.ts';
export type { Action, Address, Properties, Row } from '../../lib/storage/rows.ts';
export type { Account, Storage } from '../../lib/storage/storage.ts';
export type { TableSasRequest } from '../../lib/storage/table-sas.ts';

/** Rows of tables (lib/storage/rows.ts). */
export const storageRows = {
  ANY_ETAG,
  literal,
  readRange,
  readRow,
  scanTable,
  submit,
  toRowProperties,
  tryAction,
} as const;

/** Tables, queues and containers (lib/storage/provision.ts). */
export const storageTables = {
  compareResources,
  createTable,
  dropTable,
  listTables,
  prefixWithHyphen,
  provision,
} as const;

/** Blobs, their owners, and append blobs (lib/storage). */
export const storageBlobs = {
  AUDIT_CONTAINER,
  BLOCK_UPLOAD_PERMISSIONS,
  PERIOD_ARCHIVES_CONTAINER,
  UPLOAD_PERMISSIONS,
  accountOfBlob,
  appendBlock,
  blobLength,
  copyBlob,
  createAppendBlob,
  deleteBlob,
  listBlobs,
  listContainer,
  placeOfBlob,
  readBlob,
  readBlobRange,
  readLines,
  setBlobHeaders,
  signBlobUrl,
  streamBlob,
  writeBlob,
} as const;

/** The journal of a backup (lib/storage/row-journal.ts). */
export const storageJournal = {
  BACKUP_CONTAINER,
  journalFound,
  journalRows,
  padTime,
  timeOf,
  toTime,
  withDeferredAppends,
} as const;

/** Messages of queues (lib/storage/messages.ts). */
export const storageQueues = {
  deleteMessage,
  hideMessage,
  receiveMessages,
  sendMessage,
} as const;

/** Slots, their accounts and the fences of their moves (lib/storage). */
export const storageSlots = {
  LEASE_MS,
  SLOTS,
  SYSTEM_TABLE,
  changeLayers,
  changeSlots,
  fenceOf,
  indexIn,
  isFenceRow,
  isOfApp,
  isOwned,
  layerMatcher,
  lookAt,
  markOf,
  nameOfMove,
  newMoveId,
  ownerOf,
  ownerOfPlace,
  placeOf,
  readOwned,
  requireRoom,
  slotAt,
  slotIndex,
  slotOf,
  subtractLayers,
} as const;

/** Keys that encrypt and keys that sign (lib/storage). */
export const storageKeys = {
  UnwrapFailed,
  accountKeySigner,
  createLocalKeyRing,
  rotateLocalKey,
  locateRow,
  tableSasSigner,
  userDelegationSigner,
} as const;

/** Storage accounts, and what requests to them cost (the rest of lib/storage). */
export const storageAccounts = {
  FIRST_ACCOUNT,
  accountsOf,
  createConnections,
  createServiceClock,
  explain,
  hideCost,
  inBackground,
  isOnThisMachine,
  measureCost,
  openStorage,
  queueIn,
  storageCall,
  through,
  toLegacyHttpClient,
  withShapes,
} as const;
