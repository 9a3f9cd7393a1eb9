import { formatCount, plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import type { Walk } from './use-walk.ts';

interface WalkProgressProps {
  readonly walk: Walk;
  readonly verb: string;
  /** True if the walk deletes what it finds. */
  readonly isCleanUp?: boolean;
}

/** How far a check, a repair, a build or a clean-up is. The number of rows is not known before the end. */
export function WalkProgress({ walk, verb, isCleanUp = false }: WalkProgressProps) {
  const { isRunning, isFinished, checked, findings, transactions, error } = walk;
  const repaired = findings.filter((finding) => finding.repaired).length;
  const left = findings.length - repaired;
  const found = isCleanUp
    ? `${formatCount(repaired)} deleted${left > 0 ? `, ${formatCount(left)} left` : ''}`
    : `${plural(findings.length, 'finding')}${repaired > 0 ? `, ${formatCount(repaired)} repaired` : ''}`;
  const done = `${plural(checked, 'row')} ${verb}: ${found}.`;
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
        <Notice kind={left > 0 ? 'bad' : 'good'}>
          {isFinished ? '' : 'Stopped. '}
          {done} {transactions > 0 && <small>{plural(transactions, 'transaction')}</small>}
        </Notice>
      )}
    </>
  );
}
