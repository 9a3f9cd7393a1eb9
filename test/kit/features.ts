import { blobOf } from '../../lib/features/data-series/data-series.ts';
import { deleteSeries, increment, readSeries, setCounts } from '../../lib/features/data-series/series-counts.ts';
import { instantsOf, readSpan, slotsBetween } from '../../lib/features/data-series/series-span.ts';
import { copiesOf } from '../../lib/features/denormalization/denormalization.ts';
import { open, seal } from '../../lib/features/encrypted-properties/encrypted-properties.ts';
import { expireEntities } from '../../lib/features/expiry/expiry.ts';
import { features } from '../../lib/features/features.ts';
import { rollPeriods } from '../../lib/features/high-volume-delete/high-volume-delete.ts';
import { listPeriodArchives } from '../../lib/features/high-volume-delete/period-archive.ts';
import { settleMember } from '../../lib/features/index-entities/index-entities.ts';
import {
  ARRIVALS_CONTAINER,
  acceptFile,
  announceFile,
  describeAttachment,
  putAttachment,
  readAttachment,
  removeAttachment,
} from '../../lib/features/large-entities/attachment.ts';
import { readTotal } from '../../lib/features/totals/read-totals.ts';

/** Series (lib/features/data-series). */
export const featureSeries = {
  blobOf,
  deleteSeries,
  increment,
  instantsOf,
  readSeries,
  readSpan,
  setCounts,
  slotsBetween,
} as const;

/** Files of entities (lib/features/large-entities). */
export const featureFiles = {
  ARRIVALS_CONTAINER,
  acceptFile,
  announceFile,
  describeAttachment,
  putAttachment,
  readAttachment,
  removeAttachment,
} as const;

/** The other features (lib/features). */
export const featureUpkeep = {
  copiesOf,
  expireEntities,
  features,
  listPeriodArchives,
  open,
  readTotal,
  rollPeriods,
  seal,
  settleMember,
} as const;
