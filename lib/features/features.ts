import type { Feature } from '../define/declaration/entity.ts';
import { compoundKey } from './compound-key/compound-key.ts';
import { dataSeries, largeSeries } from './data-series/data-series.ts';
import { denormalization } from './denormalization/denormalization.ts';
import { fanOut } from './denormalization/fan-out.ts';
import { encryptedProperties } from './encrypted-properties/encrypted-properties.ts';
import { expiry } from './expiry/expiry.ts';
import { highVolumeDelete } from './high-volume-delete/high-volume-delete.ts';
import { indexEntities } from './index-entities/index-entities.ts';
import { interPartitionIndexes } from './inter-partition-index/inter-partition-index.ts';
import { intraPartitionIndexes } from './intra-partition-index/intra-partition-index.ts';
import { largeEntities } from './large-entities/large-entities.ts';
import { lookup, lookupList } from './lookup/lookup.ts';
import { maintainedCount } from './maintained-count/maintained-count.ts';
import { references } from './references/references.ts';
import { maintainedTotals } from './totals/totals.ts';
import { verticalSplit } from './vertical-split/vertical-split.ts';
import { wideEntities } from './wide-entities/wide-entities.ts';

/** All features, in the order in which the engine calls them. */
export const features: readonly Feature[] = [
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

/** How features list all entities of an entity in one response. */
export const wholeLists = [lookupList];
