import { randomUUID } from 'node:crypto';
import { type CoreContext, getProgrammingModel, runHooks, type TypedData } from './functions-core.ts';
import type { HostedFunction } from './load-app.ts';
import { formatError, writeLog } from './log.ts';

interface InvocationInput {
  readonly data: TypedData;
  readonly triggerMetadata?: Readonly<Record<string, TypedData>>;
  /** The caller's `traceparent` header. */
  readonly traceParent?: string | undefined;
  /** Rejects with `ClientGone` if nobody waits for the result any more. The function is then abandoned. */
  readonly gone?: Promise<never>;
  /** Changes the inputs before any hook sees them. */
  readonly prepare?: (inputs: readonly unknown[]) => void;
}

/** The client ended its connection before its whole request had arrived. The real host does not call the function then. */
export class ClientGone extends Error {}

/** The functions of the currently loaded app, by name. */
let loaded: Promise<ReadonlyMap<string, HostedFunction>> = Promise.resolve(new Map());
/** One function for each invocation in progress, which rejects the invocation. */
const underWay = new Set<(error: Error) => void>();

/**
 * Simulates what the real host does when an unhandled error ends its worker: the invocations in progress fail, and the app is
 * loaded again. No process ends here, so code of the former app that still runs continues. Throws if `load` does.
 */
export async function restartApp(load: () => Promise<readonly HostedFunction[]>): Promise<void> {
  for (const fail of underWay) fail(new Error('The app was reloaded after an unhandled error while the function ran.'));
  loaded = loaded.then(load).then((functions) => new Map(functions.map((each) => [each.name, each])));
  await loaded;
}

/** Runs a function of the currently loaded app once. Logs a failure and throws it. Throws `ClientGone` without a log. */
export async function invoke(target: HostedFunction, input: InvocationInput) {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // The promise may be rejected before it is awaited.
  ended.catch(() => undefined);
  underWay.add(reject);
  try {
    const current = (await loaded).get(target.name) ?? target;
    return await Promise.race([ended, run(current, input), ...(input.gone ? [input.gone] : [])]);
  } catch (error) {
    if (!(error instanceof ClientGone)) writeLog('error', target.name, formatError(error));
    throw error;
  } finally {
    underWay.delete(reject);
  }
}

/**
 * Runs a function once, in the order of the real worker: arguments, preInvocation hooks, handler, postInvocation
 * hooks (which may replace the result or clear the error), response.
 */
async function run(target: HostedFunction, { data, triggerMetadata = {}, traceParent = '', prepare }: InvocationInput) {
  const invocationId = randomUUID();
  const core: CoreContext = {
    invocationId,
    request: {
      invocationId,
      inputData: [{ name: target.triggerKey, data }],
      triggerMetadata,
      // The real host passes `""` if there is no trace.
      traceContext: { traceParent },
    },
    metadata: target.metadata,
    state: undefined,
    log: (level, _category, message) => writeLog(level, target.name, message),
  };
  const model = getProgrammingModel().getInvocationModel(core);
  const { context, inputs } = await model.getArguments();
  prepare?.(inputs);
  const hookData = {};
  const before = { hookData, invocationContext: context, inputs, functionCallback: target.handler };
  core.state = 'preInvocationHooks';
  await runHooks('preInvocation', before);

  core.state = 'invocation';
  const after: { result: unknown; error: unknown } & Record<string, unknown> = {
    hookData,
    invocationContext: context,
    inputs: before.inputs,
    result: null,
    error: null,
  };
  try {
    after.result = await model.invokeFunction(context, before.inputs, before.functionCallback);
  } catch (error) {
    after.error = error ?? new Error('The handler threw undefined or null.');
  }
  core.state = 'postInvocationHooks';
  await runHooks('postInvocation', after);
  if (after.error) throw after.error;
  return await model.getResponse(context, after.result);
}
