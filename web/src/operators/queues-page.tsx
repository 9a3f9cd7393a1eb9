import { useApp } from '../app/context.ts';
import { toAddress } from '../app/router.ts';
import { formatAge, formatCount } from '../ui/format.ts';
import { useLoaded } from '../ui/use-loaded.ts';
import { type Items, queueOf, read } from './operations.ts';
import { AwayNotice, Content, PageHead } from './page-head.tsx';

interface Queue {
  readonly queue: string;
  readonly messages: number;
  readonly oldestWaitingSince?: string;
}

const PURPOSES: Readonly<Record<string, string>> = {
  'index-changes': 'Makes indexes, copies and totals agree with their entities',
  transfers: 'Archives and moves entities',
};

/** The length of the queues and their lag: how long the oldest message has waited for a consumer. */
export function QueuesPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Items<Queue>>(api, 'queues', signal), 'queues');
  return (
    <>
      <PageHead title="Queues" loaded={loaded} />
      <Content loaded={loaded} what="the queues">
        {({ items, away }) => (
          <>
            <AwayNotice away={away} />
            <ul class="cards">
              {items.map((queue) => (
                <li key={queue.queue} class={isAlarming(queue) ? 'card alarming' : 'card'}>
                  <h2>{queue.queue}</h2>
                  <p class="muted">{purposeOf(queue.queue)}</p>
                  <dl class="figures">
                    <div>
                      <dt>Messages</dt>
                      <dd>{formatCount(queue.messages)}</dd>
                    </div>
                    <div>
                      <dt>Lag</dt>
                      <dd>{queue.oldestWaitingSince ? formatAge(queue.oldestWaitingSince) : 'no messages'}</dd>
                    </div>
                  </dl>
                </li>
              ))}
            </ul>
          </>
        )}
      </Content>
      <p class="muted">
        The number is an estimate of storage. It includes hidden messages: those of writes in progress and messages that
        are retried later. Messages that failed permanently are in{' '}
        <a href={toAddress(['operators', 'failed-messages'])}>failed messages</a>.
      </p>
    </>
  );
}

const isPoison = (queue: string) => queue.endsWith('-poison');

function isAlarming({ queue, messages }: Queue): boolean {
  return isPoison(queue) && messages > 0;
}

function purposeOf(queue: string): string {
  return isPoison(queue)
    ? 'Messages on which the host gave up; a timer empties it every minute'
    : (PURPOSES[queueOf(queue)] ?? '');
}
