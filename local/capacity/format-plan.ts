import { format, formatDollars, type Plan } from './plan.ts';

/** The plan as Markdown, which is as readable on a terminal. */
export function formatPlan({ loads, requests, limits, spreads, costs, ...plan }: Plan, measured: Measured): string {
  const total = costs.reduce((sum, { amount }) => sum + amount, 0);
  const [first] = limits;
  return [
    formatTable(
      ['Entity', 'Stored', 'Reads a second', 'Writes a second', 'Transactions of a read', 'of a create', 'Measured'],
      loads.map(({ load, read, write }) => [
        load.entity.name,
        format(load.count),
        format(load.reads),
        format(load.writes),
        format(read),
        format(write),
        measured.get(load.entity.name)?.toString() ?? 'not',
      ]),
    ),
    formatTable(
      ['Needed', ''],
      [
        [
          'Requests a second to tables, queues, blobs',
          [requests.tables, requests.queues, requests.blobs].map(format).join(', '),
        ],
        ['Storage accounts', format(plan.accounts)],
        ['Queues of intents', format(plan.queues)],
        ['Function instances', format(plan.instances)],
        ['of them at work on average, and billed', format(plan.busy)],
      ],
    ),
    formatTable(
      ['Rows', 'Table', 'Entities a second', 'Partitions needed', 'Partitions of the key'],
      spreads.map(({ what, table, load, needed, partitions, fields }) => [
        what,
        table,
        format(load),
        format(needed),
        partitions === undefined ? `one for each ${fields.join(' and ')}` : format(partitions),
      ]),
    ),
    formatTable(
      ['Limit', 'Used', 'Target', 'Share of the target'],
      limits.map(({ what, used, limit, unit }) => [
        what,
        `${format(used)} ${unit}`,
        format(limit),
        `${format((used / limit) * 100)} %`,
      ]),
    ),
    first
      ? `The first limit is ${first.what}: it is reached at ${format(first.limit / first.used)} times this load.${plan.accounts > 1 ? ' docs/accounts.md says how an app uses several storage accounts.' : ''}`
      : 'No limit is used.',
    formatTable(
      ['Cost of a month', 'US dollars'],
      [
        ...costs.map(({ what, amount }) => [what, formatDollars(amount)]),
        ['**together**', `**${formatDollars(total)}**`],
      ],
    ),
  ].join('\n\n');
}

/** A table in Markdown. */
export function formatTable(head: readonly string[], body: readonly (readonly string[])[]): string {
  const toLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [toLine(head), `|${'---|'.repeat(head.length)}`, ...body.map(toLine)].join('\n');
}

/** The transactions of a create by entity, as docs/internals/patterns.md reports them. */
type Measured = ReadonlyMap<string, number>;

/** Reads the measured creates from the text of docs/internals/patterns.md. */
export function readMeasured(page: string): Measured {
  const rows = page.matchAll(/`POST \/api\/([a-z][a-z0-9]*)` \| 201 [^\n]*?` \| (\d+) \|/g);
  return new Map([...rows].map(([, entity = '', transactions]) => [entity, Number(transactions)]));
}
