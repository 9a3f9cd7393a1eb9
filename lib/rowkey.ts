import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { requireUnblocked } from './access/blocked.ts';
import { type Authenticate, createAuthenticator } from './access/token.ts';
import type { Execute } from './api/app-operation.ts';
import type { Entities } from './api/entity-types.ts';
import { RowkeyError } from './base/errors.ts';
import { loadOnce } from './base/once.ts';
import { createPace } from './base/pace.ts';
import { MINUTE_MS } from './base/time.ts';
import { withShapes } from './define/codec/existing-rows.ts';
import type { Past } from './define/declaration/engine.ts';
import type { LinkedModel, Model } from './define/define-model.ts';
import type { Operations } from './define/define-operation.ts';
import { closedIndexReasons } from './define/places/closed-index.ts';
import { functionError } from './define/validate/validate-visitors.ts';
import type { Consumer, Log } from './engine/consume/consume.ts';
import { createEngine, type Engine } from './engine/engine.ts';
import { collectChanges } from './engine/note-change.ts';
import { isFormerPart } from './engine/reconcile/queues.ts';
import type { ConsoleApp } from './http/console.ts';
import { createHandler, type Handle, type Handler, type HandlerOptions } from './http/handler.ts';
import { type App, rootOf } from './http/route.ts';
import { createAuditLog } from './operations/audit-log.ts';
import { createJournal } from './operations/backup/journal.ts';
import { createPast } from './operations/backup/past.ts';
import { findForeign } from './operations/foreign-rows.ts';
import { guardModel } from './operations/model-guard.ts';
import { createRekey } from './operations/rekey.ts';
import { resourcesOf } from './operations/resources.ts';
import {
  BACKUP_CONNECTION,
  checkConsoleSettings,
  DEFAULT_CONNECTION,
  type RowkeySettings,
  type UnusableSettings,
} from './settings.ts';
import { describeMissing } from './storage/errors.ts';
import { createLazyKeyRing } from './storage/lazy-key-ring.ts';
import { compareResources, provision } from './storage/provision.ts';
import { withDeferredAppends } from './storage/row-journal.ts';
import {
  BACKUP_ACCOUNT,
  isOnThisMachine,
  openUsableStorage,
  type Storage,
  type StorageOptions,
} from './storage/storage.ts';
import { tableSasSigner } from './storage/table-sas.ts';
import { checkImplementations, createExecute, type Implementations } from './store/app-operations.ts';
import { createStore, type UnlimitedStore } from './store/store.ts';
import { reportStartFailure, startTelemetry } from './telemetry/telemetry.ts';

/** A model whose entities and operations are known by name. */
type AnyModel<All extends Entities, Own extends Operations> = Omit<Model, 'entities' | 'operations'> & {
  readonly entities: All;
  readonly operations: Own;
};

export type RowkeyOptions<All extends Entities, Own extends Operations = Operations> = {
  readonly model: AnyModel<All, Own>;
  /**
   * The first segment of all routes, below `/api`: lower-case letters, digits and hyphens. An instance that shares a Functions
   * app with another one needs it. Default: none.
   */
  readonly path?: string | undefined;
} & ImplementationOptions<All, Own> &
  (RowkeySettings | UnusableSettings);

interface ImplementationOption<All extends Entities, Own extends Operations> {
  /** What each operation of the model does, by its name. */
  readonly operations: Implementations<{ readonly entities: All; readonly operations: Own }>;
}
/** Required if the compiler knows an operation of the model. */
type ImplementationOptions<All extends Entities, Own extends Operations> = [keyof Own] extends [never]
  ? { readonly operations?: undefined }
  : string extends keyof Own
    ? Partial<ImplementationOption<All, Own>>
    : ImplementationOption<All, Own>;

/** One model on one storage account. A process may have several. */
export interface Rowkey<All extends Entities = Entities, Own extends Operations = Operations> {
  readonly model: AnyModel<All, Own>;
  /** Reads and writes the entities of the model in process, typed by their declarations and without access rules but those of `as`. */
  readonly store: UnlimitedStore<All, Own>;
  /** Returns the caller whose token the `Authorization` header carries; without a header, a visitor if the model has `anyone`. Throws `unauthenticated`, and `forbidden` for a user who is blocked. */
  readonly authenticate: Authenticate;
  /**
   * Creates the handler of your own HTTP function. The caller needs one of the roles, and errors are returned as problems,
   * like those of the model's routes. Throws a plain error for a role that the model does not have, and for visitors without a limit.
   *
   * @example
   * app.http('find', {
   *   route: 'api/find/{plate}',
   *   authLevel: 'anonymous',
   *   handler: rowkey.handler({ roles: ['reader'] }, async ({ params }) => {
   *     const found = await rowkey.store.vehicles.by.plate({ plate: params.plate ?? '' });
   *     return found ? { jsonBody: found } : { status: 404 };
   *   }),
   * });
   */
  handler(options: HandlerOptions, handle: Handle): Handler;
  /**
   * Creates the missing tables, queues and containers of the model, for development and tests. In Azure, the deployment
   * template creates them, because the app's identity may not.
   */
  provision(): Promise<void>;
  /**
   * For `registerFunctions`.
   * @internal
   */
  readonly runtime: Runtime;
}

