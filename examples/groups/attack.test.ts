import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { model as packs } from '../../model/model.ts';
import { openAccessApp, type Reply } from '../../test/access-app.ts';
import { aligned, attacksOn, SEEN } from '../../test/attack.ts';
import { baseValues } from '../../test/kit/base.ts';
import { definePlaces, type LinkedModel } from '../../test/kit/define.ts';
import { httpDoor } from '../../test/kit/http.ts';
import { operationsModel } from '../../test/kit/operations.ts';
import { type Storage, storageRows } from '../../test/kit/storage.ts';
import { type OpenApi, withoutReferences } from '../../test/openapi.ts';
import { IS_EVERY_POINT } from '../../test/points.ts';
import { aimedAttacks, valuesByField } from '../../test/rules/aimed-attacks.ts';
import { callersOf, DeclaredRules, pathOf } from '../../test/rules/declared-rules.ts';
import type { Caller } from '../../test/rules/evaluator.ts';
import { type AnyStore, fillWorld, type Marked, storeOf } from '../../test/rules/marked-world.ts';
import { model as groups } from './model.ts';

/**
 * Callers with a valid token send hostile requests to an app with rules on rows, by every route. They know all keys, ETags and
 * continuations. No response may have a text of an entity that its caller cannot read, and what no caller may change stays the same.
 * ATTACK_REQUESTS=20000 for an attack; ATTACK_SEED repeats the requests of a run.
 */

const USUAL = 200;
const REQUESTS = Number(process.env.ATTACK_REQUESTS ?? (IS_EVERY_POINT ? 3_000 : USUAL));
const SEED = Number(process.env.ATTACK_SEED ?? inject('seed'));
const MOST = 6;
const IS_WHOLE = REQUESTS > USUAL;

/** Every row of every table, by its key. */
async function dump(storage: Storage, { list }: LinkedModel): Promise<Map<string, string>> {
  const rows = new Map<string, string>();
  for (const table of operationsModel.resourcesOf(list, Date.now()).tables)
    for await (const row of storage.table(table).listEntities())
      rows.set(JSON.stringify([table, row.partitionKey, row.rowKey]), JSON.stringify(row));
  return rows;
}

/** Every stored entity, as the app itself reads it. */
async function readAll(store: AnyStore, { list }: LinkedModel, partitions: readonly Marked[]): Promise<Marked[]> {
  const all: Marked[] = [];
  for (const entity of list.filter(
    ({ series, partition, keyFields }) => !series && partition.fields.every((field) => keyFields.includes(field)),
  )) {
    const known = partitions.map(({ values }) => baseValues.pick(values, entity.partition.fields));
    const given = new Map(known.map((one) => [JSON.stringify(one), one]));
    for (const partition of given.values()) {
      const isOne = entity.partition.fields.every(
        (field) => partition[field] !== undefined && entity.schema.shape[field]?.safeParse(partition[field]).success,
      );
      if (!isOne) continue;
      for await (const values of store[entity.name].range(partition)) all.push({ entity, values, mark: '' });
    }
  }
  return all;
}

const models: [string, LinkedModel][] = [
  ['groups', groups],
  ...(IS_WHOLE ? [['packs', packs] satisfies [string, LinkedModel]] : []),
];

