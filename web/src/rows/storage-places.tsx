import type { Explanation } from '../api/entity-client.ts';
import { canDelete, canReadWhole, type Entity, neededFields, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { joinNames } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { OnDemand } from './on-demand.tsx';
import { findPlaces, type Place } from './places.ts';

/** The rows, index entries and blobs of a row. They are those that a delete would read and write. */
export function StoragePlaces(props: { readonly entity: Entity; readonly rowKey: Values; readonly values: Values }) {
  const { entity, rowKey, values } = props;
  const { api, user, model } = useApp();
  if (!canReadWhole(entity, user)) return null;
  const explain = api.explain(entity.name);
  return (
    <OnDemand
      title="Where it is stored"
      id={JSON.stringify([entity.name, rowKey])}
      load={async (signal) => {
        const read = await explain.get(rowKey, { signal });
        const removal: Explanation = canDelete(entity, user)
          ? await explain.delete(rowKey, { signal })
          : { steps: [], transactions: 0 };
        return findPlaces({ entity, model, values }, read, removal);
      }}
    >
      {(places) => (
        <>
          <PlaceTable places={places} entity={entity} />
          <MissingIndexes entity={entity} values={values} />
        </>
      )}
    </OnDemand>
  );
}

/** The indexes that leave the row out. A field that the page has not read may have a value. */
function MissingIndexes({ entity, values }: { readonly entity: Entity; readonly values: Values }) {
  const unread = Object.values(entity.split).flat();
  const isMissing = (field: string) => values[field] === undefined && !unread.includes(field);
  const missing = Object.entries(entity.indexes).flatMap(([name, index]) => {
    const fields = neededFields(entity, index).filter(isMissing);
    return fields.length > 0 ? [`${name} (no ${joinNames(fields, 'and')})`] : [];
  });
  if (missing.length === 0) return null;
  return (
    <p class="muted">
      <small>
        The row is not in the {missing.length === 1 ? 'index' : 'indexes'} {joinNames(missing, 'and')}.
      </small>
    </p>
  );
}

function PlaceTable({ places, entity }: { readonly places: readonly Place[]; readonly entity: Entity }) {
  const unique = Object.entries(entity.indexes).filter(([, index]) => index.unique);
  return (
    <>
      <Table
        label="Rows and index entries"
        items={places}
        keyOf={({ table, partition, row }) => JSON.stringify([table, partition, row])}
        columns={[
          { title: 'What', cell: ({ what }) => what },
          { title: 'Table or container', cell: ({ table }) => <code>{table}</code> },
          { title: 'Partition key', cell: ({ partition }) => partition && <code>{partition}</code> },
          { title: 'Row key', cell: ({ row }) => <code>{row}</code> },
        ]}
      />
      {unique.length > 0 && (
        <p class="muted">
          <small>
            A write claims the entries of the unique {unique.length === 1 ? 'index' : 'indexes'}{' '}
            {joinNames(
              unique.map(([name]) => name),
              'and',
            )}{' '}
            before it writes the row, so that no two rows have the same value.
          </small>
        </p>
      )}
    </>
  );
}
