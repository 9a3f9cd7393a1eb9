import { randomUUID } from 'node:crypto';
import { type CoreContext, getProgrammingModel, runHooks, type TypedData } from './functions-core.ts';
import type { HostedFunction } from './load-app.ts';
import { described, writeLog } from './log.ts';

export interface InvocationInput {
  readonly data: TypedData;
  readonly triggerMetadata?: Readonly<Record<string, TypedData>>;
  /** Of the caller, where it has one. */
  readonly traceParent?: string | undefined;
  /** Changes the inputs before any hook sees them. */
  readonly prepare?: (inputs: readonly unknown[]) => void;
}

/**
 * Runs a function once, in the order of the real worker: arguments, preInvocation hooks, handler, postInvocation
 * hooks (which may replace the result or take the error away), response. Logs a failure and throws it.
 */
export async function invoke(
  target: HostedFunction,
  { data, triggerMetadata = {}, traceParent = '', prepare }: InvocationInput,
) {
  const invocationId = randomUUID();
  const core: CoreContext = {
    invocationId,
    request: {
      invocationId,
      inputData: [{ name: target.triggerKey, data }],
      triggerMetadata,
      // The real host says `""` where there is no trace.
      traceContext: { traceParent },
    },
    metadata: target.metadata,
    state: undefined,
    log: (level, _category, message) => writeLog(level, target.name, message),
  };
  try {
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
      after.error = error ?? new Error('The handler threw nothing at all.');
    }
    core.state = 'postInvocationHooks';
    await runHooks('postInvocation', after);
    if (after.error) throw after.error;
    return await model.getResponse(context, after.result);
  } catch (error) {
    writeLog('error', target.name, described(error));
    throw error;
  }
}
