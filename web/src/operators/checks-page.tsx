import { useApp } from '../app/context.ts';
import { toAddress } from '../app/router.ts';
import { ScrollRegion } from '../ui/scroll-region.tsx';
import { useLoaded } from '../ui/use-loaded.ts';
import { formatCount, formatInstant } from './format.ts';
import { type Items, read } from './operations.ts';
import { Content, PageHead } from './page-head.tsx';

interface Run {
  readonly entity: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
  readonly checked?: number;
  readonly found?: number;
}

/** The last weekly consistency check of each entity. */
export function ChecksPage() {
  const { api } = useApp();
  const loaded = useLoaded((signal) => read<Items<Run>>(api, 'verify', signal), 'checks');
  return (
    <>
      <PageHead title="Consistency" loaded={loaded} />
      <p class="muted">
        A timer compares each entity with its indexes, copies, lists, counts and files every week, and repairs nothing.
        Open an entity to check it now or to repair it.
      </p>
      <Content loaded={loaded} what="the checks">
        {({ items }) => (
          <ScrollRegion label="Checks by entity">
            <table>
              <thead>
                <tr>
                  <th scope="col">Entity</th>
                  <th scope="col">Last weekly check</th>
                  <th scope="col" class="number">
                    Rows compared
                  </th>
                  <th scope="col" class="number">
                    Findings
                  </th>
                </tr>
              </thead>
              <tbody>
                {items.map(({ entity, startedAt, finishedAt, checked, found }) => (
                  <tr key={entity}>
                    <th scope="row">
                      <a href={toAddress(['operators', 'checks', entity])}>{entity}</a>
                    </th>
                    <td class="nowrap">
                      {finishedAt ? formatInstant(finishedAt) : startedAt ? 'in progress' : 'not yet'}
                    </td>
                    <td class="number">{checked === undefined ? '' : formatCount(checked)}</td>
                    <td class={found ? 'number found' : 'number'}>{found === undefined ? '' : formatCount(found)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </ScrollRegion>
        )}
      </Content>
    </>
  );
}
