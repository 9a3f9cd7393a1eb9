import { createAuditLog, readChanges } from '../../lib/operations/audit-log.ts';
import { carryLines, copyToBackup } from '../../lib/operations/backup/blobs.ts';
import { manifestName } from '../../lib/operations/backup/format.ts';
import { readVersions } from '../../lib/operations/backup/history.ts';
import { createJournal, tablesInBackup } from '../../lib/operations/backup/journal.ts';
import { readJournal, readManifests, readState } from '../../lib/operations/backup/read-backup.ts';
import { restoreBackup } from '../../lib/operations/backup/restore.ts';
import { compareWithPast, restoreInPlace } from '../../lib/operations/backup/restore-in-place.ts';
import { runBackup } from '../../lib/operations/backup/run-backup.ts';
import { takeSnapshot } from '../../lib/operations/backup/snapshot.ts';
import { readBackupStatus } from '../../lib/operations/backup/status.ts';
import { undelete } from '../../lib/operations/backup/undelete.ts';
import { verifyBackup } from '../../lib/operations/backup/verify-backup.ts';
import { bulkLoad, canBulkLoad } from '../../lib/operations/bulk-load.ts';
import { collectOrphans } from '../../lib/operations/collect-orphans.ts';
import { followTable } from '../../lib/operations/follow.ts';
import { cleanUpIndex } from '../../lib/operations/index-clean-up.ts';
import { arrangeLayers, planLayers, planToLayer0 } from '../../lib/operations/layers.ts';
import { guardModel } from '../../lib/operations/model-guard.ts';
import {
  markBuilt,
  readRekey,
  readShapes,
  startMoves as startMovesToKey,
  startRekey,
} from '../../lib/operations/model-record.ts';
import { abortMoves, cleanUp, moveBack, moveSlots, resumeMoves } from '../../lib/operations/move-slots.ts';
import { becomeMover } from '../../lib/operations/mover-hold.ts';
import { readAccountStates, readQueueStates } from '../../lib/operations/overview.ts';
import {
  findOwner,
  layersIn,
  planBalance,
  readPlacement,
  severalAccounts,
  slotsIn,
  stateIn,
} from '../../lib/operations/placement.ts';
import { createRekey, rekeyPage } from '../../lib/operations/rekey.ts';
import { resourcesOf } from '../../lib/operations/resources.ts';
import { rewrapEntities } from '../../lib/operations/rewrap.ts';
import { asMover, legsOf, MOVE_TIMING, startMoves } from '../../lib/operations/slot-mover.ts';
import { canVerify, verifyPage } from '../../lib/operations/verify.ts';

export type { MoveTiming } from '../../lib/operations/slot-mover.ts';
export { VerifyPosition } from '../../lib/operations/verify.ts';

/** Moves of slots between accounts (lib/operations). */
export const operationsMove = {
  MOVE_TIMING,
  abortMoves,
  arrangeLayers,
  asMover,
  becomeMover,
  cleanUp,
  findOwner,
  layersIn,
  legsOf,
  moveBack,
  moveSlots,
  planBalance,
  planLayers,
  planToLayer0,
  readPlacement,
  resumeMoves,
  severalAccounts,
  slotsIn,
  startMoves,
  stateIn,
} as const;

/** The recorded model, its resources, and re-keys (lib/operations). */
export const operationsModel = {
  createRekey,
  guardModel,
  markBuilt,
  readRekey,
  readShapes,
  rekeyPage,
  resourcesOf,
  rewrapEntities,
  startMoves: startMovesToKey,
  startRekey,
} as const;

/** The consistency check, loads in bulk and the audit log (the rest of lib/operations). */
export const operationsCheck = {
  bulkLoad,
  canBulkLoad,
  canVerify,
  cleanUpIndex,
  collectOrphans,
  createAuditLog,
  followTable,
  readAccountStates,
  readChanges,
  readQueueStates,
  verifyPage,
} as const;

/** Backups (lib/operations/backup). */
export const operationsBackup = {
  carryLines,
  compareWithPast,
  copyToBackup,
  createJournal,
  manifestName,
  readBackupStatus,
  readJournal,
  readManifests,
  readState,
  readVersions,
  restoreBackup,
  restoreInPlace,
  runBackup,
  tablesInBackup,
  takeSnapshot,
  undelete,
  verifyBackup,
} as const;
