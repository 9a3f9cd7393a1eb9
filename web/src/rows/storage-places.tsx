import { RowkeyClientError } from '../../../lib/client/index.ts';
import type { Explanation } from '../api/entity-client.ts';
import { canReadWhole, canTake, type Entity, neededFields, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { waysToRead } from '../entities/ways.ts';
import { joinNames } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { OnDemand } from './on-demand.tsx';
import { findIndexEntries, findPlaces, type Place } from './places.ts';

const NOTHING = { steps: [], transactions: 0 };

/**
 * The rows, index entries and blobs of a row. They are those that a delete would read and write. If the delete is not allowed, or its
 * explanation is not, the row and its index entries are shown.
 */
export function StoragePlaces(props: { readonly entity: Entity; readonly rowKey: Values; readonly values: Values }) {
  const { entity, rowKey, values } = props;
  const { api, user, model } = useApp();
  const explain = api.explain(entity.name);
  return (
    <OnDemand
      title="Where it is stored"
      id={JSON.stringify([entity.name, rowKey])}
      load={async (signal) => {
        const read = await explain.get(rowKey, { signal });
        const removal = await explainRemoval(() =>
          canReadWhole(entity, user) && canTake(entity, 'delete', model, user)
            ? explain.delete(rowKey, { signal })
            : undefined,
        );
        const places = findPlaces({ entity, model, values }, read, removal.explanation ?? NOTHING);
        if (removal.explanation) return { places, closed: [] };
        const names = waysToRead(entity, model, user).flatMap(({ id, kind }) => (kind === 'index' ? [id] : []));
        const entries = await findIndexEntries({ entity, values, names }, { explain, read, signal });
        const closed = Object.keys(entity.indexes).filter((name) => !names.includes(name));
        return { places: [...places, ...entries], closed, reason: removal.reason };
      }}
    >
      {({ places, closed, reason }) => (
        <>
          <PlaceTable places={places} entity={entity} />
          {reason !== undefined && (
            <p class="muted">
              <small>
                Only the row and its index entries are listed: the other places are {reason}.
                {closed.length > 0 && ` Your roles do not read through ${joinNames(closed, 'and')}.`}
              </small>
            </p>
          )}
          <MissingIndexes entity={entity} values={values} />
        </>
      )}
    </OnDemand>
  );
}

/** The explained delete, or why there is none. Its steps name rows of every entity in the table, whose keys the caller must be able to read. */
async function explainRemoval(
  explain: () => Promise<Explanation> | undefined,
): Promise<{ readonly explanation?: Explanation | undefined; readonly reason?: string }> {
  try {
    const explanation = await explain();
    return explanation
      ? { explanation }
      : { reason: 'shown to roles that may delete the row and read every row of its table' };
  } catch (error) {
    const code = error instanceof RowkeyClientError ? error.code : undefined;
    if (code === 'referenced')
      return { reason: 'those that a delete changes, and it is refused while other rows refer to the row' };
    if (code === 'forbidden')
      return { reason: 'shown to roles that may delete the row and read every row of its table' };
    throw error;
  }
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
