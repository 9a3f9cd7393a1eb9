import type { HttpClient } from '@azure/core-rest-pipeline';
import { SpanKind } from '@opentelemetry/api';
import { countTransaction } from '../telemetry/metrics.ts';
import { currentPattern, inSpan } from '../telemetry/span.ts';

/**
 * A span and a count for each storage transaction, retries included. Of a URL only the name of the table, queue or container
 * is told, which comes right behind that of the service (`endpoint`): what follows are keys.
 */
export function tracingHttpClient(
  inner: HttpClient,
  service: 'table' | 'queue' | 'blob',
  endpoint: () => string,
): HttpClient {
  // An emulator has the name of the account in its path, or in its host name.
  const depthOf = (url: string) => new URL(url).pathname.split('/').filter(Boolean).length + 1;
  let depth: number | undefined;
  return {
    sendRequest(request) {
      depth ??= depthOf(endpoint());
      const operation = `${service} ${request.method}`;
      const resource = new URL(request.url).pathname.split('/')[depth];
      const name = `${operation} ${/^\$?[\w-]*/.exec(resource ?? '')?.[0]}`;
      countTransaction({ pattern: currentPattern(), operation });
      return inSpan(
        name,
        async (span) => {
          const response = await inner.sendRequest(request);
          span.setAttribute('http.response.status_code', response.status);
          return response;
        },
        { kind: SpanKind.CLIENT },
      );
    },
  };
}
