import { isEmptyCell, parseCell } from '../../../lib/define/declaration/csv-value.ts';
import type { Entity, Values } from '../api/model.ts';

/** The values of the cells of a CSV row, by the types of the model. An empty cell has no value. */
export function toTypedRow(entity: Entity, cells: Readonly<Record<string, string>>): Values {
  const typed = Object.entries(cells).flatMap(([field, text]) => {
    const type = entity.fields[field]?.type ?? 'String';
    return isEmptyCell(type, text) ? [] : [[field, parseCell(type, text)] as const];
  });
  return Object.fromEntries(typed);
}
