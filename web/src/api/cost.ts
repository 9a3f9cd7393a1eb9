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

/**
 * Measures requests by the signal that they carry, so that concurrent calls have separate costs. A call that passes another
 * signal is reported to the listeners only.
 */
export function createMeter(root: string) {
  const sinks = new WeakMap<AbortSignal, Cost[]>();
  const listeners = new Set<(cost: Cost) => void>();

  const measuredFetch: typeof fetch = async (input, init) => {
    const since = performance.now();
    const url = String(input);
    const present = [...listeners];
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
      if (init?.signal) sinks.get(init.signal)?.push(cost);
      for (const listener of present) if (listeners.has(listener)) listener(cost);
    }
  };

  return {
    fetch: measuredFetch,
    async measure<Result>(
      work: (signal: AbortSignal) => Promise<Result>,
      outer?: AbortSignal,
    ): Promise<Measured<Result>> {
      // Its own signal for each call, even if the caller has one.
      const { signal } = new AbortController();
      const combined = outer ? AbortSignal.any([signal, outer]) : signal;
      const costs: Cost[] = [];
      sinks.set(combined, costs);
      return { result: await work(combined), costs };
    },
    /** Requests already sent are not reported: another page asked for them. */
    onCost(listener: (cost: Cost) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** `2 requests, 5 transactions, 12 ms`. */
export function formatCosts(costs: readonly Cost[]): string {
  const sum = (field: 'transactions' | 'milliseconds') => costs.reduce((total, cost) => total + cost[field], 0);
  const requests = costs.length === 1 ? '' : `${formatCount(costs.length)} requests, `;
  return `${requests}${plural(sum('transactions'), 'transaction')}, ${formatCount(sum('milliseconds'))} ms`;
}
