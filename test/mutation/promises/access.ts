import type { Cut } from '../../model/rules.ts';

export const ACCESS: readonly Cut[] = [
  {
    without: 'A repetition of a change is accepted from every reader',
    file: 'lib/access/limit.ts',
    edits: [
      [
        'limitsOf.get(of)?.update?.some(({ after }) => isWithin(after, values)) ?? true',
        'limitsOf.has(of) || values !== undefined',
      ],
    ],
    test: ['test/rules/transitions.test.ts', 'PATCH > accepts a repetition that changes nothing, and only that'],
    finds: 'expected 200 to be 403',
  },
  {
    without: "A caller's own entity without the field reaches every row",
    file: 'lib/access/limit.ts',
    edits: [
      [
        '? undefined : [{ field, operator: values',
        "? (term as { is?: string }).is === 'own' ? [] : undefined : [{ field, operator: values",
      ],
    ],
    test: ['test/rules/own-without-a-value.test.ts', 'a caller without a value reaches no row without one'],
    finds: 'expected [ 200, 200 ] to deeply equal [ 404, 404 ]',
  },
  {
    without: 'A signature is valid for hours',
    recommendations: ['p-sas-limited'],
    file: 'lib/access/grant.ts',
    edits: [['export const VALID_FOR_MS = 15 * MINUTE_MS;', 'export const VALID_FOR_MS = 150 * MINUTE_MS;']],
    test: ['test/lib/access/grant.test.ts', 'allows reading for fifteen minutes, with tolerance for slow clocks'],
    finds: "expected { table: 'employees', …(6) } to deeply equal",
  },
];
