import type { Entity } from '../define/declaration/entity.ts';
import type { Feature } from '../define/declaration/feature.ts';
import { compoundKey } from './compound-key.ts';
import { dataSeries } from './data-series.ts';
import { denormalization } from './denormalization.ts';
import { encryptedProperties } from './encrypted-properties.ts';
import { expiry } from './expiry.ts';
import { fanOut } from './fan-out.ts';
import { highVolumeDelete } from './high-volume-delete.ts';
import { indexEntities } from './index-entities.ts';
import { interPartitionIndexes } from './inter-partition-index.ts';
import { intraPartitionIndexes } from './intra-partition-index.ts';
import { largeEntities } from './large-entities.ts';
import { largeSeries } from './large-series.ts';
import { lookup } from './lookup.ts';
import { maintainedCount } from './maintained-count.ts';
import { references } from './references.ts';
import { maintainedTotals } from './totals.ts';
import { verticalSplit } from './vertical-split.ts';
import { wideEntities } from './wide-entities.ts';

/** All patterns, in the order in which the engine calls them. */
export const patterns: readonly Feature<Entity>[] = [
  denormalization,
  fanOut,
  maintainedCount,
  intraPartitionIndexes,
  interPartitionIndexes,
  indexEntities,
  maintainedTotals,
  compoundKey,
  encryptedProperties,
  largeEntities,
  dataSeries,
  largeSeries,
  verticalSplit,
  wideEntities,
  highVolumeDelete,
  expiry,
  references,
  lookup,
];