/**
 * Creates an instance. Everything is opened at first use, so no setting can make this fail: with invalid settings, every request and
 * every call of the store throws `wrong-setting`. Throws a plain error for an operation of the model without an implementation.
 *
 * @example
 * const rowkey = createRowkey({
 *   model,
 *   ...fromEnvironment(process.env),
 *   operations: {
 *     async checkIn({ input, store, requestId }) {
 *       const vehicle = { ...input, vehicleId: crypto.randomUUID() };
 *       return (await store.vehicles.create(vehicle, { requestId })).values;
 *     },
 *   },
 * });
 */
export function createRowkey<All extends Entities, Own extends Operations = Operations>({
  model,
  operations: implementations,
  ...settings
}: RowkeyOptions<All, Own>): Rowkey<All, Own> {
  checkImplementations(model, implementations);
  const runtime = createRuntime(model, { ...settings, implementations });
  return {
    model,
    store: createStore<All, Own>(model.list, {
      engine: () => runtime.readyEngine(console),
      limits: model.limits,
      record: runtime.record,
      operations: { declared: model.operations, execute: runtime.execute },
    }),
    authenticate: async (authorization) => runtime.app().authenticate(authorization),
    handler(options, handle) {
      const unknown = options.roles?.find((role) => !model.roles.includes(role));
      if (unknown !== undefined)
        throw new Error(`"${unknown}" is not a role of the model. Use one of ${model.roles.join(', ')}.`);
      const unlimited = options.roles && functionError(model, options.roles);
      if (unlimited !== undefined) throw new Error(unlimited);
      return createHandler(runtime.app, { ...options, root: rootOf(runtime.path) }, handle);
    },
    provision: runtime.provision,
    runtime,
  };
}

/** The clients and state that the functions of an app share. Each is created at its first use and kept. */
export interface Runtime {
  readonly model: LinkedModel;
  /** The path of the routes, below `/api`; empty for none. */
  readonly path: string;
  /** The storage accounts, each with the app setting that names it to queue triggers. Without a name if there is only one. */
  readonly connections: readonly { readonly name?: string; readonly setting: string }[];
  /**
   * Checks every setting and starts telemetry. On the emulator, tells of indexes that no role may read. Then begins, without waiting, what the first request needs: compares the
   * model with storage and fetches the keys of the issuer. On the emulator, it first creates the resources that are missing: in
   * Azure the template does, because the app's identity may not. If a setting is invalid, reports the reason to the console and to
   * Application Insights, and from then on every function fails with it. It does not throw: the real host would continue with
   * no function at all, return an empty 404 to each request, and log no reason.
   */
  start(): Promise<void>;
  /** Throws `wrong-setting` while the model does not match the stored data, so that nothing is read, written or dropped. */
  readyEngine(log: Log): Promise<Engine>;
  /** Creates the missing tables, queues and containers of the model. */
  provision(): Promise<void>;
  /** Runs a write and records its changes in the audit log before it returns or throws. */
  record<Result>(by: string, write: () => Promise<Result>): Promise<Result>;
  /** Runs the implementations of the operations of the model. */
  readonly execute: Execute;
  /** For the HTTP functions. Sends no request to storage. Throws `wrong-setting` if a setting is invalid. */
  app(): App;
  /** For the console. Sends no request to storage. Throws `wrong-setting` if a setting is invalid. */
  consoleApp(): ConsoleApp;
  /** The accounts of the app under another prefix. */
  withPrefix(prefix: string): Storage;
  /** The queues of parts that the model no longer declares, which may still have messages. */
  formerParts(): Promise<readonly string[]>;
  /** For the queue functions. Throws as `readyEngine` does. If a setting is invalid, it waits some minutes before it throws. */
  consumer(log: Log): Promise<Consumer>;
}

/** The host moves a message to its poison queue after five failures. Without this delay, that takes half a minute. */
const REFUSE_MESSAGE_AFTER_MS = 4 * MINUTE_MS;

/** Runs the check of the model outside the trace and the audit notes of the request that happens to be first. */
const inProcess = AsyncLocalStorage.snapshot();

type RuntimeOptions = (RowkeySettings | UnusableSettings) & {
  readonly path?: string | undefined;
  readonly implementations: object | undefined;
};

