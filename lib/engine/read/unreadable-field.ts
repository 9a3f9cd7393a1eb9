import { hash } from 'node:crypto';
import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { commandLine } from '../../command-line.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressIfAny } from '../../define/places/index-entries.ts';
import type { Address } from '../../storage/rows.ts';

/**
 * The error for a field whose stored value cannot be read. The message, which is logged, names the entity, the table and the mark of the
 * row, because keys may be personal data. `verify` prints the mark beside the keys.
 */
export function unreadableField(entity: Entity, field: string, values: Values): RowkeyError {
  const address = addressIfAny(entity, values);
  const where = address ? ` (table ${address.table}, row ${markOf(address)})` : '';
  return new RowkeyError('needs-repair', `"${field}" of an entity of ${entity.name} cannot be read${where}.`, {
    field,
  });
}

/** The error for a row whose values do not lead to its key, or cannot be upgraded. */
export function unreachableRow(entity: Entity, { table, partition, row }: Address): RowkeyError {
  const where = `table ${table}, row ${markOf({ table, partition, row })}`;
  const what = `A row of ${entity.name} is no entity of its declaration (${where}).`;
  return new RowkeyError('needs-repair', `${what} ${commandLine('verify', entity.name)} finds its key.`);
}

const LENGTH = 10;

/** Tells rows apart in a log. */
export function markOf({ table, partition, row }: Pick<Address, 'table' | 'partition' | 'row'>): string {
  return `#${hash('sha256', JSON.stringify([table, partition, row]), 'hex').slice(0, LENGTH)}`;
}
