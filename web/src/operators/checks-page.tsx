import { useApp } from '../app/context.ts';
import { toAddress } from '../app/router.ts';
import { formatCount, formatInstant } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { type Items, read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';

interface Run {
  readonly entity: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly checked?: number;
  readonly found?: number;
}

/** The last regular consistency check of each entity. */
export function ChecksPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Items<Run>>(api, 'verify', signal), 'checks');
  return (
    <>
      <PageHead title="Consistency" loaded={loaded} />
      <p class="muted">
        A timer compares each entity with its indexes, copies, lists, counts and files as often as the model says, and
        repairs what loses no value. Open an entity to check it now or to repair it.
      </p>
      <Content loaded={loaded} what="the checks">
        {({ items }) => (
          <Table
            label="Checks by entity"
            items={items}
            keyOf={({ entity }) => entity}
            columns={[
              {
                title: 'Entity',
                isHeader: true,
                cell: ({ entity }) => <a href={toAddress(['operators', 'checks', entity])}>{entity}</a>,
              },
              {
                title: 'Last regular check',
                cell: ({ startedAt, finishedAt }) =>
                  finishedAt ? formatInstant(finishedAt) : startedAt ? 'in progress' : 'not yet',
              },
              {
                title: 'Rows compared',
                isNumber: true,
                cell: ({ checked }) => (checked === undefined ? '–' : formatCount(checked)),
              },
              {
                title: 'Findings',
                isNumber: true,
                cell: ({ found }) =>
                  found ? <span class="found">{formatCount(found)}</span> : found === undefined ? '–' : '0',
              },
            ]}
          />
        )}
      </Content>
    </>
  );
}
