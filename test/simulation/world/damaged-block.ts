import { gunzipSync, gzipSync } from 'node:zlib';
import type { HttpClient } from '@azure/core-rest-pipeline';

/** The same accounts, where the first block of an archive is stored with another value in one line, as by a fault of a disk or of memory. */
export function withDamagedBlock<Account extends { readonly httpClient: HttpClient }>(
  accounts: readonly Account[],
  notice: () => void,
): Account[] {
  let isDamaged = false;
  return accounts.map((account) => ({
    ...account,
    httpClient: {
      sendRequest(request) {
        const { url, body } = request;
        if (
          !isDamaged &&
          url.includes('/period-archives/') &&
          url.includes('comp=block&') &&
          body instanceof Uint8Array
        ) {
          isDamaged = true;
          notice();
          request.body = gzipSync(
            gunzipSync(body)
              .toString()
              .replace(/":("?)([^"])/, '":$17'),
          );
        }
        return account.httpClient.sendRequest(request);
      },
    },
  }));
}