/** What the types reject, for an app that no compiler has seen. */
function missingSettings(options: Partial<RowkeySettings>): RowkeyError | undefined {
  if (options.storage && options.auth) return undefined;
  return new RowkeyError(
    'wrong-setting',
    'Invalid settings: createRowkey needs storage and auth. Add ...fromEnvironment(process.env) to its options.',
  );
}

/** Connects to nothing and does not throw. */
function createRuntime(
  model: LinkedModel,
  { telemetry = {}, connection = DEFAULT_CONNECTION, path = '', implementations, ...options }: RuntimeOptions,
): Runtime {
  const entities = model.list;
  let refusal = 'refusal' in options ? options.refusal : missingSettings(options);
  let guarded: Promise<void> | undefined;
  let warmedUp: Promise<unknown> | undefined;

  function requireSettings(): Omit<RowkeySettings, 'connection' | 'telemetry'> {
    if (refusal) throw refusal;
    if ('refusal' in options) throw options.refusal;
    return options;
  }

  const paceOf = () => createPace({ limit: model.maxStorageRequests });
  const storage = once(() => {
    const common = { prefix: model.prefix, paceOf };
    const { storage: given, backup: backupAt } = requireSettings();
    const opened = withShapes(openUsableStorage(placeContainers(given, model), { ...common, connection }), entities);
    if (!model.backup || !backupAt) return opened;
    const accounts = [{ ...backupAt, name: BACKUP_ACCOUNT }];
    const backup = openUsableStorage({ accounts }, { ...common, connection: BACKUP_CONNECTION });
    return { ...opened, journal: createJournal({ backup, storage: opened }, entities), backup };
  });
  const keys = createLazyKeyRing(() => requireSettings().keys);
  const engine = once(() =>
    createEngine(storage(), {
      keys,
      rulesMaxAge: model.rulesMaxAge,
      queueParts: model.queueParts,
      rekey: createRekey(entities),
      past: pastOf(model, storage()),
    }),
  );
  let isProvisioned = false;
  /** True on the emulator until a look for what is missing there, and its creation, have succeeded. */
  let isCreating = false;
  let formerParts: readonly string[] = [];

  /** What is missing in the accounts that respond. Undefined if that is nothing, and one of several is away. */
  async function findMissingOnce(): Promise<readonly string[] | undefined> {
    if (isProvisioned) return [];
    const found = await inProcess(() => compareResources(storage(), resourcesOf(entities, undefined, model)));
    formerParts = found.furtherQueues.filter((queue) => isFormerPart(queue, model.queueParts));
    const isWhole = found.away.length === 0;
    isProvisioned = isWhole && found.missing.length === 0;
    return isWhole || found.missing.length > 0 ? found.missing : undefined;
  }

  const audit = once(() => createAuditLog(engine()));
  const signer = once(() => tableSasSigner(storage()));
  const verifyToken = once(() => createAuthenticator(requireSettings().auth, model));
  const authenticate: Authenticate = async (authorization) => {
    const caller = await verifyToken()(authorization);
    if (model.blocksUsers) await requireUnblocked(engine(), caller);
    return caller;
  };
  const app = once(() => ({
    engine: engine(),
    entities,
    operatorRole: model.operatorRole,
    limits: model.limits,
    signer,
    authenticate,
    trustedProxies: requireSettings().trustedProxies ?? 0,
    audit: audit(),
    ready: readyEngine,
    findMissing: findMissingOnce,
    noteMissing() {
      isProvisioned = false;
    },
    execute,
  }));

  /** Sends no request to storage or Key Vault: an outage is not an invalid setting. Throws `wrong-setting`. */
  async function checkSettings(): Promise<void> {
    const { keys: keysAt, backup: backupAt, console: consoleSettings } = requireSettings();
    if (consoleSettings) checkConsoleSettings(consoleSettings);
    storage();
    verifyToken();
    if (model.backup && !backupAt)
      throw new RowkeyError(
        'wrong-setting',
        `Invalid settings: ${BACKUP_CONNECTION} is required, as the model declares a backup.`,
      );
    const secret = entities.find(({ encrypted }) => encrypted.length > 0);
    if (secret && !keysAt)
      throw new RowkeyError(
        'wrong-setting',
        `Invalid settings: KEY_ENCRYPTION_KEY_URI is required, as ${secret.name} has encrypted fields.`,
      );
    if (keysAt && 'file' in keysAt) await keys.currentKeyId();
    await startTelemetry(telemetry);
  }

  const guardOnce = loadOnce(() =>
    inProcess(() => guardModel(engine(), entities, requireSettings().agreedModelChanges, path)),
  );

  /** What was found beside the requests, for the log of the next one. */
  const found: string[] = [];

  /** Looks for rows of other programs. No request waits for it in Azure, where a look at a large table takes seconds. */
  const lookOnce = loadOnce(async () => {
    found.push(...(await inProcess(() => findForeign(engine(), entities))));
  });

  async function look(): Promise<void> {
    const looking = lookOnce().catch(() => undefined);
    if (isOnThisMachine(storage())) await looking;
  }

  /** Reports nothing: a request repeats what fails here, and logs what was found. */
  function warmUp(): void {
    isCreating = isOnThisMachine(storage());
    const created = isCreating ? createMissing() : undefined;
    warmedUp = Promise.allSettled([created])
      .then(() => Promise.allSettled([findMissingOnce(), guardOnce()]))
      .then(look);
    void verifyToken().prefetchKeys();
  }

  async function createMissing(): Promise<void> {
    if ((await findMissingOnce())?.length) await inProcess(createAll);
    isCreating = false;
  }

  async function record<Result>(by: string, write: () => Promise<Result>): Promise<Result> {
    await Promise.all([audit().catchUp(), storage().journal?.catchUp()]);
    return collectChanges(
      by,
      () => withDeferredAppends(write),
      (changes) => audit().append(changes),
    );
  }

  const execute = createExecute(model, implementations, { limits: model.limits, record });

  const createAll = () => provision(storage(), resourcesOf(entities, Date.now(), model));

  async function readyEngine(log: Log): Promise<Engine> {
    if (refusal) throw refusal;
    guarded ??= inProcess(async () => {
      await warmedUp;
      if (isCreating) await createMissing();
      // A failure of this listing says nothing about the requests that need one resource each.
      const [missing, notes] = await Promise.all([findMissingOnce().catch(() => undefined), guardOnce()]);
      if (missing?.length) log.error(describeMissing(missing));
      for (const note of notes) log.warn(`Model guard: ${note}`);
      await look();
    });
    try {
      await guarded;
    } catch (error) {
      guarded = undefined;
      throw error;
    }
    for (const note of found.splice(0)) log.warn(note);
    return engine();
  }

  return {
    model,
    path,
    connections: connectionsOf(options, connection),
    readyEngine,
    withPrefix: (prefix) => openUsableStorage(requireSettings().storage, { prefix, connection, paceOf }),
    async start() {
      try {
        await checkSettings();
        if (isOnThisMachine(storage())) for (const reason of closedIndexReasons(entities)) console.warn(reason);
        warmUp();
      } catch (error) {
        refusal = error instanceof RowkeyError ? error : toStartError(error);
        console.error(refusal.message);
        await reportStartFailure(refusal, telemetry);
      }
    },
    provision: async () => createAll(),
    record,
    execute,
    app() {
      if (refusal) throw refusal;
      return app();
    },
    consoleApp() {
      if (refusal) throw refusal;
      const { auth, console: settings } = requireSettings();
      return { storage: storage(), console: settings && { ...settings, issuer: settings.issuer ?? auth.issuer } };
    },
    async formerParts() {
      await findMissingOnce().catch(() => undefined);
      return formerParts;
    },
    async consumer(log) {
      if (refusal) await sleep(REFUSE_MESSAGE_AFTER_MS, undefined, { ref: false });
      return { engine: await readyEngine(log), entities, log };
    },
  };
}

