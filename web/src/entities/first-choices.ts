import type { Api } from '../api/api.ts';
import { type Entity, labelOf, type Model, type Roles } from '../api/model.ts';
import { parseListQuery } from './list-query.ts';
import { createPageReader } from './read-page.ts';
import { findOpening, findPreview, findRead, waysToRead } from './ways.ts';

/** Enough to choose from. Whoever has more rows types the value. */
const MOST_CHOICES = 50;

interface Choice {
  readonly value: string;
  /** The label of the row, or the value. */
  readonly text: string;
}

export interface Choices {
  readonly items: readonly Choice[];
  /** True if the entity has no other values. */
  readonly isWhole: boolean;
}

/**
 * The values of a field in the first rows of an entity that the caller may read, with the labels of the rows; with `typed`, in the first rows
 * whose label begins with it, by an index in the order of labels. Undefined if no list shows them.
 */
export async function readChoices(
  api: Api,
  { entity, field, model, user, signal, typed }: ChoicesOf & { readonly signal: AbortSignal; readonly typed?: string },
): Promise<Choices | undefined> {
  const ways = waysToRead(entity, model, user);
  const ofLabels = ways.find(
    (each) =>
      each.kind === 'index' && entity.label !== undefined && findRead(each, {})?.range?.bounded === entity.label,
  );
  const way = typed === undefined ? (findOpening(entity, ways) ?? findPreview(entity, ways)) : ofLabels;
  const columns = [field, entity.label ?? field].filter((name) => way?.available.includes(name));
  if (!way || !columns.includes(field)) return undefined;
  const query = {
    ...parseListQuery(new URLSearchParams()),
    by: way.id,
    columns,
    ...(typed === undefined ? {} : { from: typed, to: typed }),
  };
  const page = await createPageReader(api, entity, way, query)?.({ after: undefined, top: MOST_CHOICES, signal });
  if (!page) return undefined;
  const index = entity.indexes[way.id];
  const isWhole = page.next === undefined && !index?.sparse && way.needs.length === 0 && way.kind !== 'mine';
  const values = new Map(page.items.map((row) => [String(row[field]), labelOf(entity, row)] as const));
  return { items: [...values].map(([value, text]) => ({ value, text: text ?? value })), isWhole };
}

interface ChoicesOf {
  readonly entity: Entity;
  readonly field: string;
  readonly model: Model;
  readonly user: Roles;
}
