import { ACCOUNT_WORKS } from './operators.ts';
import { TRAP_ENDS, TRAP_REQUESTS } from './world/network.ts';

/** What generated worlds of any model have to reach. If they do not, change the plan of worlds and not this list. */
export const SITUATIONS: readonly string[] = [
  ...['lost', 'replyLost', 'late', 'held', 'slow', 'throttled', 'failed'].map((fate) => `request ${fate}`),
  ...TRAP_REQUESTS.map((request) => `trap at: ${request}`),
  ...TRAP_ENDS.map((end) => `trap: ${end}`),
  'trap after another',
  'request right behind another',
  'request right behind an operator',
  'process killed',
  'process paused',
  'account away',
  'account added',
  'list',
  ...['verify', 'reindex', 'rewrap', 'poison'].map((what) => `page of ${what}`),
  'release beside an earlier one',
  ...['operator: balance', 'operator: rotate', 'message that cannot succeed'],
  ...['import: done', 'import: died', 'import: stands still', 'import: busy', 'import: row duplicate-key'],
  'row changed by hand',
  'operator killed during move',
  'successor of an operator',
  ...['backup: snapshot', 'backup: snapshot is continued', 'backup: carry', 'backup: lines that wait'],
  ...['backup: change without a line', 'backup: retention is over', 'backup: row of a dropped table', 'trap: slow'],
  ...['backup: restore', 'backup: restore is continued', 'backup: another key'],
  ...['all', 'entity', 'partition', 'tombstones', 'finished', 'undone', 'rekeyed'].map((what) => `restored: ${what}`),
  ...['prefix', 'account', 'two accounts', 'three accounts'].map((place) => `restored to: ${place}`),
  ...new Set(ACCOUNT_WORKS.map((work) => `operator: ${work}`)),
];

/** What worlds with rules on rows have to reach. */
export const RULED_SITUATIONS: readonly string[] = [
  'page of another caller',
  'block of an archive damaged',
  'rows of another program',
  'user: read something',
  ...['archive ok', 'archive forbidden', 'archive operation-failed'].map((what) => `user: ${what}`),
  ...['move ok', 'move operation-failed', 'update ok', 'update forbidden'].map((what) => `user: ${what}`),
  'transact forbidden',
];

/** So many worlds reach each situation. */
export const WITHIN_SEEDS = 200;
