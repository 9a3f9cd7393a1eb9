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
  const resourceOf = (url: string) => {
    depth ??= depthOf(endpoint());
    return /^\$?[\w-]*/.exec(new URL(url).pathname.split('/')[depth] ?? '')?.[0];
  };
  return {
    sendRequest(request) {
      const operation = `${service} ${request.method}`;
      countTransaction({ pattern: currentPattern(), operation });
      return inSpan(
        operation,
        async (span) => {
          // Every call comes through here: what is not recorded is not looked at.
          if (span.isRecording()) span.updateName(`${operation} ${resourceOf(request.url)}`);
          const response = await inner.sendRequest(request);
          span.setAttribute('http.response.status_code', response.status);
          return response;
        },
        { kind: SpanKind.CLIENT },
      );
    },
  };
}
