import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatCount, plural } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { type Items, walk } from './operations.ts';
import { SubjectForm } from './subject-form.tsx';
import { useAction } from './use-action.ts';

interface Counted {
  readonly entity: string;
  readonly field: string;
  readonly erasing: 'delete' | 'change' | 'keep';
  readonly rows: number;
  readonly more: boolean;
}
interface Erased {
  readonly deleted: number;
  readonly changed: number;
  readonly failed: number;
}

const BECOMES = { delete: 'deleted', change: 'kept without the user', keep: 'kept' } as const;

/** What was begun is not broken off. */
const NEVER = new AbortController().signal;

/** How much is stored of one user, and a button to erase it. No row is shown. */
export function UserData() {
  const { api } = useApp();
  const [found, setFound] = useState<{ readonly user: string; readonly counts: readonly Counted[] }>();
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const count = async (user: string) => {
    const counts: Counted[] = [];
    const onPage = ({ items }: Items<Counted>) => counts.push(...items) >= 0;
    await walk<Items<Counted>>(api, { path: 'users/data', body: { subject: user }, signal: NEVER, onPage });
    setFound({ user, counts });
    return '';
  };
  const erase = async (user: string) => {
    const done = { deleted: 0, changed: 0, failed: 0 };
    const onPage = ({ deleted, changed, failed }: Erased) => {
      Object.assign(done, {
        deleted: done.deleted + deleted,
        changed: done.changed + changed,
        failed: done.failed + failed,
      });
      return true;
    };
    await walk<Erased>(api, { path: 'users/erase', body: { subject: user }, signal: NEVER, onPage });
    await count(user);
    const failed = done.failed > 0 ? ` ${plural(done.failed, 'row')} could not be written: erase again.` : '';
    const text = `${plural(done.deleted, 'row')} deleted, ${plural(done.changed, 'row')} changed.${failed}`;
    action.run('Erase', async () => text);
  };
  const erasable = found?.counts.some(({ rows, erasing }) => rows > 0 && erasing !== 'keep');
  return (
    <section>
      <h2>Data of a user</h2>
      <ErrorNotice error={action.error} />
      {action.done && <Notice kind="good">{action.done}</Notice>}
      <SubjectForm
        button="Count rows"
        isBusy={action.isBusy}
        act={(user) => action.run('Count rows', () => count(user))}
      />
      {found && (
        <Table
          label={`Rows of ${found.user}`}
          items={found.counts}
          keyOf={({ entity, field }) => `${entity}.${field}`}
          columns={[
            { title: 'Entity', isHeader: true, cell: ({ entity }) => entity },
            { title: 'By', cell: ({ field }) => field },
            { title: 'Rows', cell: ({ rows, more }) => `${more ? 'more than ' : ''}${formatCount(rows)}` },
            { title: 'When erased', cell: ({ erasing }) => BECOMES[erasing] },
          ]}
        />
      )}
      {found && erasable && (
        <button type="button" class="danger" onClick={() => setAsking(true)}>
          Erase what is stored of {found.user}
        </button>
      )}
      {found && isAsking && (
        <ConfirmDialog
          title="Erase the data of a user"
          confirm="Erase"
          isDangerous
          act={() => erase(found.user)}
          onClose={() => setAsking(false)}
        >
          <p>
            Rows of <strong>{found.user}</strong> are deleted, or kept without the user, as the model says. It cannot be
            undone.
          </p>
          <p>The account at the identity provider stays. Block the user first, so that no new rows are written.</p>
        </ConfirmDialog>
      )}
    </section>
  );
}
