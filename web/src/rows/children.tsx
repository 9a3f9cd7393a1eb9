import { canRead, type Entity, may, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { toAddress } from '../app/router.ts';
import { OnDemand } from './on-demand.tsx';
import { RowTable } from './row-table.tsx';

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
              {may(child, 'create', user) && (
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
  const fields = Object.keys(child.fields).filter((field) => present.has(field) && !parentKey.includes(field));
  return <RowTable entity={child} label={`Children of ${child.name}`} fields={fields} rows={rows} />;
}
