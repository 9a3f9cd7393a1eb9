/**
 * Every name that the engine writes beside the values and the names of a model, and why neither can spell it.
 *
 * A value comes into a key only through `lib/define/keys/key-template.ts`, which writes `!` as `!21` and other characters as `!` and their
 * hexadecimal digits. So `!` before anything but two of the digits 0 to 9 and a to f is never of a value. A template may have a `!` between its
 * fields only where no row key of the engine can follow from it: see `validate/key-overlap.ts`.
 */

/**
 * Row keys in the tables of an app. The name of a fence and of its mark is one of the heads and the id of the move, which begins with
 * `MOVE_HEAD`: `~own_!m…`. Earlier releases had ids without it, and values can spell their names: see `storage/fence-rows.ts`.
 */
export const FENCE_HEAD = '~own_';
export const MARK_HEAD = '~open_';
export const MOVE_HEAD = '!m';
/** Between the row key of an entity and the name of its further row. */
export const FURTHER_ROW = '!-';

/** The table of the engine's own state. No entity has it, and nothing in it is found by a value but by a hash of the value. */
export const SYSTEM_TABLE = 'system';

/** Partition keys of the system table; those with a hyphen at the end begin others. */
export const SYSTEM_PARTITIONS = {
  slots: 'slots',
  registries: 'slots-',
  record: 'model',
  secrets: 'secrets',
  revoked: 'revoked-grants',
  requests: 'requests-',
  visitors: 'visitors',
  blocked: 'blocked',
  verify: 'verify',
  follow: 'follow',
  indexReads: 'index-reads',
  orphans: 'orphans',
  health: 'health',
  searches: 'search-foreign',
  restore: 'restore',
  drill: 'backup-drill',
  load: 'bulk-load',
  copied: 'copied',
} as const;

/** Row keys of the system table. Beside the first two are rows with the names of entities, which are letters and digits. */
export const SYSTEM_ROWS = {
  accounts: '~accounts',
  containers: '~containers',
  owned: 'owned',
  mover: 'mover',
  copy: 'model',
  secret: 'continuation',
  position: 'position',
  probe: 'probe',
  restored: 'restore',
  drilled: 'drilled',
  verified: 'verified',
} as const;

/** Begin the row keys in a table of totals. Only totals of one entity are in such a table. */
export const TOTAL_HEADS = { total: 't_', contribution: 'c_' } as const;

/** The values of `EntityType` in rows that are not entities of the model, and have no dot, as those of further rows have. */
export const ROW_TYPES = {
  list: 'list',
  tombstone: 'tombstone',
  placeholder: 'placeholder',
  poison: 'poison',
  /** In tables of one entity, whose row keys tell them from its copies: an entity may have these names. */
  claim: 'claim',
  total: 'total',
  /** In the system table. */
  slots: 'slots',
  accounts: 'accounts',
  containers: 'containers',
  mover: 'mover',
  model: 'model',
  requests: 'requests',
  visitors: 'visitors',
  blocked: 'blocked',
  revoked: 'revoked',
  orphans: 'orphans',
  verify: 'verify',
  follow: 'follow',
  search: 'search-foreign',
  restore: 'restore',
  drill: 'backup-drill',
  verification: 'backup-verification',
  load: 'bulk-load',
  copied: 'copied',
} as const;

/** Properties, or what they begin with. The name of a field begins with a lower-case letter. */
export const PROPERTIES = [
  'EntityType',
  'EntityVersion',
  'WriteId',
  'Incarnation',
  'SourcePartition',
  'SourceRow',
  'Carried',
  'Claim',
  'Confirmed',
  'DenormalizedTo',
  'FurtherRows',
  'Leaving',
  'Left',
  'Members',
  'MembersBlob',
  'MovedTo',
  'MovingFrom',
  'Values',
  'Amounts',
  'Writers',
  'CountsBlob',
  'Count',
  'Blob_',
  'Part2_',
] as const;

/** Tables, containers and queues that a model cannot declare. A name with the prefix of an instance has the prefix before it. */
export const OWN_TABLES = [SYSTEM_TABLE, 'poison', 'operations'] as const;
export const OWN_CONTAINERS = ['large', 'uploads', 'audit', 'period-archives', 'backup'] as const;
export const OWN_QUEUES = ['index-changes', 'transfers'] as const;

/** Each name of the engine that is a key, the beginning of one, or between two parts of one. */
export const KEY_NAMES: readonly string[] = [
  FENCE_HEAD,
  MARK_HEAD,
  MOVE_HEAD,
  FURTHER_ROW,
  FENCE_HEAD + MOVE_HEAD,
  MARK_HEAD + MOVE_HEAD,
  ...Object.values(SYSTEM_PARTITIONS),
  ...Object.values(SYSTEM_ROWS),
  ...Object.values(TOTAL_HEADS),
];

/** All of them. */
export const ENGINE_NAMES: readonly string[] = [
  ...new Set([
    ...KEY_NAMES,
    ...Object.values(ROW_TYPES),
    ...PROPERTIES,
    ...OWN_TABLES,
    ...OWN_CONTAINERS,
    ...OWN_QUEUES,
  ]),
];
