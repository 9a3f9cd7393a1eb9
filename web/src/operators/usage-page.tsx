import { useApp } from '../app/context.ts';
import { formatCount, formatDollars, formatInstant } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { read } from './operations.ts';
import { Content, Figure, PageHead } from './page-head.tsx';

export interface Usage {
  readonly since: string;
  readonly transactions: number;
  readonly dollars: number;
  readonly patterns: readonly {
    readonly pattern: string;
    readonly operation: string;
    readonly transactions: number;
    readonly dollars: number;
  }[];
  readonly grants: readonly { readonly entity: string; readonly issued: number }[];
}

/** Which patterns caused the storage transactions of today, and about what they cost. */
export function UsagePage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Usage>(api, 'usage', signal), 'usage');
  return (
    <>
      <PageHead title="Usage and cost" loaded={loaded} />
      <Content loaded={loaded} what="the usage">
        {({ since, transactions, dollars, patterns }) => (
          <>
            <dl class="figures">
              <Figure title="Storage transactions" value={formatCount(transactions)} />
              <Figure title="Estimated cost" value={formatDollars(dollars)} />
            </dl>
            <p class="muted">
              Since {formatInstant(since)}, counted by the process of the app that responded. With several instances, or
              after a restart, it is a part of the day. The estimate uses list prices of US regions.
            </p>
            <Table
              label="Transactions by pattern"
              items={patterns}
              keyOf={({ pattern, operation }) => `${pattern} ${operation}`}
              columns={[
                {
                  title: 'Pattern',
                  isHeader: true,
                  cell: ({ pattern }) => (pattern === 'none' ? 'no pattern' : pattern),
                },
                { title: 'Transactions', isNumber: true, cell: (one) => formatCount(one.transactions) },
                { title: 'Cost', isNumber: true, cell: (one) => formatDollars(one.dollars) },
                { title: 'Operation', cell: ({ operation }) => <code>{operation}</code> },
                {
                  title: 'Share',
                  cell: (one) => (
                    <meter
                      value={one.transactions}
                      max={transactions}
                      aria-label={`Share of ${one.pattern}, ${one.operation}`}
                    />
                  ),
                },
              ]}
            />
          </>
        )}
      </Content>
    </>
  );
}
