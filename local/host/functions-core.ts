import { registerHooks } from 'node:module';
import { type LogLevel, writeLog } from './log.ts';

/**
 * The module `@azure/functions-core`, through which the library `@azure/functions` talks to its host. It is not on npm: the
 * host provides it at run time. Its state belongs to the process, because the library requests the module only once.
 */

export interface FunctionMetadata {
  readonly name: string;
  /** The name of the trigger ends in a hash; `$return` is the HTTP output. */
  readonly bindings: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly retryOptions?: unknown;
}

/** Typed as loosely as the library calls it, because the arguments depend on the trigger. */
export type Handler = (...args: unknown[]) => unknown;

/** A value that the library and its host exchange. The name of its only property is its type. */
export interface TypedData {
  readonly string?: string;
  readonly json?: string;
  readonly int?: number;
  readonly http?: unknown;
}

export interface CoreContext {
  readonly invocationId: string;
  readonly request: {
    readonly invocationId: string;
    readonly inputData: readonly { readonly name: string; readonly data: TypedData }[];
    readonly triggerMetadata: Readonly<Record<string, TypedData>>;
    readonly traceContext: { readonly traceParent: string };
  };
  readonly metadata: FunctionMetadata;
  state: 'preInvocationHooks' | 'invocation' | 'postInvocationHooks' | undefined;
  log(level: LogLevel, category: string, message: string): void;
}

interface InvocationModel {
  getArguments(): Promise<{ context: unknown; inputs: unknown[] }>;
  invokeFunction(context: unknown, inputs: unknown[], handler: Handler): Promise<unknown>;
  getResponse(context: unknown, result: unknown): Promise<{ returnValue?: { http?: unknown } | null }>;
}

interface ProgrammingModel {
  getInvocationModel(context: CoreContext): InvocationModel;
  getCapabilities(capabilities: Record<string, string>): Promise<Record<string, string>>;
}

const HOOK_NAMES = ['appStart', 'appTerminate', 'preInvocation', 'postInvocation'] as const;
type HookName = (typeof HOOK_NAMES)[number];
type Hook = (context: object) => unknown;

export const version = '4.0.0';
/** The oldest host version with every feature that the library checks for, except log hooks (4.34). */
export const hostVersion = '4.28.0';

const functions: { metadata: FunctionMetadata; handler: Handler }[] = [];
/** In lower case. */
const names = new Set<string>();
const hooks: Record<HookName, Hook[]> = { appStart: [], appTerminate: [], preInvocation: [], postInvocation: [] };
let programmingModel: ProgrammingModel | undefined;
let isSealed = false;

export class Disposable {
  readonly #callback: () => void;

  constructor(callback: () => void) {
    this.#callback = callback;
  }

  dispose() {
    this.#callback();
  }
}

export function registerFunction(metadata: FunctionMetadata, handler: Handler): Disposable {
  if (isSealed) throw new Error(`The function ${metadata.name} was registered after the app had loaded.`);
  // The real host compares names without regard to case.
  const name = metadata.name.toLowerCase();
  if (names.has(name))
    throw new Error(`Duplicate function name "${metadata.name}": names must be unique, ignoring case.`);
  const entry = { metadata, handler };
  functions.push(entry);
  names.add(name);
  return new Disposable(() => {
    functions.splice(functions.indexOf(entry), 1);
    names.delete(name);
  });
}

export function registerHook(name: string, hook: Hook): Disposable {
  const known = HOOK_NAMES.find((candidate) => candidate === name);
  // With this flag, the library reports that the host version is too old.
  if (!known) throw Object.assign(new RangeError(`Unknown hook ${name}.`), { isAzureFunctionsSystemError: true });
  hooks[known].push(hook);
  return new Disposable(() => void hooks[known].splice(hooks[known].indexOf(hook), 1));
}

export function setProgrammingModel(model: ProgrammingModel) {
  programmingModel = model;
}

export function getProgrammingModel(): ProgrammingModel {
  if (!programmingModel) throw new Error('Nothing has imported @azure/functions yet.');
  return programmingModel;
}

export function log(level: LogLevel, _category: string, message: string) {
  writeLog(level, 'host', message);
}

/** Runs the hooks one after another, because each may change the input of the next one. */
export async function runHooks(name: HookName, context: object) {
  for (const hook of hooks[name]) await hook(context);
}

/** Resolves `@azure/functions-core` to this module. Call this before the library is imported. */
/** In the package, this module is JavaScript. */
const FORMAT = import.meta.url.endsWith('.ts') ? 'module-typescript' : 'module';

export function provideFunctionsCore() {
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === '@azure/functions-core'
        ? { url: import.meta.url, format: FORMAT, shortCircuit: true }
        : next(specifier, context),
  });
}

/** Removes all registrations, so that the app can be loaded again. */
export function resetFunctions() {
  functions.length = 0;
  names.clear();
  for (const name of HOOK_NAMES) hooks[name].length = 0;
  isSealed = false;
}

/** Returns the registered functions. Later registrations throw. */
export function sealFunctions(): readonly { readonly metadata: FunctionMetadata; readonly handler: Handler }[] {
  isSealed = true;
  return functions;
}
