import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { type FailedMessage, MessageCard } from './message-card.tsx';
import { call, type Items, queueOf, walk } from './operations.ts';
import { AwayNotice, Content, PageHead } from './page-head.tsx';
import { useAction } from './use-action.ts';

const PAGE_SIZE = 50;

interface Filter {
  readonly queue: string;
  readonly reason: string;
}

/** Messages that could not be handled, newest first: why, what they contain, and how to send them again. */
export function FailedMessagesPage() {
  const { api } = useApp();
  const [filter, setFilter] = useState<Filter>({ queue: '', reason: '' });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [limit, setLimit] = useState(PAGE_SIZE);
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const loaded = useLoaded(async (signal) => {
    const items: FailedMessage[] = [];
    const path = `poison?top=${PAGE_SIZE}`;
    const away = new Set<string>();
    const onPage = (page: Items<FailedMessage>) => {
      for (const name of page.away ?? []) away.add(name);
      return items.push(...page.items) < limit;
    };
    await walk<Items<FailedMessage>>(api, { method: 'GET', path, signal, onPage });
    return { items, away: [...away], hasMore: items.length >= limit };
  }, `poison ${limit}`);

  // An error is followed by a read too, because some messages may have been sent before it.
  const refresh = () => {
    setChosen(new Set());
    loaded.reload();
  };
  const act = (name: string, work: () => Promise<string>) =>
    action.run(name, async () => {
      try {
        return await work();
      } finally {
        refresh();
      }
    });
  const replay = (ids: readonly string[]) =>
    act('Replay', async () => {
      for (const id of ids) await call(api, 'POST', `poison/${encodeURIComponent(id)}/replay`);
      return `${plural(ids.length, 'message was', 'messages were')} sent again.`;
    });
  const drop = async (id: string) => {
    await call(api, 'DELETE', `poison/${encodeURIComponent(id)}`);
    act('Delete the message', async () => 'The message was deleted.');
  };
  const replayAll = async () => {
    let count = 0;
    const body = Object.fromEntries(Object.entries(filter).filter(([, text]) => text !== ''));
    const onPage = ({ replayed }: { readonly replayed: readonly string[] }) => {
      count += replayed.length;
      return true;
    };
    const walked = walk(api, { path: 'poison/replays', body, signal: new AbortController().signal, onPage });
    await walked.finally(refresh);
    action.run('Replay all', async () => `${plural(count, 'message was', 'messages were')} sent again.`);
  };

  return (
    <>
      <PageHead title="Failed messages" loaded={loaded} />
      <p class="muted">
        Until a message is replayed or its entity is repaired, an index or an archive may be stale. Fix the cause first:
        a message that still fails comes back.
      </p>
      <AwayNotice away={loaded.result?.away} />
      <ErrorNotice error={action.error} />
      {action.done && <Notice kind="good">{action.done}</Notice>}
      <Content loaded={loaded} what="the failed messages">
        {({ items, hasMore }) => {
          const shown = items.filter((item) => matches(item, filter));
          const replayTitle = `Replay all${filter.queue || filter.reason ? ' that match' : ''}`;
          const selected = shown.filter(({ id }) => chosen.has(id)).map(({ id }) => id);
          return (
            <>
              <form class="filters" onSubmit={(event) => event.preventDefault()}>
                <label>
                  Queue
                  <select
                    value={filter.queue}
                    onChange={({ currentTarget }) => setFilter({ ...filter, queue: currentTarget.value })}
                  >
                    <option value="">all</option>
                    {[...new Set(items.map(({ queue }) => queueOf(queue)))].map((queue) => (
                      <option key={queue}>{queue}</option>
                    ))}
                  </select>
                </label>
                <label>
                  Reason contains
                  <input
                    type="search"
                    value={filter.reason}
                    onInput={({ currentTarget }) => setFilter({ ...filter, reason: currentTarget.value })}
                  />
                </label>
                <button
                  type="button"
                  disabled={selected.length === 0 || action.isBusy}
                  onClick={() => replay(selected)}
                >
                  Replay {selected.length > 0 ? selected.length : ''} selected
                </button>
                <button
                  type="button"
                  class="secondary"
                  disabled={shown.length === 0 || action.isBusy}
                  onClick={() => setAsking(true)}
                >
                  {replayTitle}
                </button>
              </form>
              {isAsking && (
                <ConfirmDialog title={replayTitle} confirm="Replay" act={replayAll} onClose={() => setAsking(false)}>
                  <p>
                    Sends {hasMore ? 'at least ' : ''}
                    {[plural(shown.length, 'message'), ...describeFilter(filter)].join(' ')} again, and removes{' '}
                    {shown.length === 1 ? 'it' : 'them'} from this list. A message that still fails comes back.
                  </p>
                </ConfirmDialog>
              )}
              {shown.length === 0 && (
                <Notice kind="good">No message has failed{items.length > 0 ? ' like this' : ''}.</Notice>
              )}
              <ul class="messages">
                {shown.map((message) => (
                  <MessageCard
                    key={message.id}
                    message={message}
                    isBusy={action.isBusy}
                    isChosen={chosen.has(message.id)}
                    onChoose={(isChosen) => setChosen(toggle(chosen, message.id, isChosen))}
                    onReplay={() => replay([message.id])}
                    onDrop={() => drop(message.id)}
                  />
                ))}
              </ul>
              {hasMore && (
                <button type="button" class="secondary outline" onClick={() => setLimit(limit + PAGE_SIZE)}>
                  Show more
                </button>
              )}
            </>
          );
        }}
      </Content>
    </>
  );
}

function describeFilter({ queue, reason }: Filter): string[] {
  return [queue && `of the queue ${queue}`, reason && `whose reason contains “${reason}”`].filter(Boolean);
}

function matches(message: FailedMessage, { queue, reason }: Filter): boolean {
  return (queue === '' || queueOf(message.queue) === queue) && message.reason.includes(reason);
}

function toggle(chosen: ReadonlySet<string>, id: string, isChosen: boolean): ReadonlySet<string> {
  const next = new Set(chosen);
  if (isChosen) next.add(id);
  else next.delete(id);
  return next;
}
