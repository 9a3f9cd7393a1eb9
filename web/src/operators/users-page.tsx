import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatAge } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { call, type Items, walk } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';
import { useAction } from './use-action.ts';

interface Blocked {
  readonly subject: string;
  readonly blockedAt: string;
}

/** Whose requests are rejected, whatever their tokens allow. */
export function UsersPage() {
  const { api } = useApp();
  const [subject, setSubject] = useState('');
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const user = subject.trim();
  const loaded = useLoaded(async (signal) => {
    const blocked: Blocked[] = [];
    const onPage = ({ items }: Items<Blocked>) => {
      blocked.push(...items);
      return true;
    };
    await walk<Items<Blocked>>(api, { method: 'GET', path: 'users/blocked', signal, onPage });
    return blocked;
  }, 'blocked users');
  const change = async (what: 'block' | 'unblock', of: string) => {
    await call(api, 'POST', `users/${what}`, { subject: of });
    setSubject('');
    loaded.reload();
    return what === 'block' ? `The requests of ${of} are rejected.` : `The requests of ${of} are accepted again.`;
  };
  const block = async () => {
    const done = await change('block', user);
    action.run('Block the user', async () => done);
  };
  return (
    <>
      <PageHead title="Blocked users" loaded={loaded} />
      <ErrorNotice error={action.error} />
      {action.done && <Notice kind="good">{action.done}</Notice>}
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          if (user !== '') setAsking(true);
        }}
      >
        <label>
          Subject of the user (the claim sub, in the audit log the author of a change)
          <input
            required
            maxLength={1_000}
            value={subject}
            onInput={({ currentTarget }) => setSubject(currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={action.isBusy}>
          Block
        </button>
      </form>
      {isAsking && (
        <ConfirmDialog title="Block a user" confirm="Block" isDangerous act={block} onClose={() => setAsking(false)}>
          <p>
            Every request of <strong>{user}</strong> is rejected, in each process within 10 seconds. No check is made
            that the user exists.
          </p>
          <p>Signatures of storage that the user has stay valid for at most 15 minutes.</p>
        </ConfirmDialog>
      )}
      <Content loaded={loaded} what="the blocked users">
        {(blocked) =>
          blocked.length === 0 ? (
            <p class="muted">Nobody is blocked.</p>
          ) : (
            <Table
              label="Blocked users"
              items={blocked}
              keyOf={({ subject: of }) => of}
              columns={[
                { title: 'Subject', isHeader: true, cell: ({ subject: of }) => of },
                {
                  title: 'Action',
                  cell: ({ subject: of }) => (
                    <button
                      type="button"
                      class="secondary outline"
                      disabled={action.isBusy}
                      aria-label={`Unblock ${of}`}
                      onClick={() => action.run('Unblock the user', () => change('unblock', of))}
                    >
                      Unblock
                    </button>
                  ),
                },
                { title: 'Since', cell: ({ blockedAt }) => `${formatAge(blockedAt)} ago` },
              ]}
            />
          )
        }
      </Content>
    </>
  );
}
