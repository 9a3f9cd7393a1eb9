import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { app as functionsApp, InvocationContext } from '@azure/functions';
import { deleteOldCounts } from './access/request-limits.ts';
import { MINUTE_MS } from './base/time.ts';
import type { Feature } from './define/declaration/entity.ts';
import type { LinkedModel } from './define/define-model.ts';
import { consumerOf, toMessage } from './engine/consume/consume.ts';
import { drainQueues } from './engine/consume/drain.ts';
import { partNames } from './engine/reconcile/queues.ts';
import { features } from './features/features.ts';
import { ANY_METHOD, ANY_PATH, createApiHandler } from './http/api-handler.ts';
import { CONSOLE_PATH, createConsoleHandler, createDocsHandler, createRootHandler, DOCS_PATH } from './http/console.ts';
import type { Handler } from './http/handler.ts';
import { type Route, rootOf } from './http/route.ts';
import { type Mounted, mountErrors } from './http/route-conflicts.ts';
import { createRoutes } from './http/routes.ts';
import { carryLines } from './operations/backup/blobs.ts';
import { drillBackup, drillPrefix } from './operations/backup/drill.ts';
import { runBackup } from './operations/backup/run-backup.ts';
import { collectOrphans } from './operations/collect-orphans.ts';
import { followedTables, followTable, isFollowed } from './operations/follow.ts';
import { describeForeign } from './operations/foreign-rows.ts';
import { rememberIndexReads } from './operations/index-use.ts';
import { OWN_ENTITIES, ownRowsOf } from './operations/resources.ts';
import { canVerify } from './operations/verify.ts';
import { CHECK_EVERY_MS, continueVerifyRun, sortByRun } from './operations/verify-run.ts';
import type { Rowkey, Runtime } from './rowkey.ts';
import { inBackground } from './storage/load.ts';
import { prefixWithHyphen } from './storage/resource-names.ts';
import { withDeferredAppends } from './storage/row-journal.ts';
import { queueIn } from './storage/storage.ts';
import { traceInvocation } from './telemetry/span.ts';
import { stopTelemetry } from './telemetry/telemetry.ts';

/** The `app` of `@azure/functions`, passed by the app, because each copy of the library registers only its own functions. */
export type FunctionsApp = Pick<typeof functionsApp, 'http' | 'storageQueue' | 'timer' | 'hook'>;

/** The host stops a function after ten minutes; the next run continues. */
const VERIFY_FOR_MS = 4 * MINUTE_MS;
const VERIFY_TRANSACTIONS_A_SECOND = 100;
const PATTERN_FOR_MS = 4 * 60_000;
const ORPHANS_FOR_MS = 8 * MINUTE_MS;
const BACKUP_FOR_MS = 8 * MINUTE_MS;
/** A run ends before the next one is due. */
const DRAIN_FOR_MS = 30_000;
const FOLLOW_FOR_MS = 40_000;

/**
 * The folder of the built console: beside this module in the package, and beside the bundle of an app. An app that runs from a clone has the
 * build of the clone.
 * @internal
 */
export const CONSOLE_FOLDER = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../dist/console' : './console', import.meta.url),
);
/**
 * The host tries functions in the order of their names and calls the first whose route and method match. So the functions with
 * these names get only the requests that no function of the app itself matches; in this order, a longer path comes first.
 */
export const API = { below: (path: string) => `zz-api-${path}`, root: 'zzz-api' } as const;
const ROOT_REQUESTS = 'zzzz-root';

export interface RegisterOptions {
  /**
   * `extensions.http.routePrefix` of host.json. With `''`, the API is below `/api` too, and the console at `/console`. With
   * `'api'`, the default of the host, there is no console: no function can have a path outside of `/api`.
   */
  readonly routePrefix?: '' | 'api' | undefined;
  /** The folder of the built console. Default: `console` beside the running module. */
  readonly consoleFolder?: string | undefined;
}

