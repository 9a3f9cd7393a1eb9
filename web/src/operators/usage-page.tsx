import { useApp } from '../app/context.ts';
import { ScrollRegion } from '../ui/scroll-region.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { formatCount, formatDollars, formatInstant } from './format.ts';
import { read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';

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
              <div>
                <dt>Storage transactions</dt>
                <dd>{formatCount(transactions)}</dd>
              </div>
              <div>
                <dt>Estimated cost</dt>
                <dd>{formatDollars(dollars)}</dd>
              </div>
            </dl>
            <p class="muted">
              Since {formatInstant(since)}, counted by the process of the app that responded. With several instances, or
              after a restart, it is a part of the day. The estimate uses list prices of US regions.
            </p>
            <ScrollRegion label="Transactions by pattern">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Pattern</th>
                    <th scope="col">Operation</th>
                    <th scope="col" class="number">
                      Transactions
                    </th>
                    <th scope="col">Share</th>
                    <th scope="col" class="number">
                      Cost
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {patterns.map((one) => (
                    <tr key={`${one.pattern} ${one.operation}`}>
                      <td>{one.pattern === 'none' ? 'no pattern' : one.pattern}</td>
                      <td>
                        <code>{one.operation}</code>
                      </td>
                      <td class="number">{formatCount(one.transactions)}</td>
                      <td>
                        <meter
                          value={one.transactions}
                          max={transactions}
                          aria-label={`Share of ${one.pattern}, ${one.operation}`}
                        />
                      </td>
                      <td class="number">{formatDollars(one.dollars)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </ScrollRegion>
          </>
        )}
      </Content>
    </>
  );
}
