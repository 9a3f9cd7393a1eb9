import { useEffect, useState } from 'preact/hooks';
import { type Cost, formatCosts } from '../api/cost.ts';
import { ScrollRegion } from '../ui/scroll-region.tsx';
import { useApp } from './context.ts';

const MOST_SHOWN = 100;

/** What the requests of the current page cost, with each request on demand. */
export function CostBar({ path }: { readonly path: string }) {
  const { api } = useApp();
  const [costs, setCosts] = useState<readonly Cost[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page starts at zero
  useEffect(() => {
    setCosts([]);
    return api.onCost((cost) => setCosts((last) => [...last, cost]));
  }, [api, path]);
  return (
    <footer class="costs">
      <details>
        <summary>This page: {costs.length === 0 ? 'no requests' : formatCosts(costs)}</summary>
        <ScrollRegion label="Requests of this page">
          <table>
            <thead>
              <tr>
                <th scope="col">Request</th>
                <th scope="col">Status</th>
                <th scope="col">Transactions</th>
                <th scope="col">Time</th>
              </tr>
            </thead>
            <tbody>
              {costs.slice(-MOST_SHOWN).map((cost, position) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the list only grows
                <tr key={position}>
                  <td>
                    <code>
                      {cost.method} {decode(cost.path)}
                    </code>
                  </td>
                  <td>{cost.status || 'none'}</td>
                  <td>{cost.transactions}</td>
                  <td>{cost.milliseconds} ms</td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollRegion>
      </details>
    </footer>
  );
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
