import type { HttpRequest, InvocationContext } from '@azure/functions';
import type { z } from 'zod';
import type { Authenticate, Caller } from '../access/token.ts';
import type { Execute } from '../api/app-operation.ts';
import type { Call, Operation, SchemaBuilder } from '../api/operation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { RequestLimit } from '../define/declaration/request-limit.ts';
import type { Log } from '../engine/consume/consume.ts';
import type { Engine } from '../engine/engine.ts';
import type { AuditLog } from '../operations/audit-log.ts';
import type { Cost } from '../storage/cost.ts';
import type { TableSasSigner } from '../storage/table-sas.ts';

export interface App {
  readonly engine: Engine;
  readonly entities: readonly Entity[];
  readonly operatorRole: string;
  /** The limits of the requests of each caller. */
  readonly limits: readonly RequestLimit[];
  readonly signer: () => TableSasSigner;
  /** Changes are recorded here before the response is sent. */
  readonly audit: AuditLog;
  /** Throws `wrong-setting` while the model does not match what is stored. */
  readonly ready: (log: Log) => Promise<unknown>;
  /** Names the tables, queues and containers that do not exist; sends no request once all of them have been found. */
  readonly findMissing: () => Promise<readonly string[] | undefined>;
  /** Lets `findMissing` look again, because a request met something that does not exist. */
  readonly noteMissing?: () => void;
  readonly authenticate: Authenticate;
  /** How many proxies before the app name the address of their client. */
  readonly trustedProxies: number;
  /** Runs the implementations of the operations that the app declares. */
  readonly execute: Execute;
}

/** The caller of a route without a token. */
export const NOBODY: Caller = { subject: '', roles: [], claims: {} };

export const NO_STORE = { 'cache-control': 'no-store' };

/** The media type of the response to `explain=true`, which tells it from the response to the request itself. */
export const EXPLANATION_TYPE = 'application/vnd.rowkey.explanation+json';

/** A request to a route. Its caller is nobody on a route without a token. */
export interface RequestContext extends Call {
  readonly app: App;
  readonly route: Route;
  /** Links begin with it: `/api`, or `/api/shop` for an instance with the path `shop`. */
  readonly root: string;
  readonly log: Log;
  readonly caller: Caller;
  /** The decoded parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The query of the URL, because the host joins repeated parameters in `request.query`. */
  readonly query: URLSearchParams;
  readonly headers: Pick<Headers, 'get'>;
  /** True for HEAD, whose response has no body. */
  readonly isHead: boolean;
  /** True if the steps of the request are wanted, and not its effect. */
  readonly isExplanation: boolean;
  /** Reads the body as JSON. Throws `invalid-input`, also for what would not arrive as it was sent. */
  readonly json: () => Promise<unknown>;
  /** Reads the body as JSON, for a route that checks its parts one by one: see `findNotJson`. Throws `invalid-input`. */
  readonly unchecked: () => Promise<unknown>;
  /** Reads the body as bytes. Throws `too-large`, `length-required`. */
  readonly bytes: () => Promise<Uint8Array>;
}

/** A request on its way through the middleware. Its caller is nobody before authentication, and its writes are not recorded before `audit`. */
export interface Exchange
  extends Pick<RequestContext, 'root' | 'params' | 'query' | 'bytes' | 'caller' | 'isExplanation' | 'record'> {
  /** Throws `wrong-setting` while a setting is wrong. */
  readonly open: () => App;
  readonly request: HttpRequest;
  readonly invocation: InvocationContext;
  readonly spent: Spent;
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

export interface RouteResult {
  readonly status: number;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged, in place of `body`; the result has its own Content-Type header. */
  readonly bytes?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

export type ResponseHeader = 'Content-Location' | 'Content-Range' | 'ETag' | 'Link' | 'Location';

/** One method of one path. A route that is bound to an operation has the description of the operation. */
export interface Route extends Pick<Operation<unknown, unknown>, 'name' | 'summary' | 'kind' | 'roles' | 'repeatable'> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path below the root of the instance. */
  readonly path: string;
  /** The accepted query parameters: those of text with a description, numbers and Booleans with a schema. All others are rejected. */
  readonly query?: Readonly<Record<string, string | z.ZodType>>;
  /** Parameters that compare fields; they may be repeated. None has the name of another parameter. */
  readonly filters?: Readonly<Record<string, FilterParameter>>;
  /** True if OpenAPI does not describe the route, because it rejects every request. */
  readonly isUndescribed?: true;
  readonly requestBody?: SchemaBuilder;
  /** The accepted media types of a body that is not JSON. */
  readonly requestTypes?: readonly string[];
  /** True if a write supports If-Match and If-None-Match. */
  readonly conditional?: true;
  /** True if a write supports `Prefer: return=minimal` (RFC 7240) and then returns 204 with an ETag. */
  readonly minimizable?: true;
  /** True if the response has a signature of storage, for callers with a token. */
  readonly isGrant?: true;
  /** True if a GET supports If-None-Match and may return 304. */
  readonly cacheable?: true;
  /** True if a GET supports Range and If-Range and may return 206. */
  readonly ranges?: true;
  /** The default is 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  readonly success: {
    readonly status: number;
    readonly description: string;
    readonly body?: SchemaBuilder;
    /** The body as OpenAPI describes it, if that is wider: one type for an entity and its selected fields. By default `body`. */
    readonly published?: SchemaBuilder;
    /** The media types of a body that is not JSON. */
    readonly types?: readonly string[];
    /** Headers besides those of every response. */
    readonly headers?: readonly ResponseHeader[];
    /** The description of the 201, with the same body and a Location, if the request may create. */
    readonly created?: string;
    /** The description of the 204 for a caller who may write and not read the entity, if that is possible. */
    readonly unread?: string;
  };
  /** Other responses whose body is not a problem. OpenAPI describes no body of a success, so that the operation has one type of result. */
  readonly others?: Readonly<Record<number, { readonly description: string; readonly body: SchemaBuilder }>>;
  /** The response while a setting is wrong, in place of a problem. */
  readonly whenMisconfigured?: RouteResult;
  readonly handle: (context: RequestContext) => Promise<RouteResult>;
  /** The entity that the route reads or writes, if there is one. */
  readonly entity?: Entity;
  /** The entities whose keys an explanation may contain, if the route is not of one entity. */
  readonly explains?: readonly Entity[];
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

/** `employees/{department}/{employeeId}`. */
export function toPathTemplate(parts: readonly string[], fields: readonly string[]): string {
  return [...parts, ...fields.map((field) => `{${field}}`)].join('/');
}

/** The root of an instance's routes: the route prefix of the host and the `path` of the instance. */
export function rootOf(path: string): string {
  return path === '' ? '/api' : `/api/${path}`;
}

/** A path of the API below its root, each part encoded. */
export function pathTo(root: string, ...parts: readonly unknown[]): string {
  return [root, ...parts.map((part) => encodeURIComponent(String(part)))].join('/');
}
