import { useApp } from '../app/context.ts';
import { Notice } from '../ui/notice.tsx';
import { ScrollRegion } from '../ui/scroll-region.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { formatAge } from './format.ts';
import { type Items, read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';

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
  const loaded = useLoaded(load, 'period-tables');
  return (
    <>
      <PageHead title="Period tables" loaded={loaded} />
      <Content loaded={loaded} what="the tables">
        {({ items }) =>
          items.length === 0 ? (
            <Notice kind="info">
              {hasPeriods ? 'No period has a table yet.' : 'No entity of the model has a period.'}
            </Notice>
          ) : (
            <ScrollRegion label="Tables of periods">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Entity</th>
                    <th scope="col">Period</th>
                    <th scope="col">Table</th>
                    <th scope="col">Age</th>
                    <th scope="col">State</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map(({ entity, table, period, from, isDue }) => (
                    <tr key={table}>
                      <td>{entity}</td>
                      <td class="nowrap">{period}</td>
                      <td>
                        <code>{table}</code>
                      </td>
                      <td>{Date.parse(from) > Date.now() ? 'begins later' : formatAge(from)}</td>
                      <td>{isDue ? 'past retention: deleted at the next run of the timer' : 'kept'}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </ScrollRegion>
          )
        }
      </Content>
    </>
  );
}
