import { useApp } from '../app/context.ts';
import { formatCount, joinNames, plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { type Items, read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';

interface IndexUse {
  readonly entity: string;
  readonly index: string;
  readonly kind: 'index' | 'list' | 'totals';
  readonly reads: number;
  readonly countedSince?: string;
  readonly lastReadOn?: string;
  readonly neededFor: readonly string[];
  readonly transactions?: number;
  readonly isUnread: boolean;
}

/** How often each index is read, and what it costs: one that nobody reads only costs writes. */
export function IndexesPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Items<IndexUse>>(api, 'indexes', signal), 'indexes');
  return (
    <>
      <PageHead title="Index reads" loaded={loaded} />
      <Content loaded={loaded} what="the indexes">
        {({ items }) => {
          const unread = items.filter(({ isUnread }) => isUnread);
          return (
            <>
              {unread.length > 0 && (
                <Notice kind="info">
                  Nobody has read {plural(unread.length, 'index', 'indexes')} for 35 days:{' '}
                  {joinNames(unread.map(nameOf), 'and')}. Remove what nobody will read again from the model, then delete
                  its rows under Model changes.
                </Notice>
              )}
              <p class="muted">
                The last read is that of all processes, and may be some minutes late. Reads since its start and
                transactions of today (UTC) are those of the process of the app that responded.
              </p>
              <Table
                label="Reads of indexes"
                items={[...items].sort((one, other) => Number(other.isUnread) - Number(one.isUnread))}
                keyOf={nameOf}
                columns={[
                  {
                    title: 'Index',
                    isHeader: true,
                    cell: ({ entity, index }) => (
                      <>
                        {entity}.<wbr />
                        {index}
                      </>
                    ),
                  },
                  { title: 'Last read', cell: sayLastRead },
                  { title: 'Reads', isNumber: true, cell: ({ reads }) => formatCount(reads) },
                  { title: 'Cost', cell: sayCost },
                  { title: 'Also for', cell: ({ neededFor }) => joinNames(neededFor, 'and') },
                ]}
              />
            </>
          );
        }}
      </Content>
    </>
  );
}

function nameOf({ entity, index }: IndexUse): string {
  return `${entity}.${index}`;
}

function sayLastRead({ lastReadOn, countedSince, isUnread }: IndexUse) {
  const text = lastReadOn ?? (countedSince === undefined ? 'not yet' : `never since ${countedSince}`);
  return isUnread ? <span class="found">{text}</span> : text;
}

/** A row in the partition of the entity is written in its transaction. */
function sayCost({ kind, transactions }: IndexUse): string {
  if (transactions !== undefined) return plural(transactions, 'transaction');
  return kind === 'list' ? 'the list of each value' : 'a row of each entity';
}
