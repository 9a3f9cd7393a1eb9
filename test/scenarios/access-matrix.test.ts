import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { PNG } from '../../local/walk/png.ts';
import {
  CALLERS,
  type Caller,
  EVERYTHING,
  expected,
  fieldsOfOwner,
  has,
  OWNER,
  sampleTargets,
  seesAll,
  TARGETS,
  type Target,
  visibleFields,
} from '../access-expectations.ts';
import { contains } from '../contains.ts';
import { model } from '../fixtures/model.ts';
import { SAMPLES } from '../fixtures/samples.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { storageBlobs } from '../kit/storage.ts';
import { PATIENCE_MS } from '../patience.ts';
import { useProduct } from '../product.ts';

/**
 * Every role × route × entity over HTTP, compared with access-expectations.ts.
 *
 * A usual run visits a sample: three of the roles at one route of every kind, and each route with one role that it rejects.
 */

const product = useProduct(import.meta.url);

const sampled = sampleTargets();

interface Instance {
  readonly entity: Entity;
  readonly values: Values;
}
const instances: Instance[] = [];
const seeds = new Map<string, Instance>();
let counter = 1;
const tokens = new Map<string, string>();

interface Reply {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
  readonly body: any;
}

async function send(caller: Caller, method: string, path: string, body?: unknown): Promise<Reply> {
  const known = JSON.stringify(caller);
  const token = tokens.get(known) ?? (await product.token(caller.roles, caller.email));
  tokens.set(known, token);
  const headers: Record<string, string> = caller.roles.length > 0 ? { authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers['content-type'] = Buffer.isBuffer(body) ? 'image/png' : 'application/json';
  const init = body === undefined ? {} : { body: Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body) };
  for (const until = Date.now() + PATIENCE_MS; ; ) {
    const response = await fetch(new URL(path, product.url), { method, headers, ...init });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    // A message in progress blocks a writer.
    if (response.status === 503 && Date.now() < until && path !== '/api/health') await sleep(200);
    else
      return { status: response.status, text, headers: response.headers, body: isJson ? JSON.parse(text) : undefined };
  }
}

async function must(reply: Promise<Reply>, ...statuses: number[]): Promise<Reply> {
  const { status, text, ...rest } = await reply;
  if (!statuses.includes(status)) throw new Error(`${status} ${text}`);
  return { status, text, ...rest };
}

const pathOf = (name: string, entity: Entity, values: Values) =>
  ['/api', name, ...entity.keyFields.map((field) => encodeURIComponent(String(values[field])))].join('/');

/** Creates an entity and returns it as a caller with full access reads it. */
async function create(entity: Entity, over: Values = {}): Promise<Instance> {
  const n = counter++;
  const sample = { ...SAMPLES[entity.name]?.(n), ...over };
  if (entity.childOf) {
    const parent = { ...SAMPLES[entity.childOf.name]?.(n) };
    await must(send(EVERYTHING, 'POST', `/api/${entity.childOf.name}`, parent), 201);
    instances.push({ entity: entity.childOf, values: parent });
  }
  const { series } = entity;
  if (series)
    await must(send(EVERYTHING, 'PATCH', pathOf(entity.name, entity, sample), { counts: { [series.first]: 7 } }), 204);
  else {
    const { body } = await must(send(EVERYTHING, 'POST', `/api/${entity.name}`, sample), 201);
    Object.assign(sample, body);
    for (const field of Object.keys(entity.attachments))
      await must(send(EVERYTHING, 'PUT', `${pathOf(entity.name, entity, sample)}/${field}`, PNG), 200);
  }
  const { body } = await must(send(EVERYTHING, 'GET', pathOf(entity.name, entity, sample)), 200);
  const instance = { entity, values: body };
  instances.push(instance);
  return instance;
}

/** An entity whose delete does not fit into a transaction. */
async function withManyChildren(entity: Entity): Promise<Instance> {
  const one = await create(entity);
  const [child] = entity.children;
  const actions = Array.from({ length: 100 }, (_, index) => ({
    create: {
      ...SAMPLES[child?.name ?? '']?.(counter++),
      ...baseValues.pick(one.values, entity.keyFields),
      year: 2_000 + index,
    },
  }));
  await must(send(EVERYTHING, 'POST', `/api/${child?.name}/batch`, { actions }), 200);
  return one;
}

