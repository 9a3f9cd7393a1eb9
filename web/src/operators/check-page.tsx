import { useApp } from '../app/context.ts';
import type { PageProps } from '../app/page.ts';
import { toAddress } from '../app/router.ts';
import { Breadcrumb } from '../ui/breadcrumb.tsx';
import { formatInstant, plural } from '../ui/format.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { FindingsTable } from './findings-table.tsx';
import { type Items, read } from './operations.ts';
import { type Finding, useWalk } from './use-walk.ts';
import { WalkProgress } from './walk-progress.tsx';

interface Run {
  readonly startedAt: string;
  readonly finishedAt?: string;
  readonly checked: number;
  readonly found: number;
  readonly findings: readonly Finding[];
}

/** An entry of the list of checks. Without a start, no weekly check of the entity has run. */
interface ListedRun {
  readonly entity: string;
  readonly startedAt?: string;
}

/** The consistency check of an entity: the report of the week, a check now, and the repair. */
export function CheckPage({ open: { entity = '' } }: PageProps) {
  const { api } = useApp();
  const path = `verify/${encodeURIComponent(entity)}`;
  const weekly = useLoaded(async (signal) => {
    const { items } = await read<Items<ListedRun>>(api, 'verify', signal);
    // A report that does not exist would be an error in the console of the browser.
    const isStarted = items.some((each) => each.entity === entity && each.startedAt !== undefined);
    return { run: isStarted ? await read<Run>(api, path, signal) : undefined };
  }, path);
  const walk = useWalk();
  const repair = () => {
    if (confirm(`Repair ${entity}? Index entries, copies, lists and counts are made to agree with their entities.`))
      walk.start(`${path}?repair=true`);
  };
  const run = weekly.result?.run;
  return (
    <>
      <Breadcrumb ancestors={[{ title: 'Consistency', address: toAddress(['operators', 'checks']) }]} />
      <h1>Consistency of {entity}</h1>
      <div class="actions">
        <button type="button" disabled={walk.isRunning} onClick={() => walk.start(path)}>
          Check now
        </button>
        <button type="button" class="secondary" disabled={walk.isRunning} onClick={repair}>
          Check and repair
        </button>
      </div>
      <WalkProgress walk={walk} verb="compared" />
      <FindingsTable findings={walk.findings} label="Findings of this check" />
      <h2>Last weekly check</h2>
      <ErrorNotice error={weekly.error} />
      {run ? (
        <>
          <p>
            {run.finishedAt
              ? `Finished ${formatInstant(run.finishedAt)}`
              : `In progress since ${formatInstant(run.startedAt)}`}
            : {plural(run.checked, 'row')} compared, {plural(run.found, 'finding')}.
          </p>
          <FindingsTable findings={run.findings} label="Findings of the weekly check" />
        </>
      ) : (
        <p class="muted">
          {weekly.isLoading ? 'Loading…' : weekly.error === undefined ? 'No weekly check has run yet.' : ''}
        </p>
      )}
    </>
  );
}
