import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { PipelinePolicy, PipelineRequest, PipelineResponse } from '@azure/core-rest-pipeline';
import { type Span, SpanKind } from '@opentelemetry/api';
import { count } from '../telemetry/metrics.ts';
import { currentPattern, inSpan } from '../telemetry/span.ts';
import { explainApart } from './explain.ts';
import type { Heat } from './heat.ts';
import { PERIOD_SUFFIX } from './resource-names.ts';

/** The cost of a request so far. Each HTTP call to storage is a billed transaction, retries included. */
export interface Cost {
  transactions: number;
  /** Milliseconds during which at least one storage call was in progress; concurrent calls count once. */
  milliseconds: number;
}

/**
 * An idle connection is closed before the load balancer forgets it, which it does after four minutes
 * (https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-idle-timeout). A request on a forgotten connection gets no reply, and
 * some writes cannot be repeated then.
 */
const IDLE_MS = 60_000;

/** The kept connections, by protocol. */
export function createConnections(idleMs = IDLE_MS) {
  const options = { keepAlive: true, timeout: idleMs };
  return { http: new HttpAgent(options), https: new HttpsAgent(options) };
}

const connections = createConnections();

interface Meter extends Cost {
  underWay: number;
  since: number;
  /** The meter of the work that this work is a part of. */
  readonly whole: Meter | undefined;
  /** What has not responded to a call of the whole work, by the policies that `failAfterSilence` creates. */
  readonly silent: Set<object>;
}

function startMeter(): Meter {
  const whole = meters.getStore();
  return { transactions: 0, milliseconds: 0, underWay: 0, since: 0, whole, silent: whole?.silent ?? new Set() };
}

const meters = new AsyncLocalStorage<Meter>();

/** Storage transactions of the measured work so far; 0 outside `measureCost`. */
export function transactionsSoFar(): number {
  return meters.getStore()?.transactions ?? 0;
}

/** What has not responded to a call of the measured work. Undefined outside `measureCost`. */
export function silentSoFar(): Set<object> | undefined {
  return meters.getStore()?.silent;
}

/** Runs `work` and counts its storage transactions, across awaits. They count for the work around it, too. */
export function measureCost<Result>(work: (cost: Cost) => Promise<Result>): Promise<Result> {
  const meter = startMeter();
  return meters.run(meter, work, meter);
}

/**
 * Runs `work`. If it throws an error that `isHidden`, neither the cost nor an explanation of the work around it tells of it: what a caller
 * cannot see costs the same whether it exists or not. Metrics count it.
 */
export async function hideCost<Result>(
  work: () => Promise<Result>,
  isHidden: (error: unknown) => boolean,
): Promise<Result> {
  const part = startMeter();
  try {
    return await meters.run(part, () => explainApart(work, isHidden));
  } catch (error) {
    for (let meter = part.whole; meter && isHidden(error); meter = meter.whole) {
      meter.transactions -= part.transactions;
      meter.milliseconds = Math.max(0, meter.milliseconds - part.milliseconds);
    }
    throw error;
  }
}

const BATCH = '$batch';

interface Counted {
  readonly service: 'table' | 'queue' | 'blob';
  /** The URL of the service. */
  readonly endpoint: () => string;
  /** Allows plain HTTP, as for the emulator. */
  readonly insecure: boolean;
  readonly heat?: Heat;
  /** The name of the account, if there are several. */
  readonly account?: string | undefined;
}

/**
 * Counts and traces each attempt as a storage transaction, so it is below the retries of the SDKs. Keeps the connections open. A span
 * has one part of the URL: the table, queue or container, which follows the path of the service. Later path segments contain keys and are
 * left out.
 */
export function countTransactions({ service, endpoint, insecure, heat, account }: Counted): PipelinePolicy {
  // The account name of an emulator is in the path or in the host name.
  const depthOf = (url: string) => new URL(url).pathname.split('/').filter(Boolean).length + 1;
  let depth: number | undefined;
  const agent = insecure ? connections.http : connections.https;
  const resourceOf = (url: string) => {
    depth ??= depthOf(endpoint());
    // The first two parts are the scheme and the empty text before the host. Parsing a URL for each call would be slow.
    return /^\$?[\w-]*/.exec(url.split('/', depth + 3)[depth + 2] ?? '')?.[0] || 'none';
  };
  return {
    name: 'countTransactions',
    sendRequest(request, next) {
      request.allowInsecureConnection ||= insecure;
      request.agent ??= agent;
      const operation = `${service} ${request.method}`;
      count.transaction({ pattern: currentPattern(), operation });
      const send = async (span: Span) => {
        const named = resourceOf(request.url);
        if (span.isRecording()) span.updateName(`${operation} ${named}`);
        const resource = named === BATCH ? resourceOf(batchUrl(request)) : named;
        const running: Meter[] = [];
        for (let meter = meters.getStore(); meter; meter = meter.whole) running.push(meter);
        for (const meter of running) {
          meter.transactions += 1;
          if (meter.underWay++ === 0) meter.since = performance.now();
        }
        let status = 'none';
        try {
          const response = await next(request);
          status = named === BATCH ? batchStatus(response) : String(response.status);
          span.setAttribute('http.response.status_code', response.status);
          return response;
        } finally {
          for (const meter of running)
            if (--meter.underWay === 0) meter.milliseconds += performance.now() - meter.since;
          const counted = { service, resource: resource.replace(PERIOD_SUFFIX, ''), status };
          count.response(account === undefined ? counted : { ...counted, account });
          heat?.note(request, { service, resource, status });
        }
      };
      return inSpan(operation, send, { kind: SpanKind.CLIENT });
    },
  };
}

/** A transaction goes to `$batch`. Only the request lines of its actions name the table; the first precedes all data. */
function batchUrl({ body, url }: PipelineRequest): string {
  return (typeof body === 'string' && /^[A-Z]+ (\S+) HTTP\/1\.1/m.exec(body)?.[1]) || url;
}

/** A rejected transaction is a 202 whose body has the response of the failed action. */
function batchStatus({ status, bodyAsText }: PipelineResponse): string {
  return /^HTTP\/1\.1 (\d{3})/m.exec(bodyAsText ?? '')?.[1] ?? String(status);
}
