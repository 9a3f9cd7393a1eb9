import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { NotFound } from '../app/not-found.tsx';
import type { PageProps } from '../app/page.ts';
import { toAddress } from '../app/router.ts';
import { Breadcrumb } from '../ui/breadcrumb.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatInstant, plural } from '../ui/format.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { FindingsTable } from './findings-table.tsx';
import { type Items, read } from './operations.ts';
import { type Finding, useWalk, type Walk } from './use-walk.ts';
import { WalkProgress } from './walk-progress.tsx';

interface Run {
  readonly startedAt: string;
  readonly finishedAt?: string;
  readonly checked: number;
  readonly found: number;
  readonly findings: readonly Finding[];
}

/** An entry of the list of checks. Without a start, the timer has not checked the entity. */
interface ListedRun {
  readonly entity: string;
  readonly startedAt?: string;
}

/** The consistency check of an entity: the last report of the timer, a check now, and the repair. */
export function CheckPage({ open: { entity = '' } }: PageProps) {
  const { api, model } = useApp();
  const path = `verify/${encodeURIComponent(entity)}`;
  const regular = useLoaded(async (signal) => {
    const { items } = await read<Items<ListedRun>>(api, 'verify', signal);
    // A report that does not exist would be an error in the console of the browser.
    const listed = items.find((each) => each.entity === entity);
    return { isListed: listed !== undefined, run: listed?.startedAt ? await read<Run>(api, path, signal) : undefined };
  }, path);
  const walk = useWalk();
  const [isAsking, setAsking] = useState(false);
  const run = regular.result?.run;
  if (!model.entities.has(entity) || regular.result?.isListed === false)
    return (
      <NotFound what="Check" back={{ title: 'Consistency', address: toAddress(['operators', 'checks']) }}>
        {model.entities.has(entity)
          ? `No check compares the rows of ${entity}.`
          : `The model has no entity “${entity}”.`}
      </NotFound>
    );
  return (
    <>
      <Breadcrumb ancestors={[{ title: 'Consistency', address: toAddress(['operators', 'checks']) }]} />
      <h1>Consistency of {entity}</h1>
      <div class="actions">
        <button type="button" disabled={walk.isRunning} onClick={() => walk.start(path)}>
          Check now
        </button>
        <button type="button" class="secondary" disabled={walk.isRunning} onClick={() => setAsking(true)}>
          Check and repair
        </button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title={`Check and repair ${entity}`}
          confirm="Check and repair"
          act={() => walk.start(`${path}?repair=true`)}
          onClose={() => setAsking(false)}
        >
          <RepairForecast entity={entity} walk={walk} run={run} />
        </ConfirmDialog>
      )}
      <WalkProgress walk={walk} verb="compared" />
      <FindingsTable findings={walk.findings} label="Findings of this check" />
      <h2>Last regular check</h2>
      <ErrorNotice error={regular.error} />
      {run ? (
        <>
          <p>
            {run.finishedAt
              ? `Finished ${formatInstant(run.finishedAt)}`
              : `In progress since ${formatInstant(run.startedAt)}`}
            : {plural(run.checked, 'row')} compared, {plural(run.found, 'finding')}.
          </p>
          <FindingsTable findings={run.findings} label="Findings of the regular check" />
        </>
      ) : (
        <p class="muted">
          {regular.isLoading ? 'Loading…' : regular.error === undefined ? 'No regular check has run yet.' : ''}
        </p>
      )}
    </>
  );
}

interface ForecastProps {
  readonly entity: string;
  readonly walk: Walk;
  readonly run: Run | undefined;
}

/** What a repair would do and cost, as far as a check has told. */
function RepairForecast({ entity, walk, run }: ForecastProps) {
  const { isFinished, checked, findings, transactions } = walk;
  const left = findings.filter(({ repaired }) => !repaired).length;
  return (
    <>
      <p>
        Reads every row of {entity} as a check does, and makes index entries, copies, lists and counts agree with the
        rows. Other callers can go on writing.
      </p>
      <p>
        {isFinished ? (
          <>
            The check on this page compared {plural(checked, 'row')} with{' '}
            <strong>{plural(transactions, 'storage transaction')}</strong> and left {plural(left, 'finding')}. A repair
            takes as many, and a few more for each finding.
          </>
        ) : run?.finishedAt ? (
          <>
            The last regular check compared {plural(run.checked, 'row')} with {plural(run.found, 'finding')}. Check now
            to see how many storage transactions that takes; a repair takes a few more for each finding.
          </>
        ) : (
          <>Check now first to see what there is to repair, and how many storage transactions that takes.</>
        )}
      </p>
    </>
  );
}
