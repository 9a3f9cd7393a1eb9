import { useEffect, useReducer } from 'preact/hooks';
import { Notice } from '../ui/notice.tsx';
import { useApp } from './context.ts';

/** How actions ended whose pages were left meanwhile, with links back. */
export function LateOutcomes() {
  const { outcomes } = useApp();
  const [, render] = useReducer<number, void>((turn) => turn + 1, 0);
  useEffect(() => outcomes.subscribe(render), [outcomes]);
  return (
    <div class="late">
      {outcomes.list().map(({ id, action, error, page }) => (
        <Notice key={id} kind={error === undefined ? 'good' : 'bad'}>
          <strong>{action}</strong> (<a href={page.address}>{page.title}</a>):{' '}
          {error === undefined ? 'done.' : `failed. ${error instanceof Error ? error.message : String(error)}`}{' '}
          <button type="button" class="secondary outline" onClick={() => outcomes.dismiss(id)}>
            Dismiss
          </button>
        </Notice>
      ))}
    </div>
  );
}
