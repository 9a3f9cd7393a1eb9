import { canRead, canWrite, type Entity, keyPath, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { toAddress } from '../app/router.ts';
import { ScrollRegion } from '../ui/scroll-region.tsx';
import { FieldCell } from '../ui/value.tsx';
import { OnDemand } from './on-demand.tsx';

/** The children of a row, read with it in one query. */
export function Children({ entity, rowKey }: { readonly entity: Entity; readonly rowKey: Values }) {
  const { api, model, user } = useApp();
  const children = entity.children.flatMap((name) => {
    const child = model.entities.get(name);
    return child && canRead(child, user) ? [child] : [];
  });
  return (
    <>
      {children.map((child) => (
        <OnDemand
          key={child.name}
          title={`Children: ${child.name}`}
          id={JSON.stringify([entity.name, rowKey, child.name])}
          load={async (signal) => {
            const found = await api.entity(entity.name).get(rowKey, { include: [child.name], signal });
            return (found?.values[child.name] ?? []) as readonly Values[];
          }}
        >
          {(rows) => (
            <>
              <ChildTable child={child} rows={rows} parentKey={entity.key.fields} />
              {canWrite(child, user) && (
                <a class="link-button" href={toAddress(['entities', child.name, 'new'], toQuery(rowKey))}>
                  New row of {child.name}
                </a>
              )}
            </>
          )}
        </OnDemand>
      ))}
    </>
  );
}

function toQuery(key: Values): Record<string, string> {
  return Object.fromEntries(Object.entries(key).map(([field, value]) => [field, String(value)]));
}

interface ChildTableProps {
  readonly child: Entity;
  readonly rows: readonly Values[];
  readonly parentKey: readonly string[];
}

function ChildTable({ child, rows, parentKey }: ChildTableProps) {
  if (rows.length === 0) return <p>None.</p>;
  const present = new Set(rows.flatMap((row) => Object.keys(row)));
  const columns = Object.keys(child.fields).filter((field) => present.has(field) && !parentKey.includes(field));
  return (
    <ScrollRegion label={`Children of ${child.name}`}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const path = keyPath(child, row);
            return (
              <tr key={path.join('/')}>
                {columns.map((column, position) => {
                  const cell = <FieldCell entity={child} field={column} value={row[column]} />;
                  return (
                    <td key={column}>
                      {position === 0 ? (
                        <a href={toAddress(['entities', child.name, 'rows', ...path])}>{cell}</a>
                      ) : (
                        cell
                      )}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </ScrollRegion>
  );
}
