import { useEffect, useRef, useState } from 'preact/hooks';
import { sumTransactions } from '../api/cost.ts';
import { useApp } from '../app/context.ts';
import { walk } from './operations.ts';

/** An inconsistency. Its keys are only there for a user who may read the whole entity. */
export interface Finding {
  readonly kind: string;
  readonly of: string;
  readonly table: string;
  readonly partition?: string;
  readonly row?: string;
  readonly reason?: string;
  readonly repaired: boolean;
}

interface Findings {
  readonly checked: number;
  readonly findings: readonly Finding[];
}

interface WalkState extends Findings {
  /** Storage transactions, once it has ended. */
  readonly transactions: number;
  readonly isRunning: boolean;
  readonly isFinished: boolean;
  readonly error: unknown;
}

export interface Walk extends WalkState {
  readonly start: (path: string) => void;
  readonly stop: () => void;
}

const NOTHING: WalkState = {
  isRunning: false,
  isFinished: false,
  error: undefined,
  checked: 0,
  findings: [],
  transactions: 0,
};

/** A consistency check, a repair or an index build, page by page. Leaving the page stops it after the page in progress. */
export function useWalk(onEnd: () => void = () => undefined): Walk {
  const { api } = useApp();
  const [state, setState] = useState(NOTHING);
  const controller = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => controller.current?.abort(), []);

  async function start(path: string): Promise<void> {
    const stopping = new AbortController();
    controller.current = stopping;
    setState({ ...NOTHING, isRunning: true });
    const onPage = (page: Findings) => {
      setState((last) => ({
        ...last,
        checked: last.checked + page.checked,
        findings: [...last.findings, ...page.findings],
      }));
      return !stopping.signal.aborted;
    };
    const end = (ended: Partial<WalkState>) => setState((last) => ({ ...last, ...ended, isRunning: false }));
    try {
      const { costs } = await api.measure((signal) => walk<Findings>(api, { path, signal, onPage }));
      end({ isFinished: !stopping.signal.aborted, transactions: sumTransactions(costs) });
    } catch (error) {
      end({ error });
    }
    onEnd();
  }

  return { ...state, start: (path: string) => void start(path), stop: () => controller.current?.abort() };
}
