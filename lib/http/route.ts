import type { HttpRequest, InvocationContext } from '@azure/functions';
import type { z } from 'zod';
import type { Authenticate, Caller } from '../access/token.ts';
import type { View } from '../api/operation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Log } from '../engine/consume/poison.ts';
import type { Engine } from '../engine/engine.ts';
import type { AuditLog } from '../operations/audit-log.ts';
import type { Cost } from '../storage/cost.ts';
import type { TableSasSigner } from '../storage/table-sas.ts';

export interface App {
  readonly engine: Engine;
  readonly entities: readonly Entity[];
  readonly signer: () => TableSasSigner;
  /** Changes are recorded here before the response is sent. */
  readonly audit: AuditLog;
  /** Throws `wrong-setting` while the model does not match what is stored. */
  readonly ready: (log: Log) => Promise<unknown>;
  /** Names the tables, queues and containers that do not exist; sends no request once all of them have been found. */
  readonly findMissing: () => Promise<readonly string[]>;
  readonly authenticate: Authenticate;
}

/** The media type of the response to `explain=true`, which tells it from the response to the request itself. */
export const EXPLANATION_TYPE = 'application/vnd.rowkey.explanation+json';

export interface RequestContext extends View {
  readonly app: App;
  /** Links begin with it: `/api`, or `/api/shop` for an instance with the path `shop`. */
  readonly root: string;
  readonly log: Log;
  readonly caller: Caller;
  /** The decoded parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The query of the URL, because the host joins repeated parameters in `request.query`. */
  readonly query: URLSearchParams;
  readonly header: (name: string) => string | undefined;
  /** Reads the body as JSON. Throws `invalid-input`. */
  readonly json: () => Promise<unknown>;
  /** Reads the body as bytes. Throws `too-large`, `length-required`. */
  readonly bytes: () => Promise<Uint8Array>;
}

export interface RouteResult {
  readonly status: number;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged, in place of `body`; the result has its own Content-Type header. */
  readonly bytes?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the changes of the request are in the audit log. */
  readonly onRecorded?: () => void;
}

/** A request to a route on its way through the middleware. Its caller is nobody before admission, and on a route without a token. */
export interface Exchange
  extends Pick<RequestContext, 'root' | 'params' | 'query' | 'bytes' | 'caller' | 'isLastAttempt'> {
  /** Throws `wrong-setting` while a setting is wrong. */
  readonly app: () => App;
  readonly request: HttpRequest;
  readonly invocation: InvocationContext;
  readonly spent: Spent;
  /** True if the steps of the request are wanted, and not its effect. */
  readonly isExplanation: boolean;
}

/** What a request has cost so far. */
export interface Spent {
  readonly cost: Cost;
  /** Milliseconds of appending to the audit log, partly beside other storage calls, if there was something to record. */
  audit?: number;
}

export type Next = (exchange: Exchange) => Promise<RouteResult>;

/**
 * One concern of all routes. It may change the exchange before, and the result after, what is inside it (`next`). Called once for each
 * route; it returns `next` itself for a route that it does not concern.
 */
export type Middleware = (route: Route, next: Next) => Next;

export type ResponseHeader = 'Content-Location' | 'ETag' | 'Link' | 'Location';

/** Builds a schema that only the description of the API reads, so that no cold start waits for it. */
export type SchemaBuilder = () => z.ZodType;

/** One method of one path. */
export interface Route {
  /** The operation id in OpenAPI. */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path below the root of the instance. */
  readonly path: string;
  /** The caller needs one of these; undefined if the route needs no token. */
  readonly roles: readonly string[] | undefined;
  /** The accepted query parameters with their descriptions; all others are rejected. */
  readonly query?: Readonly<Record<string, string>>;
  /** Parameters that compare fields; they may be repeated. None has the name of another parameter. */
  readonly filters?: Readonly<Record<string, FilterParameter>>;
  /** True if OpenAPI does not describe the route, because it rejects every request. */
  readonly isUndescribed?: true;
  readonly summary: string;
  readonly requestBody?: SchemaBuilder;
  /** The accepted media types of a body that is not JSON. */
  readonly requestTypes?: readonly string[];
  /** By default a GET reads, and the other methods write. */
  readonly kind?: 'read' | 'write';
  /** True if the route supports Idempotency-Key. */
  readonly repeatable?: true;
  /** True if a write supports If-Match and If-None-Match. */
  readonly conditional?: true;
  /** True if a write supports `Prefer: return=minimal` (RFC 7240) and then returns 204 with an ETag. */
  readonly minimizable?: true;
  /** True if a GET supports If-None-Match and may return 304. */
  readonly cacheable?: true;
  /** The default is 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  readonly success: {
    readonly status: number;
    readonly description: string;
    readonly body?: SchemaBuilder;
    /** The body if the request selects fields. */
    readonly selected?: SchemaBuilder;
    /** The media types of a body that is not JSON. */
    readonly types?: readonly string[];
    /** Headers besides those of every response. */
    readonly headers?: readonly ResponseHeader[];
    /** The description of the 201, with the same body and a Location, if the request may create. */
    readonly created?: string;
    /** The description of the 204 for a caller who may write and not read the entity, if that is possible. */
    readonly unread?: string;
  };
  /** Other responses whose body is not a problem. */
  readonly others?: Readonly<Record<number, { readonly description: string; readonly body: SchemaBuilder }>>;
  /** The response while a setting is wrong, in place of a problem. */
  readonly whenMisconfigured?: RouteResult;
  readonly handle: (context: RequestContext) => Promise<RouteResult>;
  /** The entity that the route reads or writes, if there is one. */
  readonly entity?: Entity;
  /** Set for a route that all entities have: OpenAPI describes one operation, whose path has the parameter `entity`. */
  readonly ofAll?: Pick<Route, 'name' | 'path' | 'summary'>;
}

/** A field that a query can compare, or the reason why it cannot. */
export type FilterParameter =
  | { readonly schema: z.ZodType; readonly refused?: undefined }
  | { readonly refused: string };

/** The tag of a route in OpenAPI. */
export function tagOf({ entity, ofAll }: Pick<Route, 'entity' | 'ofAll'>): string {
  return entity && !ofAll ? entity.name : 'operations';
}

/** `{department}/{employeeId}` */
export function toPathTemplate(fields: readonly string[]): string {
  return fields.map((field) => `{${field}}`).join('/');
}

/** The root of an instance's routes: the route prefix of the host and the `path` of the instance. */
export function rootOf(path: string): string {
  return path === '' ? '/api' : `/api/${path}`;
}

/** A path of the API below its root, each part encoded. */
export function pathTo(root: string, ...parts: readonly unknown[]): string {
  return [root, ...parts.map((part) => encodeURIComponent(String(part)))].join('/');
}

/** A route that needs the operator role, which the model names. */
export type OperatorRoute = Omit<Route, 'roles'>;

/** True if the route changes nothing. */
export function isRead({ kind, method }: Route): boolean {
  return kind === 'read' || (kind === undefined && method === 'GET');
}
