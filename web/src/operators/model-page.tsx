import { useState } from 'preact/hooks';
import type { Explanation } from '../api/entity-client.ts';
import { canReadWhole } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { plural } from '../ui/format.ts';
import { ErrorNotice, Loading, Notice } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { type Items, read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';
import { useWalk } from './use-walk.ts';
import { WalkProgress } from './walk-progress.tsx';

interface EntityState {
  readonly entity: string;
  readonly isDeclared: boolean;
  readonly version: number;
  readonly unbuilt: readonly string[];
  readonly leftOver: readonly string[];
}

/** What changes of the model have left to do. A change that would lose data is rejected before the app serves anything. */
export function ModelPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Items<EntityState>>(api, 'model', signal), 'model');
  return (
    <>
      <PageHead title="Model changes" loaded={loaded} />
      <p class="muted">
        The app compares its model with the one that was stored. It rejects a change that would lose data or make it
        unreachable, and lists here what accepted changes have left to do.
      </p>
      <Content loaded={loaded} what="the model">
        {({ items }) => {
          const gone = items.filter(({ isDeclared }) => !isDeclared);
          const declared = items.filter(({ isDeclared }) => isDeclared);
          const tasks = declared.flatMap(({ entity, unbuilt, leftOver }) => [
            ...unbuilt.map((index) => ({ entity, index, kind: 'build' as const })),
            ...leftOver.map((index) => ({ entity, index, kind: 'clean-up' as const })),
          ]);
          return (
            <>
              {tasks.length === 0 && gone.length === 0 && (
                <Notice kind="good">Nothing is left to do: all {declared.length} entities agree with the model.</Notice>
              )}
              <ul class="messages">
                {tasks.map((task) => (
                  <Task key={`${task.kind} ${task.entity} ${task.index}`} {...task} onEnd={loaded.reload} />
                ))}
                {gone.map(({ entity }) => (
                  <li key={entity} class="card">
                    <h2>{entity} is no longer declared</h2>
                    <p>
                      Its rows still exist in storage and cost money. Nothing reads them. The log of the app names the
                      tables and how to end this message.
                    </p>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Content>
    </>
  );
}

interface TaskProps {
  readonly entity: string;
  readonly index: string;
  readonly kind: 'build' | 'clean-up';
  readonly onEnd: () => void;
}

function Task({ entity, index, kind, onEnd }: TaskProps) {
  const walk = useWalk(onEnd);
  const [isAsking, setAsking] = useState(false);
  const isBuild = kind === 'build';
  const names = [entity, index].map(encodeURIComponent).join('/');
  return (
    <li class="card">
      <h2>
        {isBuild ? 'Build' : 'Clean up'} <code>{index}</code> of {entity}
      </h2>
      <p>
        {isBuild
          ? 'Entities stored before the change are not in it, so reads through it miss them. A build reads every entity once and writes what is missing, beside other writers.'
          : 'The index is no longer declared, but its rows still exist and cost money. A clean-up deletes them.'}
      </p>
      <div class="actions">
        <button
          type="button"
          disabled={walk.isRunning}
          onClick={() => (isBuild ? walk.start(`reindex/${names}`) : setAsking(true))}
        >
          {isBuild ? 'Build' : 'Clean up'}
        </button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title={`Clean up ${index} of ${entity}`}
          confirm="Clean up"
          isDangerous
          act={() => walk.start(`clean-up/${names}`)}
          onClose={() => setAsking(false)}
        >
          <CleanUpForecast entity={entity} path={`clean-up/${names}`} />
          <p>
            The rows of {entity} and of its other indexes stay. Wait until the release with the old model has stopped,
            because it still reads and writes the index. This cannot be undone.
          </p>
        </ConfirmDialog>
      )}
      <WalkProgress walk={walk} verb="read" isCleanUp={!isBuild} />
    </li>
  );
}

/** What a clean-up deletes: the table of the index, or rows of a table that stays. The first page is explained. */
function CleanUpForecast({ entity, path }: { readonly entity: string; readonly path: string }) {
  const { api, model, user } = useApp();
  const declared = model.entities.get(entity);
  const mayExplain = declared !== undefined && canReadWhole(declared, user);
  const { result, error } = useLoaded(
    async (signal) =>
      mayExplain
        ? summarize(
            JSON.parse((await api.send({ method: 'POST', path: `/operations/${path}?explain=true`, signal })).text),
          )
        : undefined,
    path,
  );
  if (!mayExplain)
    return (
      <p>
        Deletes all rows of the index. If the index has a table of its own, the table is dropped. Only roles that read
        every field of {entity} see how many rows that is.
      </p>
    );
  if (error !== undefined) return <ErrorNotice error={error} />;
  if (!result) return <Loading what="what it would delete" />;
  const { dropped, scanned, deleted, transactions } = result;
  const cost = <strong>{plural(transactions, 'storage transaction')}</strong>;
  return dropped ? (
    <p>
      Drops the table <code>{dropped}</code> with all its rows, which only this index has used: {cost}.
    </p>
  ) : (
    <p>
      Reads the table <code>{scanned}</code> page by page and deletes the rows of the index: {plural(deleted, 'row')} on
      the first page, with {cost}.
    </p>
  );
}

function summarize({ steps, transactions }: Explanation) {
  const tableOf = (step: Explanation['steps'][number] | undefined) => step && String(step.table);
  const deletes = steps.flatMap(({ actions = [] }) => actions as readonly { readonly kind: string }[]);
  return {
    dropped: tableOf(steps.find(({ write, does }) => write === 'table' && does === 'drop')),
    scanned: tableOf(steps.find(({ read }) => read === 'rows')),
    deleted: deletes.filter(({ kind }) => kind === 'delete').length,
    transactions,
  };
}
