import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatAge } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { call, type Items, walk } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';
import { SubjectForm } from './subject-form.tsx';
import { useAction } from './use-action.ts';
import { UserData } from './user-data.tsx';

interface Blocked {
  readonly subject: string;
  readonly blockedAt: string;
}

export function UsersPage() {
  const { model } = useApp();
  return (
    <>
      <h1>Users</h1>
      {model.blocksUsers && <BlockedUsers />}
      {model.erasesUsers && <UserData />}
    </>
  );
}

/** Whose requests are rejected, whatever their tokens allow. */
function BlockedUsers() {
  const { api } = useApp();
  const [user, setUser] = useState<string>();
  const action = useAction();
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
    loaded.reload();
    return what === 'block' ? `The requests of ${of} are rejected.` : `The requests of ${of} are accepted again.`;
  };
  const block = async (of: string) => {
    const done = await change('block', of);
    action.run('Block the user', async () => done);
  };
  return (
    <section>
      <PageHead title="Blocked users" level={2} loaded={loaded} />
      <ErrorNotice error={action.error} />
      {action.done && <Notice kind="good">{action.done}</Notice>}
      <SubjectForm button="Block" isBusy={action.isBusy} act={setUser} />
      {user !== undefined && (
        <ConfirmDialog
          title="Block a user"
          confirm="Block"
          isDangerous
          act={() => block(user)}
          onClose={() => setUser(undefined)}
        >
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
    </section>
  );
}
