// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the edits are texts of code
import type { Cut } from '../../model/rules.ts';

export const HTTP: readonly Cut[] = [
  {
    without: 'A page goes on for any caller',
    file: 'lib/http/query.ts',
    edits: [['JSON.stringify([caller.subject, bound])', "JSON.stringify(['', bound])"]],
    test: ['test/rules/transacting.test.ts', 'a page goes on for the caller who got it alone'],
    finds: '"status": 200',
  },
  {
    without: 'A response says nothing of caches',
    recommendations: ['g-cache-lookups', 'd-vertical-cache'],
    file: 'lib/http/bind.ts',
    edits: [["    ...(maxAge ? { 'cache-control': `${kept}, max-age=${maxAge}` } : {}),\n", '']],
    test: ['test/lib/http/bind.test.ts', 'lets a client cache an entity for as long as the entity declares'],
    finds: 'expected { Object (etag) } to deeply equal { …(2) }',
  },
  {
    without: 'The health route asks the first account alone',
    recommendations: ['s-manage'],
    file: 'lib/http/routes/health-route.ts',
    edits: [['Promise.all(accountsOf(all).map(probe)),', 'Promise.all(accountsOf(all).slice(0, 1).map(probe)),']],
    test: [
      'test/lib/http/routes/health-route.test.ts',
      'names the storage account that is away, while the others respond',
    ],
    finds: 'to match object { status: 200, body: { …(2) } }',
  },
  {
    without: 'A range of a file is the whole file',
    recommendations: ['c-blob-tuning'],
    file: 'lib/http/byte-range.ts',
    edits: [['  if (!isRange) return undefined;', "  if (!isRange || etag !== '') return undefined;"]],
    test: ['test/scenarios/files-and-secrets.test.ts', 'is read in ranges, for as long as it is the same file'],
    finds: "to deeply equal [ 206, 'bytes 8-15/70'",
  },
];
