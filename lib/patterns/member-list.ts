import { RowkeyError } from '../errors.ts';
import type { Action, Row } from '../storage/rows.ts';

/** One string property: 64 KiB of UTF-16. */
const MAX_LIST_LENGTH = 32_768;

/** The members that a list row holds, in order. */
export function membersOf(row: Row | undefined): string[] {
  const text = row?.properties.Members;
  if (typeof text !== 'string') return [];
  const members: unknown = JSON.parse(text);
  return Array.isArray(members) ? members.filter((member) => typeof member === 'string') : [];
}

/**
 * The action that makes a list hold `add` and not `remove`, conditional on the list being as it was read;
 * undefined when it does already. Throws `too-large` when the list outgrows its row.
 */
export function listAction(
  row: Row | undefined,
  rowKey: string,
  change: { add: readonly string[]; remove: readonly string[] },
): Action | undefined {
  const before = membersOf(row);
  const members = new Set(before);
  for (const member of change.remove) members.delete(member);
  for (const member of change.add) members.add(member);
  if (members.size === before.length && before.every((member) => members.has(member))) return undefined;
  const text = JSON.stringify([...members].sort());
  if (text.length > MAX_LIST_LENGTH)
    throw new RowkeyError('too-large', `The list ${rowKey} has outgrown its row.`, {
      accepted: 'an inter-partition index with a row for each entity',
    });
  const properties = { EntityType: 'list', Members: text };
  // An emptied list stays as an empty row: a conditional delete inside a transaction does not exist.
  if (!row) return { kind: 'insert', row: rowKey, properties };
  return { kind: 'replace', row: rowKey, properties, etag: row.etag };
}
