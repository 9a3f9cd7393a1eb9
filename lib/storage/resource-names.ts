/**
 * The names of tables, queues and containers in the storage account. The rest of the code uses the declared names: the clients
 * of `openStorage` add the prefix, so an app cannot reach a table, queue or container of another prefix.
 *
 * A table name has letters and digits only, so the digit 0 separates the prefix, which cannot contain it: the table `bx` of the
 * prefix `a` is never the table `x` of the prefix `ab`, and no table of a period, which ends in digits, begins another prefix.
 * The platform has containers that begin with `azure-`, `insights-` or `scm-`.
 */
export const PREFIX = /^(?!(azure|insights|scm)$)[a-z][a-z1-9]{0,19}$/;

/** The longest name of tables, queues and containers: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules#microsoftstorage */
export const MAX_NAME_LENGTH = 63;

/** The name of a table in the account, or the beginning of one. Without a prefix (`''`), the declared name. */
export function prefixTable(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}0${name}`;
}

/** The name of a queue, a container or a function with the prefix: `shop-transfers`. */
export function prefixWithHyphen(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}-${name}`;
}

/**
 * The date or month at the end of a period's table name. Metrics omit it, because every label value creates a time series.
 * A year is kept: one series a year is harmless, and other table names may end in four digits.
 */
export const PERIOD_SUFFIX = /\d{4}(0[1-9]|1[0-2])(\d{2})?$/;
