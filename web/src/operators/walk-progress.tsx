import { plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import type { Walk } from './use-walk.ts';

/** How far a check, a repair or a build is. The number of rows is not known before the end. */
export function WalkProgress({ walk, verb }: { readonly walk: Walk; readonly verb: string }) {
  const { isRunning, isFinished, checked, findings, transactions, error } = walk;
  const repaired = findings.filter((finding) => finding.repaired).length;
  const done = `${plural(checked, 'row')} ${verb}: ${plural(findings.length, 'finding')}${repaired > 0 ? `, ${repaired} repaired` : ''}.`;
  return (
    <>
      <ErrorNotice error={error} />
      {isRunning && (
        <div class="walk">
          <progress aria-label="In progress" />
          <p role="status">{done}</p>
          <button type="button" class="secondary outline" onClick={walk.stop}>
            Stop
          </button>
        </div>
      )}
      {!isRunning && (isFinished || checked > 0) && (
        <Notice kind={findings.length > repaired ? 'bad' : 'good'}>
          {isFinished ? '' : 'Stopped. '}
          {done} {transactions > 0 && <small>{plural(transactions, 'transaction')}</small>}
        </Notice>
      )}
    </>
  );
}
