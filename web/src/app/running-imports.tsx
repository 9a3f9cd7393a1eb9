import { isRunning } from '../transfer/import-runs.ts';
import { toAddress } from './router.ts';
import { useImports } from './use-imports.ts';

/** The imports whose page was left, with links back. */
export function RunningImports({ path }: { readonly path: string }) {
  const runs = useImports().filter((run) => isRunning(run) && path !== `entities/${run.entity}/transfer`);
  if (runs.length === 0) return null;
  return (
    <div class="running" role="status">
      {runs.map(({ entity, name, progress }) => (
        <p key={entity}>
          The import of {name} continues while this tab is open ({Math.floor((progress?.share ?? 0) * 100)} %).{' '}
          <a href={toAddress(['entities', entity, 'transfer'])}>Show it</a>
        </p>
      ))}
    </div>
  );
}
