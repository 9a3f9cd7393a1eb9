import { useEffect, useReducer } from 'preact/hooks';
import type { ImportRun } from '../transfer/import-runs.ts';
import { useApp } from './context.ts';

/** The imports of the session, rendered again after each change. */
export function useImports(): readonly ImportRun[] {
  const { imports } = useApp();
  const [, render] = useReducer<number, void>((turn) => turn + 1, 0);
  useEffect(() => imports.subscribe(render), [imports]);
  return imports.list();
}
