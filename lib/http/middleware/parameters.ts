import { queryError, readBoolean } from '../query.ts';
import type { Route } from '../route.ts';
import type { Middleware } from './middleware.ts';

/** Rejects parameters of the query that the route does not have: a misspelt one would have no effect. */
export const parameters: Middleware = (exchange, next) => {
  const { route, query } = exchange;
  const isExplanation = readBoolean(query, 'explain');
  // An explanation names tables and blobs, which nobody may read without a token.
  if (isExplanation && !route.roles) throw queryError('explain', 'is not accepted by a public route', 'no explain');
  // Every route accepts `explain`, and no route reads it.
  query.delete('explain');
  for (const name of query.keys()) checkParameter(route, name, query.getAll(name));
  return next({ ...exchange, isExplanation });
};

function checkParameter({ query = {}, filters = {} }: Route, name: string, values: readonly string[]): void {
  const filter = Object.hasOwn(filters, name) ? filters[name] : undefined;
  if (filter?.refused !== undefined)
    throw queryError(name, `is no filter: the field ${filter.refused}`, 'other fields');
  if (filter) return;
  const names = [...Object.keys(query), ...Object.keys(filters).filter((field) => !filters[field]?.refused)];
  if (names.includes(name) && values.length === 1) return;
  const why = names.includes(name) ? 'is given more than once' : 'is unknown';
  throw queryError(name.slice(0, 100), why, names.length > 0 ? names.join(', ') : 'no query parameters');
}
