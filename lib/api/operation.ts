import type { z } from 'zod';
import { countRequest } from '../access/request-limits.ts';
import { canReadWhole, isSteward, requireRole } from '../access/rule.ts';
import { type Caller, isVisitor, toGrantee } from '../access/token.ts';
import { hasCode, RowkeyError } from '../base/errors.ts';
import { toUtc } from '../base/time.ts';
import { pick, type Values } from '../base/values.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Deed, RequestLimit } from '../define/declaration/request-limit.ts';
import { buildKey } from '../define/keys/key-template.ts';
import { addressIfAny } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { type NotedChange, noteChange } from '../engine/note-change.ts';
import { FurtherRowLost } from '../engine/read/entity-rows.ts';
import { BlobGone } from '../engine/read/text-blobs.ts';
import { requireTold } from '../engine/read/told.ts';
import { atAction } from '../engine/write/conflict.ts';

/** Who calls, and on what. */
export interface View {
  readonly engine: Engine;
  /** Undefined for the app itself, which may read and write everything. */
  readonly caller: Caller | undefined;
  /** True on the last retry of a read, when a missing blob means data loss rather than a stale row. */
  readonly isLastAttempt: boolean;
}

/** Builds a schema that only the description of the API reads, so that no cold start waits for it. */
export type SchemaBuilder = () => z.ZodType;

/**
 * What callers can do is written once, as operations. HTTP routes, `POST /query` and the store in process are bindings: they turn their
 * own form of a request into the input of an operation, and its output into their form of a response.
 */
export interface Operation<Input, Output> {
  /** The operation id in OpenAPI, unless a binding has a name of its own because it is not the only one. */
  readonly name: string;
  /** What the operation does, in one sentence for its callers. */
  readonly summary: string;
  /** A read changes nothing, so it may be repeated and needs no audit log. */
  readonly kind: 'read' | 'write';
  /** The roles that may call it; undefined if no token is needed. `admit` may reject some of its inputs. */
  readonly roles: readonly string[] | undefined;
  /** Why `roles` is empty, if it is. */
  readonly closed?: string | undefined;
  /** The entity that it reads or writes, if there is one. */
  readonly entity?: Entity;
  /** The entity of which it reads the row that the input names, without `entity`. */
  entityOf?(input: Input): Entity;
  /** What limits of requests count: what it does to each entity. By default one read, or one update. */
  readonly deeds?: readonly Deed[] | ((input: Input) => readonly Deed[]);
  /** What a caller sends, if that is a document. */
  readonly input?: SchemaBuilder;
  /** What a caller gets, if that is a document. */
  readonly output?: SchemaBuilder;
  /** The operations that it executes together, each of which must admit the caller and counts by itself. */
  parts?(input: Input): readonly Part[];
  /** True if its implementation is of the app, whose own errors stay as they are. */
  readonly isOfApp?: true;
  /** True if it issues a signature of storage, which a caller gets by other roles than that of the steward. */
  readonly isGrant?: true;
  /** Where a read of a steward looks, for the audit log. By default at the key, or in the partition, of the entity that the input names. */
  place?(input: Input): Pick<NotedChange, 'address' | 'fields'>;
  /** The instant as of which it reads, an ISO instant. Undefined for now. */
  at?(input: Input): string | undefined;
  /** True if a repeated call with the same id is executed once. */
  readonly repeatable?: true;
  /** Throws `forbidden` if the caller may not do this with the input. May read what decides it, such as the caller's own entity. */
  admit?(caller: Caller, input: Input, view: View): void | Promise<void>;
  /** Throws `invalid-input`, which names a member of the input. */
  run(view: View, input: Input): Promise<Output>;
}

/** An operation with its input, as a part of another one. */
export interface Part {
  count(call: Call): Promise<void>;
  /** Throws `forbidden`. */
  admit(caller: Caller, view: View): Promise<void>;
}

export function toPart<Input>(operation: Operation<Input, unknown>, input: Input): Part {
  return {
    count: (call) => count(operation, call, input),
    async admit(caller, view) {
      if (operation.roles) requireRole(caller, operation.roles, operation.closed);
      await operation.admit?.(caller, input, view);
    },
  };
}

/** Calls the parts in their order. An error names the part. */
async function eachPart(parts: readonly Part[], work: (part: Part) => Promise<void>): Promise<void> {
  for (const [position, part] of parts.entries())
    await work(part).catch((error: unknown) => {
      throw atAction({ position }, error);
    });
}

/** The call of a binding. */
export interface Call extends Pick<View, 'engine' | 'caller'> {
  /** The limits of the caller's requests. */
  readonly limits?: readonly RequestLimit[] | undefined;
  /** Awaited for an admitted caller. Throws `wrong-setting` while the model does not match what is stored. */
  ready?(): Promise<unknown>;
  /** Runs a write and records its changes in the audit log before it returns or throws. */
  record<Result>(write: () => Promise<Result>): Promise<Result>;
}

/** A read starts again if a blob was replaced after its row was read. */
const READ_ATTEMPTS = 4;

/**
 * The one place where a caller is admitted to an operation. `read` makes the input from the call: a caller without a role learns nothing
 * about what is accepted. Throws `needs-repair` if a blob is missing every time, and `unauthenticated` for what a visitor may not do.
 */
