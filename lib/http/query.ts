import { RowkeyError } from '../base/errors.ts';

export function queryError(name: string, why: string, accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `Query parameter "${name}" ${why}.`, { field: name, accepted });
}

/** A Boolean parameter, false by default. Throws `invalid-input`. */
export function readBoolean(query: URLSearchParams, name: string): boolean {
  const text = query.get(name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw queryError(name, 'must be true or false', 'true, false');
}

/** The items of a comma-separated parameter; undefined without it. */
export function readList(query: URLSearchParams, name: string): string[] | undefined {
  return query
    .get(name)
    ?.split(',')
    .map((item) => item.trim());
}
