import { queryError, readBoolean } from '../query.ts';
import type { Middleware } from '../route.ts';

/** Rejects parameters of the query that the route does not have: a misspelt one would have no effect. */
export const parameters: Middleware = ({ roles, query = {}, filters = {} }, next) => {
  const comparable = Object.keys(filters).filter((field) => filters[field]?.refused === undefined);
  const names = [...Object.keys(query), ...comparable];

  function check(name: string, values: readonly string[]): void {
    const filter = Object.hasOwn(filters, name) ? filters[name] : undefined;
    if (filter?.refused !== undefined)
      throw queryError(name, `is no filter: the field ${filter.refused}`, 'other fields');
    if (filter) return;
    if (names.includes(name) && values.length === 1) return;
    const why = names.includes(name) ? 'is given more than once' : 'is unknown';
    throw queryError(name.slice(0, 100), why, names.length > 0 ? names.join(', ') : 'no query parameters');
  }

  return (exchange) => {
    const { query: given } = exchange;
    // Most requests have no query.
    if (given.size === 0) return next(exchange);
    const isExplanation = readBoolean(given, 'explain');
    // An explanation names tables and blobs, which nobody may read without a token.
    if (isExplanation && !roles) throw queryError('explain', 'is not accepted by a public route', 'no explain');
    // Every route accepts `explain`, and no route reads it.
    given.delete('explain');
    for (const name of given.keys()) check(name, given.getAll(name));
    return next({ ...exchange, isExplanation });
  };
};
