import type { Values } from '../../base/values.ts';

/** When entities are deleted: after days without a change, or at an instant of their own. */
export type Expiry<Field extends string = string> = (
  | { readonly days: number; readonly clock: Field; readonly at?: undefined }
  | { readonly at: Field; readonly days?: undefined; readonly clock?: undefined }
) & {
  /** The table in which the timer finds what is due: by default `{table}expiry`. No other entity may use it. */
  readonly table?: string;
};

interface Expiring {
  readonly expiry?: Expiry | undefined;
}

/** The field, if there is one, that a read needs to know whether an entity has expired. */
export function expiryFields({ expiry }: Expiring): readonly string[] {
  return expiry?.at === undefined ? [] : [expiry.at];
}

/**
 * True from the instant on at which the entity expires. For callers it is then absent, although its rows stay until the timer deletes
 * them. An entity without a value for the field never expires.
 */
export function hasExpired({ expiry }: Expiring, values: Values, now: number): boolean {
  const at = expiry?.at === undefined ? undefined : values[expiry.at];
  return typeof at === 'string' && Date.parse(at) <= now;
}
