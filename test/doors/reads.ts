import { isDeepStrictEqual } from 'node:util';
import { baseValues } from '../kit/base.ts';
import { keyOf, pathOf, type Thing, type Ways } from './doors.ts';

/** Undefined if each way to read the thing returns it or refuses; else what was wrong. */
export type Read = (thing: Thing, ways: Ways) => Promise<string | undefined>;

const COMPARED = ['room', 'id', 'handle', 'label', 'amount', 'at', 'free'];
const differs = (found: unknown, thing: Thing) =>
  !isDeepStrictEqual(plain(baseValues.pick((found ?? {}) as Thing, COMPARED)), plain(baseValues.pick(thing, COMPARED)));
/** `-0` is 0 in JSON. Members keep their order and their names, `__proto__` too. */
const plain = (values: unknown) => JSON.parse(JSON.stringify(values));

function wrong(found: unknown, thing: Thing): string | undefined {
  if (found === undefined) return 'LOST';
  return differs(found, thing) ? `OTHER ${JSON.stringify(found).slice(0, 120)}` : undefined;
}

/** A client may refuse what no path can have, and says so. */
async function orRefusal(read: () => Promise<string | undefined>): Promise<string | undefined> {
  return read().catch((error) => {
    if (['invalid-input', 'invalid-query'].includes(error?.code)) return undefined;
    throw error;
  });
}

/** The one of several that has the key of the thing. */
const same = (items: readonly object[], thing: Thing) =>
  items.find((item) => isDeepStrictEqual(keyOf(item as Thing), keyOf(thing)));

export const READS: Readonly<Record<string, Read>> = {
  'store by key': async (thing, { store }) => wrong((await store.things.get(keyOf(thing)))?.values, thing),
  'store by index': async (thing, { store }) => wrong(await store.things.by.handle({ handle: thing.handle }), thing),
  'client by key': (thing, { client }) =>
    orRefusal(async () => wrong((await client.things.get(keyOf(thing)))?.values, thing)),
  'client by index': (thing, { client }) =>
    orRefusal(async () => wrong(await client.things.by.handle({ handle: thing.handle }), thing)),
  'client by range': (thing, { client }) =>
    orRefusal(async () =>
      wrong(same(await Array.fromAsync(client.things.by.label.range({ label: thing.label })), thing), thing),
    ),
  'client in the partition': (thing, { client }) =>
    orRefusal(async () => wrong(same(await Array.fromAsync(client.things.range({ room: thing.room })), thing), thing)),
  'client by filter': (thing, { client }) =>
    orRefusal(async () =>
      wrong(
        same(
          await Array.fromAsync(client.things.range({ room: thing.room }, { where: { label: thing.label } as never })),
          thing,
        ),
        thing,
      ),
    ),
  'client by totals': (thing, { client }) =>
    orRefusal(async () => {
      const { count } = await client.things.totals.byLabel.get({ label: thing.label });
      return count === 0 ? 'LOST in the total' : undefined;
    }),
  query: (thing, { client }) =>
    orRefusal(async () => {
      const { key, index, range, filtered } = await client.query(({ things }) => ({
        key: things.get(keyOf(thing)),
        index: things.by.handle({ handle: thing.handle }),
        range: things.by.label.range({ label: thing.label }),
        filtered: things.range({ room: thing.room }, { where: { handle: thing.handle } }),
      }));
      const error = [key, index, range, filtered].find((read) => read.error)?.error;
      if (error) throw error;
      const filter = filtered.value?.items ?? [];
      if (filter.length !== 1) return `filter finds ${filter.length}`;
      return (
        wrong(key.value?.values, thing) ??
        wrong(index.value, thing) ??
        wrong(same(range.value?.items ?? [], thing), thing) ??
        wrong(filter[0], thing)
      );
    }),
  GET: async (thing, { product }) => {
    if ([thing.room, thing.id].some((part) => part === '.' || part === '..')) return undefined;
    const headers = { authorization: `Bearer ${await product.token('editor')}` };
    const response = await fetch(`${product.url}/api${pathOf(thing)}`, { headers });
    if (response.status === 400) {
      // Servers reject a NUL in a path before the app sees it.
      if (pathOf(thing).includes('%00')) return undefined;
      const { code } = (await response.json()) as { code?: string };
      return code ? undefined : 'a refusal without a problem';
    }
    return response.ok ? wrong(await response.json(), thing) : `GET ${response.status}`;
  },
};
