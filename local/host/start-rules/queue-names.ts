import type { HostedFunction, QueueTrigger } from '../load-app.ts';

const NAME = /^(?!.*--)[a-z\d][a-z\d-]{1,61}[a-z\d]$/;

/** The real host folds the name to lower case first (`ValidateQueueName` in QueueClientExtensions.cs). */
export function findQueueNameErrors(functions: readonly HostedFunction<QueueTrigger>[]): string[] {
  return functions
    .filter(({ trigger }) => !NAME.test(trigger.queueName.toLowerCase()))
    .map(
      ({ name, trigger }) =>
        `The function ${name} has the invalid queue name ${JSON.stringify(trigger.queueName)}: a name has 3 to 63 letters, digits and single dashes between them.`,
    );
}