async function archived(entity: Entity, given?: Instance): Promise<Instance> {
  const one = given ?? (await create(entity));
  await must(send(EVERYTHING, 'POST', `${pathOf(entity.name, entity, one.values)}/archive`), 202);
  await arrived(pathOf(entity.archive?.name ?? '', entity, one.values));
  return one;
}

async function arrived(path: string): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  while ((await send(EVERYTHING, 'GET', path)).status !== 200) {
    if (Date.now() > until) throw new Error(`${path} is not there.`);
    await sleep(100);
  }
}

/** Values of a poison message and of an index row without an entity. */
const POISON_EMAIL = 'zpoison@contoso.com';
const LEFT_OVER_EMAIL = 'zleftover@contoso.com';

/** Stores an index row without an entity. The check that runs each hour removes it. */
async function leaveOver(): Promise<void> {
  await product.storage.table('employeesbyemail').upsertEntity({
    partitionKey: 'email_zz',
    rowKey: LEFT_OVER_EMAIL,
    EntityType: 'employees',
    SourcePartition: 'Zgone',
    SourceRow: 'empid_799999',
  });
}

async function poison(): Promise<string> {
  const indexEntry = { index: 'emailCompanyWide', table: 'employeesbyemail', partition: 'email_00', row: POISON_EMAIL };
  const items = [{ partition: 'Zpoison', row: 'empid_700000', indexEntries: [indexEntry] }];
  const intent = { version: 1, intent: randomUUID(), entity: 'employees', table: 'employees', items };
  await product.storage.queue('index-changes-poison').sendMessage(JSON.stringify(intent));
  expect(await product.runTimer('poison')).toBe(202);
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const { body } = await must(send(EVERYTHING, 'GET', '/api/operations/poison?top=1000'), 200);
    const found = body.items.find((item: { text: string }) => item.text.includes(intent.intent));
    if (found) return found.id;
    if (Date.now() > until) throw new Error('The message is not listed.');
    await sleep(100);
  }
}

beforeAll(async () => {
  // Orders need a customer.
  const customer = { city: 'Zref', customerId: 'ZREF', companyName: 'Zref' };
  await must(send(EVERYTHING, 'POST', '/api/customers', customer), 201);
  for (const entity of model.list)
    seeds.set(entity.name, await create(entity, entity.name === 'employees' ? { email: OWNER } : {}));
  for (const entity of model.list)
    if (entity.archive) seeds.set(entity.archive.name, { ...(await archived(entity)), entity: entity.archive });
  for (const { route, parts } of TARGETS) {
    const seed = seeds.get(parts[0] ?? '');
    if (parts[1] === 'by' && seed) await filled(route.path, seed.values);
  }
  await leaveOver();
  await poison();
});

async function filled(path: string, values: Values): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const { status, body } = await send(EVERYTHING, 'GET', fill(path, values));
    if (status === 200 && (body.items === undefined || body.items.length > 0)) return;
    if (Date.now() > until) throw new Error(`${path} does not show what was created.`);
    await sleep(100);
  }
}

function fill(path: string, values: Values): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, field: string) => {
    const value = values[field];
    if (value === undefined) throw new Error(`${path} needs ${field}.`);
    return encodeURIComponent(String(Array.isArray(value) ? value[0] : value));
  });
  return `/api/${filled}`;
}

interface Request {
  readonly path: string;
  readonly body?: unknown;
  /** The entity of the request, if the request addresses one. */
  readonly instance?: Instance | undefined;
}

/** A new entity; a child has the parent of `sibling`, or is in the archived parent. */
function sampleOf(entity: Entity, sibling: Values): Values {
  const values = SAMPLES[entity.name]?.(counter++) ?? {};
  return entity.childOf
    ? { ...values, ...baseValues.pick(sibling, entity.childOf.keyFields), year: 2_000 + (counter % 900) }
    : values;
}

