import { AsyncLocalStorage } from 'node:async_hooks';
import type { PipelinePolicy } from '@azure/core-rest-pipeline';

/**
 * A delete in a transaction that requires an ETag. Storage has it, the SDK does not: it sends `*`
 * (https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions).
 */

const etags = new AsyncLocalStorage<string>();
/** From the line of the delete to its condition. */
const CONDITION = /(\r\nDELETE [^\r\n]+ HTTP\/1\.1\r\n(?:[^\r\n]+\r\n)*?if-match: )\*/i;

/** Submits a transaction, of which the only delete requires the ETag. */
export function withDeleteIf<Result>(etag: string, submit: () => Promise<Result>): Promise<Result> {
  return etags.run(etag, submit);
}

export const conditionalDelete: PipelinePolicy = {
  name: 'conditionalDelete',
  sendRequest(request, next) {
    const etag = etags.getStore();
    if (etag !== undefined && typeof request.body === 'string') {
      request.body = request.body.replace(CONDITION, (_, head: string) => `${head}${etag}`);
      if (request.headers.has('content-length')) request.headers.set('content-length', Buffer.byteLength(request.body));
    }
    return next(request);
  },
};
