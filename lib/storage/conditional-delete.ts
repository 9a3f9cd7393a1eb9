import { AsyncLocalStorage } from 'node:async_hooks';
import type { PipelinePolicy } from '@azure/core-rest-pipeline';

/**
 * Deletes in a transaction that require an ETag. Storage has it, the SDK does not: it sends `*`
 * (https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions).
 */

const conditions = new AsyncLocalStorage<readonly string[]>();
/** From the line of the delete to its condition. */
const CONDITION = /(\r\nDELETE [^\r\n]+ HTTP\/1\.1\r\n(?:[^\r\n]+\r\n)*?if-match: )\*/gi;

/** Submits a transaction, of which each delete requires its ETag, in their order. */
export function withDeleteIf<Result>(etags: readonly string[], submit: () => Promise<Result>): Promise<Result> {
  return conditions.run(etags, submit);
}

export const conditionalDelete: PipelinePolicy = {
  name: 'conditionalDelete',
  sendRequest(request, next) {
    const etags = conditions.getStore();
    if (etags && typeof request.body === 'string') {
      let at = 0;
      // A request that the SDK repeats has them already.
      request.body = request.body.replace(CONDITION, (_, head: string) => `${head}${etags[at++] ?? '*'}`);
      if (request.headers.has('content-length')) request.headers.set('content-length', Buffer.byteLength(request.body));
    }
    return next(request);
  },
};