export async function perform<Of extends Call, Input, Output, Read extends Input>(
  operation: Operation<Input, Output>,
  call: Of,
  read: (call: Of) => Read | Promise<Read>,
): Promise<{ readonly input: Read; readonly output: Output }> {
  if (!call.caller || !isVisitor(call.caller)) return performAdmitted(operation, call, read);
  let isRunning = false;
  const run: typeof operation.run = (view, input) => {
    isRunning = true;
    return operation.run(view, input);
  };
  try {
    return await performAdmitted({ ...operation, run }, call, read);
  } catch (error) {
    throw hasCode(error, 'forbidden') && !(isRunning && operation.isOfApp) ? toSignIn(error) : error;
  }
}

/** A client that gets this offers to sign in. */
export function toSignIn(error: RowkeyError): RowkeyError {
  const named = pick({ ...error }, ['field', 'accepted', 'errors']);
  return new RowkeyError('unauthenticated', 'A request without a bearer token may not do this.', named);
}

async function performAdmitted<Of extends Call, Input, Output, Read extends Input>(
  operation: Operation<Input, Output>,
  call: Of,
  read: (call: Of) => Read | Promise<Read>,
): Promise<{ readonly input: Read; readonly output: Output }> {
  const { engine } = call;
  const caller =
    call.caller && operation.isGrant ? toGrantee(call.caller, operation.entity?.access.steward) : call.caller;
  if (caller && operation.roles) requireRole(caller, operation.roles, operation.closed);
  await call.ready?.();
  const input = await read(call);
  const entity = operation.entity ?? operation.entityOf?.(input);
  const isReadBySteward = operation.kind === 'read' && caller && entity && isSteward(entity, caller);
  await count(operation, call, input);
  const at = operation.at?.(input);
  if (at !== undefined && entity?.existing) requireTold(entity);
  const parts = operation.parts?.(input);
  if (parts) await eachPart(parts, (part) => part.count(call));
  // A write is not repeated: its row is not stale, so a missing blob is lost.
  for (let attempt = operation.kind === 'read' ? 1 : READ_ATTEMPTS; ; attempt += 1) {
    try {
      const view = {
        engine: at === undefined ? engine : await openPast(engine, caller, at),
        caller,
        isLastAttempt: attempt === READ_ATTEMPTS,
      };
      if (caller) await operation.admit?.(caller, input, view);
      if (caller && parts) await eachPart(parts, (part) => part.admit(caller, view));
      const run = () => operation.run(view, input);
      if (operation.kind === 'write') return { input, output: await call.record(run) };
      if (!isReadBySteward) return { input, output: await run() };
      const note = () => {
        noteRead(engine, operation, entity, input);
        return run();
      };
      return { input, output: await call.record(note) };
    } catch (error) {
      if (!(error instanceof BlobGone)) throw withLostKey(error, caller);
      if (attempt === READ_ATTEMPTS)
        throw new RowkeyError('needs-repair', `${operation.name}: a blob is lost.`, { cause: error });
    }
  }
}

/** The engine of an instant. Throws `forbidden`, and `not-found` for what no backup has. */
async function openPast(engine: Engine, caller: Caller | undefined, at: string): Promise<Engine> {
  const { past } = engine;
  if (!past)
    throw new RowkeyError(
      'not-found',
      'The app keeps no backup, so nothing can be read as it was. Add backup: { days: 35 } to defineModel.',
    );
  if (caller) requireRole(caller, past.roles);
  const instant = toUtc(at);
  const accepted = 'an ISO instant up to now';
  if (instant === undefined) throw new RowkeyError('invalid-input', '"at" is no instant.', { field: 'at', accepted });
  if (Date.parse(instant) > engine.now())
    throw new RowkeyError('invalid-input', '"at" is in the future.', { field: 'at', accepted });
  return past.open(engine, instant);
}

/** Notes what a steward reads for the audit log, whether it is found or not. */
function noteRead<Input>(engine: Engine, { place }: Operation<Input, unknown>, entity: Entity, input: Input): void {
  const { key, partition, include } = Object(input) as {
    readonly key?: Values;
    readonly partition?: Values;
    readonly include?: readonly string[];
  };
  const given = key ?? partition ?? {};
  const hasAll = (fields: readonly string[]) => fields.every((field) => given[field] !== undefined);
  const address = hasAll(entity.keyFields)
    ? addressIfAny(entity, given)
    : hasAll(entity.partition.fields)
      ? { table: entity.table, partition: buildKey(entity.partition, given) }
      : undefined;
  const noted = place?.(input) ?? { address: address ?? { table: entity.table, partition: '' } };
  noteChange(engine, { operation: 'read', entity: entity.name, ...noted });
  const { table, partition: among } = noted.address;
  for (const { name } of entity.children.filter((child) => include?.includes(child.name)))
    noteChange(engine, { operation: 'read', entity: name, address: { table, partition: among } });
}

/** An admitted request counts, whatever becomes of it. Throws as `countRequest` does. */
async function count<Input>(
  { name, entity, kind, roles, deeds = [kind === 'read' ? 'read' : 'update'] }: Operation<Input, unknown>,
  { engine, caller, limits = [] }: Call,
  input: Input,
): Promise<void> {
  if (!caller || limits.length === 0) return;
  await countRequest(engine, {
    limits,
    caller,
    roles: caller.roles.filter((role) => roles?.includes(role) ?? true),
    entity: entity?.name,
    operation: name,
    deeds: typeof deeds === 'function' ? deeds(input) : deeds,
  });
}

/** A list fails for any of its entities, so its callers need the key of the one to repair. */
function withLostKey(error: unknown, caller: Caller | undefined): unknown {
  if (!(error instanceof FurtherRowLost) || !caller || !canReadWhole(error.entity, caller)) return error;
  return new RowkeyError(error.code, error.message, { detail: error.detailWithKeys, cause: error });
}
