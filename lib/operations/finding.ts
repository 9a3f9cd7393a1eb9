import { z } from 'zod';

/** What a check found that does not agree: keys, and no other values. */
export const Finding = z.object({
  what: z.enum([
    'missing',
    'wrong',
    'left over',
    'taken',
    'count',
    'copied fields',
    'lost list',
    'lost blob',
    'on its way',
    'refused',
  ]),
  of: z.string().describe('The index, field or attachment, or the entity, that it is about'),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  reason: z.string().optional().describe('Why a row that a client wrote is not shown'),
  repaired: z.boolean(),
});
export type Finding = z.infer<typeof Finding>;

/** The same for a caller who may not read the entity: the key of an index row has fields in it. */
export const VisibleFinding = Finding.partial({ partition: true, row: true });

/** Something that looks wrong, and how it is put right; without `repair` nobody can. */
export interface Suspicion extends Omit<Finding, 'repaired'> {
  /** Answers false where a writer came between. */
  readonly repair?: () => Promise<boolean>;
}

/** What operators are told of some rows that were checked, or of which an index was built. */
export const Findings = z.object({ looked: z.int(), findings: z.array(VisibleFinding) });
