import { type Attributes, metrics } from '@opentelemetry/api';

/** What operators count. `infra/queries` and the alerts ask for these names. */

/** A storage transaction is what is billed; retries are some, too. */
export function countTransaction(attributes: { readonly pattern: string; readonly operation: string }): void {
  counter('rowkey.storage.transactions', 'Storage transactions, retries included', attributes);
}

/** A response of storage. `status` is the HTTP status, of a transaction that of its first action; `none` without a response. */
export function countResponse(attributes: {
  readonly service: string;
  readonly resource: string;
  readonly status: string;
}): void {
  counter('rowkey.storage.responses', 'Responses of storage, by table, queue or container and status', attributes);
}

/** A message that cannot succeed. */
export function countPoison(attributes: { readonly queue: string }): void {
  counter('rowkey.poison.recorded', 'Messages recorded as poison', attributes);
}

/** A signature given to a client. */
export function countGrant(attributes: { readonly entity: string }): void {
  counter('rowkey.grants.issued', 'Shared access signatures given to clients', attributes);
}

/** A run of a timer that came to its end. */
export function countTimer(attributes: { readonly timer: string }): void {
  counter('rowkey.timer.completed', 'Runs of timers that came to their end', attributes);
}

/** The findings of the weekly consistency check, counted at each run until they are gone. */
export function countInconsistencies(attributes: { readonly entity: string }, found: number): void {
  counter('rowkey.verify.found', 'Inconsistent rows found by the consistency check', attributes, found);
}

/** How long after a write's announcement its indexes agreed. Queues tell it in whole seconds. */
export function recordReconcileLag(milliseconds: number): void {
  const options = {
    description: 'From the announcement of a write to indexes that agree with it',
    unit: 's',
    advice: { explicitBucketBoundaries: [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300] },
  };
  metrics
    .getMeter('rowkey')
    .createHistogram('rowkey.reconcile.lag', options)
    .record(Math.max(0, milliseconds) / 1_000);
}

/** A meter keeps its instruments by name; asked for at each use, as there is none before telemetry was started. */
function counter(name: string, description: string, attributes: Attributes, much = 1): void {
  metrics.getMeter('rowkey').createCounter(name, { description }).add(much, attributes);
}
