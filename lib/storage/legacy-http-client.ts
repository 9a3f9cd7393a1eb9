import { toCompatResponse, type WebResourceLike } from '@azure/core-http-compat';
import { createHttpHeaders, createPipelineRequest, type HttpClient } from '@azure/core-rest-pipeline';

/** The form of an HTTP client that the queue and blob SDKs still take; the table SDK takes the newer one as it is. */
export function toLegacyHttpClient(client: HttpClient) {
  return {
    async sendRequest(given: WebResourceLike) {
      const { headers, keepAlive, ...rest } = given;
      const defined = Object.entries(rest).filter(([, value]) => value !== undefined);
      const request = createPipelineRequest({
        url: rest.url,
        ...Object.fromEntries(defined),
        headers: createHttpHeaders(headers.toJson({ preserveCase: true })),
        // The older form has this the wrong way round: its own conversion copies one to the other.
        disableKeepAlive: keepAlive === true,
      });
      // The SDK for blobs knows by the very request it gave what was asked, and without it takes a refusal for an answer.
      return { ...toCompatResponse(await client.sendRequest(request)), request: given };
    },
  };
}
