import { hash } from 'node:crypto';
import { ofAccount, unlessAway } from '../storage/errors.ts';
import { type Action, mostActions, type Row, readRow, submit, tryAction, trySubmit } from '../storage/rows.ts';
import { ACCOUNTS_PARTITION, SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Account, Accounts, Storage } from '../storage/storage.ts';

/**
 * Which model the guard has accepted and recorded, in a row of each of several accounts: a process with the same model starts while the account is
 * away that owns the record. A process that records a model,
 *
 * 1. reads the rows of the record,
 * 2. empties the copies in all accounts,
 * 3. writes the rows of all its entities under the ETags of the first step, also those that stay as they are,
 * 4. fills the copies, each if it is still as the second step left it,
 * 5. notes in the rows of the record that there are copies, so that a later start need not look.
 *
 * So a copy that has a model was filled after the last change of the record, whatever has crashed or is executed late: test/model/copies.ts
 * visits the interleavings. A release that knows no copies changes the record without emptying them. Its rows lack the note, so the next start
 * fills the copies again.
 *
 * A copy is in the partition of the account's own row, which a move neither copies nor deletes: an account whose slots have moved keeps its copy.
 */

const COPY = { table: SYSTEM_TABLE, partition: 'slots', row: 'model' } as const;
const RECORD = { table: SYSTEM_TABLE, partition: ACCOUNTS_PARTITION } as const;
/** The property of the note in a row of the record. */
const NOTE = 'Copied';

/** Describes a model by all that the guard compares of it. */
export function describeModel(parts: readonly object[]): string {
  const texts = parts.map((part) => JSON.stringify(part)).sort();
  return hash('sha256', texts.join('\n')).slice(0, 32);
}

/** True if the row of the record says that each account has a copy which describes the model. */
export function isNoted(row: Row | undefined, model: string): boolean {
  return row?.properties[NOTE] === model;
}

/** The note of a row, for a change of it after which the guard accepts all that it accepted before. */
export function noteOf({ properties }: Row): Readonly<Record<string, string>> {
  return typeof properties[NOTE] === 'string' ? { [NOTE]: properties[NOTE] } : {};
}

/** True if the first account that responds and has a copy says exactly this model. One point query of each account until then. */
export async function isCopied({ list }: Accounts, model: string): Promise<boolean> {
  for (const account of list) {
    const { result: row } = await unlessAway(ofAccount(account, readRow(account, COPY)));
    if (row) return row.properties.Model === model;
  }
  return false;
}

const copyOf = (model: string) => ({ row: COPY.row, properties: { EntityType: COPY.row, Model: model } });

/** Empties the copies of all accounts. Returns the ETag of each. Throws `storage-unavailable` if an account is away. */
export async function emptyCopies({ list }: Accounts): Promise<ReadonlyMap<Account, string>> {
  const empty = async (account: Account) => {
    const actions = [{ kind: 'upsert', ...copyOf('') }] as const;
    const etags = await ofAccount(account, submit(account, { ...COPY, actions, isRepeatable: true }));
    return [account, etags.get(COPY.row) ?? ''] as const;
  };
  return new Map(await Promise.all(list.map(empty)));
}

/**
 * Writes the rows of the record and fills the copies. `writes` has an action for each entity of the model, under the ETag that was read, and
 * nothing for the note. Returns `changed` if another process has changed the record meanwhile, and `overtaken` if one has emptied the copies.
 */
export async function recordWithCopies(
  storage: Storage & { readonly accounts: Accounts },
  model: string,
  writes: readonly Action[],
): Promise<'done' | 'changed' | 'overtaken'> {
  const emptied = await emptyCopies(storage.accounts);
  const etags = new Map<string, string>();
  for (let at = 0; at < writes.length; at += mostActions(storage)) {
    const actions = writes.slice(at, at + mostActions(storage));
    const written = await trySubmit(storage, { ...RECORD, actions });
    if (!written) return 'changed';
    for (const [row, etag] of written) etags.set(row, etag);
  }
  const fill = ([account, etag]: readonly [Account, string]) =>
    ofAccount(account, tryAction(account, COPY, { kind: 'replace', ...copyOf(model), etag }));
  const filled = await Promise.all([...emptied].map(fill));
  if (filled.includes(false)) return 'overtaken';
  const notes = [...etags].map(([row, etag]): Action => ({ kind: 'merge', row, properties: { [NOTE]: model }, etag }));
  for (let at = 0; at < notes.length; at += mostActions(storage))
    await trySubmit(storage, { ...RECORD, actions: notes.slice(at, at + mostActions(storage)) });
  return 'done';
}

/** Leaves a row of the record as it is, but for the note. */
export const touch = ({ row, etag }: Row): Action => ({ kind: 'merge', row, properties: { [NOTE]: '' }, etag });
