import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { authenticate } from './access/token.ts';
import type { Consumer } from './engine/consume/consume.ts';
import type { Log } from './engine/consume/poison.ts';
import { createEngine, type Engine } from './engine/engine.ts';
import { RowkeyError } from './errors.ts';
import type { App } from './http/route.ts';
import { deployment } from './model/deployment.ts';
import { type AuditLog, createAuditLog } from './operations/audit-log.ts';
import { guardModel } from './operations/model-guard.ts';
import { settings } from './settings.ts';
import { appKeyRing } from './storage/app-key-ring.ts';
import { appStorage } from './storage/storage.ts';
import { type TableSasSigner, tableSasSigner } from './storage/table-sas-signer.ts';
import { reportStartFailure, startTelemetry } from './telemetry/telemetry.ts';

/** What the functions work with, put together at the first call: loading the app opens nothing and cannot fail. */

/** Why the app serves nothing, if it does not. */
let refusal: RowkeyError | undefined;
/** The host moves a message to its poison queue after five failures: without a wait, within half a minute. */
const REFUSE_MESSAGE_AFTER_MS = 4 * 60_000;

/**
 * Checks every setting and starts telemetry. If a setting is not usable, reports the reason to the console and to
 * Application Insights, and from then on every function refuses to work. It does not throw: the real host would go on with
 * no function at all, answer each request with an empty 404, and log no reason.
 */
export async function startApp(): Promise<void> {
  try {
    await checkSettings();
  } catch (error) {
    refusal = error instanceof RowkeyError ? error : unexpected(error);
    console.error(refusal.message);
    await reportStartFailure(refusal);
  }
}

/** Without the message of the error, which may hold what was set. */
function unexpected(error: unknown): RowkeyError {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const where = stack.split('\n').find((line) => line.startsWith('    at ')) ?? '';
  return new RowkeyError('wrong-setting', `The app could not start: ${name}${where.replace(/^ +/, ' ')}.`, {}, error);
}

/** Asks nothing of storage or the vault: that they cannot be reached now is no setting. Throws `wrong-setting`. */
async function checkSettings(): Promise<void> {
  const { KEY_ENCRYPTION_KEY_FILE: keyFile, KEY_ENCRYPTION_KEY_URI: keyUri } = settings();
  appStorage();
  const secret = deployment.find(({ encrypted }) => encrypted.length > 0);
  if (secret && !keyFile && !keyUri)
    throw new RowkeyError(
      'wrong-setting',
      `The settings are not usable: KEY_ENCRYPTION_KEY_URI: it is not set, and ${secret.name} have encrypted fields`,
    );
  if (keyFile) await appKeyRing().currentKeyId();
  await startTelemetry();
}

let engine: Engine | undefined;
let audit: AuditLog | undefined;
let signer: TableSasSigner | undefined;
let guarded: Promise<void> | undefined;

/** The work of the process and not of the request that comes first. */
const inProcess = AsyncLocalStorage.snapshot();

/** Throws `wrong-setting` while the declaration does not go with what is stored: then nothing is read, written or dropped. */
export async function readyEngine(log: Log): Promise<Engine> {
  if (refusal) throw refusal;
  guarded ??= inProcess(async () => {
    for (const note of await guardModel(appEngine(), deployment, settings().AGREED_MODEL_CHANGES)) log.warn(note);
  });
  try {
    await guarded;
  } catch (error) {
    guarded = undefined;
    throw error;
  }
  return appEngine();
}

/**
 * For the HTTP functions. Opens the clients of storage at the first call, and asks nothing of it. Throws `wrong-setting`
 * if a setting is not usable.
 */
export function app(): App {
  if (refusal) throw refusal;
  audit ??= createAuditLog(appEngine());
  return { engine: appEngine(), entities: deployment, signer: appSigner, authenticate, audit, ready: readyEngine };
}

/** For the queue functions. Throws as `readyEngine` does; if a setting is not usable, after some minutes. */
export async function consumer(log: Log): Promise<Consumer> {
  if (refusal) await sleep(REFUSE_MESSAGE_AFTER_MS, undefined, { ref: false });
  return { engine: await readyEngine(log), entities: deployment, log };
}

function appEngine(): Engine {
  engine ??= createEngine(appStorage());
  return engine;
}

function appSigner(): TableSasSigner {
  signer ??= tableSasSigner(appStorage());
  return signer;
}