/** The instances of each app. */
const registered = new WeakMap<FunctionsApp, Mounted[]>();

/**
 * Registers everything that the model needs: HTTP routes, queue functions, timers and hooks. Connects to nothing. Throws
 * an error that lists every conflict of two routes, or with another instance on the same app.
 *
 * @example
 * registerFunctions(app, rowkey, { routePrefix: '' });
 */
export function registerFunctions(
  app: FunctionsApp,
  rowkey: Omit<Rowkey, 'model' | 'store'>,
  { routePrefix = 'api', consoleFolder = CONSOLE_FOLDER }: RegisterOptions = {},
): void {
  const { runtime } = rowkey;
  const { model, path } = runtime;
  const routes = createRoutes(model);
  const mounted = { prefix: model.prefix, path, routes };
  const others = registered.get(app) ?? [];
  const errors = mountErrors(mounted, others);
  if (errors.length > 0) throw new Error(`The instance cannot be registered.\n${errors.join('\n')}`);
  registered.set(app, [...others, mounted]);
  // These hooks run for every function of the app.
  if (others.length === 0) registerHooks(app, routePrefix);
  app.hook.appStart(async () => {
    await runtime.start();
    setInterval(() => rememberReads(runtime), REMEMBER_READS_EVERY_MS).unref();
  });
  registerApi(app, runtime, { routes, routePrefix });
  if (routePrefix === '' && path === '') registerConsole(app, runtime, consoleFolder);
  registerQueues(app, runtime);
  for (const [name, { schedule, run }] of timersOf(model))
    app.timer(nameOf(runtime, name), {
      schedule,
      handler: (_timer, context) => inBackground(() => withDeferredAppends(() => run(runtime, context))),
    });
}

/** A process that ends sooner leaves its reads of indexes uncounted. */
const REMEMBER_READS_EVERY_MS = 10 * MINUTE_MS;

/** A failure is made up for at the next time. */
function rememberReads(runtime: Runtime): void {
  const work = async () => rememberIndexReads(await runtime.readyEngine(console), runtime.model.list);
  void inBackground(work).catch(() => undefined);
}

function nameOf({ model }: Runtime, name: string): string {
  return prefixWithHyphen(model.prefix, name);
}

function registerHooks(app: FunctionsApp, routePrefix: string): void {
  app.hook.preInvocation((invocation) => {
    const { functionHandler, invocationContext } = invocation;
    invocation.functionHandler = traceInvocation(functionHandler, invocationContext, { routePrefix });
  });
  app.hook.appTerminate(stopTelemetry);
}

/** One function for all routes: a start of the host takes CPU for each function. docs/internals/performance.md has the measurement. */
function registerApi(
  app: FunctionsApp,
  runtime: Runtime,
  { routes, routePrefix }: { readonly routes: readonly Route[]; readonly routePrefix: '' | 'api' },
): void {
  const { path } = runtime;
  const above = [...(routePrefix === '' ? ['api'] : []), ...(path === '' ? [] : [path])];
  app.http(path === '' ? API.root : API.below(path), {
    methods: ANY_METHOD,
    route: [...above, ANY_PATH].join('/'),
    // The handler verifies tokens, and some routes are public. A function key in a URL would be a second secret.
    authLevel: 'anonymous',
    handler: createApiHandler(runtime.app, routes, rootOf(path)),
  });
}

/** Only an instance without a path has a console, as the console is built for one address. */
function registerConsole(app: FunctionsApp, runtime: Runtime, folder: string): void {
  const options = { folder, root: rootOf('') };
  const register = (name: string, route: string, handler: Handler) =>
    app.http(name, { methods: ['GET', 'HEAD'], route, authLevel: 'anonymous', handler });
  register('web-console', `${CONSOLE_PATH.slice(1)}/${ANY_PATH}`, createConsoleHandler(runtime.consoleApp, options));
  const docs = { ...options, folder: join(folder, 'docs') };
  register('web-docs', `${DOCS_PATH.slice(1)}/${ANY_PATH}`, createDocsHandler(runtime.consoleApp, docs));
  register(ROOT_REQUESTS, ANY_PATH, createRootHandler(runtime.consoleApp, options));
}