/** Returns a request that succeeds for an allowed caller. With `fresh`, the request changes an entity of its own. */
async function requestFor({ route, parts, entity }: Target, fresh: boolean): Promise<Request> {
  const { method, path } = route;
  if (path === 'grants') return { path: '/api/grants', body: { entity: 'employees', scope: 'own' } };
  if (path === 'me') return { path: '/api/me' };
  if (parts[1] === 'why') {
    const { entity: of, values } = seeds.get('employees') as Instance;
    const body = {
      entity: of.name,
      key: baseValues.pick(values, of.keyFields),
      caller: { subject: 'ann', roles: ['reader'] },
    };
    return { path: '/api/operations/why', body };
  }
  if (path === 'transact') {
    const employee = SAMPLES.employees?.(counter++);
    return { path: '/api/transact', body: { actions: [{ employees: { create: employee } }] } };
  }
  if (path === 'query') {
    const single = [...seeds.values()].filter((one) => !one.entity.series);
    const reads = single.slice(0, 16).map(({ entity: one, values }) => {
      return [one.name, { range: one.name, partition: baseValues.pick(values, one.partition.fields) }];
    });
    return { path: '/api/query', body: { reads: Object.fromEntries(reads) } };
  }
  if (parts[0] === 'operations' || !entity) {
    if (parts[1] === 'audit') {
      const [from, to] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
      return { path: `/api/${path}?from=${from}&to=${to}&top=1000` };
    }
    if (path === 'operations/period-archives/grants') {
      const name = 'logins/2020-01-01/1.ndjson.gz';
      const metadata = { state: 'verified', rows: '1', hash: '' };
      const client = product.storage.container(storageBlobs.PERIOD_ARCHIVES_CONTAINER).getBlockBlobClient(name);
      await client.upload('', 0, { metadata });
      return { path: `/api/${path}`, body: { name } };
    }
    if (path === 'operations/period-archives/lines') {
      const name = `logins/2020-01-02/${counter++}.ndjson.gz`;
      return { path: `/api/${path}`, body: { name, after: 0, lines: ['{}'], isLast: true } };
    }
    const inArchive = seeds.get(parts[2] ?? '');
    if (parts[1] === 'import' && entity && inArchive)
      return { path: `/api/${path}`, body: { actions: [{ put: sampleOf(entity, inArchive.values) }] } };
    if (parts[1] === 'files' && inArchive)
      return { path: fill(path, inArchive.values), ...(method === 'PUT' ? { body: PNG } : {}), instance: inArchive };
    if (parts[1] === 'grants' && method === 'POST') {
      const body = { subject: 'somebody who asks for none' };
      if (path.endsWith('restore')) await must(send(EVERYTHING, 'POST', '/api/operations/grants/revoke', body), 200);
      return { path: `/api/${path}`, body };
    }
    const id = path.includes('{id}') ? await poison() : '';
    const built = entity ? Object.keys(definePlaces.shapesOf(entity)) : [];
    const filledPath = fill(path, { id, index: parts[1] === 'reindex' ? String(built[0]) : 'former' });
    if (path.endsWith('/replays')) return { path: filledPath, body: { queue: 'none' } };
    return { path: filledPath + (method === 'GET' ? '' : '?top=1000').repeat(path.includes('{id}') ? 0 : 1) };
  }
  const seed = seeds.get(parts[0] ?? '');
  if (!seed) throw new Error(`There is none of ${parts[0]}.`);
  const isArchive = entity.archive?.name === parts[0];
  const isWrite = method !== 'GET' && path !== entity.name && parts.at(-1) !== 'batch';
  // An owner has one entity, which stays; only its photo changes.
  const isAttachment = parts.some((part) => part in entity.attachments);
  const instance = fresh && isWrite && !isAttachment ? await (isArchive ? archived(entity) : create(entity)) : seed;
  const at = (more: Values = {}) => fill(path, { ...instance.values, ...more });
  if (isAttachment) {
    if (parts.at(-1) === 'grants') {
      await must(send(EVERYTHING, 'PUT', at().replace(/\/grants$/, ''), PNG), 200);
      return { path: at(), instance };
    }
    if (parts.at(-1) === 'uploads') return { path: at(), body: { type: 'image/png', bytes: PNG.length }, instance };
    if (parts.at(-1) === '{uploadId}') {
      const asked = await must(
        send(EVERYTHING, 'POST', at({ uploadId: '' }).replace(/\/$/, ''), { type: 'image/png', bytes: PNG.length }),
        201,
      );
      const put = await fetch(asked.body.url, {
        method: 'PUT',
        headers: asked.body.headers,
        body: new Uint8Array(PNG),
      });
      expect(put.status).toBe(201);
      return { path: at({ uploadId: asked.body.uploadId }), instance };
    }
    if (method === 'GET') await must(send(EVERYTHING, 'PUT', at(), PNG), 200);
    return { path: at(), ...(method === 'PUT' ? { body: PNG } : {}), instance };
  }
  if (parts.at(-1) === '{operationId}') {
    const begin = at({ operationId: '' }).replace(/\/$/, '');
    if (parts.at(-2) === 'delete') {
      const [place = ''] = parts;
      const one = await withManyChildren(entity);
      if (place !== entity.name) await archived(entity, one);
      const where = pathOf(place, entity, one.values);
      const { body } = await must(send(EVERYTHING, 'DELETE', where), 202);
      return { path: `${where}/delete/${body.operationId}`, instance: one };
    }
    const one = await create(entity);
    const where = begin.replace(pathOf(entity.name, entity, instance.values), pathOf(entity.name, entity, one.values));
    const { body } = await must(
      send(EVERYTHING, 'POST', where, { [entity.movable[0] ?? '']: `Zthere${counter++}` }),
      202,
    );
    return { path: `${where}/${body.operationId}`, instance: one };
  }
  const { series } = entity;
  if (series) {
    const isSpan = parts.length < entity.keyFields.length + 1;
    if (method === 'GET') return { path: isSpan ? `${at()}?from=2026-01-01&to=2026-01-01` : at(), instance };
    const slot = { [series.name]: series.first };
    if (method === 'PATCH') return { path: at(), body: { counts: { [series.first]: 9 } }, instance };
    return { path: at(slot), body: method === 'PUT' ? { count: 9 } : { by: 1 }, instance };
  }
  const sample = () => sampleOf(entity, seed.values);
  if (path === entity.name) return { path: at(), ...(method === 'GET' ? {} : { body: sample() }) };
  if (parts.at(-1) === 'batch') return { path: at(), body: { actions: [{ put: sample() }] } };
  if (method === 'PUT') {
    const written = Object.keys(SAMPLES[entity.name]?.(0) ?? {});
    return { path: at(), body: baseValues.pick(instance.values, written), instance };
  }
  if (method === 'PATCH') return { path: at(), body: {}, instance };
  if (
    method === 'DELETE' &&
    parts.length === entity.partition.fields.length + 1 &&
    parts.length <= entity.keyFields.length
  ) {
    const first = instance.values[entity.row.fields[0] ?? ''];
    return {
      path: `${at()}?from=${encodeURIComponent(String(first))}&to=${encodeURIComponent(String(first))}`,
      instance,
    };
  }
  if (parts.at(-1) === 'move')
    return { path: at(), body: { [entity.movable[0] ?? '']: `Zthere${counter++}` }, instance };
  if (path.includes('/totals/byMonth/')) return { path: at({ soldOn: String(instance.values.soldOn).slice(0, 7) }) };
  return { path: at(), instance };
}

