import type { Entity } from '../api/model.ts';
import { toAddress } from './router.ts';

/** The field that other entities refer to, and the index that leads from it to one row unless the field is the whole key. */
export function referredField({
  key,
  indexes,
}: Entity): { readonly field: string; readonly index?: string } | undefined {
  const [first = ''] = key.fields;
  if (key.fields.length === 1) return { field: first };
  const lookup = Object.entries(indexes).find(
    ([, { of, fields, unique }]) =>
      of === 'one' && unique && fields.length === 1 && key.fields.includes(fields[0] ?? ''),
  );
  return lookup && { field: lookup[1].fields[0] ?? '', index: lookup[0] };
}

/** The page of the row to which a value refers. */
export function referenceAddress(target: Entity, value: string): string | undefined {
  const { field, index } = referredField(target) ?? {};
  if (field === undefined) return undefined;
  const rows = ['entities', target.name, 'rows'];
  return index === undefined ? toAddress([...rows, value]) : toAddress(rows, { by: index, [`key.${field}`]: value });
}
