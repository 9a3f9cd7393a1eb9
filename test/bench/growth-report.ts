import type { Chart, Panel } from '../../local/scale/charts.ts';
import { type Grown, measureGrowth } from './growth.ts';
import { openGrowthWorld } from './growth-world.ts';
import { type ListGrown, measureLists } from './lists.ts';
import { type Figure, medianOf, type Result } from './measure.ts';
import { drawCharts, recordCharts } from './recorded-charts.ts';
import { formatLine, formatRatio } from './report.ts';
import { countSettling } from './settling.ts';
import { measureWriters, type Written } from './writers.ts';

/** The chapter on growth, and its charts. */

const SIZES = [1_000, 10_000, 100_000];
const MILLION = 1_000_000;
const LISTS = [10, 1_000, 20_000];
const WRITERS = [1, 4, 16, 64];

export interface Growth {
  readonly chapter: string;
  readonly settling: Awaited<ReturnType<typeof countSettling>>;
}

/** Measures, records and draws the charts, and writes the chapter. */
export async function reportGrowth({ isMillion }: { readonly isMillion: boolean }): Promise<Growth> {
  const world = await openGrowthWorld();
  try {
    const settling = await countSettling(String(world.storage.connectionString));
    const written = await measureWriters(world, WRITERS);
    const lists = await measureLists(world, LISTS);
    const grown = await measureGrowth(world, isMillion ? [...SIZES, MILLION] : SIZES);
    for (const { result } of [...grown, ...lists, ...written]) console.log(formatLine(result));
    await recordCharts(toCharts({ grown, lists, written }));
    await drawCharts();
    return { settling, chapter: formatChapter({ grown, lists, written }) };
  } finally {
    await world.stop();
  }
}

interface Measured {
  readonly grown: readonly Grown[];
  readonly lists: readonly ListGrown[];
  readonly written: readonly Written[];
}

function toCharts({ grown, lists, written }: Measured): Record<string, Chart> {
  return {
    growth: {
      title: 'Time of one operation by the number of entities',
      x: { name: 'entities', values: [...new Set(grown.map(({ entities }) => entities))] },
      y: 'ms (median)',
      panels: toPanels(grown, ({ operation }) => operation, 'p50'),
    },
    lists: {
      title: 'One more member of a list in another partition',
      x: { name: 'members', values: lists.map(({ members }) => members) },
      y: '',
      panels: [
        ...toPanels(lists, () => 'ms (median)', 'p50'),
        {
          title: 'kB sent and received',
          lines: [{ name: 'product', values: lists.map(({ bytes }) => bytes / 1_000) }],
        },
      ],
    },
    writers: {
      title: 'Writes a second by the number of writers',
      x: { name: 'writers', values: WRITERS },
      y: 'writes a second',
      panels: toPanels(written, ({ target }) => target, 'perSecond'),
    },
  };
}

/** A panel for each title, with a line of the product and one of the plain code. */
function toPanels<Item extends { readonly result: Result }>(
  items: readonly Item[],
  titleOf: (item: Item) => string,
  figure: Figure,
): Panel[] {
  return [...Map.groupBy(items, titleOf)].map(([title, all]) => ({
    title,
    lines: ['product', 'plain'].map((name) => ({
      name,
      values: all.map(({ result }) => medianOf(result.rounds[name] ?? [], figure)),
    })),
  }));
}

function formatChapter({ grown, lists, written }: Measured): string {
  const sizes = [...new Set(grown.map(({ entities }) => entities))];
  const operations = [...Map.groupBy(grown, ({ operation }) => operation)];
  const toRow = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  const head = (cells: readonly string[]) => `${toRow(cells)}\n|---|${'---|'.repeat(cells.length - 1)}`;
  const ratio = ({ rounds: { product = [], plain = [] } }: Result, figure: Figure) =>
    formatRatio(product, plain, figure);
  const count = (value: number) => value.toLocaleString('en');
  return `## Growth

One partition with an index in it and a unique index in another table, filled to each size by transactions of 100 rows. A cell has the ratio of the product to plain code that does the same storage calls, at that size.
Transactions do not depend on the size. The emulator scans a whole table for a range query, which Table storage does not do, so both sides of such a query grow with the table here. The emulator also keeps the
keys of a table in a sorted array, in which an insertion into a million rows takes longer, for both sides.

![Time of one operation by the number of entities](benchmarks/growth.svg)

${head(['Operation', 'Transactions', ...sizes.map((size) => `${count(size)} entities, ms`)])}
${operations.map(([operation, all]) => toRow([operation, [...new Set(all.map(({ transactions }) => transactions))].join(', '), ...all.map(({ result }) => ratio(result, 'p50'))])).join('\n')}

### One more member of a list

The create of an entity whose index is a list in another partition. The whole list is written again: in its row up to 32,768 characters, in a new blob above.

![One more member of a list in another partition](benchmarks/lists.svg)

${head(['Members', 'Transactions', 'kB sent and received', 'Time, ms'])}
${lists.map(({ members, transactions, bytes, result }) => toRow([count(members), transactions, (bytes / 1_000).toFixed(1), ratio(result, 'p50')])).join('\n')}

### Writers of one thing

Writers of one process. The plain code reads, changes and writes under the ETag, and starts again after a conflict.

![Writes a second by the number of writers](benchmarks/writers.svg)

${head(['Written', ...WRITERS.map((writers) => `${writers} writer${writers === 1 ? '' : 's'}, a second`)])}
${[...Map.groupBy(written, ({ target }) => target)].map(([target, all]) => toRow([target, ...all.map(({ result }) => ratio(result, 'perSecond'))])).join('\n')}
`;
}