test.each(models)(
  `${REQUESTS} hostile requests neither show nor change what is out of reach: %s`,
  { tags: ['slow'], timeout: 7_200_000 },
  async (name, given) => {
    // What an operation of the app does beside the rules is the decision of the app.
    const model = { ...given, operations: {}, prefix: `attack${name}` };
    const app = await openAccessApp(import.meta.url, model, { settleInline: 10_000 });
    const store = storeOf(model, app.engine);
    const stored = await fillWorld(store, model, { most: MOST });
    const rules = new DeclaredRules(stored);
    const callers = callersOf(model.list, stored);
    const hidden = new Map(callers.map((caller) => [caller, stored.filter((one) => !rules.may(caller, 'read', one))]));
    // An owner may change the files of the own entity.
    const isOwned = ({ entity: { access }, values }: Marked) =>
      access.own !== undefined &&
      callers.some(({ claims }) => Object.values(claims).some((claim) => Object.values(values).includes(claim)));
    const isFixed = (by: DeclaredRules) => (one: Marked) =>
      !isOwned(one) && callers.every((caller) => !by.may(caller, 'update', one) && !by.may(caller, 'delete', one));
    const fixed = stored.filter(isFixed(rules));
    expect(fixed.length).toBeGreaterThan(model.list.length / 2);
    expect(
      callers.some((caller) => stored.some((one) => one.entity.access.rules && rules.may(caller, 'read', one))),
    ).toBe(true);

    const seen = await collectKnown(app.ask, model, stored, callers);
    const violations: string[] = [];
    const byStatus = new Map<number, number>();
    let count = 0;

    async function attack(
      caller: Caller,
      method: string,
      path: string,
      body: unknown,
      headers: Record<string, string>,
    ): Promise<void> {
      const reply = await app.ask(caller, method as 'GET', path, body, headers);
      byStatus.set(reply.status, (byStatus.get(reply.status) ?? 0) + 1);
      const sent = `${decode(path)} ${Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body)}`;
      const said = `${JSON.stringify(caller)} ${method} ${path} ${sent.slice(0, 500)}: ${reply.status} ${reply.text.slice(0, 500)}`;
      if (reply.status >= 500 && !reply.headers.has('retry-after')) violations.push(`failed: ${said}`);
      const inHeaders = [...reply.headers].flat().map((text) => decode(text) ?? text);
      const shown = `${reply.text} ${inHeaders.join(' ')} ${await follow(reply)}`;
      for (const one of hidden.get(caller) ?? []) {
        if (!shown.includes(one.mark) || sent.includes(one.mark)) continue;
        // The rules may let the caller join meanwhile.
        const current = new DeclaredRules(await readAll(store, model, stored));
        if (!current.may(caller, 'read', one)) violations.push(`shows a hidden entity: ${said}`);
      }
      if (reply.status < 300) learn(seen, reply);
    }

    const before = await dump(app.storage, model);
    const first = await readAll(store, model, stored);
    // What the model says to be of a user is erased past the rules: see test/rules/erasing-users.test.ts.
    const routes = httpDoor
      .createRoutes(model)
      .filter(({ isUndescribed, path }) => !isUndescribed && !/^(me\/data|operations\/users\/erase)$/.test(path));
    const openapi = withoutReferences(httpDoor.describeRoutes(routes)) as unknown as OpenApi;
    const fields = valuesByField(model, stored, callers);
    const described = attacksOn(openapi, { restricted: [], stored: fields });
    const attacks = fc.sample(fc.tuple(fc.nat(), fc.oneof(described, aimedAttacks(stored, fields))), {
      seed: SEED,
      numRuns: REQUESTS,
    });
    for (const [nth, one] of attacks) {
      const caller = callers[nth % callers.length];
      if (!caller) throw new Error('The model has no rules.');
      const path = fill(one.path, seen);
      const { pathname, search } = new URL(path.startsWith('/') ? path : `/api/${path}`, 'http://localhost');
      // The host rejects the others.
      if (!pathname.startsWith('/api/') || decode(pathname) === undefined) continue;
      count += 1;
      const isDescribed = 'operationId' in one;
      const hasBody = one.method !== 'GET' && one.method !== 'HEAD';
      const body = isDescribed ? aligned({ ...one, path }) : one.body;
      const raw = typeof body === 'string' && isDescribed ? Buffer.from(body) : body;
      const headers = Object.entries(isDescribed ? one.headers : {}).map(([name, value]) => [name, fill(value, seen)]);
      const type = raw instanceof Uint8Array ? { 'content-type': 'application/json' } : {};
      await attack(caller, one.method, pathname.slice('/api/'.length) + search, hasBody ? raw : undefined, {
        ...type,
        ...Object.fromEntries(headers),
      });
    }
    const statuses = [...byStatus].sort(([a], [b]) => a - b).map(([status, times]) => `${status}: ${times}`);
    if (IS_WHOLE) console.log(`ATTACK_SEED=${SEED}, ${count} requests to ${name}, by status: ${statuses.join(', ')}`);
    expect(violations.slice(0, 5)).toEqual([]);
    expect(byStatus.get(404)).toBeGreaterThan(REQUESTS / 100);
    expect(byStatus.get(200)).toBeGreaterThan(REQUESTS / 100);

    const now = await readAll(store, model, stored);
    const [then, later] = [rules, new DeclaredRules(now)];
    const after = await dump(app.storage, model);
    await expectUnchanged({ before, after, store, stored, fixed: fixed.filter(isFixed(later)) });
    const known = new Set(first.map((one) => pathOf(one)));
    // Whatever is new is what a caller may create, or may have changed into it.
    const isAllowed = (one: Marked) =>
      callers.some((caller) =>
        (['create', 'update'] as const).some((action) => [then, later].some((each) => each.may(caller, action, one))),
      );
    const wrong = now.filter((one) => !known.has(pathOf(one)) && !isAllowed(one));
    expect(wrong.map(({ entity, values }) => [entity.name, values])).toEqual([]);
  },
);

interface Compared {
  /** Every row, before the attack and after it. */
  readonly before: ReadonlyMap<string, string>;
  readonly after: ReadonlyMap<string, string>;
  readonly store: AnyStore;
  readonly stored: readonly Marked[];
  /** Those that no caller may change. */
  readonly fixed: readonly Marked[];
}

