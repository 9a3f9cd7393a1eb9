import { randomBytes } from 'node:crypto';
import { FENCE_HEAD, MARK_HEAD, MOVE_HEAD } from '../base/engine-names.ts';

/**
 * The rows of a move in the partitions of an app: the fence and the mark, which have no properties. `~own_` and `~open_` begin keys of values,
 * too. But the id of a move begins with `!m`, which no value can spell, so the key alone tells a fence.
 *
 * An earlier release gives ids without it, and writes fences of any id in the same way: processes of both obey each other's fences. Rows of
 * such a move are told from entities by the form of the id and because they have no properties, and an entity always has some.
 */

/** An id of an earlier release: a time and random digits. */
const FORMER_ID = /^[\da-z]{8}[\da-f]{8}$/;

/** Returns an id that no other move has. It is in row keys, and hyphens separate it in partition keys. */
export function newMoveId(): string {
  return MOVE_HEAD + Date.now().toString(36) + randomBytes(4).toString('hex');
}

/** The id as operators see and write it: a shell gives `!` a meaning. */
export function nameOfMove(id: string): string {
  return id.replace('!', '');
}

/** True for a move that an earlier release has begun. */
export const isOfFormerRelease = (id: string): boolean => !id.startsWith(MOVE_HEAD);

export const fenceOf = (move: string): string => FENCE_HEAD + move;
export const markOf = (move: string): string => MARK_HEAD + move;

interface StoredRow {
  readonly row: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** True for the fence or the mark of a move. `properties` are all of the row, unless the key alone decides. */
export function isFenceRow({ row, properties }: StoredRow): boolean {
  const id = idIn(row);
  if (id === undefined) return false;
  if (id.startsWith(MOVE_HEAD)) return true;
  // A projection may return null for a property that the row lacks.
  return FORMER_ID.test(id) && Object.values(properties).every((value) => value === null || value === undefined);
}

/** True if `isFenceRow` needs the properties of a row with this key. */
export function isAmbiguous(row: string): boolean {
  return FORMER_ID.test(idIn(row) ?? '');
}

/** Has every key that begins as that of a fence or a mark, and others. */
export const FENCE_KEYS = { from: '~o', before: '~p' };

/** True for a row of the app that moves of an earlier release left at the source, because its key begins as that of a fence. */
export function isLeftByFormerRelease(row: StoredRow): boolean {
  return idIn(row.row) !== undefined && !isFenceRow(row);
}

/** The rest of a key that begins as that of a fence or a mark. */
function idIn(row: string): string | undefined {
  if (row[0] !== '~') return undefined;
  const head = [FENCE_HEAD, MARK_HEAD].find((each) => row.startsWith(each));
  return head && row.slice(head.length);
}
