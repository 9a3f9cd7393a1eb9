import { z } from 'zod';
import type { HostedFunction } from '../load-app.ts';

const Duration = z.object({ seconds: z.number() });
const MaxRetryCount = z.int().min(-1);
/** The library rejects negative durations itself. */
const RetryPolicy = z.discriminatedUnion('retryStrategy', [
  z.object({ retryStrategy: z.literal('fixedDelay'), maxRetryCount: MaxRetryCount, delayInterval: Duration }),
  z
    .object({
      retryStrategy: z.literal('exponentialBackoff'),
      maxRetryCount: MaxRetryCount,
      minimumInterval: Duration,
      maximumInterval: Duration,
    })
    .refine(({ minimumInterval, maximumInterval }) => minimumInterval.seconds <= maximumInterval.seconds, {
      path: ['minimumInterval'],
      message: 'expected at most maximumInterval',
    }),
]);

/** `ValidateRetryOptions` in Utility.cs. The local host checks the policy, and retries nothing. */
export function findRetryErrors(functions: readonly Pick<HostedFunction, 'name' | 'metadata'>[]): string[] {
  return functions.flatMap(({ name, metadata: { retryOptions } }) => {
    const { error } = RetryPolicy.optional().safeParse(retryOptions);
    if (!error) return [];
    const list = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
    return [`The function ${name} has an invalid retry policy: ${list}.`];
  });
}