interface Texts {
  readonly known: Set<string>;
  /** Without the known ones. */
  readonly hidden: Set<string>;
  /** The number of instances that the sets include. */
  included: number;
}
const textsOf = new Map<Caller, Texts>();

/** The texts of all instances that the caller may read in none of them. */
function hiddenFrom(caller: Caller): ReadonlySet<string> {
  const employees = model.list.find(({ name }) => name === 'employees') as Entity;
  const inMessages = seesAll(employees, caller) ? [] : [POISON_EMAIL, LEFT_OVER_EMAIL];
  const texts = textsOf.get(caller) ?? { known: new Set(), hidden: new Set(inMessages), included: 0 };
  textsOf.set(caller, texts);
  const { known, hidden } = texts;
  for (const { entity, values } of instances.slice(texts.included)) {
    const visible = [...visibleFields(entity, caller), ...fieldsOfOwner(entity, caller, values)];
    // A kind has only two values, and the day of a change or period is today.
    const common = ['kind', entity.expiry?.clock, entity.period?.field];
    for (const [field, value] of Object.entries(values))
      for (const one of [value].flat())
        if (typeof one === 'string' && one.length > 4 && !common.includes(field)) {
          if (visible.includes(field)) {
            known.add(one);
            hidden.delete(one);
          } else if (!known.has(one)) hidden.add(one);
        }
  }
  texts.included = instances.length;
  return hidden;
}

/** Fails if a response contains a text that the caller neither sent nor may read in any entity. */
function expectNothingHidden(caller: Caller, { path, body }: Request, { text, headers }: Reply, what: string): void {
  // The caller of a change is not a field of an entity.
  const sentBack = `${text.replace(/"by":"[^"]*"/g, '')} ${decodeURIComponent([...headers.values()].join(' ').replace(/%(?![\da-f]{2})/gi, '%25'))}`;
  const sent = `${decodeURIComponent(path)} ${Buffer.isBuffer(body) ? '' : JSON.stringify(body)}`;
  const found = [...hiddenFrom(caller)].filter((value) => contains(sentBack, value) && !sent.includes(value));
  expect(found, what).toEqual([]);
}