async function expectUnchanged({ before, after, store, stored, fixed }: Compared): Promise<void> {
  const changeable = stored.filter((one) => !fixed.includes(one));
  // A row of another entity may have copies, and change with that entity.
  const isOfOther = (text: string) => changeable.some(({ mark }) => text.includes(mark));
  for (const { entity, values, mark } of fixed) {
    const { table, partition, row } = definePlaces.addressOf(entity, values);
    const place = JSON.stringify([table, partition, row]);
    const own = [...before].filter(([id, text]) => id === place || (text.includes(mark) && !isOfOther(text)));
    for (const [id, text] of own) {
      // A rejected claim of a unique value leaves its mark on the row, and nothing else.
      const [found, expected] = [after.get(id) ?? '', text].map((one) => (id === place ? one : withoutClaim(one)));
      expect(found, `${entity.name} ${JSON.stringify(values)}`).toBe(expected);
    }
    for (const [field, { public: isPublic }] of Object.entries(entity.attachments)) {
      if (isPublic) continue;
      const file = await store[entity.name].files[field].get(baseValues.pick(values, entity.keyFields));
      expect(await file.blob.text()).toContain(mark);
    }
  }
}

/** All keys, ETags and continuations, also those that only other callers get. */
async function collectKnown(
  ask: Awaited<ReturnType<typeof openAccessApp>>['ask'],
  { roles }: LinkedModel,
  stored: readonly Marked[],
  callers: readonly Caller[],
): Promise<Map<string, string[]>> {
  const seen = new Map<string, string[]>();
  const everybody = [...callers, { subject: 'all', roles, claims: {} }];
  for (const one of stored) {
    const place = `/api/${one.entity.name}`;
    seen.set(place, [...(seen.get(place) ?? []), `/api/${pathOf(one)}`]);
    const partition = pathOf(one)
      .split('/')
      .slice(0, 1 + one.entity.partition.fields.length)
      .join('/');
    for (const caller of everybody.slice(-2)) {
      if (one.entity.series) continue;
      for (const path of [pathOf(one), `${partition}?top=1`]) learn(seen, await ask(caller, 'GET', path));
    }
  }
  return seen;
}

/** A text with known values in place of its placeholders. */
function fill(text: string, seen: ReadonlyMap<string, readonly string[]>): string {
  return text.replace(SEEN, (_, kind: string, number: string) => {
    const [of = '', segments] = kind.split(' ');
    const all = seen.get(of) ?? [];
    const found = all[Number(number) % Math.max(1, all.length)];
    // The requested number of key parts from the path of an entity.
    if (segments)
      return (found ?? `${of}/none`)
        .split('/')
        .slice(0, 3 + Number(segments))
        .join('/');
    return found ?? 'none';
  });
}

const REMEMBERED = 300;

function learn(seen: Map<string, string[]>, { headers, text }: Reply): void {
  const found = [
    ['etag', headers.get('etag')],
    ['continuation', /[?&]continuation=([^&>]+)/.exec(headers.get('link') ?? '')?.[1]],
    ['id', /"(?:operationId|uploadId)":"([^"]+)"/.exec(text)?.[1]],
  ] as const;
  for (const [kind, value] of found) if (value) seen.set(kind, [...(seen.get(kind) ?? []), value].slice(-REMEMBERED));
}

/** What the signature of a response opens. */
async function follow({ status, body }: Reply): Promise<string> {
  if (status >= 300 || typeof body?.url !== 'string' || !body.url.startsWith('http')) return '';
  const url = new URL(body.url);
  if (typeof body.token === 'string') {
    const token = new URLSearchParams(body.token);
    for (const [name, value] of token) url.searchParams.set(name, value);
    url.searchParams.set('$filter', keysOf(token));
  }
  const response = await fetch(url, { headers: { accept: 'application/json;odata=nometadata' } });
  if (url.searchParams.get('sp')?.includes('r')) expect([200, 404]).toContain(response.status);
  return response.text();
}

const KEY_BOUNDS = {
  spk: 'PartitionKey ge',
  srk: 'RowKey ge',
  epk: 'PartitionKey le',
  erk: 'RowKey le',
} as const;

/** The rows that the service opens for a signature of one partition. The emulator opens the whole table. */
function keysOf(token: URLSearchParams): string {
  return Object.entries(KEY_BOUNDS)
    .flatMap(([name, comparison]) =>
      token.has(name) ? [`${comparison} ${storageRows.literal(token.get(name) ?? '')}`] : [],
    )
    .join(' and ');
}

function withoutClaim(row: string): string {
  return JSON.stringify(
    baseValues.omit(row === '' ? {} : JSON.parse(row), ['etag', 'timestamp', 'Claim', 'ClaimExpires']),
  );
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
