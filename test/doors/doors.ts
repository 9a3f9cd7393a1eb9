import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { createClient } from '../../lib/client/index.ts';
import type { Rowkey } from '../../lib/index.ts';
import type { Product } from '../product.ts';
import type { model } from './model.ts';

export type Thing = Record<'room' | 'id' | 'handle' | 'label', string> & Record<string, unknown>;

/** A thing whose one field has the value of an input: in process, and as JSON text. */
export interface Written {
  readonly base: Thing;
  readonly field: string;
  /** With the value. Undefined if only JSON text can spell it. */
  readonly thing: Thing | undefined;
  /** JSON text of the value. Undefined if JSON cannot spell it. */
  readonly value: string | undefined;
  /** JSON text of the thing. */
  readonly text: string | undefined;
}

export interface Ways {
  readonly product: Product;
  readonly client: ReturnType<typeof createClient<typeof model>>;
  readonly store: Rowkey<(typeof model)['entities']>['store'];
}

/** `held`, or the code of the refusal. */
export type Outcome = string;
/** Writes the thing; undefined if this door cannot spell it. */
type Door = (written: Written, ways: Ways) => Promise<Outcome | undefined>;

export const HELD = 'held';

/** The refusals of client and store, and of responses. Anything else is no refusal. */
function refusalOf(error: unknown): Outcome {
  const { code, status } = error as { code?: unknown; status?: unknown };
  if (typeof code === 'string' && !/^(?:unavailable|internal|network|response)/.test(code)) return code;
  throw new Error(`Not refused, but failed: ${status ?? ''} ${code ?? ''}`, { cause: error });
}

const attempt = (write: Promise<unknown>): Promise<Outcome> => write.then(() => HELD, refusalOf);

async function send(
  { product }: Ways,
  method: string,
  path: string,
  body: string | undefined,
  type = 'application/json',
): Promise<Outcome> {
  const headers = { authorization: `Bearer ${await product.token('editor')}`, 'content-type': type };
  const response = await fetch(`${product.url}/api${path}`, { method, headers, ...(body ? { body } : {}) });
  const text = await response.text();
  if (!response.ok) {
    // Servers reject a NUL in a path before the app sees it.
    if (response.status === 400 && path.includes('%00') && text === '') return 'empty 400';
    const problem = text && JSON.parse(text);
    if (response.status >= 500 || !problem.code) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return problem.code;
  }
  const results = text && path === '/things/batch' ? JSON.parse(text).results : [];
  const failed = results.find(({ problem }: { problem?: object }) => problem);
  if (failed?.status >= 500) throw new Error(`${method} ${path}: ${JSON.stringify(failed)}`);
  return failed ? failed.problem.code : HELD;
}

export const pathOf = ({ room, id }: Pick<Thing, 'room' | 'id'>) =>
  `/things/${encodeURIComponent(room)}/${encodeURIComponent(id)}`;

export const keyOf = ({ room, id }: Thing) => ({ room, id });

/** Stores the thing past the door that a test opens. */
export const putThing = ({ store }: Ways, { room, id, ...fields }: Thing): Promise<unknown> =>
  store.things.put({ room, id }, fields as never);

/** The text without the fields of the key, which the path has. */
function withoutKey({ base, field, value = '', thing }: Written): { path: string; body: string } | undefined {
  const key = thing ?? base;
  // A URL spells dots as steps, and only well-formed texts.
  if (![key.room, key.id].every((part) => part.isWellFormed() && part !== '' && part !== '.' && part !== '..'))
    return undefined;
  const isKey = field === 'room' || field === 'id';
  const { room: _, id: __, ...rest } = base;
  return { path: pathOf(key), body: isKey ? JSON.stringify(rest) : replaceField(rest, field, value) };
}

/** The JSON of a thing in which one field has this text. */
export function replaceField(thing: object, field: string, text: string): string {
  const others = Object.entries(thing).filter(([name]) => name !== field);
  const members = others.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return `{${[...members, `${JSON.stringify(field)}:${text}`].join(',')}}`;
}

/** The doors that take one thing. The import takes many, and the query, which asks for them, is with the reads. */
export const DOORS: Readonly<Record<string, Door>> = {
  POST: async ({ text }, ways) => (text === undefined ? undefined : send(ways, 'POST', '/things', text)),
  PUT: async (written, ways) => {
    const given = written.text === undefined ? undefined : withoutKey(written);
    return given && send(ways, 'PUT', given.path, given.body);
  },
  PATCH: async (written, ways) => {
    const given = written.text === undefined ? undefined : withoutKey(written);
    if (!given) return undefined;
    const isKey = written.field === 'room' || written.field === 'id';
    const first = isKey && written.thing ? written.thing : written.base;
    const there = await attempt(putThing(ways, first));
    if (there !== HELD) return there;
    const outcome = await send(ways, 'PATCH', given.path, given.body, 'application/merge-patch+json');
    if (outcome === HELD) return outcome;
    const found = await ways.store.things.get(keyOf(first));
    if (!isDeepStrictEqual(found?.values, first)) throw new Error(`A refused PATCH left ${JSON.stringify(found)}.`);
    await ways.store.things.delete(keyOf(first));
    return outcome;
  },
  batch: async ({ text }, ways) =>
    text === undefined ? undefined : send(ways, 'POST', '/things/batch', `{"actions":[{"create":${text}}]}`),
  transact: async ({ text }, ways) =>
    text === undefined ? undefined : send(ways, 'POST', '/transact', `{"actions":[{"things":{"create":${text}}}]}`),
  client: async ({ thing }, { client }) => (thing ? attempt(client.things.create(thing as never)) : undefined),
  // The last one: what it stores is kept.
  store: async ({ thing }, { store }) => (thing ? attempt(store.things.create(thing as never)) : undefined),
};

/** Imports things in one file, and returns the outcome of each. */
export async function importAll(all: readonly Written[], { product }: Ways): Promise<(Outcome | undefined)[]> {
  const lines = all.filter(({ text }) => text !== undefined);
  const file = join(product.folder, 'things.ndjson');
  await writeFile(file, lines.map(({ text }) => `${text}\n`).join(''));
  const { code, said } = await product.run('import', 'things', file);
  const refused = new Set(Array.from(said.matchAll(/^Line (\d+): /gm), ([, line]) => Number(line)));
  if ((code === 0) !== (refused.size === 0)) throw new Error(`The import ended with ${code}: ${said}`);
  return all.map((one) => {
    const line = lines.indexOf(one) + 1;
    return line === 0 ? undefined : refused.has(line) ? 'line refused' : HELD;
  });
}
