import { ROW_TYPES } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { commandLine } from '../../command-line.ts';
import { isInBlob } from '../../define/codec/entity-codec.ts';
import type { ListForm } from '../../define/declaration/projection.ts';
import { type Action, type Address, type Row, readRow, tryAction } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import { requireOwn } from '../shared-tables.ts';
import { announceText, BlobGone, dropText, loadText, storeText } from './text-blobs.ts';

/**
 * Index entities pattern: a row lists the entities that share a value. A list that does not fit into one property is stored
 * in a blob with a unique name. The row refers to the blob, so the row's ETag covers the list. In memory the row always has
 * its members.
 *
 * A list is lost if its row was restored without its blob or was changed by hand. A lost list must not look empty, so reads
 * and writes throw. The consistency check empties the list and then adds the members.
 */

/** The `EntityType` of a list's row. */
export const LIST = ROW_TYPES.list;
/** One string property: 64 KiB of UTF-16. */
const MAX_LIST_LENGTH = 32_768;
const READ_ATTEMPTS = 8;

/** The members of a list's row, in order. */
export function membersOf(row: Row | undefined): string[] {
  const members = parseProperty(row?.properties.Members);
  return Array.isArray(members) ? members.filter((member) => typeof member === 'string') : [];
}

/** True if the row is a list whose members cannot be read. */
function isLostList({ properties }: Row): boolean {
  return properties.EntityType === LIST && !Array.isArray(parseProperty(properties.Members));
}

/** True if the members are in a blob, which a range query does not read. */
export function isLongList({ properties }: Row): boolean {
  return properties.MembersBlob !== undefined;
}

/** The action, under the row's ETag, that adds and removes members; undefined if nothing changes. */
function listAction(
  row: Row | undefined,
  rowKey: string,
  change: { add: readonly string[]; remove: readonly string[] },
): Action | undefined {
  requireOwn(row, 'a list');
  const before = membersOf(row);
  const members = new Set(before);
  for (const member of change.remove) members.delete(member);
  for (const member of change.add) members.add(member);
  if (members.size === before.length && before.every((member) => members.has(member))) return undefined;
  const properties = { EntityType: LIST, Members: JSON.stringify([...members].sort()) };
  // An empty list stays as a row, because a delete inside a transaction cannot be conditional.
  if (!row) return { kind: 'insert', row: rowKey, properties };
  return { kind: 'replace', row: rowKey, properties, etag: row.etag };
}

/** Reads a row that may be a list, with its members. A blob takes a second transaction. Throws `needs-repair` for a lost list. */
export async function readList(storage: Storage, address: Address): Promise<Row | undefined> {
  const row = await readAnyList(storage, address);
  if (!row || !isLostList(row)) return row;
  throw new RowkeyError(
    'needs-repair',
    `A list of the table ${address.table} is lost: ${commandLine('verify', '<entity> --repair')} makes it anew.`,
  );
}

/** Reads a list. Returns a lost list without its members. */
async function readAnyList(storage: Storage, address: Address): Promise<Row | undefined> {
  let before: string | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const row = await readRow(storage, address);
    const blob = blobIn(row);
    if (!row || !blob) return row;
    try {
      return { ...row, properties: { ...row.properties, Members: await loadText(storage, blob) } };
    } catch (error) {
      if (!(error instanceof BlobGone) || attempt === READ_ATTEMPTS) throw error;
      // If a writer replaced the list since its row was read, the row has another ETag.
      if (row.etag === before) return row;
      before = row.etag;
    }
  }
}

/** Replaces a lost list by an empty one. False if the list changed concurrently. */
async function emptyLostList(storage: Storage, address: Address): Promise<boolean> {
  const row = await readAnyList(storage, address);
  if (!row || !isLostList(row)) return true;
  const properties = { EntityType: LIST, Members: '[]' };
  const emptied = { kind: 'replace', row: address.row, properties, etag: row.etag } as const;
  return tryAction(storage, address, await toStoredList(storage, address, { action: emptied, former: row }));
}

/** Returns the action for a list. Members that do not fit into the row are written to a blob, and the blob of the former row is announced. */
async function toStoredList(
  storage: Storage,
  address: Address,
  { action, former }: { readonly action: Action; readonly former: Pick<Row, 'properties'> | undefined },
): Promise<Action> {
  if (action.kind !== 'merge' && former?.properties.MembersBlob !== undefined) {
    const replaced = blobIn(former);
    if (replaced) await announceText(storage, address, replaced);
  }
  if (!('properties' in action)) return action;
  const { Members: text, ...properties } = action.properties;
  if (typeof text !== 'string' || text.length <= MAX_LIST_LENGTH) return action;
  const MembersBlob = JSON.stringify(await storeText(storage, address, 'members', text));
  return { ...action, properties: { ...properties, MembersBlob } };
}

/** Deletes the blob of a replaced list, if it has one. */
async function dropList(storage: Storage, list: Pick<Row, 'properties'>): Promise<void> {
  const blob = blobIn(list);
  if (blob) await dropText(storage, blob);
}

function blobIn(row: Pick<Row, 'properties'> | undefined) {
  const blob = parseProperty(row?.properties.MembersBlob);
  return isInBlob(blob) ? blob : undefined;
}

/** Undefined for text that is not JSON. */
function parseProperty(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** How lists are stored, for the engine. */
export const LIST_FORM: ListForm = {
  has: ({ properties }) => properties.EntityType === LIST,
  change: listAction,
  members: (row) => (row.properties.EntityType === LIST ? membersOf(row) : []),
  read: readList,
  readAny: readAnyList,
  complete: async (storage, row) => (isLongList(row) ? readAnyList(storage, row) : row),
  write: toStoredList,
  drop: dropList,
  isLost: isLostList,
  restore: emptyLostList,
};
