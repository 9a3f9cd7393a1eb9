import { type Entity, isNumeric, keyPath, type Values } from '../api/model.ts';
import type { ReferredRow } from '../api/referred-row.ts';
import { toAddress } from '../app/router.ts';

/** The key of the row that an address names, or undefined if it has another number of fields. */
export function parseRowKey(entity: Entity, path: readonly string[]): Values | undefined {
  const { key } = entity;
  if (path.length !== key.fields.length) return undefined;
  const pairs = key.fields.map((field, position) => {
    const text = path[position] ?? '';
    return [field, isNumeric(entity, field) && text !== '' ? Number(text) : text] as const;
  });
  return Object.fromEntries(pairs);
}

/** The page of a row. */
export function rowAddress(entity: Entity, values: Values): string {
  return toAddress(['entities', entity.name, 'rows', ...keyPath(entity, values)]);
}

/** The list of the row's partition. */
export function partitionAddress({ name, key }: Entity, values: Values): string {
  const given = key.partition.fields.map((field) => [`key.${field}`, String(values[field])] as const);
  return toAddress(['entities', name, 'rows'], Object.fromEntries(given));
}

/** The page of a referred row. */
export function referredAddress(target: Entity, { index, key }: ReferredRow): string {
  const rows = ['entities', target.name, 'rows'];
  if (index === undefined) return toAddress([...rows, ...keyPath(target, key)]);
  const given = Object.entries(key).map(([field, value]) => [`key.${field}`, String(value)] as const);
  return toAddress(rows, { by: index, ...Object.fromEntries(given) });
}