/**
 * Fails if an entity in a response has other fields than the caller may read; a writer without read access gets the
 * key.
 */
function expectFields({ entity, route, parts }: Target, caller: Caller, { path }: Request, reply: Reply): void {
  if (!entity || !reply.body || reply.status >= 300 || path.includes('explain')) return;
  const isEntity = parts[0] === 'operations' ? parts[1] === 'scan' : /^(GET|POST|PUT|PATCH)$/.test(route.method);
  const isOther =
    parts.some((part) => part in entity.attachments) ||
    parts[1] === 'totals' ||
    route.name.endsWith('-span') ||
    /^(batch|archive|move|\{operationId\})$/.test(parts.at(-1) ?? '');
  if (!isEntity || isOther || parts.at(-1) === 'increments') return;
  const visible = visibleFields(entity, caller);
  const allowed = visible.length > 0 ? visible : entity.keyFields;
  const items: Values[] = reply.body.items ?? [reply.body];
  for (const item of items) {
    expect(
      Object.keys(item).filter((field) => ![...allowed, ...fieldsOfOwner(entity, caller, item)].includes(field)),
      `${route.name} for ${caller.name}`,
    ).toEqual([]);
    const whole = instances.find(
      (one) => one.entity.name === entity.name && entity.keyFields.every((field) => one.values[field] === item[field]),
    );
    if (!whole || visible.length === 0 || route.method !== 'GET') continue;
    // Photos and counts change during the test, and a partial copy in an index contains only some fields.
    const changing = ['photo', 'picture', 'counts', 'employeeCount'];
    // A range omits large fields unless they are selected.
    const omitted = route.name === `${entity.name}-range` ? [...changing, ...entity.large] : changing;
    const shown = parts[1] === 'by' ? Object.keys(item) : visible;
    const wanted = baseValues.pick(
      whole.values,
      shown.filter((field) => !omitted.includes(field)),
    );
    expect(item, `${route.name} for ${caller.name}`).toMatchObject(wanted);
  }
}

test('creates one of every entity, with all of its fields', () => {
  expect(Object.keys(SAMPLES).sort()).toEqual(model.list.map(({ name }) => name).sort());
});

describe.each(CALLERS)('$name', (caller) => {
  test.each(
    (sampled.get(caller) ?? []).map((target) => [`${target.route.method} /api/${target.route.path}`, target] as const),
  )(
    '%s',
    async (what, target) => {
      for (const explain of [true, false]) {
        const outcome = expected(target, caller, explain);
        const request = await requestFor(target, outcome === 'open' && !explain);
        const path = explain ? `${request.path}${request.path.includes('?') ? '&' : '?'}explain=true` : request.path;
        const reply = await send(caller, target.route.method, path, request.body);
        const said = `${what} for ${caller.name}${explain ? ', explained' : ''}: ${reply.status} ${reply.text.slice(0, 300)}`;
        if (outcome === 'open') {
          const { success } = target.route;
          // Nothing is explained without a token.
          const explained = target.route.roles ? 200 : 400;
          const fine = explain ? [explained] : [success.status, ...(success.unread ? [204] : [])];
          // A weekly check may not have run yet, and no former index exists.
          if (/^operations-(verify|clean-up)-\w+$/.test(target.route.name)) fine.push(404);
          expect(fine, said).toContain(reply.status);
          // The status of an import is that of its rows.
          if (target.parts[1] === 'import' && !explain)
            expect(reply.body.results, said).toMatchObject([{ status: 201 }]);
        } else expect(reply.status, said).toBe(outcome);
        expectNothingHidden(caller, { ...request, path }, reply, said);
        expectFields(target, caller, { path }, reply);
        if (target.route.path.endsWith('/increments') && outcome === 'open' && !explain)
          expect(reply.body !== undefined, said).toBe(has(caller, target.entity?.access.read));
      }
    },
    1_800_000,
  );

  test.each(
    model.list.flatMap((entity) =>
      Object.keys(entity.access.restricted ?? {}).map((field) => [entity.name, field, entity] as const),
    ),
  )('asks for %s by the restricted field %s', async (name, field, entity) => {
    const seed = seeds.get(name);
    // Storage compares neither, whatever the caller may read.
    if (!seed || entity.encrypted.includes(field) || entity.wide) return;
    const partition = entity.partition.fields.map((part) => encodeURIComponent(String(seed.values[part]))).join('/');
    const list = entity.lookup ? `/api/${name}` : `/api/${name}/${partition}`;
    const asked = await send(caller, 'GET', `${list}?${field}=${seed.values[field]}`);
    const isVisible = visibleFields(entity, caller).includes(field);
    expect(asked.status).toBe(caller.roles.length === 0 ? 401 : isVisible ? 200 : 403);
  });
});

