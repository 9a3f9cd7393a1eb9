import type { PipelinePolicy, PipelineRequest, PipelineResponse } from '@azure/core-rest-pipeline';
import { SpanKind } from '@opentelemetry/api';
import { count, countTransaction } from '../telemetry/metrics.ts';
import { currentPattern, inSpan } from '../telemetry/span.ts';

/**
 * The date or month at the end of a period's table name. Metrics omit it, because every label value creates a time series.
 * A year is kept: one series a year is harmless, and other table names may end in four digits.
 */
const PERIOD_SUFFIX = /\d{4}(0[1-9]|1[0-2])(\d{2})?$/;
const BATCH = '$batch';

/**
 * Records a span and counts for each storage transaction, retries included. A span has one part of the URL: the table, queue or
 * container, which follows the path of the service (`endpoint`). Later path segments contain keys and are left out.
 */
export function traceCalls(service: 'table' | 'queue' | 'blob', endpoint: () => string): PipelinePolicy {
  // The account name of an emulator is in the path or in the host name.
  const depthOf = (url: string) => new URL(url).pathname.split('/').filter(Boolean).length + 1;
  let depth: number | undefined;
  const resourceOf = (url: string) => {
    depth ??= depthOf(endpoint());
    // The first two parts are the scheme and the empty text before the host. Parsing a URL for each call would be slow.
    return /^\$?[\w-]*/.exec(url.split('/', depth + 3)[depth + 2] ?? '')?.[0] || 'none';
  };
  return {
    name: 'traceCalls',
    sendRequest(request, next) {
      const operation = `${service} ${request.method}`;
      const named = resourceOf(request.url);
      countTransaction({ pattern: currentPattern(), operation });
      return inSpan(
        operation,
        async (span) => {
          if (span.isRecording()) span.updateName(`${operation} ${named}`);
          const resource = (named === BATCH ? resourceOf(batchUrl(request)) : named).replace(PERIOD_SUFFIX, '');
          let status = 'none';
          try {
            const response = await next(request);
            status = named === BATCH ? batchStatus(response) : String(response.status);
            span.setAttribute('http.response.status_code', response.status);
            return response;
          } finally {
            count.response({ service, resource, status });
          }
        },
        { kind: SpanKind.CLIENT },
      );
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