function placeContainers(options: StorageOptions, { containerAccounts }: LinkedModel): StorageOptions {
  return 'accounts' in options ? { ...options, containers: containerAccounts } : options;
}

/** The name of a further account is that of its connection. */
function connectionsOf(options: Pick<RowkeySettings, 'storage'> | object, connection: string): Runtime['connections'] {
  const several = 'storage' in options && 'accounts' in options.storage ? options.storage.accounts : [];
  const [, ...further] = several.map(({ name }) => ({ name, setting: name }));
  return [{ ...(several[0] ? { name: several[0].name } : {}), setting: connection }, ...further];
}

/** Undefined without a backup. */
function pastOf({ backup: declared, operatorRole }: LinkedModel, storage: Storage): Past | undefined {
  const { backup } = storage;
  return declared && backup && createPast({ backup, storage, days: declared.days }, declared.roles ?? [operatorRole]);
}

/** Calls `open` once and keeps the result. If it throws, the next call tries again. */
function once<Value extends object | ((...parameters: never[]) => unknown)>(open: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= open();
    return value;
  };
}

/** Omits the message of the error, because it may quote a setting. */
function toStartError(error: unknown): RowkeyError {
  const { name, stack = '' } = error instanceof Error ? error : new Error();
  const where = stack.split('\n').find((line) => line.startsWith('    at ')) ?? '';
  return new RowkeyError('wrong-setting', `The app could not start: ${name}${where.replace(/^ +/, ' ')}.`, {
    cause: error,
  });
}
