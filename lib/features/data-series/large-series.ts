import type { Entity } from '../../define/declaration/entity.ts';
import type { Feature } from '../../define/declaration/feature.ts';
import { blobLength } from '../../storage/blobs.ts';
import { readRow } from '../../storage/rows.ts';
import { blobOf } from './series-blob.ts';

/** Large entities pattern for data series: the counts that a row cannot hold are in a blob. See series-blob.ts. */
export const largeSeries: Feature<Entity> = {
  name: 'large series',
  isUsed: ({ series }) => series?.overflow !== undefined,
  *validate({ access: { own } }) {
    if (own)
      yield 'a series with slots.overflow cannot be granted (access.own), because a grant opens rows and not their blobs. Remove slots.overflow or access.own.';
  },
  check: {
    /** A blob that is lost cannot be restored, so the finding has no repair. */
    async entity({ storage }, _entity, { address, only }) {
      if (only !== undefined) return [];
      const blob = blobOf(await readRow(storage, address));
      if (!blob || (await blobLength(storage, blob)) !== undefined) return [];
      return [{ kind: 'lost-blob', of: blob.container, ...address }];
    },
  },
};
