import { type Attributes, metrics } from '@opentelemetry/api';
import { noteGrant, noteTransaction } from './usage.ts';

/** Metrics for operators. `infra/queries` and the alerts use these names. */

/** A storage transaction is the unit of billing; each retry is one. */
export function countTransaction(attributes: { readonly pattern: string; readonly operation: string }): void {
  noteTransaction(attributes);
  count('rowkey.storage.transactions', 'Storage transactions, retries included', attributes);
}

/** `status` is the HTTP status, `none` without a response. That of a transaction is the status of its first action. */
export function countResponse(attributes: {
  readonly service: string;
  readonly resource: string;
  readonly status: string;
}): void {
  count('rowkey.storage.responses', 'Responses of storage, by table, queue or container and status', attributes);
}

export function countPoison(attributes: { readonly queue: string }): void {
  count('rowkey.poison.recorded', 'Messages recorded as poison', attributes);
}

export function countGrant(attributes: { readonly entity: string }): void {
  noteGrant(attributes);
  count('rowkey.grants.issued', 'Shared access signatures issued to clients', attributes);
}

export function countTimer(attributes: { readonly timer: string }): void {
  count('rowkey.timer.completed', 'Completed timer runs', attributes);
}

/** `route` is the method with the template of the path, as a path has keys of entities. `status` is 500 if the handler throws. */
export function recordRequest(
  attributes: { readonly route: string; readonly status: string },
  milliseconds: number,
): void {
  record('rowkey.request.duration', 'Time from the start of a function to its response', attributes, milliseconds);
}

/** Findings of the weekly consistency check that it has not repaired, counted at each run of the week. */
export function countInconsistencies(attributes: { readonly entity: string }, found: number): void {
  count('rowkey.verify.found', 'Inconsistent rows found by the consistency check', attributes, found);
}

/** Entities whose copies of another entity's fields the queue has updated. */
export function countFanOut(attributes: { readonly entity: string }, updated: number): void {
  count('rowkey.fanout.updated', 'Entities with new copies of fields of another entity', attributes, updated);
}

/** The time from a write's announcement until its indexes agree. Queues measure whole seconds. */
export function recordReconcileLag(milliseconds: number): void {
  record('rowkey.reconcile.lag', 'Time from the announcement of a write until its indexes agree', {}, milliseconds);
}

/** Looks the counter up at each use, because there is no meter before telemetry starts. A meter caches it by name. */
function count(name: string, description: string, attributes: Attributes, much = 1): void {
  metrics.getMeter('rowkey').createCounter(name, { description }).add(much, attributes);
}

function record(name: string, description: string, attributes: Attributes, milliseconds: number): void {
  const advice = { explicitBucketBoundaries: [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300] };
  const histogram = metrics.getMeter('rowkey').createHistogram(name, { description, unit: 's', advice });
  histogram.record(Math.max(0, milliseconds) / 1_000, attributes);
}
