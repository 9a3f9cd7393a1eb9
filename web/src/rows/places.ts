import type { Explanation } from '../api/entity-client.ts';
import type { Entity } from '../api/model.ts';

export interface Place {
  readonly what: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
}

interface Action {
  readonly row: string;
  readonly kind: string;
}

/**
 * The rows of an entity: the one that its read gets, and those that its delete would write. Intents and messages are left
 * out, because they last as long as a write.
 */
export function findPlaces(entity: Entity, read: Explanation, removal: Explanation): Place[] {
  const places = new Map<string, Place>();
  const add = (place: Place) => {
    const id = JSON.stringify([place.table, place.partition, place.row]);
    if (!places.has(id)) places.set(id, place);
  };
  const own = read.steps.find((step) => step.read === 'row');
  const ownTable = String(own?.table ?? '');
  const ownPartition = String(own?.partition ?? '');
  if (own) add({ what: 'the row', table: ownTable, partition: ownPartition, row: String(own.row) });
  for (const step of removal.steps) {
    if (step.write === 'rows')
      for (const { row } of step.actions as readonly Action[]) {
        const [table, partition] = [String(step.table), String(step.partition)];
        add({ what: describe(entity, { table, partition, row }, ownTable, ownPartition), table, partition, row });
      }
    else if (step.read === 'row') {
      const { table, partition, row } = step as Readonly<Record<string, unknown>>;
      const place = { table: String(table), partition: String(partition), row: String(row) };
      add({ what: describe(entity, place, ownTable, ownPartition), ...place });
    } else if (step.read === 'blob') {
      add({ what: 'a blob', table: String(step.container), partition: '', row: String(step.name) });
    }
  }
  return [...places.values()];
}

/** The index whose row key begins like this one, if there is one. */
function describe(entity: Entity, place: Omit<Place, 'what'>, ownTable: string, ownPartition: string): string {
  const isSame = place.table === ownTable && place.partition === ownPartition;
  const found = Object.entries(entity.indexes).find(([, index]) => {
    const [start = ''] = index.row.template.split('{');
    const [partitionStart = ''] = index.partition?.template.split('{') ?? [];
    if ((index.partition === undefined) !== isSame) return false;
    return place.row.startsWith(start) && place.partition.startsWith(index.partition ? partitionStart : '');
  });
  if (found) return `index entry: ${found[0]}`;
  return isSame ? 'in the same partition' : 'in another partition';
}
