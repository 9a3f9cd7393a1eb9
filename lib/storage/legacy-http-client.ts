import { toCompatResponse, type WebResourceLike } from '@azure/core-http-compat';
import { createHttpHeaders, createPipelineRequest, type HttpClient } from '@azure/core-rest-pipeline';

/** The form of an HTTP client that the queue and blob SDKs still take; the table SDK takes the newer one as it is. */
export function toLegacyHttpClient(client: HttpClient) {
  return {
    async sendRequest({ headers, keepAlive, ...rest }: WebResourceLike) {
      const given = Object.entries(rest).filter(([, value]) => value !== undefined);
      const request = createPipelineRequest({
        url: rest.url,
        ...Object.fromEntries(given),
        headers: createHttpHeaders(headers.toJson({ preserveCase: true })),
        // The older form has this the wrong way round: its own conversion copies one to the other.
        disableKeepAlive: keepAlive === true,
      });
      return toCompatResponse(await client.sendRequest(request));
    },
  };
}
