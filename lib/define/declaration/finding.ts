import { z } from 'zod';
import type { Values } from '../../base/values.ts';
import type { Address } from '../../storage/rows.ts';

/**
 * An inconsistency that the consistency check found. It has keys and no other values. The kinds:
 *
 *   missing       an index has no entry for the entity, or a further row of the entity is lost
 *   stale         an index entry or a further row differs from the entity, or a unique value is claimed and not confirmed
 *   orphaned      an index entry or a further row belongs to no entity
 *   conflict      another entity with the same unique value holds the row of the index entry
 *   wrong-count   a maintained count is not the number of counted entities
 *   wrong-total   a total is not the sum of its contributions
 *   stale-copy    copies of fields of another entity are stale
 *   not-derived   a derived field is not what its function returns
 *   failed-check  the fields of an entity do not pass a check of the declaration
 *   dangling      a field refers to no entity
 *   lost-list     the blob of a long list is missing
 *   lost-blob     the blob of a large field or an attachment is missing
 *   unreadable    the stored form of an encrypted field or an attachment was changed outside the API
 *   unfinished    a move or an archive has not finished
 *   unreachable   no request finds the row of the entity, because its values give another key
 *   invalid       a row does not match the declaration: a client wrote it, or it was changed outside the API
 */
export const Finding = z.object({
  kind: z.enum([
    'missing',
    'stale',
    'orphaned',
    'conflict',
    'wrong-count',
    'wrong-total',
    'stale-copy',
    'dangling',
    'not-derived',
    'failed-check',
    'lost-list',
    'lost-blob',
    'unreadable',
    'unfinished',
    'unreachable',
    'invalid',
  ]),
  of: z.string().describe('The index, field, attachment or entity that is inconsistent'),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  reason: z.string().optional().describe('Why a row is invalid'),
  repaired: z.boolean(),
});
export type Finding = z.infer<typeof Finding>;

/** Omits the keys for a caller who may not read the whole entity, because index keys contain field values. */
export const VisibleFinding = Finding.partial({ partition: true, row: true });

/** A possible finding, with its repair if there is one. */
export interface Suspicion extends Omit<Finding, 'repaired'> {
  /** Returns false if a concurrent write prevented the repair. */
  readonly repair?: () => Promise<boolean>;
  /** True if the repair drops values that may be stored nowhere else. Only an operator asks for it. */
  readonly losesValues?: boolean;
  /** The member of a list. */
  readonly member?: string | undefined;
  /** The row with the sum, or of the entity with the stale copies or the wrong further row, which is checked again after the repair. */
  readonly sum?: Address | undefined;
  /** Returns the values that the entity has after the repair of a stale copy. */
  readonly corrects?: (values: Values) => Values;
}

/** Leaves out what a finding is repaired with. */
export function toFinding(
  { repair: _, losesValues: __, member: ___, sum: ____, corrects: _____, ...found }: Suspicion,
  repaired: boolean,
): Finding {
  return { ...found, repaired };
}

/** The result of a page of checked or indexed rows. */
export const Findings = z.object({
  checked: z.int(),
  findings: z.array(VisibleFinding),
  foreign: z.int().optional().describe('Rows of other programs'),
});
