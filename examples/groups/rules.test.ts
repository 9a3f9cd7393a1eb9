import { describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import { model as packs } from '../../model/model.ts';
import { openAccessApp, type Reply } from '../../test/access-app.ts';
import { baseValues } from '../../test/kit/base.ts';
import { definePlaces, type Entity, type LinkedModel } from '../../test/kit/define.ts';
import { httpDoor, type Route } from '../../test/kit/http.ts';
import { IS_EVERY_POINT, sampleItems } from '../../test/points.ts';
import { callersOf, DeclaredRules, pathOf } from '../../test/rules/declared-rules.ts';
import type { Caller } from '../../test/rules/evaluator.ts';
import { type AnyStore, fillWorld, type Marked, storeOf } from '../../test/rules/marked-world.ts';
import { model as groups } from './model.ts';

/**
 * The rules of the example packs: a caller for each role and claims, at every route. What a caller sees is compared with the naive
 * evaluator, and with a second world that lacks what is out of the caller's reach.
 */

const NOW = Date.now();
const MOST = 4;
/** The requests that change a hidden entity are tried on so many of each kind. */
const TARGETS = IS_EVERY_POINT ? 2 : 1;
/** The paths of a route in a usual run. */
const PATHS = 2;

type Ask = Awaited<ReturnType<typeof openAccessApp>>['ask'];

interface World {
  readonly ask: Ask;
  readonly store: AnyStore;
  readonly stored: readonly Marked[];
}

const opened = new Map<string, Promise<World>>();
let worlds = 0;

/** A world of the model. The marks of two worlds are the same, so that responses can be compared. */
async function openWorld(given: LinkedModel): Promise<World> {
  worlds += 1;
  const model = {
    ...given,
    prefix: `world${[...String(worlds)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`,
  };
  // Without time, what the process remembers stays the same on a busy machine.
  const { ask, engine } = await openAccessApp(import.meta.url, model, { settleInline: 10_000, now: () => NOW });
  const store = storeOf(model, engine);
  let count = 0;
  const mark = () => `mark-${count++}-${'x'.repeat(8)}`;
  return { ask, store, stored: await fillWorld(store, model, { most: MOST, mark }) };
}

/** The world that no test changes. */
function wholeWorld(model: LinkedModel, name: string): Promise<World> {
  const known = opened.get(name) ?? openWorld(model);
  opened.set(name, known);
  return known;
}

const ids = (entity: Entity, items: readonly Values[] = []) =>
  [...new Set(items.map((item) => JSON.stringify(baseValues.pick(item, entity.keyFields))))].sort();

/** The values of some fields, once for each element of a list. */
function selections(values: Values, fields: readonly string[]): Values[] {
  return fields.reduce<Values[]>(
    (some, field) => some.flatMap((one) => [values[field]].flat().map((value) => ({ ...one, [field]: value }))),
    [{}],
  );
}

/** Compares each entity by its key, and each list, with the evaluator. */
async function compareWithEvaluator({ ask, stored }: World, { list }: LinkedModel, caller: Caller): Promise<number> {
  const rules = new DeclaredRules(stored);
  let shown = 0;
  const query = async (read: object) => (await ask(caller, 'POST', 'query', { reads: { r: read } })).body.reads?.r;
  for (const entity of list) {
    const own = stored.filter((one) => one.entity === entity);
    const hasRole = entity.access.read.some((role) => caller.roles.includes(role));
    for (const one of own) {
      const { status, body } = await ask(caller, 'GET', pathOf(one));
      const isShown = rules.may(caller, 'read', one);
      expect(status, `GET ${pathOf(one)} by ${JSON.stringify(caller)}`).toBe(isShown ? 200 : hasRole ? 404 : 403);
      // The counts of a series are the sums of all writes of its span.
      if (isShown && !entity.series) expect(one.values).toMatchObject(baseValues.pick(body, Object.keys(one.values)));
      if (isShown) shown += 1;
    }
    if (!hasRole || entity.series) continue;
    const all = own.map(({ values }) => values);
    const compare = async (what: object, inList: readonly Values[], index?: Entity['indexes'][string]) => {
      const result = await query(what);
      const within = rules.listed(caller, entity, index, inList);
      const said = `${JSON.stringify(what)} by ${JSON.stringify(caller)}: ${JSON.stringify(result)}`;
      expect(result.status, said).toBe(within ? 200 : 403);
      if (within) expect(ids(entity, result.items), said).toEqual(ids(entity, within));
    };
    const { fields } = entity.partition;
    if (fields.every((field) => entity.keyFields.includes(field)))
      for (const partition of distinct(all.map((values) => baseValues.pick(values, fields))))
        await compare(
          { range: entity.name, partition },
          all.filter((values) => has(values, partition)),
        );
    for (const [by, index] of Object.entries(entity.indexes)) {
      const indexed = all.filter((values) => definePlaces.isIndexed(index, values));
      const needed = definePlaces.indexFields(entity, index);
      if (!definePlaces.isOfMany(entity, index) || needed.some((field) => entity.access.restricted?.[field])) continue;
      for (const given of distinct(indexed.flatMap((values) => selections(values, needed))))
        await compare(
          { by, entity: entity.name, values: given },
          indexed.filter((values) => has(values, given)),
          index,
        );
    }
  }
  return shown;
}

const distinct = (all: readonly Values[]) => [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
const has = (values: Values, given: Values) =>
  Object.entries(given).every(([field, value]) => [values[field]].flat().includes(value));

/** What a response says, but its ETags and the names of blobs. */
function said({ status, headers, text }: Reply): unknown {
  return {
    status,
    text: text.replaceAll(/W\/\\?"[^"]*\\?"|\/[\da-f]{8}-[\da-f-]{27}/g, '…'),
    isLast: !headers.has('link'),
    transactions: /desc="(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1],
  };
}

/** The paths of a route for all entities. */
function pathsOf({ path, entity, name }: Route, stored: readonly Marked[]): string[] {
  const paths = stored
    .filter((one) => one.entity === entity)
    .flatMap(({ values }) => {
      const fields = [...path.matchAll(/\{(\w+)\}/g)].map(([, field = '']) => field);
      const { span } = entity?.series ?? {};
      const at = span ? String(values[span.field]) : '';
      return selections(values, fields)
        .filter((given) => fields.every((field) => given[field] !== undefined))
        .map((given) => path.replace(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(String(given[field]))))
        .map((filled) => (name.endsWith('-span') ? `${filled}?from=${at}&to=${at}` : filled));
    });
  return [...new Set(paths)];
}

/** What a caller may try on an entity out of reach, and whether the caller may create such an entity. */
function changesOf(one: Marked, canCreate: boolean): [string, string, unknown?][] {
  const { entity, values } = one;
  const { name, keyFields, attachments, series } = entity;
  const at = pathOf(one);
  const key = baseValues.pick(values, keyFields);
  const fields = Object.keys(entity.schema.shape).filter((field) => !entity.decidedFields.includes(field));
  const changed = baseValues.pick(
    values,
    fields.filter((field) => !keyFields.includes(field)),
  );
  const transact = (action: object) =>
    ['POST', 'transact', { actions: [{ [name]: action }] }] as [string, string, unknown];
  if (series)
    return [
      ['PATCH', at, { counts: { [series.first]: 3 } }],
      ['DELETE', at],
    ];
  return [
    ['PATCH', at, changed],
    ['DELETE', at],
    ['POST', `${name}/batch`, { actions: [{ patch: { ...key, ...changed } }, { delete: key }] }],
    ['POST', `${name}/batch`, { actions: [{ delete: key }], atomic: true }],
    transact({ delete: key }),
    transact({ patch: { ...key, ...changed } }),
    // Whoever may create the entity learns that its key is taken.
    ...(canCreate
      ? []
      : ([
          ['PUT', at, baseValues.pick(values, fields)],
          ['POST', name, baseValues.pick(values, fields)],
          [
            'POST',
            `${name}/batch`,
            { actions: [{ put: baseValues.pick(values, fields) }, { create: baseValues.pick(values, fields) }] },
          ],
          transact({ put: baseValues.pick(values, fields) }),
          transact({ create: baseValues.pick(values, fields) }),
        ] satisfies [string, string, unknown?][])),
    ...(entity.archive ? ([['POST', `${at}/archive`]] satisfies [string, string][]) : []),
    ...(entity.movable.length > 0
      ? ([['POST', `${at}/move`, baseValues.pick({ ...values, ...changed }, entity.movable)]] satisfies [
          string,
          string,
          unknown,
        ][])
      : []),
    ...Object.keys(attachments).flatMap((field): [string, string, unknown?][] => [
      ['GET', `${at}/${field}`],
      ['PUT', `${at}/${field}`, PNG],
      ['DELETE', `${at}/${field}`],
      ['POST', `${at}/${field}/grants`],
      ['POST', `${at}/${field}/uploads`, { type: 'image/png', bytes: PNG.length }],
    ]),
  ];
}

const MODELS: Readonly<Record<string, LinkedModel>> = { groups, 'the sample': packs };

describe.each(sampleItems(Object.keys(MODELS), 'model'))('%s', (name) => {
  const model = MODELS[name] ?? groups;
  test('a caller sees what the evaluator says, and nothing else differs from a world without it', {
    tags: ['slow'],
    timeout: 3_600_000,
  }, async () => {
    const whole = await wholeWorld(model, name);
    const rules = new DeclaredRules(whole.stored);
    const limited = callersOf(model.list, whole.stored);
    const others = model.roles.filter((role) => !limited.some(({ roles }) => roles.includes(role)));
    const callers = [...limited, ...others.map((role) => ({ subject: 'somebody', roles: [role], claims: {} }))];
    const ruled = whole.stored.filter(({ entity }) => entity.access.rules);
    expect(callers.some((caller) => ruled.some((one) => rules.may(caller, 'read', one)))).toBe(true);
    for (const caller of sampleItems(callers, 'caller')) {
      const shown = await compareWithEvaluator(whole, model, caller);
      // What a term looks up stays.
      const known = [caller.subject, ...Object.values(caller.claims).flat()];
      const hidden = ruled.filter(
        (one) =>
          !rules.may(caller, 'read', one) &&
          !one.entity.keyFields.some((field) => known.includes(String(one.values[field]))) &&
          one.entity.children.length === 0,
      );
      if (hidden.length === 0) continue;
      const other = await openWorld(model);
      expect(other.stored.map((one) => pathOf(one))).toEqual(whole.stored.map((one) => pathOf(one)));
      for (const one of hidden.toReversed())
        await other.store[one.entity.name].delete(baseValues.pick(one.values, one.entity.keyFields));
      const compare = async (method: string, path: string, body?: unknown) => {
        const [seen, there] = [
          await whole.ask(caller, method as 'GET', path, body),
          await other.ask(caller, method as 'GET', path, body),
        ];
        expect(said(seen), `${method} ${path} by ${JSON.stringify(caller)}`).toEqual(said(there));
      };
      // Both remember whole lists, and the caller's own entity and memberships, from here on.
      for (const { ask } of [whole, other]) {
        for (const one of ruled) await ask(caller, 'GET', pathOf(one));
        for (const { name: of } of model.list.filter(({ lookup }) => lookup)) await ask(caller, 'GET', of);
      }
      let compared = 0;
      const reads = httpDoor
        .createRoutes(model)
        .filter(
          ({ method, path, isUndescribed, entity }) =>
            method === 'GET' && entity && !isUndescribed && !/status|uploads|operations/.test(path),
        );
      for (const route of reads)
        for (const path of sampleItems(pathsOf(route, whole.stored), 'path', PATHS)) {
          await compare('GET', path);
          await compare('GET', `${path}${path.includes('?') ? '&' : '?'}explain=true`);
          compared += 1;
        }
      const byEntity = Object.values(Object.groupBy(hidden, ({ entity }) => entity.name));
      for (const one of byEntity.flatMap((some = []) => some.slice(0, TARGETS))) {
        const canCreate = rules.may(caller, 'create', one);
        for (const change of changesOf(one, canCreate)) await compare(...change);
        const found = await whole.store[one.entity.name].get(baseValues.pick(one.values, one.entity.keyFields));
        expect(found?.values, pathOf(one)).toEqual(one.values);
      }
      if (IS_EVERY_POINT)
        console.log(`${JSON.stringify(caller)}: ${shown} shown, ${hidden.length} hidden, ${compared} paths`);
    }
  });
});
