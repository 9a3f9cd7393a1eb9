import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAuthenticator } from './access/token.ts';
import type { Model } from './define/define-model.ts';
import type { Consumer } from './engine/consume/consume.ts';
import type { Log } from './engine/consume/poison.ts';
import { createEngine, type Engine } from './engine/engine.ts';
import { collectChanges } from './engine/note-change.ts';
import { RowkeyError } from './errors.ts';
import type { App } from './http/route.ts';
import { createAuditLog } from './operations/audit-log.ts';
import { guardModel } from './operations/model-guard.ts';
import { resourcesOf } from './operations/resources.ts';
import type { RowkeySettings, UnusableSettings } from './settings.ts';
import { lazyKeyRing } from './storage/lazy-key-ring.ts';
import { provision } from './storage/provision.ts';
import { openUsableStorage } from './storage/storage.ts';
import { tableSasSigner } from './storage/table-sas-signer.ts';
import { reportStartFailure, startTelemetry } from './telemetry/telemetry.ts';
import { MINUTE_MS } from './time.ts';

/** What the functions of an app work with: everything is opened at its first use and kept. */
export interface Runtime {
  readonly model: Omit<Model, 'entities'>;
  /**
   * Checks every setting and starts telemetry. If a setting is invalid, reports the reason to the console and to
   * Application Insights, and from then on every function refuses to work. It does not throw: the real host would go on with
   * no function at all, answer each request with an empty 404, and log no reason.
   */
  start(): Promise<void>;
  /** Throws `wrong-setting` while the model does not match what is stored: then nothing is read, written or dropped. */
  readyEngine(log: Log): Promise<Engine>;
  /** Creates the tables, queues and containers of the model that do not exist. */
  provision(): Promise<void>;
  /** Runs a write and records its changes in the audit log before it returns or throws. */
  record<Result>(by: string, write: () => Promise<Result>): Promise<Result>;
  /** For the HTTP functions. It sends no request to storage. Throws `wrong-setting` if a setting is invalid. */
  app(): App;
  /** For the queue functions. Throws as `readyEngine` does; if a setting is invalid, after some minutes. */
  consumer(log: Log): Promise<Consumer>;
}

/** The host moves a message to its poison queue after five failures: without a wait, within half a minute. */
const REFUSE_MESSAGE_AFTER_MS = 4 * MINUTE_MS;

/** The model is checked for the process and not for the request that happens to be the first. */
const inProcess = AsyncLocalStorage.snapshot();

/** Opens nothing, and so cannot fail. */
export function createRuntime(
  model: Omit<Model, 'entities'>,
  { telemetry = {}, ...options }: RowkeySettings | UnusableSettings,
): Runtime {
  const entities = model.list;
  let refusal = 'refusal' in options ? options.refusal : undefined;
  let guarded: Promise<void> | undefined;

  function settings(): RowkeySettings {
    if (refusal) throw refusal;
    if ('refusal' in options) throw options.refusal;
    return options;
  }

  const storage = once(() => openUsableStorage(settings().storage));
  const keys = lazyKeyRing(() => settings().keys);
  const engine = once(() => createEngine(storage(), { keys }));
  const audit = once(() => createAuditLog(engine()));
  const signer = once(() => tableSasSigner(storage()));
  const authenticate = once(() => createAuthenticator(settings().auth, model));

  /** Sends nothing to storage or the vault: that they cannot be reached now is no wrong setting. Throws `wrong-setting`. */
  async function checkSettings(): Promise<void> {
    const { keys: keysAt } = settings();
    storage();
    const secret = entities.find(({ encrypted }) => encrypted.length > 0);
    if (secret && !keysAt)
      throw new RowkeyError(
        'wrong-setting',
        `Invalid settings: KEY_ENCRYPTION_KEY_URI is required, as ${secret.name} has encrypted fields.`,
      );
    if (keysAt && 'file' in keysAt) await keys.currentKeyId();
    await startTelemetry(telemetry);
  }

  async function readyEngine(log: Log): Promise<Engine> {
    if (refusal) throw refusal;
    guarded ??= inProcess(async () => {
      for (const note of await guardModel(engine(), entities, settings().agreedModelChanges)) log.warn(note);
    });
    try {
      await guarded;
    } catch (error) {
      guarded = undefined;
      throw error;
    }
    return engine();
  }

  return {
    model,
    readyEngine,
    async start() {
      try {
        await checkSettings();
      } catch (error) {
        refusal = error instanceof RowkeyError ? error : unexpected(error);
        console.error(refusal.message);
        await reportStartFailure(refusal, telemetry);
      }
    },
    provision: async () => provision(storage(), resourcesOf(entities, Date.now())),
    async record(by, write) {
      await audit().catchUp();
      return collectChanges(by, write, (changes) => audit().append(changes));
    },
    app() {
      if (refusal) throw refusal;
      return {
        engine: engine(),
        entities,
        signer,
        authenticate: authenticate(),
        audit: audit(),
        ready: readyEngine,
      };
    },
    async consumer(log) {
      if (refusal) await sleep(REFUSE_MESSAGE_AFTER_MS, undefined, { ref: false });
      return { engine: await readyEngine(log), entities, log };
    },
  };
}

/** Opens at the first call, and again at the next one where that failed. */
function once<Value extends object | ((...parameters: never[]) => unknown)>(open: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= open();
    return value;
  };
}

/** Without the message of the error, which may quote a setting. */
function unexpected(error: unknown): RowkeyError {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const where = stack.split('\n').find((line) => line.startsWith('    at ')) ?? '';
  return new RowkeyError('wrong-setting', `The app could not start: ${name}${where.replace(/^ +/, ' ')}.`, {}, error);
}
