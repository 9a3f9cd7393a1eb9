import type { PipelinePolicy } from '@azure/core-rest-pipeline';

/** `Date` headers have whole seconds, rounded down. */
const RESOLUTION_MS = 1_000;

/** The clock of a service, known from the `Date` of its responses. */
interface ServiceClock {
  /** Learns from each response. */
  readonly policy: PipelinePolicy;
  /** The earliest time, in milliseconds, that the clock can show now. Undefined before the first response. */
  earliestTime(): number | undefined;
  /** The latest time, as `earliestTime`. */
  latestTime(): number | undefined;
}

/** Creates a clock that needs a local one only for the time since the last request, so a wrong local time does no harm. */
export function createServiceClock(now: () => number = Date.now): ServiceClock {
  let ahead: { readonly least: number; readonly most: number } | undefined;
  return {
    policy: {
      name: 'serviceClock',
      async sendRequest(request, next) {
        const sentAt = now();
        const response = await next(request);
        const date = Date.parse(response.headers.get('date') ?? '');
        // The service read its clock between the two.
        if (!Number.isNaN(date)) ahead = { least: date - now(), most: date + RESOLUTION_MS - sentAt };
        return response;
      },
    },
    earliestTime: () => ahead && now() + ahead.least,
    latestTime: () => ahead && now() + ahead.most,
  };
}
