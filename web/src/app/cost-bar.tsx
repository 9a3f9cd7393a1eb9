import { useLayoutEffect, useState } from 'preact/hooks';
import { type Cost, formatCosts } from '../api/cost.ts';
import { formatCount } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { useApp } from './context.ts';

const MOST_SHOWN = 100;

/** What the requests of the current page cost, with each request on demand. */
export function CostBar({ path }: { readonly path: string }) {
  const { api } = useApp();
  const [costs, setCosts] = useState<readonly Cost[]>([]);
  // A layout effect runs before the effects in which the new page sends its first requests.
  useLayoutEffect(() => {
    setCosts([]);
    return api.onCost(path, (cost) => setCosts((last) => [...last, cost]));
  }, [api, path]);
  return (
    <footer class="costs">
      <details>
        <summary>This page: {costs.length === 0 ? 'no requests' : formatCosts(costs)}</summary>
        <Table
          label="Requests of this page"
          items={costs.slice(-MOST_SHOWN)}
          columns={[
            {
              title: 'Request',
              cell: ({ method, path: requested }) => (
                <code>
                  {method} {decode(requested)}
                </code>
              ),
            },
            { title: 'Status', isNumber: true, cell: ({ status }) => status || 'none' },
            { title: 'Transactions', isNumber: true, cell: ({ transactions }) => formatCount(transactions) },
            { title: 'Time', isNumber: true, cell: ({ milliseconds }) => `${formatCount(milliseconds)} ms` },
          ]}
        />
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
