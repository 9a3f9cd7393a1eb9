import { ScrollRegion } from '../ui/scroll-region.tsx';
import type { Finding } from './use-walk.ts';

/** Shows nothing without findings. */
export function FindingsTable({ findings, label }: { readonly findings: readonly Finding[]; readonly label: string }) {
  if (findings.length === 0) return null;
  const hasKeys = findings.some(({ row }) => row !== undefined);
  return (
    <>
      <ScrollRegion label={label}>
        <table>
          <thead>
            <tr>
              <th scope="col">Finding</th>
              <th scope="col">Of</th>
              <th scope="col">Table</th>
              {hasKeys && <th scope="col">Key</th>}
              <th scope="col">Repaired</th>
            </tr>
          </thead>
          <tbody>
            {findings.map(({ kind, of, table, partition, row, reason, repaired }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a row may have several findings, and the list only grows
              <tr key={index}>
                <td>
                  <code>{kind}</code>
                  {reason && <small>{reason}</small>}
                </td>
                <td>{of}</td>
                <td>{table}</td>
                {hasKeys && (
                  <td>
                    <code>{partition}</code> <code>{row}</code>
                  </td>
                )}
                <td>{repaired ? 'yes' : 'no'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
      {!hasKeys && <p class="muted">Only roles that may read the whole entity see the keys.</p>}
    </>
  );
}
