import { withShapes } from '../../lib/define/codec/existing-rows.ts';
import type { LinkedModel } from '../../lib/define/define-model.ts';
import { createEngine } from '../../lib/engine/engine.ts';
import { checkModel } from '../../lib/operations/model-guard.ts';
import { openStorage } from '../../lib/storage/storage.ts';
import { storageOptions } from '../instance/storage-accounts.ts';
import { formatError } from './command.ts';
import { localConnections } from './open-accounts.ts';

/**
 * Compares a model with what the local instance stores that runs on the data folder, which may run another model. Changes nothing. Returns false if no
 * instance runs. Throws what the stored data does not allow, and how to go on.
 */
export async function checkStored(data: string, { list, prefix }: LinkedModel): Promise<boolean> {
  const connections = await localConnections(data);
  if (!connections) return false;
  const storage = withShapes(openStorage(storageOptions(connections.strings), prefix), list);
  await checkModel(createEngine(storage), list, process.env.AGREED_MODEL_CHANGES).catch((error) => {
    throw new Error(`${formatError(error)} To begin without the stored data, stop the instance and delete ${data}.`);
  });
  return true;
}
