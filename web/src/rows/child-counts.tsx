import { canList, canRead, type Entity, type Values } from '../api/model.ts';
import { useApp } from '../app/context.ts';
import { joinNames, plural } from '../ui/format.ts';
import { useLoaded } from '../ui/use-loaded.ts';

/** Enough to know what a delete takes along. */
const MOST_COUNTED = 100;

interface ChildCountsProps {
  readonly entity: Entity;
  readonly rowKey: Values;
  /** The children are counted again for another one. */
  readonly etag: string;
}

/** How many children a row has, of each entity that the caller may list: one query for each, of one page. */
export function ChildCounts({ entity, rowKey, etag }: ChildCountsProps) {
  const { api, model, user } = useApp();
  const children = entity.children.flatMap((name) => model.entities.get(name) ?? []);
  const isListed = (child: Entity) => canRead(child, user) && canList(child, user);
  const load = (signal: AbortSignal) =>
    Promise.all(
      children.filter(isListed).map(async (child) => {
        const { partition, row } = child.key;
        const first = rowKey[row.fields[0] ?? ''];
        const bounds = typeof first === 'string' ? { from: first, to: first } : {};
        const where = Object.fromEntries(
          entity.key.fields.filter((field) => !partition.fields.includes(field)).map((field) => [field, rowKey[field]]),
        );
        const given = Object.fromEntries(partition.fields.map((field) => [field, rowKey[field]]));
        const list = api.entity(child.name).range(given, { ...bounds, where, select: child.key.fields });
        const { items, next } = await list.page({ top: MOST_COUNTED, signal });
        return `${next === undefined ? '' : 'more than '}${plural(items.length, 'row')} of ${child.name}`;
      }),
    );
  const { result, error } = useLoaded(load, JSON.stringify([entity.name, rowKey, etag]));
  if (children.length === 0) return null;
  const hidden = children.filter((child) => !isListed(child)).map(({ name }) => name);
  const counted = result?.map((text) => (text.startsWith('0 ') ? text.replace('0 rows', 'no row') : text)) ?? [];
  return (
    <p role="status">
      {error !== undefined
        ? 'Its children could not be counted. '
        : result
          ? counted.length > 0 && `With it go its children: ${joinNames(counted, 'and')}. `
          : 'Counting its children… '}
      {hidden.length > 0 && `Your roles do not count ${joinNames(hidden, 'and')}, which go along, too.`}
    </p>
  );
}