test('a rejected request changes nothing', async () => {
  for (const [name, { entity, values }] of seeds) {
    const { body } = await must(send(EVERYTHING, 'GET', pathOf(name, entity, values)), 200);
    const rest = baseValues.omit(values, ['photo', 'picture', 'employeeCount']);
    expect(body, name).toMatchObject(rest);
  }
});

test('an included child is presented by the access rules of its own declaration', async () => {
  const review = instances.find(({ entity }) => entity.name === 'reviews');
  const employees = model.list.find(({ name }) => name === 'employees') as Entity;
  for (const caller of CALLERS) {
    const path = `${pathOf('employees', employees, review?.values ?? {})}?include=reviews`;
    const reply = await send(caller, 'GET', path);
    const mayRead = has(caller, employees.access.read) && has(caller, review?.entity.access.read);
    expect(reply.status, caller.name).toBe(caller.roles.length === 0 ? 401 : mayRead ? 200 : 403);
    expectNothingHidden(caller, { path }, reply, caller.name);
  }
});

test('an operator gets keys in findings, messages and the audit log only with a role that may read the entity', async () => {
  const operator = CALLERS.find(({ name }) => name === 'an operator') as Caller;
  const both = CALLERS.find(({ name }) => name === 'an operator who is hr') as Caller;
  const [from, to] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
  for (const [method, path, key] of [
    ['GET', '/api/operations/poison?top=1000', POISON_EMAIL],
    ['POST', '/api/operations/verify/employees?top=1000', LEFT_OVER_EMAIL],
    ['GET', `/api/operations/audit?from=${from}&to=${to}&top=1000`, 'Zhome'],
  ] as const) {
    expect((await must(send(operator, method, path), 200)).text, path).not.toContain(key);
    await leaveOver();
    let text = '';
    for (let next: string | undefined = path; next; ) {
      const page = await must(send(both, method, next), 200);
      text += page.text;
      next = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1];
    }
    expect(text, path).toContain(key);
  }
});

describe('a role that may write and not read', () => {
  const operator = CALLERS.find(({ name }) => name === 'an operator') as Caller;
  const hr = CALLERS.find(({ name }) => name === 'hr') as Caller;

  test('does not learn from a batch that the stored entity equals the sent one', async () => {
    const { door: _, ...key } = (SAMPLES.doorevents?.(counter++) ?? {}) as Values;
    const put = { ...key, door: 'East' };
    // A patch without fields is compared with the stored entity.
    const body = { actions: [{ put }, { patch: key }] };
    const statuses = async (caller: Caller) => {
      const reply = await must(send(caller, 'POST', '/api/doorevents/batch', body), 200);
      return reply.body.results.map(({ status }: { status: number }) => status);
    };
    expect(await statuses(operator)).toEqual([200, 200]);
    expect(await statuses(hr)).toEqual([200, 304]);
  });

  test.each([-1, -1_000, -(2 ** 31), 1_000_001, 2 ** 31 - 1])(
    'gets the same response whatever the count is when it adds %d',
    async (by) => {
      const seed = pathOf(
        'messagehours',
        seeds.get('messagehours')?.entity as Entity,
        SAMPLES.messagehours?.(counter++) ?? {},
      );
      const replies: object[] = [];
      for (const count of [0, 1, 999, 2 ** 31 - 1]) {
        await must(send(EVERYTHING, 'PUT', `${seed}/3`, { count }), 204);
        const { status, body } = await send(operator, 'POST', `${seed}/3/increments`, { by });
        replies.push({ status, type: body?.type, detail: body?.detail });
      }
      expect(replies).toEqual(replies.map(() => ({ ...replies[0], status: 403 })));
      expect((await send(hr, 'GET', seed)).body.counts[3]).toBe(2 ** 31 - 1);
    },
  );

  test('may add up to a million at a time', async () => {
    const seed = pathOf(
      'messagehours',
      seeds.get('messagehours')?.entity as Entity,
      SAMPLES.messagehours?.(counter++) ?? {},
    );
    for (const by of [0, 1, 1_000_000]) await must(send(operator, 'POST', `${seed}/3/increments`, { by }), 204);
    expect((await send(hr, 'GET', seed)).body.counts[3]).toBe(1_000_001);
  });
});
