import { formatCount, plural } from '../ui/format.ts';

/** What one request cost. */
export interface Cost {
  readonly method: string;
  /** Below the API root, with the query; of storage, the URL without its signature. */
  readonly path: string;
  readonly status: number;
  /** Storage transactions, from `Server-Timing`. */
  readonly transactions: number;
  /** From the request to the headers of the response. */
  readonly milliseconds: number;
}

export interface Measured<Result> {
  readonly result: Result;
  readonly costs: readonly Cost[];
}

interface Work {
  readonly costs: Cost[];
  readonly page: string;
}

/**
 * Measures requests by the signal that they carry, so that concurrent calls have separate costs. A request belongs to the page
 * that was open when it was sent; a request of measured work, to the page that was open when the work began.
 */
export function createMeter(root: string) {
  const works = new WeakMap<AbortSignal, Work>();
  const listeners = new Map<(cost: Cost) => void, string>();
  let open = '';

  const measuredFetch: typeof fetch = async (input, init) => {
    const since = performance.now();
    const url = String(input);
    const work = init?.signal ? works.get(init.signal) : undefined;
    const page = work?.page ?? open;
    let status = 0;
    let transactions = 0;
    try {
      const response = await fetch(input, init);
      status = response.status;
      const counted = /desc="(\d+) transaction/.exec(response.headers.get('server-timing') ?? '')?.[1];
      transactions = url.startsWith(root) ? Number(counted ?? 0) : 1;
      return response;
    } finally {
      const path = url.startsWith(root) ? url.slice(root.length) : url.replace(/\?.*/, '');
      const milliseconds = Math.round(performance.now() - since);
      const cost = { method: init?.method ?? 'GET', path, status, transactions, milliseconds };
      work?.costs.push(cost);
      for (const [listener, of] of listeners) if (of === page) listener(cost);
    }
  };

  return {
    fetch: measuredFetch,
    async measure<Result>(
      work: (signal: AbortSignal) => Promise<Result>,
      outer?: AbortSignal,
    ): Promise<Measured<Result>> {
      // Each call has a signal of its own, even if the caller has one.
      const { signal } = new AbortController();
      const combined = outer ? AbortSignal.any([signal, outer]) : signal;
      const costs: Cost[] = [];
      works.set(combined, { costs, page: open });
      return { result: await work(combined), costs };
    },
    onCost(page: string, listener: (cost: Cost) => void): () => void {
      open = page;
      listeners.set(listener, page);
      return () => void listeners.delete(listener);
    },
  };
}

export function sumTransactions(costs: readonly Cost[]): number {
  return costs.reduce((sum, { transactions }) => sum + transactions, 0);
}

/** `2 requests, 5 transactions, 12 ms`. */
export function formatCosts(costs: readonly Cost[]): string {
  const milliseconds = costs.reduce((sum, cost) => sum + cost.milliseconds, 0);
  const requests = costs.length === 1 ? '' : `${formatCount(costs.length)} requests, `;
  return `${requests}${plural(sumTransactions(costs), 'transaction')}, ${formatCount(milliseconds)} ms`;
}
