import type { Values } from '../api/model.ts';

const { compare } = new Intl.Collator('en', { numeric: true });

/** The rows in the order of a field; those without a value come last. Numbers are compared as such. */
export function sortRows(
  rows: readonly Values[],
  { column, isDescending }: { readonly column: string; readonly isDescending: boolean },
): readonly Values[] {
  const sign = isDescending ? -1 : 1;
  const isAbsent = (value: unknown) => value === undefined || value === null;
  return rows.toSorted((a, b) => {
    const [one, other] = [a[column], b[column]];
    if (isAbsent(one) || isAbsent(other)) return Number(isAbsent(one)) - Number(isAbsent(other));
    if (typeof one === 'number' && typeof other === 'number') return sign * (one - other);
    return sign * compare(toKey(one), toKey(other));
  });
}

function toKey(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
