import { useApp } from '../app/context.ts';
import { Notice } from '../ui/notice.tsx';
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
          onClick={() => walk.start(isBuild ? `reindex/${names}` : `clean-up/${names}`)}
        >
          {isBuild ? 'Build' : 'Clean up'}
        </button>
      </div>
      <WalkProgress walk={walk} verb="read" />
    </li>
  );
}
