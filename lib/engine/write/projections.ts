import type { Values } from '../../base/values.ts';
import { type Change, liveValues, type PlanDraft } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { IndexEntry, Projection } from '../../define/declaration/projection.ts';
import { isSameEntry, isSibling, siblingProjectionsOf } from '../../define/places/index-entries.ts';

/** Plans the rows in the partition that follow from its entities: copies and lists. */

/** The row keys of the lists that an entity leaves or joins. They must be read before the change is planned. */
export function listRowsOf(entity: Entity, change: Change): string[] {
  const lists = siblingProjectionsOf(entity).filter(({ merge }) => merge?.list);
  return lists.flatMap((projection) => {
    const { left, joined } = compareRows(projection, change);
    return [...left, ...joined].map(({ row }) => row);
  });
}

/** Appends the actions of the projections of a feature for all changes of one partition. Pure. */
export function planProjections(
  projections: readonly Projection[],
  changes: readonly Change[],
  draft: PlanDraft,
): void {
  const siblings = projections.filter(isSibling);
  if (siblings.length === 0) return;
  for (const change of changes)
    for (const projection of siblings) if (!projection.merge) planCopies(projection, change, draft);
  planLists(siblings, changes, draft);
}

/** A new copy is inserted, so that another entity's copy of the same key is a conflict and never overwritten. */
function planCopies(projection: Projection, change: Change, { actions }: PlanDraft): void {
  const { left, joined, kept } = compareRows(projection, change);
  const part = { of: 'copy', fields: projection.at.row.fields } as const;
  const put = (kind: 'insert' | 'upsert', { row }: IndexEntry, values: Values) =>
    actions.push({ action: { kind, row, properties: projection.properties?.(values) ?? {} }, part });
  const { after } = change;
  if (after) for (const entry of kept) put('upsert', entry, after);
  if (after) for (const entry of joined) put('insert', entry, after);
  for (const { row } of left) actions.push({ action: { kind: 'delete', row }, part });
}

/** Two indexes may have a list in one row, which a transaction can name only once. */
function planLists(
  projections: readonly Projection[],
  changes: readonly Change[],
  { siblings, actions, writeId }: PlanDraft,
): void {
  const members = changes.flatMap((change) =>
    projections.flatMap((projection) => {
      const list = projection.merge?.list;
      return list ? [{ list, ...compareRows(projection, change) }] : [];
    }),
  );
  const textsOf = (entries: readonly IndexEntry[], key: string) =>
    entries.flatMap(({ row, member }) => (row === key && member !== undefined ? [member] : []));
  for (const row of new Set(members.flatMap(({ left, joined }) => [...left, ...joined].map((entry) => entry.row)))) {
    const found = siblings.get(row);
    const add = members.flatMap(({ joined }) => textsOf(joined, row));
    const remove = members.flatMap(({ left }) => textsOf(left, row));
    const action = members[0]?.list.change(found, row, { add, remove });
    if (action) actions.push({ action, part: { of: 'sibling' } });
    // The member is already in the list. Writing the list makes a concurrent removal of the member conflict.
    else if (found && add.length > 0)
      actions.push({
        action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag: found.etag },
        part: { of: 'sibling' },
      });
  }
}

/** The rows, or members of lists, that a change removes, adds and keeps. */
function compareRows({ rows }: Projection, { before, after }: Change) {
  const values = liveValues(before);
  const former = values ? rows(values) : [];
  const next = after ? rows(after) : [];
  const [left, joined, kept]: [IndexEntry[], IndexEntry[], IndexEntry[]] = [[], [], []];
  for (const entry of former) if (!hasEntry(next, entry)) left.push(entry);
  for (const entry of next) (hasEntry(former, entry) ? kept : joined).push(entry);
  return { left, joined, kept };
}

function hasEntry(entries: readonly IndexEntry[], entry: IndexEntry): boolean {
  return entries.some((other) => isSameEntry(entry, other));
}
