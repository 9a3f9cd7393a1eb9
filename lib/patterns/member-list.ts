import { isInBlob } from '../define/reference.ts';
import { RowkeyError } from '../errors.ts';
import { type Action, type Address, type Row, readRow, tryAction } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';
import { BlobGone, dropText, loadText, storeText } from './large-entities.ts';

/**
 * Index entities pattern: a row that lists what shares a value. A list that is longer than one property holds is in a blob,
 * written once under a name of its own, and the row says which: so the row's ETag stands for the list wherever it is. In the
 * engine a list's row has its members either way.
 *
 * A list may be lost: its row was restored and its blob was not, or it was changed by hand. Who only looked would see an empty
 * list, so readers and writers are refused; an audit makes it an empty one first, and then finds who is missing in it.
 */

/** What `EntityType` is in the row of a list. */
export const LIST = 'list';
/** One string property: 64 KiB of UTF-16. */
const MAX_LIST_LENGTH = 32_768;
const READ_ATTEMPTS = 8;

/** The members that a list's row holds, in order. */
export function membersOf(row: Row | undefined): string[] {
  const members = parsed(row?.properties.Members);
  return Array.isArray(members) ? members.filter((member) => typeof member === 'string') : [];
}

/** Whether a row is a list whose members cannot be told. */
export function isLostList({ properties }: Row): boolean {
  return properties.EntityType === LIST && !Array.isArray(parsed(properties.Members));
}

/**
 * The action that makes a list hold `add` and not `remove`, conditional on the list being as it was read;
 * undefined when it does already.
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
  const properties = { EntityType: LIST, Members: JSON.stringify([...members].sort()) };
  // An emptied list stays as an empty row: a conditional delete inside a transaction does not exist.
  if (!row) return { kind: 'insert', row: rowKey, properties };
  return { kind: 'replace', row: rowKey, properties, etag: row.etag };
}

/** Reads a row that may be a list, with its members where they are in a blob: then two transactions. Throws `needs-repair`. */
export async function readList(storage: Storage, address: Address): Promise<Row | undefined> {
  const row = await readAnyList(storage, address);
  if (!row || !isLostList(row)) return row;
  throw new RowkeyError(
    'needs-repair',
    `A list of the table ${address.table} is lost: npm run verify, with --repair, makes it anew.`,
  );
}

/** The same, of a list that may be lost. */
export async function readAnyList(storage: Storage, address: Address): Promise<Row | undefined> {
  let before: string | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const row = await readRow(storage, address);
    const blob = blobIn(row);
    if (!row || !blob) return row;
    try {
      return { ...row, properties: { ...row.properties, Members: await loadText(storage, blob) } };
    } catch (error) {
      if (!(error instanceof BlobGone) || attempt === READ_ATTEMPTS) throw error;
      // Where a writer has replaced the list since its row was read, the row has another ETag by now.
      if (row.etag === before) return row;
      before = row.etag;
    }
  }
}

/** Makes a list that is lost an empty one. Answers false where it has changed meanwhile. */
export async function emptyLostList(storage: Storage, address: Address): Promise<boolean> {
  const row = await readAnyList(storage, address);
  if (!row || !isLostList(row)) return true;
  const properties = { EntityType: LIST, Members: '[]' };
  return tryAction(storage, address, { kind: 'replace', row: address.row, properties, etag: row.etag });
}

/** The same action, with a list that is too long for the row in a blob. */
export async function toStoredList(storage: Storage, address: Address, action: Action): Promise<Action> {
  if (!('properties' in action)) return action;
  const { Members: text, ...properties } = action.properties;
  if (typeof text !== 'string' || text.length <= MAX_LIST_LENGTH) return action;
  const MembersBlob = JSON.stringify(await storeText(storage, address, 'members', text));
  return { ...action, properties: { ...properties, MembersBlob } };
}

/** Deletes the blob of a list, where it has one, which nothing refers to any more. */
export async function dropList(storage: Storage, list: Pick<Row, 'properties'> | undefined): Promise<void> {
  const blob = blobIn(list);
  if (blob) await dropText(storage, blob);
}

function blobIn(row: Pick<Row, 'properties'> | undefined) {
  const blob = parsed(row?.properties.MembersBlob);
  return isInBlob(blob) ? blob : undefined;
}

/** Undefined for what is no JSON. */
function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
