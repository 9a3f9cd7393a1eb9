import { type Column, Table } from '../ui/table.tsx';
import type { Finding } from './use-walk.ts';

const keys: Column<Finding> = {
  title: 'Key',
  cell: ({ partition, row }) => (
    <>
      <code>{partition}</code> <code>{row}</code>
    </>
  ),
};

/** Shows nothing without findings. */
export function FindingsTable({ findings, label }: { readonly findings: readonly Finding[]; readonly label: string }) {
  if (findings.length === 0) return null;
  const hasKeys = findings.some(({ row }) => row !== undefined);
  return (
    <>
      <Table
        label={label}
        items={findings}
        columns={[
          {
            title: 'Finding',
            cell: ({ kind, reason }) => (
              <>
                <code>{kind}</code>
                {reason && <small>{reason}</small>}
              </>
            ),
          },
          { title: 'Of', cell: ({ of }) => of },
          { title: 'Table', cell: ({ table }) => table },
          ...(hasKeys ? [keys] : []),
          { title: 'Repaired', cell: ({ repaired }) => (repaired ? 'yes' : 'no') },
        ]}
      />
      {!hasKeys && <p class="muted">Only roles that may read the whole entity see the keys.</p>}
    </>
  );
}
