import { useState } from 'preact/hooks';
import { useApp } from '../app/context.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatAge, formatCount, formatInstant } from '../ui/format.ts';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { call, type Items, read, walk } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';
import { SubjectForm } from './subject-form.tsx';
import type { Usage } from './usage-page.tsx';
import { useAction } from './use-action.ts';

interface Revocation {
  readonly subject: string;
  readonly revokedAt: string;
}

/** Grants let a client use storage directly: how many were issued today, and who gets none. */
export function GrantsPage() {
  const { api } = useApp();
  const [identity, setIdentity] = useState<string>();
  const action = useAction();
  const loaded = useLoaded(async (signal) => {
    const revoked: Revocation[] = [];
    const onPage = ({ items }: Items<Revocation>) => {
      revoked.push(...items);
      return true;
    };
    const [usage] = await Promise.all([
      read<Usage>(api, 'usage', signal),
      walk<Items<Revocation>>(api, { method: 'GET', path: 'grants/revoked', signal, onPage }),
    ]);
    return { usage, revoked };
  }, 'grants');
  const change = async (what: 'revoke' | 'restore', of: string) => {
    await call(api, 'POST', `grants/${what}`, { subject: of });
    loaded.reload();
    return what === 'revoke'
      ? `${of} gets no more grants. Those that exist expire within 15 minutes.`
      : `${of} may get grants again.`;
  };
  const revoke = async (of: string) => {
    const done = await change('revoke', of);
    action.run('Revoke grants', async () => done);
  };
  return (
    <>
      <PageHead title="Grants" loaded={loaded} />
      <ErrorNotice error={action.error} />
      {action.done && <Notice kind="good">{action.done}</Notice>}
      <SubjectForm button="Revoke grants" isBusy={action.isBusy} act={setIdentity} />
      {identity !== undefined && (
        <ConfirmDialog
          title="Revoke grants"
          confirm="Revoke"
          isDangerous
          act={() => revoke(identity)}
          onClose={() => setIdentity(undefined)}
        >
          <p>
            <strong>{identity}</strong> gets no new grants and starts no uploads until you restore this. No check is
            made that the identity exists.
          </p>
          <p>
            Grants that exist stay valid until they expire, at most 15 minutes from now. Requests to the API are still
            accepted: only the issuer of the tokens can end them.
          </p>
        </ConfirmDialog>
      )}
      <Content loaded={loaded} what="the grants">
        {({ usage, revoked }) => (
          <>
            <h2>Revoked</h2>
            {revoked.length === 0 && <p class="muted">No grants are revoked.</p>}
            {revoked.length > 0 && (
              <Table
                label="Identities without grants"
                items={revoked}
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
                        aria-label={`Restore the grants of ${of}`}
                        onClick={() => action.run('Restore the grants', () => change('restore', of))}
                      >
                        Restore
                      </button>
                    ),
                  },
                  { title: 'Since', cell: ({ revokedAt }) => `${formatAge(revokedAt)} ago` },
                ]}
              />
            )}
            <h2>Issued</h2>
            <p>
              {usage.grants.length === 0
                ? 'None'
                : usage.grants.map(({ entity, issued }) => `${entity}: ${formatCount(issued)}`).join(', ')}{' '}
              <span class="muted">since {formatInstant(usage.since)}, by the process of the app that responded.</span>
            </p>
          </>
        )}
      </Content>
    </>
  );
}
