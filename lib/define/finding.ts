import { z } from 'zod';

/** A row that disagrees with its entity. It has keys and no other values. */
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
  of: z.string().describe('The index, field, attachment or entity that is inconsistent'),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  reason: z.string().optional().describe('Why a row that a client wrote is not returned'),
  repaired: z.boolean(),
});
export type Finding = z.infer<typeof Finding>;

/** Without keys, for a caller who may not read the whole entity: index keys are made of fields. */
export const VisibleFinding = Finding.partial({ partition: true, row: true });

/** A possible finding, with its repair if there is one. */
export interface Suspicion extends Omit<Finding, 'repaired'> {
  /** Returns false if a concurrent write prevented the repair. */
  readonly repair?: () => Promise<boolean>;
}

/** The result of a page of checked or indexed rows. */
export const Findings = z.object({ looked: z.int(), findings: z.array(VisibleFinding) });
