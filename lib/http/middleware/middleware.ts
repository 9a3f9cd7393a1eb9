import type { HttpRequest, InvocationContext } from '@azure/functions';
import type { Caller } from '../../access/token.ts';
import type { Cost } from '../../storage/cost.ts';
import type { App, Route, RouteResult } from '../route.ts';

/** A request to a route on its way through the middleware. */
export interface Exchange {
  /** Throws `wrong-setting` while a setting is wrong. */
  readonly app: () => App;
  readonly route: Route;
  readonly request: HttpRequest;
  readonly root: string;
  /** The parameters of the path, with `%2F` still encoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The query of the URL, because the host joins repeated parameters in `request.query`. */
  readonly query: URLSearchParams;
  /** The body. Throws `too-large`, `length-required`. */
  readonly bytes: () => Promise<Uint8Array>;
  readonly invocation: InvocationContext;
  readonly spent: Spent;
  /** Nobody before the caller is admitted, and on a route without a token. */
  readonly caller: Caller;
  /** True if the steps of the request are wanted, and not its effect. */
  readonly isExplanation: boolean;
  /** True on the last retry of a read, when a missing blob means data loss rather than a stale row. */
  readonly isLastAttempt: boolean;
}

/** What a request has cost so far. */
export interface Spent {
  readonly cost: Cost;
  /** Milliseconds of appending to the audit log, partly beside other storage calls, if there was something to record. */
  audit?: number;
}

export type Next = (exchange: Exchange) => Promise<RouteResult>;

/** One concern of all routes. It may change the exchange before, and the result after, what is inside it. */
export type Middleware = (exchange: Exchange, next: Next) => Promise<RouteResult>;

/** Puts each of the middleware around those after it, and the last one around `inside`. */
export function compose(middleware: readonly Middleware[], inside: Next): Next {
  return middleware.reduceRight<Next>((next, each) => (exchange) => each(exchange, next), inside);
}

/** True if the route changes nothing. */
export function isRead({ method, isRead: isPostOfRead }: Route): boolean {
  return method === 'GET' || isPostOfRead === true;
}
