import type { PipelinePolicy } from '@azure/core-rest-pipeline';

/**
 * Writes JSON bodies in ASCII with escapes, for the emulator only: Azurite decodes a request in chunks of 64 KiB and
 * corrupts a character that spans two chunks. The service does not.
 */
export const asciiJson: PipelinePolicy = {
  name: 'asciiJson',
  sendRequest(request, next) {
    if (typeof request.body === 'string') {
      request.body = request.body.replace(/[\u0080-\uffff]/g, escapeUnit);
      if (request.headers.has('content-length')) request.headers.set('content-length', request.body.length);
    }
    return next(request);
  },
};

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
