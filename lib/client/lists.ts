import type { Values } from '../base/values.ts';
import type { IndexDescription } from '../define/declaration/model-description.ts';
import type { Listing, Page, PageOptions } from './client-types.ts';
import type { EntityCalls, ListOptions } from './core.ts';
import { invalidInput, undefinedIfNotFound } from './errors.ts';
import {
  checkFields,
  type EntityDescription,
  partitionPath,
  rangeFields,
  toListQuery,
  toPath,
  valuesOf,
} from './paths.ts';
import { nextOf } from './transport.ts';

/** Lists of entities: ranges of a partition, and reads through an index. */

/** Begins the position of a page that storage returned. The API has its own positions. */
const OF_STORAGE = 'storage ';

type ReadOwn = (entity: EntityDescription, options: PageOptions) => Promise<Page<Values> | undefined>;

export interface Lister extends Pick<EntityCalls, 'list'> {
  range(partition: Values, options?: ListOptions): ReturnType<EntityCalls['list']>;
  /** Reads through an index. */
  readIndex(name: string): (given: Values, options?: ListOptions) => unknown;
}

export function createLister(
  { core, run, send }: Omit<EntityCalls, 'list'>,
  { explains, isDirect }: { readonly explains: boolean; readonly isDirect: boolean },
): Lister {
  function listPages(
    { first, signal, ...query }: ListOptions,
    pathOfList: (entity: EntityDescription) => string | Promise<string>,
    own?: ReadOwn,
  ) {
    const readPage = async (entity: EntityDescription, options: PageOptions): Promise<Page<Values>> => {
      const { top, after } = options;
      const ownPage = after === undefined || after.startsWith(OF_STORAGE) ? await own?.(entity, options) : undefined;
      if (ownPage) return ownPage;
      const path = (await pathOfList(entity)) + toListQuery({ ...query, top, continuation: after });
      const { text, headers } = await send({ method: 'GET', path, signal: options.signal });
      return { items: JSON.parse(text).items, next: nextOf(headers) };
    };
    const page = ({ top, ...rest }: PageOptions = {}) => {
      const most = first === undefined ? top : Math.min(first, top ?? 100, 1_000);
      return run((entity) => readPage(entity, { signal, ...rest, ...(most === undefined ? {} : { top: most }) }));
    };
    return explains ? page() : createListing(page as Listing<Values>['page'], first);
  }

  function range(partition: Values, options: ListOptions = {}) {
    const { select, first, signal, ...others } = options;
    const isWhole = Object.values(others).every((other) => other === undefined);
    const pathOfList = (entity: EntityDescription) => partitionPath(entity, partition);
    return listPages(options, pathOfList, async (entity, { top, after, signal }) => {
      const read = { key: partition, select, top, after: after?.slice(OF_STORAGE.length), signal };
      const isOwn = isDirect && isWhole && !explains;
      const page = isOwn ? await (await core.direct()).page(entity.name, entity, read) : undefined;
      return page && { ...page, next: page.next && OF_STORAGE + page.next };
    });
  }

  function readIndex(indexName: string) {
    const indexOf = ({ name, indexes }: EntityDescription): IndexDescription => {
      const index = Object.hasOwn(indexes, indexName) ? indexes[indexName] : undefined;
      if (!index) throw invalidInput(`${name} has no index "${indexName}".`);
      return index;
    };
    const path = ({ name }: EntityDescription, fields: readonly string[], given: Values) =>
      toPath([name, 'by', indexName, ...valuesOf(fields, given)]);
    const pathOfValue = (entity: EntityDescription, given: Values) => {
      const index = indexOf(entity);
      checkFields(index, given, `${entity.name}.by.${indexName}`);
      return path(entity, index.fields, given);
    };
    const read = (given: Values, options: ListOptions = {}) => {
      const listing = listPages(options, (entity) => pathOfValue(entity, given));
      if (listing instanceof Promise) return listing;
      const readOne = async (entity: EntityDescription) => {
        const one = pathOfValue(entity, given);
        if (indexOf(entity).of === 'many') return listing;
        const query = toListQuery({ select: options.select });
        const request = { method: 'GET', path: one + query, signal: options.signal };
        return undefinedIfNotFound(send(request).then(({ text }) => JSON.parse(text)));
      };
      // Only the model says whether one entity or a list is meant, so the result is both until it is used.
      let result: Promise<unknown> | undefined;
      const settled = () => {
        result ??= run(readOne);
        return result;
      };
      return {
        ...listing,
        // biome-ignore lint/suspicious/noThenProperty: awaiting is how a caller asks for one entity
        then: (...handlers: Parameters<Promise<unknown>['then']>) => settled().then(...handlers),
        catch: (onError: (error: unknown) => unknown) => settled().catch(onError),
        finally: (onEnd: () => void) => settled().finally(onEnd),
      };
    };
    const readRange = (given: Values, options: ListOptions = {}) =>
      listPages(options, (entity) =>
        path(entity, rangeFields(indexOf(entity), given, `the index "${indexName}" of ${entity.name}`), given),
      );
    return Object.assign(read, { range: readRange });
  }

  return { list: listPages, range, readIndex };
}

function createListing(page: Listing<Values>['page'], first = Number.POSITIVE_INFINITY): Listing<Values> {
  return {
    page,
    async *[Symbol.asyncIterator]() {
      let left = first;
      for (
        let after: string | undefined, isFirst = true;
        left > 0 && (isFirst || after !== undefined);
        isFirst = false
      ) {
        const { items, next } = await page({ after, ...(left < 100 ? { top: left } : {}) });
        yield* items;
        left -= items.length;
        after = next;
      }
    },
  };
}
