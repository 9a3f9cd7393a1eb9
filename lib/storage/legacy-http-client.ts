import { toCompatResponse, type WebResourceLike } from '@azure/core-http-compat';
import { createHttpHeaders, createPipelineRequest, type HttpClient } from '@azure/core-rest-pipeline';

/** Adapts an HTTP client to the older interface that the queue and blob SDKs accept; the table SDK accepts the newer one. */
export function toLegacyHttpClient(client: HttpClient) {
  return {
    async sendRequest(given: WebResourceLike) {
      const { headers, keepAlive, ...defined } = given;
      for (const [name, value] of Object.entries(defined))
        if (value === undefined) Reflect.deleteProperty(defined, name);
      const request = createPipelineRequest({
        ...defined,
        headers: createHttpHeaders(headers.toJson({ preserveCase: true })),
        // Microsoft's own conversion copies `keepAlive` to `disableKeepAlive`, its opposite.
        disableKeepAlive: keepAlive === true,
      });
      // The blob SDK looks up the operation by the request object. With another object it treats an error as a result.
      return { ...toCompatResponse(await client.sendRequest(request)), request: given };
    },
  };
}
