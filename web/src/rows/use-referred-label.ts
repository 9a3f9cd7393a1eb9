import { type Entity, labelOf, type Values } from '../api/model.ts';
import { referredRow, sourceOf } from '../api/referred-row.ts';
import { useApp } from '../app/context.ts';
import { useLoaded } from '../ui/use-loaded.ts';

/** The label of the row to which a value of `values` belongs, read in one transaction. Undefined if there is none, or if the caller does not reach it. */
export function useReferredLabel(entity: Entity, field: string | undefined, values: Values): string | undefined {
  const { api, model, user } = useApp();
  const source = field === undefined ? undefined : sourceOf(entity, field, model, user);
  const value = values[field ?? ''];
  const isRead = source?.target.label !== undefined && value !== undefined && value !== null && value !== '';
  const row = isRead ? referredRow(source.target, source.reference, String(value), values) : undefined;
  const load = async (signal: AbortSignal) => {
    if (!source || !row) return undefined;
    const client = api.entity(source.target.name);
    const select = [source.target.label ?? ''];
    const found =
      row.index === undefined
        ? (await client.get(row.key, { select, signal }))?.values
        : await client.by[row.index]?.(row.key, { select, signal });
    return labelOf(source.target, found);
  };
  return useLoaded(load, JSON.stringify([source?.target.name, row])).result;
}
