import type { EntityDescription as Described, IndexDescription } from '../define/declaration/model-description.ts';

/** An entity of `GET /api/model` with its name, which begins its paths. */
export interface EntityDescription extends Described {
  readonly name: string;
}

/** An index or totals. */
export type RangesDescription = Pick<IndexDescription, 'fields' | 'ranges'>;
