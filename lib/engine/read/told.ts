import { RowkeyError } from '../../base/errors.ts';
import type { Entity } from '../../define/declaration/entity.ts';

/**
 * Throws `invalid-input` for an entity that clients or another program write: the backup has what they wrote in snapshots only, so it does not know the state at an
 * instant.
 */
export function requireTold({ name, isWrittenByClients, existing }: Entity): void {
  if (!isWrittenByClients && !existing) return;
  const [who, they] = existing ? ['Another program writes', 'it'] : ['Clients write', 'they'];
  const what = `${who} ${name}, and a backup has what ${they} wrote in snapshots only.`;
  throw new RowkeyError('invalid-input', what, { accepted: 'a restore to another place' });
}
