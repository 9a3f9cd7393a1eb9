import { setImmediate as turn } from 'node:timers/promises';
import type { HttpClient, PipelineRequest } from '@azure/core-rest-pipeline';
import { httpClient as shared } from '../local/walk/known-messages.ts';

/** Counts how many requests that match are under way at the same time, at most. Work that waits for each request has 1. */
export interface MostInFlight extends HttpClient {
  readonly most: number;
}

/** Enough turns of the event loop that all work which waits for nothing has sent its requests. */
const TURNS = 50;

/** Creates a client that holds each matching request until concurrent work has sent its own ones. */
export function mostInFlight(matches: (request: PipelineRequest) => boolean, next: HttpClient = shared): MostInFlight {
  let now = 0;
  let most = 0;
  return {
    get most() {
      return most;
    },
    async sendRequest(request) {
      if (!matches(request)) return next.sendRequest(request);
      now += 1;
      most = Math.max(most, now);
      try {
        for (let count = 0; count < TURNS; count += 1) await turn();
        return await next.sendRequest(request);
      } finally {
        now -= 1;
      }
    },
  };
}
