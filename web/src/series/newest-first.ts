import type { Api } from '../api/api.ts';
import type { Listing } from '../api/entity-client.ts';
import {
  canList,
  canRead,
  type Entity,
  hasRange,
  neededFields,
  type Roles,
  readableFields,
  type Values,
} from '../api/model.ts';

/** A list whose first page has the newest rows. */
interface NewestFirst {
  readonly id: string;
  readonly title: string;
  /** The fields to give. */
  readonly fields: readonly string[];
  /** Rows without one of these fields are not in the list. */
  readonly needs: readonly string[];
  list(api: Api, given: Values): Listing<Values>;
}

/** The lists of an entity that begin with the newest rows: those whose row key begins with an inverted instant. */
export function newestFirstLists(entity: Entity, user: Roles): readonly NewestFirst[] {
  const { key, indexes, name } = entity;
  const readable = readableFields(entity, user);
  const own = hasRange(entity) && canList(entity, user) && /^[^{]*\{\w+~\}/.test(key.row.template);
  const ofIndexes = Object.entries(indexes).flatMap(([index, described]) => {
    const { ranges, row } = described;
    const range = ranges.find(({ order }) => order === 'descending');
    const isAllowed = canList(entity, user, index) && row.fields.every((field) => readable.includes(field));
    if (!range || !isAllowed) return [];
    const list = (api: Api, given: Values) => {
      const client = api.entity(name).by[index];
      if (!client) throw new Error(`No index "${index}".`);
      return client.range(given);
    };
    return [{ id: index, title: `index ${index}`, fields: range.fields, needs: neededFields(entity, described), list }];
  });
  return [
    ...(own
      ? [
          {
            id: '',
            title: 'partition',
            fields: key.partition.fields,
            needs: [],
            list: (api: Api, given: Values) => api.entity(name).range(given),
          },
        ]
      : []),
    ...ofIndexes,
  ];
}

export function hasNewestFirst(entity: Entity, user: Roles): boolean {
  return canRead(entity, user) && newestFirstLists(entity, user).length > 0;
}
