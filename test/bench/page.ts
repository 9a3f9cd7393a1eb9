import type { Growth } from './growth-report.ts';
import { type Result, SAME_WORK } from './measure.ts';
import { formatTable } from './report.ts';

/** docs/internals/benchmarks.md. */

interface Measured extends Growth {
  readonly environment: string;
  readonly results: readonly Result[];
  /** The chapter. */
  readonly backup: string;
}

const ASIDE = `The sides alternate in one run and share the machine with the load and the emulator, so only the ratios can be compared with another run, on the same machine: they differ between machines, as the product has more code than plain code. To compare two commits, run both.`;

export function formatPage({ environment, results, settling: { inline, queue }, chapter, backup }: Measured): string {
  return `# Benchmarks

\`npm run bench\` writes this page. A figure is a ratio to plain code that does the same storage calls: **median** (least–most of the rounds; median of the first side : of the second).
${ASIDE}

- ${environment}.
- One Azurite serves all sides. CPU is that of the serving process, without the emulator and the load.
- **plain**: a bare \`node:http\` handler with the SDKs as they are, without tokens, validation, roles or the audit log of each read. **plain function**: the same code as an Azure function, under the host of the product.

| Command | What it does |
|---|---|
| \`npm run bench\` | everything below, in about ten minutes |
| \`npm run bench -- --quick\` | the comparisons, in less than three minutes, to the console |
| \`npm run bench -- --quick --check\` | the same, and fails if a ratio of p50, throughput or CPU was not recorded, or is worse than the recorded one by more than its spread (at least a tenth), twice in a row. CI runs it |
| \`npm run bench -- --record\` | records the ratios in [recorded.json](../../test/bench/recorded.json), with \`--only\` those of a few comparisons |
| \`npm run bench -- --only GET\` | the comparisons whose name contains the text; \`growth\` for the charts, \`backup\` for its chapter |
| \`npm run bench -- --redraw\` | draws the charts below from [their points](../../test/bench/recorded-charts.json), which a run records |
| \`npm run bench -- --million\` | growth up to a million entities as well, in about half an hour |

## The product to a bare handler

${formatTable(results, ['product', 'plain'])}

- GET: one transaction on each side. The product verifies a token, checks roles, decodes, and presents the entity.
- POST: an employee with three indexes in its partition, two unique values and a list in other partitions. Both sides make the same storage calls; the plain code makes them one after the other.
- Import: \`npm run import\` through the API, to a loop of transactions of 100 rows. Reconcile: the queue function, to a function that reads the entity and writes the entry, without a reminder for the case that its process dies.
- Index entry behind its write: the time from the entity's timestamp to that of its index entry, if the queue settles it. By default the writer does so before it
  returns, and nothing is behind. *Callers* is the number of writes that begin in a second.
- GET beside settled writes: the emulator also serves these writes, each of which takes more storage calls of the product than of the plain code. The emulator handles one call
  after the other, so reads wait for writes there. The plain code of [the same work](#the-product-to-plain-code-that-does-the-same-work) waits for the same writes.

## The product to plain code that does the same work

Import, Reconcile and GET beside settled writes again. Here the plain code also does what the product does for its promises: the import writes the four properties that the product adds to a row, and appends a record of each row to a blob.
The function reads the entity again and deletes a reminder: 5 storage calls for a message instead of 3. Beside settled writes, the plain function reads while the product settles its
writes on the same emulator.

${formatTable(results, ['product', SAME_WORK])}

What these promises take of the plain code itself, as a ratio of the same work to the same storage calls without it:

${formatTable(
  results.filter(({ name }) => !name.startsWith('GET')),
  [SAME_WORK, 'plain'],
)}

## The product to the same code as an Azure function

The host and the library \`@azure/functions\` are a part of each request. This table leaves them out.

${formatTable(results, ['product', 'plain function'])}

## Index entries settled by the writer or by the queue

A writer settles up to 16 index entries itself before it returns, and leaves more to the queue. One POST of an employee with three remote index entries, without the audit log:

| | Transactions of the caller | Of the queue function | Total |
|---|---:|---:|---:|
| Settled by the writer | ${inline.caller} | ${inline.queue} | ${inline.caller + inline.queue} |
| Left to the queue | ${queue.caller} | ${queue.queue} | ${queue.caller + queue.queue} |

The queue to the writer, with the CPU time of the queue function counted, and its transactions run after the round. Executions of the queue function are billed in addition:

${formatTable(results, ['product, queue', 'product'])}

${chapter}
${backup}
## What a team may use instead

[Alternatives](benchmarks/alternatives.md): the SDK's samples, a repository for Nest, and ElectroDB, measured by \`npm run bench -- --compare\`.

## Transactions of each pattern

[Patterns](patterns.md) lists the transactions of every operation, measured in a run, with the least that is possible and what a design without the pattern costs.
`;
}