/** `index-changes` makes indexes in other partitions agree with the entities that changed; `transfers` archives and moves. */
function registerQueues(app: FunctionsApp, runtime: Runtime): void {
  const parts = runtime.connections.flatMap((account) =>
    partNames(runtime.model.queueParts).map((name) => ({
      name,
      setting: account.setting,
      queue: queueIn(account, name),
    })),
  );
  for (const { name, setting, queue } of parts)
    app.storageQueue(nameOf(runtime, queue === name ? name : `${name}-${setting}`), {
      queueName: prefixWithHyphen(runtime.model.prefix, name),
      connection: setting,
      handler: (body, context) =>
        inBackground(async () => {
          const consumer = await runtime.consumer(context);
          await withDeferredAppends(() => consumerOf(queue)(consumer, toMessage(queue, body, context)));
        }),
    });
}

interface Timer {
  readonly schedule: string;
  /** False for a model that does not need it. By default true. */
  readonly isUsed?: (model: LinkedModel) => boolean;
  readonly run: (runtime: Runtime, context: InvocationContext) => Promise<void>;
}

export const TIMERS: Readonly<Record<string, Timer>> = {
  /** Hourly: starts the consistency check of the week or month, which repairs what loses no value, or continues it. */
  verify: {
    schedule: '0 40 * * * *',
    async run(runtime, context) {
      const { consistencyCheck } = runtime.model;
      if (consistencyCheck === 'never') return;
      const engine = await runtime.readyEngine(context);
      const until = Date.now() + VERIFY_FOR_MS;
      const isOwnRow = ownRowsOf(runtime.model.list);
      const options = { until, rate: VERIFY_TRANSACTIONS_A_SECOND, every: CHECK_EVERY_MS[consistencyCheck] };
      await runApart(await sortByRun(engine, runtime.model.list.filter(canVerify)), async (entity) => {
        const run = await continueVerifyRun(engine, entity, { ...options, isOwnRow });
        const { checked, found, repaired, foreign } = run;
        const report = `${entity.name}: ${checked} rows compared, ${found} do not agree, ${repaired} of them repaired.`;
        if (foreign > 0 && !entity.sharedTable) context.warn(describeForeign(engine, entity));
        if (found > repaired) context.error(report);
        else if (repaired > 0) context.warn(report);
        else context.log(report);
      });
    },
  },
  /** Daily, at 01:20 UTC: deletes blobs that no row refers to, and old counts of requests. */
  'collect-orphans': {
    schedule: '0 20 1 * * *',
    async run(runtime, context) {
      const engine = await runtime.readyEngine(context);
      const until = Date.now() + ORPHANS_FOR_MS;
      const { backup, list } = runtime.model;
      const deleteBlobs = async () => {
        const options = { until, days: backup?.days };
        const { checked, deleted, kept, foreign, isComplete } = await collectOrphans(engine, list, options);
        context.log(`${deleted} of ${checked} blobs deleted.`);
        if (kept > 0) context.warn(`${kept} blobs without a row kept until the backup has copied them.`);
        if (foreign > 0)
          context.warn(`${foreign} blobs of other programs left. Move them to a container of their own.`);
        if (!isComplete) context.warn('The next run checks the other blobs, as there are too many for one run.');
      };
      const deleteCounts = async () => context.log(`${await deleteOldCounts(engine)} old counts of requests deleted.`);
      await runApart([deleteBlobs, deleteCounts], (work) => work());
    },
  },
  /** Hourly: copies blobs to the backup, and lines of the journal that wait for its account; once a day, from 02:00 UTC, takes a snapshot. */
  backup: {
    schedule: '0 0 * * * *',
    isUsed: ({ backup }) => backup !== undefined,
    async run(runtime, context) {
      const { backup, list } = runtime.model;
      if (!backup) return;
      const engine = await runtime.readyEngine(context);
      const options = { days: backup.days, until: Date.now() + BACKUP_FOR_MS };
      const carry = async () => {
        const { carried } = await carryLines(engine);
        if (carried > 0) context.warn(`${carried} blobs of the journal carried to the account of the backup.`);
      };
      const backUp = async () => {
        const { snapshot, copies } = await runBackup(engine, list, options);
        if (snapshot?.isComplete) context.log(`Snapshot ${snapshot.id}: ${snapshot.rows} rows.`);
        if (copies) context.log(`${copies.copied} blobs copied.`);
        if (!copies?.isComplete) context.warn('The next run continues the backup, as there is too much for one run.');
      };
      await runApart([carry, backUp], (work) => work());
    },
  },
  /** Every minute: records messages on which the host gave up, or sends them back, and does the work of queues that the model no longer has. */
  poison: {
    schedule: '0 * * * * *',
    async run(runtime, context) {
      const until = Date.now() + DRAIN_FOR_MS;
      const engine = await runtime.readyEngine(context);
      const consumer = { engine, entities: runtime.model.list, log: context };
      await drainQueues(consumer, { until, formerParts: await runtime.formerParts() });
    },
  },
  /** Every minute: what other programs have changed in their tables, if it is time for a look. */
  follow: {
    schedule: '0 * * * * *',
    isUsed: ({ list }) => list.some(isFollowed),
    async run(runtime, context) {
      const engine = await runtime.readyEngine(context);
      const options = { until: Date.now() + FOLLOW_FOR_MS };
      await runApart([...followedTables(runtime.model.list)], async ([table, entities]) => {
        const { checked, repaired, left } = await followTable(engine, entities, options);
        if (checked > 0 || repaired > 0) context.log(`${table}: ${checked} changed rows, ${repaired} repairs.`);
        if (left > 0) context.warn(`${table}: ${left} differences left. npx rowkey verify lists them.`);
      });
    },
  },
  /** Daily, at 04:10 UTC: restores a sample of the backup to tables of its own, compares it and drops it. Fails if it differs. */
  'backup-drill': {
    schedule: '0 10 4 * * *',
    isUsed: ({ backup }) => backup !== undefined,
    async run(runtime, context) {
      const engine = await runtime.readyEngine(context);
      const { partitions, rows, differences } = await drillBackup(
        engine,
        runtime.withPrefix(drillPrefix(runtime.model)),
      );
      for (const difference of differences) context.error(difference);
      const report = `${rows} rows of ${partitions} partitions restored and compared.`;
      if (differences.length > 0) throw new Error(`${report} The backup differs.`);
      context.log(report);
    },
  },
  ...Object.fromEntries(features.flatMap((feature) => timerOf(feature))),
};

/** The timers of a model. */
export function timersOf(model: LinkedModel): [name: string, timer: Timer][] {
  return Object.entries(TIMERS).filter(([, { isUsed }]) => isUsed?.(model) ?? true);
}

/** Does all the work, also if some of it fails, as one of several storage accounts may be away. Then throws the first failure. */
async function runApart<Work>(works: readonly Work[], run: (work: Work) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  for (const work of works) await run(work).catch((error) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/** The timer of a feature, for each entity that uses the feature. */
function timerOf({ isUsed, timer }: Feature): [string, Timer][] {
  if (!timer) return [];
  const run: Timer['run'] = async (runtime, context) => {
    const engine = await runtime.readyEngine(context);
    const entities = [...runtime.model.list, ...OWN_ENTITIES].filter((entity) => isUsed(entity));
    const options = { until: Date.now() + PATTERN_FOR_MS, log: (text: string) => context.log(text) };
    await runApart(entities, (entity) => timer.run(engine, entity, options));
  };
  return [[timer.name, { schedule: timer.schedule, run }]];
}
