import { useApp } from '../app/context.ts';
import { formatAge } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { Table } from '../ui/table.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { type Items, read } from './operations.ts';
import { AwayNotice, Content, PageHead } from './page-head.tsx';

interface PeriodTable {
  readonly entity: string;
  readonly table: string;
  readonly period: string;
  readonly from: string;
  readonly isDue: boolean;
}

/** The tables of periods: a whole table is deleted when its period is past retention. */
export function PeriodsPage() {
  const { api, model } = useApp();
  // The route exists only in an app with periods.
  const hasPeriods = [...model.entities.values()].some(({ period }) => period);
  const load = async (signal: AbortSignal) =>
    hasPeriods ? read<Items<PeriodTable>>(api, 'period-tables', signal) : { items: [] };
  const loaded = useLoaded<Items<PeriodTable>>(load, 'period-tables');
  return (
    <>
      <PageHead title="Period tables" loaded={loaded} />
      <AwayNotice away={loaded.result?.away} />
      <Content loaded={loaded} what="the tables">
        {({ items }) =>
          items.length === 0 ? (
            <Notice kind="info">
              {hasPeriods ? 'No period has a table yet.' : 'No entity of the model has a period.'}
            </Notice>
          ) : (
            <Table
              label="Tables of periods"
              items={items}
              keyOf={({ table }) => table}
              columns={[
                { title: 'Entity', cell: ({ entity }) => entity },
                {
                  title: 'State',
                  cell: ({ isDue }) => (isDue ? 'past retention: deleted at the next run of the timer' : 'kept'),
                },
                { title: 'Period', cell: ({ period }) => period },
                {
                  title: 'Age',
                  cell: ({ from }) => (Date.parse(from) > Date.now() ? 'begins later' : formatAge(from)),
                },
                { title: 'Table', cell: ({ table }) => <code>{table}</code> },
              ]}
            />
          )
        }
      </Content>
    </>
  );
}
