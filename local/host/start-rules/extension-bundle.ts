import type { HostedFunction } from '../load-app.ts';

/** The real host has the extension of queues from a bundle, and does not start without it. */
export function findMissingBundle(
  functions: readonly HostedFunction[],
  { hasExtensionBundle }: { readonly hasExtensionBundle: boolean },
): string[] {
  const queue = functions.find(({ trigger }) => trigger.type === 'queueTrigger');
  return queue && !hasExtensionBundle
    ? [`The function ${queue.name} has a queue trigger, so host.json needs an extensionBundle with id and version.`]
    : [];
}
