import { defineCodec, definePlaces, type Entity } from '../kit/define.ts';
import { type StoredRow, textIn } from './stored-rows.ts';

/** What a stored row is, in the words of the documentation; undefined for a row that no entity of the model has. */
export function kindOf(
  entities: readonly Entity[],
  { table, raw }: StoredRow,
): { kind: string; entity: Entity; of: string } | undefined {
  const type = String(textIn(raw.EntityType));
  const row = { table, partition: raw.partitionKey, row: raw.rowKey, etag: '', properties: raw };
  for (const entity of entities) {
    const isSource = raw.SourceRow === undefined;
    if (type === entity.name && isSource && table === entity.archive?.table)
      return { kind: 'archived entity', entity, of: 'archive' };
    if (type === entity.name && isSource && table === entity.table) {
      if (entity.series)
        return {
          kind:
            /_\d+$/.test(raw.rowKey) && raw.rowKey.split('_').length > entity.row.template.split('_').length
              ? 'second row of a series'
              : 'series',
          entity,
          of: entity.name,
        };
      return { kind: entity.childOf ? 'child' : entity.union ? 'entity of a kind' : 'entity', entity, of: entity.name };
    }
    if (type.startsWith(`${entity.name}.`) && defineCodec.parseFurtherRowKey(raw.rowKey))
      return { kind: 'further row', entity, of: type };
    if (type === 'placeholder' && entity.countedBy.length > 0 && table === entity.table)
      return { kind: 'count without its entity', entity, of: type };
    const totals = Object.entries(entity.totals).find(([, declared]) => declared.table === table);
    if (totals) return { kind: type === 'total' ? 'total' : 'contribution', entity, of: totals[0] };
    const isEntry = type === 'list' || type === entity.name || type === 'claim';
    const projection =
      isEntry &&
      definePlaces
        .projectionsOf(entity)
        .find((one) => definePlaces.isRowAt(one.at, row) && (type === 'list') === Boolean(one.merge?.list));
    if (!projection) continue;
    const { settle, isPartial } = projection;
    const kind =
      type === 'list'
        ? settle === 'transaction'
          ? 'list in the partition'
          : 'list elsewhere'
        : settle === 'transaction'
          ? 'copy in the partition'
          : settle === 'claim'
            ? 'unique value'
            : isPartial
              ? 'partial copy'
              : 'copy elsewhere';
    return { kind, entity, of: projection.name };
  }
  return undefined;
}
