import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { RowkeyError } from '../../lib/base/errors.ts';
import { jsonText } from '../../lib/base/json-text.ts';
import type { Values } from '../../lib/base/values.ts';
import { validateKey } from '../../lib/define/codec/validation.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { ImportRow } from './csv-rows.ts';

/** A key takes about 250 bytes of memory. */
export const MAX_KEYS = 1_000_000;

/**
 * Omits a row whose key is that of one of the `maxKeys` rows before it, and calls `onBad`: the row would overwrite the earlier one. Counts
 * equal rows without a whole key: each is an entity of its own.
 */
export async function* onePerKey(
  entity: Entity,
  rows: AsyncIterable<ImportRow>,
  onBad: (line: number, reason: string) => void,
  maxKeys = MAX_KEYS,
): AsyncGenerator<ImportRow> {
  const lines = new LRUCache<string, number>({ max: maxKeys });
  const copies = new Map<string, number>();
  let round = 0;
  for await (const row of rows) {
    const key = readKey(entity, row);
    if (!key) {
      const content = hash('sha256', jsonText(row.values), 'base64');
      // A row is equal to none of another round.
      if (copies.size === maxKeys && !copies.has(content)) {
        copies.clear();
        round += 1;
      }
      const before = copies.get(content) ?? 0;
      copies.set(content, before + 1);
      yield { ...row, copy: `${round}-${before}` };
      continue;
    }
    const first = lines.get(key);
    if (first) onBad(row.line, `the key is that of line ${first}, and a key must be on one line only`);
    else {
      lines.set(key, row.line);
      yield row;
    }
  }
}

/** Returns the value of a field of a key, which may be computed from the row. Undefined for a row that the API rejects. */
export function readKeyField({ derived, defaults }: Entity, field: string, values: Values): unknown {
  try {
    return values[field] ?? (derived[field] ?? defaults[field])?.(values);
  } catch {
    // The values are not validated yet, and the model's function may expect valid ones.
    return undefined;
  }
}

/** Identifies the key. Undefined for a key that the API generates or rejects. */
export function readKey(entity: Entity, { values }: Pick<ImportRow, 'values'>): string | undefined {
  const fields = entity.keyFields.map((field) => [field, readKeyField(entity, field, values)] as const);
  if (fields.some(([, value]) => value === undefined)) return undefined;
  try {
    // The stored key, because a schema may change a value, such as to lower case.
    const key = validateKey(entity, Object.fromEntries(fields));
    return hash('sha256', JSON.stringify(entity.keyFields.map((field) => key[field])), 'base64');
  } catch (error) {
    if (error instanceof RowkeyError) return undefined;
    throw error;
  }
}
