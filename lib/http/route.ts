import type { z } from 'zod';
import type { Authenticate, Caller } from '../access/token.ts';
import type { Entity, Role } from '../define/entity.ts';
import type { Log } from '../engine/consume/poison.ts';
import type { Engine } from '../engine/engine.ts';
import type { AuditLog } from '../operations/audit-log.ts';
import type { TableSasSigner } from '../storage/table-sas-signer.ts';

/** What the routes work with. */
export interface App {
  readonly engine: Engine;
  readonly entities: readonly Entity[];
  readonly signer: () => TableSasSigner;
  /** What is changed by a request is recorded there before it is answered. */
  readonly audit: AuditLog;
  /** Throws `wrong-setting` while the declaration does not go with what is stored. */
  readonly ready: (log: Log) => Promise<unknown>;
  readonly authenticate: Authenticate;
}

export interface RequestContext {
  readonly app: App;
  readonly log: Log;
  readonly caller: Caller;
  /** Decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly header: (name: string) => string | undefined;
  /** The body as JSON. Throws `invalid-input`. */
  readonly json: () => Promise<unknown>;
  /** Whether a blob that is not there is lost: else the row may be of before, and all is done again. */
  readonly isLastAttempt: boolean;
  /** The body as it came. Throws `invalid-input` where it is too large. */
  readonly bytes: () => Promise<Uint8Array>;
}

export interface RouteResult {
  readonly status: number;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, in place of that; the headers say what it is. */
  readonly bytes?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

export type ResponseHeader = 'Content-Location' | 'ETag' | 'Link' | 'Location';

/** One method of one path: what is registered, done and described. */
export interface Route {
  /** As the function is named; the host tries functions in the order of their names. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Without the prefix `api`. */
  readonly path: string;
  /** One of these is needed; undefined where no token is. */
  readonly roles: readonly Role[] | undefined;
  /** The query parameters that are taken, with what they mean; others are refused. */
  readonly query?: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly requestBody?: z.ZodType;
  /** Of a body that is no JSON. */
  readonly requestTypes?: readonly string[];
  /** Whether an Idempotency-Key is heeded. */
  readonly repeatable?: true;
  /** Whether a write heeds If-Match and If-None-Match. */
  readonly conditional?: true;
  /** Whether a GET heeds If-None-Match, and then may return 304. */
  readonly cacheable?: true;
  /** Where more than usual is taken. */
  readonly maxBodyBytes?: number | undefined;
  /** The successful answer: its status, and its body where it has one. */
  readonly success: {
    readonly status: number;
    readonly description: string;
    readonly body?: z.ZodType;
    /** Of a body that is no JSON. */
    readonly types?: readonly string[];
    /** Headers of this answer, besides those that every answer has. */
    readonly headers?: readonly ResponseHeader[];
    /** Where some role may do this and not read the result: what the answer 204 means that it gets. */
    readonly unread?: string;
  };
  /** Answers with a body other than problem details, besides the successful one. */
  readonly others?: Readonly<Record<number, { readonly description: string; readonly body: z.ZodType }>>;
  /** The answer while a setting is not usable; a problem unless given. */
  readonly refusal?: RouteResult;
  readonly handle: (call: RequestContext) => Promise<RouteResult>;
  /** The entity that the route is about, where it is about one. */
  readonly entity?: Entity;
}

/** The part of a route's path in which these fields come. */
export function parametersOf(fields: readonly string[]): string {
  return fields.map((field) => `{${field}}`).join('/');
}

/** The path of a thing under the API, each part encoded. */
export function pathTo(...parts: readonly unknown[]): string {
  return ['/api', ...parts.map((part) => encodeURIComponent(String(part)))].join('/');
}
